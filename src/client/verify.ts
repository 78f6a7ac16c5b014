import type { BookmarkDigest, DigestPart } from '../domain/resources.ts';
import { digestBookmarks, digestTags, type IdRange } from './digests.ts';
import { ApiError } from './errors.ts';
import { MirrorConflict, type MirrorStore } from './mirror.ts';
import {
  type CopyFault,
  type CountedRange,
  MAX_TRIES,
  repairRange,
  repairTags,
  toCopyRange,
  type VerifiableStore,
  type Verifying,
} from './repair.ts';
import type { Requester, RequestOptions } from './requester.ts';
import { sleep } from './timing.ts';
import { UnreadChanges } from './unread-changes.ts';

/**
 * Compares a copy with the service and repairs what differs.
 *
 * 1. Ask for digests of 64 parts of all ids. A part of the copy is right if it has the same digest. It does not matter
 *    that the two digests come from different moments: what has changed in between, later pages of changes contain.
 * 2. Read the changes that the copy has not received yet. A part is right, too, if it has the digest after these.
 * 3. Ask for parts of each remaining part, until the remaining parts are small. Other clients may have changed a part
 *    at the wrong moment. It is then right here.
 * 4. Read the bookmarks of the remaining parts, and repair the copy: see `repairRange`.
 * 5. After a repair, start again, so that digests confirm it.
 *
 * The store's cursor does not move. So a mirror of the same store continues as if nothing had happened.
 */

/** The largest `parts` of `/bookmarks/digest` (docs/contract.md, section 4.2). */
const MAX_PARTS = 64;

/** A part with at most this many bookmarks is read. A larger one is divided first. */
const SMALL_PART = 20;

/**
 * If the service cannot compute digests of a range in time, the client asks for ranges of at most `LARGE_RANGE`
 * bookmarks, then of half as many, and so on. A range of `SMALL_RANGE` bookmarks is not divided.
 */
const LARGE_RANGE = 100_000;
const SMALL_RANGE = 1_000;

const ALL: CountedRange = { afterId: 0, upToId: Number.MAX_SAFE_INTEGER, count: Number.POSITIVE_INFINITY };

/**
 * Compares a copy with the service and repairs it. Resolves with what was wrong. Rejects with `MirrorConflict` if the
 * copy has never been filled or must be filled again, or if other writers keep changing the store. Rejects with a
 * `TypeError` if the store cannot be verified.
 */
export async function verifyCopy(
  requester: Requester,
  store: MirrorStore,
  options: RequestOptions = {},
): Promise<CopyFault[]> {
  if (!isVerifiable(store)) throw new TypeError('store: expected the methods readVersions and readTags');
  const changes = new UnreadChanges(requester, store, options);
  const faults: CopyFault[] = [];
  for (let repairs = 0; repairs < MAX_TRIES; repairs += 1) {
    const found = await compareAndRepair({ requester, store, options, changes });
    if (found.length === 0) return faults;
    faults.push(...found);
  }
  throw new MirrorConflict('the copy differs again after each repair');
}

const isVerifiable = (store: MirrorStore): store is VerifiableStore =>
  store.readVersions !== undefined && store.readTags !== undefined;

async function compareAndRepair(verifying: Verifying): Promise<CopyFault[]> {
  const { parts, tagsDiffer } = await findDifferences(verifying);
  const faults = tagsDiffer ? await repairTags(verifying) : [];
  for (const range of joinAdjacent(parts)) faults.push(...(await repairRange(verifying, range)));
  return faults;
}

/** Returns small parts that contain all bookmarks that differ, and whether the tags differ. */
async function findDifferences(
  verifying: Verifying,
): Promise<{ parts: CountedRange[]; tagsDiffer: boolean }> {
  const { changes } = verifying;
  const smallParts: CountedRange[] = [];
  let tagsDiffer = true;
  for (let ranges = [ALL]; ranges.length > 0; ) {
    const differing: DigestPart[] = [];
    let tagsDigest = '';
    for (const range of ranges) {
      for await (const answer of askDigests(verifying, range)) {
        for (const part of answer.parts) if (!(await isRight(verifying, part))) differing.push(part);
        tagsDigest = answer.tags_digest;
      }
    }
    tagsDiffer &&= !(await haveDigest(verifying, tagsDigest));
    if (differing.length === 0 && !tagsDiffer) break;
    await changes.read();
    tagsDiffer &&= !(await haveDigest(verifying, tagsDigest, changes));
    ranges = [];
    for (const part of differing) {
      if (await isRight(verifying, part, changes)) continue;
      (part.count > SMALL_PART ? ranges : smallParts).push(toRange(part));
    }
  }
  return { parts: smallParts, tagsDiffer };
}

