import type { Bookmark, BookmarkTag } from '../domain/resources.ts';
import { type BookmarkVersion, type IdRange, isInRange, joinTagIds } from './digests.ts';
import { MirrorConflict, type MirrorPage, type MirrorStore } from './mirror.ts';
import type { Requester, RequestOptions } from './requester.ts';
import { inTurn } from './turns.ts';
import type { UnreadChanges } from './unread-changes.ts';

/**
 * What was wrong in a copy, until `verify` repaired it:
 *
 * - `lost`: the copy lacked this bookmark or tag
 * - `stale`: the copy had another version of this bookmark
 * - `mistagged`: in the copy, this bookmark had other tags
 * - `misnamed`: in the copy, this tag had another name
 * - `unknown`: the service has no such bookmark or tag
 */
export type CopyFault =
  | { kind: 'lost' | 'stale' | 'mistagged' | 'unknown'; bookmark: number; tag?: undefined }
  | { kind: 'lost' | 'misnamed' | 'unknown'; tag: number; bookmark?: undefined };

/** What `verify` needs from a store. */
export type VerifiableStore = MirrorStore & Required<Pick<MirrorStore, 'readVersions' | 'readTags'>>;

/** What every step of `verify` needs. */
export interface Verifying {
  requester: Requester;
  store: VerifiableStore;
  options: RequestOptions;
  changes: UnreadChanges;
}

/** A range of ids, and about how many bookmarks the service has there. */
export interface CountedRange extends IdRange {
  count: number;
}

/** How many times something starts again because another process has changed the store meanwhile. */
export const MAX_TRIES = 20;

/** The largest `limit` of `/bookmarks/sync` (docs/contract.md, section 8). */
const SYNC_LIMIT = 100;

/**
 * Returns a range of the copy. No bookmark has an id below 1. If the copy has one by mistake, the first range contains
 * it.
 */
export const toCopyRange = ({ afterId, upToId }: IdRange): IdRange => ({
  afterId: afterId === 0 ? Number.MIN_SAFE_INTEGER : afterId,
  upToId,
});

const EMPTY = { reset: false, bookmarks: [], deleted: [], tags: [], deleted_tags: [] };

/** A repair without its cursor, and the faults that it repairs. */
interface Repair {
  page: Omit<MirrorPage, 'cursor'>;
  faults: CopyFault[];
}

/**
 * Makes the bookmarks of a range equal to the service's, as of the store's cursor. Returns what was wrong.
 *
 * First reads the range from the copy, then from the service, and finally the changes after the store's cursor. A
 * bookmark that these changes contain may differ for that reason, and the mirror will receive it anyway. A difference in
 * any other bookmark is a fault.
 */
export const repairRange = (verifying: Verifying, range: CountedRange): Promise<CopyFault[]> =>
  repair(verifying, async () => {
    const { store, changes } = verifying;
    const { knownId } = changes;
    const { cursor, versions } = await store.readVersions(toCopyRange(range));
    const bookmarks = await fetchRange(verifying, range);
    await changes.read();
    return cursor === changes.base ? compareBookmarks(versions, bookmarks, changes, knownId) : undefined;
  });

/** Makes the tags of the copy equal to the service's. Returns what was wrong. Works like `repairRange`. */
export const repairTags = (verifying: Verifying): Promise<CopyFault[]> =>
  repair(verifying, async () => {
    const { requester, store, options, changes } = verifying;
    const { cursor, tags } = await store.readTags();
    const list = await requester.request('/tags/list', {}, options);
    await changes.read();
    return cursor === changes.base ? compareTags(tags, list.tags, changes) : undefined;
  });

/**
 * Applies the repair that `find` returns. Starts again if it returns none because the store has changed meanwhile, or
 * if the store changes before the repair is applied.
 */
const repair = (
  { store, changes }: Verifying,
  find: () => Promise<Repair | undefined>,
): Promise<CopyFault[]> =>
  inTurn(store, async () => {
    for (let tries = 1; ; tries += 1) {
      const found = await find();
      if (found?.faults.length === 0) return [];
      try {
        if (found === undefined) throw new MirrorConflict('another process keeps changing this store');
        await store.apply({ ...found.page, cursor: changes.base }, changes.base);
        return found.faults;
      } catch (error) {
        if (!(error instanceof MirrorConflict) || tries === MAX_TRIES) throw error;
      }
    }
  });

async function fetchRange(
  { requester, options, changes }: Verifying,
  range: CountedRange,
): Promise<Bookmark[]> {
  const bookmarks: Bookmark[] = [];
  const limit = Math.min(Math.max(range.count, 1), SYNC_LIMIT);
  for (let cursor = range.afterId, hasMore = true; hasMore && cursor < range.upToId; ) {
    const page = await requester.request('/bookmarks/sync', { cursor, limit }, options);
    bookmarks.push(...page.bookmarks.filter(({ id }) => isInRange(id, range)));
    cursor = page.cursor;
    hasMore = page.has_more;
  }
  for (const { id } of bookmarks) changes.noteId(id);
  return bookmarks;
}

/** Returns the keys of two maps in ascending order. */
const unite = (one: ReadonlyMap<number, unknown>, other: ReadonlyMap<number, unknown>): number[] =>
  [...new Set([...one.keys(), ...other.keys()])].sort((a, b) => a - b);

/**
 * Compares bookmarks of the copy with the service's. Returns undefined if a lost bookmark may be a new one that has
 * already been deleted. `knownId` is from before the bookmarks were read from the service: see
 * `UnreadChanges.knownId`.
 */
function compareBookmarks(
  versions: readonly BookmarkVersion[],
  bookmarks: readonly Bookmark[],
  changes: UnreadChanges,
  knownId: number,
): Repair | undefined {
  const copied = new Map(versions.map((version) => [version.id, version]));
  const served = new Map(bookmarks.map((bookmark) => [bookmark.id, bookmark]));
  const page = {
    ...EMPTY,
    bookmarks: [] as Bookmark[],
    deleted: [] as number[],
    wrongVersions: {} as Record<number, string>,
  };
  const faults: CopyFault[] = [];
  for (const id of unite(copied, served)) {
    if (changes.hasBookmark(id)) continue;
    const [mine, theirs] = [copied.get(id), served.get(id)];
    const kind = findFault(mine, theirs, changes);
    if (kind === undefined) continue;
    if (kind === 'lost' && id > knownId) return undefined;
    faults.push({ kind, bookmark: id });
    if (theirs === undefined) page.deleted.push(id);
    else page.bookmarks.push(theirs);
    if (mine !== undefined) page.wrongVersions[id] = mine.updated_at;
  }
  return { page, faults };
}

function findFault(
  mine: BookmarkVersion | undefined,
  theirs: Bookmark | undefined,
  { omitDeletedTags }: UnreadChanges,
) {
  if (theirs === undefined) return 'unknown';
  if (mine === undefined) return 'lost';
  if (mine.updated_at !== theirs.updated_at) return 'stale';
  const myTags = omitDeletedTags(mine.tagIds);
  const theirTags = omitDeletedTags(theirs.tags.map(({ id }) => id));
  return joinTagIds(myTags) === joinTagIds(theirTags) ? undefined : 'mistagged';
}

function compareTags(
  copied: readonly BookmarkTag[],
  served: readonly BookmarkTag[],
  { hasTag }: UnreadChanges,
): Repair {
  const toNames = (tags: readonly BookmarkTag[]) => new Map(tags.map(({ id, name }) => [id, name]));
  const [mine, theirs] = [toNames(copied), toNames(served)];
  const page = { ...EMPTY, tags: [] as BookmarkTag[], deleted_tags: [] as number[] };
  const faults: CopyFault[] = [];
  for (const id of unite(mine, theirs)) {
    const name = theirs.get(id);
    if (hasTag(id) || mine.get(id) === name) continue;
    faults.push({ kind: name === undefined ? 'unknown' : mine.has(id) ? 'misnamed' : 'lost', tag: id });
    if (name === undefined) page.deleted_tags.push(id);
    else page.tags.push({ id, name });
  }
  return { page, faults };
}