const toRange = ({ after_id, up_to_id, count }: DigestPart): CountedRange => ({
  afterId: after_id,
  upToId: up_to_id,
  count,
});

/** Returns whether a part of the copy has the service's digest. With `changes`, after these changes. */
async function isRight({ store }: Verifying, part: DigestPart, changes?: UnreadChanges): Promise<boolean> {
  const range = toCopyRange(toRange(part));
  const { versions } = await store.readVersions(range);
  return (await digestBookmarks(changes?.applyToBookmarks(versions, range) ?? versions)) === part.digest;
}

/** Returns whether the tags of the copy have the service's digest. With `changes`, after these changes. */
async function haveDigest({ store }: Verifying, digest: string, changes?: UnreadChanges): Promise<boolean> {
  const { tags } = await store.readTags();
  return (await digestTags(changes?.applyToTags(tags) ?? tags)) === digest;
}

/**
 * Yields the digests of a range. If the service cannot compute them in time, yields those of smaller ranges.
 */
async function* askDigests(
  verifying: Verifying,
  range: CountedRange,
): AsyncGenerator<BookmarkDigest, void, undefined> {
  const { requester, options, changes } = verifying;
  const { afterId, upToId, count } = range;
  // The digest of a part is about a third as long as a bookmark. With this number, the digests and the bookmarks of one
  // part are shortest together.
  const parts = Math.min(MAX_PARTS, Math.ceil(Math.sqrt(3 * count)));
  const body = { parts, after_id: afterId, up_to_id: upToId };
  const isDivisible = count > SMALL_RANGE;
  let answer: BookmarkDigest;
  try {
    const withoutRetry = { ...options, isFinal: isUnavailable };
    answer = await requester.request('/bookmarks/digest', body, isDivisible ? withoutRetry : options);
  } catch (error) {
    if (!(isDivisible && error instanceof ApiError && isUnavailable(error))) throw error;
    await sleep(requester.timing.clock, (error.retryAfterSeconds ?? 0) * 1_000, options.signal);
    for await (const smaller of divide(verifying, range, Math.min(Math.ceil(count / 2), LARGE_RANGE)))
      yield* askDigests(verifying, smaller);
    return;
  }
  // The last part ends where the range ends, and each other part with a bookmark.
  for (const { up_to_id } of answer.parts.slice(0, -1)) changes.noteId(up_to_id);
  yield answer;
}

const isUnavailable = ({ code }: ApiError): boolean => code === 'UNAVAILABLE';

/** Divides a range into ranges in which the copy has at most `size` bookmarks. */
async function* divide(
  { store }: Verifying,
  { afterId, upToId }: IdRange,
  size: number,
): AsyncGenerator<CountedRange, void, undefined> {
  for (let start = afterId; ; ) {
    const { versions } = await store.readVersions({ afterId: start, upToId }, size + 1);
    const last = versions.length > size ? versions[size - 1] : undefined;
    yield { afterId: start, upToId: last?.id ?? upToId, count: size };
    if (last === undefined) return;
    start = last.id;
  }
}

/** The most bookmarks of a range of adjacent parts, which are repaired together. */
const MAX_JOINED = 1_000;

/** Joins adjacent parts, so that their bookmarks are read with fewer requests. */
function joinAdjacent(parts: readonly CountedRange[]): CountedRange[] {
  const joined: CountedRange[] = [];
  for (const part of [...parts].sort((a, b) => a.afterId - b.afterId)) {
    const last = joined.at(-1);
    if (last?.upToId === part.afterId && last.count + part.count <= MAX_JOINED) {
      last.upToId = part.upToId;
      last.count += part.count;
    } else joined.push({ ...part });
  }
  return joined;
}
