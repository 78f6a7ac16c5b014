import type { Bookmark } from '../domain/resources.ts';
import type { Requester } from './requester.ts';
import { type Clock, sleep } from './timing.ts';

export interface FollowOptions {
  /** Where the last batch that was stored said to go on, or the id of the last bookmark seen; absent: from the start. */
  cursor?: string | number | undefined;
  /** Ends the iteration, which then throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** false: end once everything that is there has come, rather than wait for more. */
  follow?: boolean | undefined;
}

export interface SyncBatch {
  /** By id, rising; never empty. */
  bookmarks: Bookmark[];
  /** To be stored once the bookmarks are: `sync` goes on after them from here, in this process or another. */
  cursor: string;
  /** Whether nothing more was there when the batch was read. */
  isCaughtUp: boolean;
}

export interface FollowParts {
  clock: Clock;
  random: () => number;
}

/** The largest pages (spec 8). */
const LIST_LIMIT = 500;
const SYNC_LIMIT = 100;

/** The pause after a poll that was not held (decision 16), so that it does not become a loop. */
const PAUSE_MS = 1_000;

/** Whatever happens to the service, it is asked again. */
const WITHOUT_END = { retryForMs: Number.POSITIVE_INFINITY };

/** A position: the last id that came, and, while the first catch-up is under way, where the list goes on. */
interface Position {
  lastId: number;
  listCursor: string | undefined;
}

const formatPosition = ({ lastId, listCursor }: Position): string =>
  listCursor === undefined ? String(lastId) : `${lastId}.${listCursor}`;

function parsePosition(cursor: string | number): Position {
  const match = /^(\d{1,16})(?:\.(.+))?$/.exec(String(cursor));
  const lastId = Number(match?.[1]);
  if (!Number.isSafeInteger(lastId)) throw new TypeError('cursor: expected one that sync() gave');
  return { lastId, listCursor: match?.[2] };
}

/**
 * Everything after a cursor, batch by batch: a first catch-up by the list, five times as many bookmarks a request as by
 * sync; then sync; then long polls.
 *
 * No bookmark falls into the gap between list and sync: both go by id, rising, and a user's ids become visible in their
 * order (decision 15). So when a page of the list shows id n, whatever is not visible yet will have an id above n, and
 * sync from n finds it. For the same reason the last id of the last batch is all that there is to remember.
 */
export async function* followBookmarks(
  requester: Requester,
  parts: FollowParts,
  { cursor = 0, signal, follow = true }: FollowOptions = {},
): AsyncGenerator<SyncBatch, void, undefined> {
  let position = parsePosition(cursor);
  if (position.lastId === 0 || position.listCursor !== undefined) {
    for await (const batch of listFrom(requester, position, signal)) {
      position = parsePosition(batch.cursor);
      yield batch;
    }
  }
  yield* syncFrom(requester, parts, position.lastId, signal, follow);
}

async function* listFrom(
  requester: Requester,
  { lastId, listCursor }: Position,
  signal: AbortSignal | undefined,
): AsyncGenerator<SyncBatch, void, undefined> {
  for (let cursor = listCursor, hasMore = true; hasMore; ) {
    const page = await requester.request(
      '/bookmarks/list',
      { cursor, limit: LIST_LIMIT },
      { signal, ...WITHOUT_END },
    );
    cursor = page.next_cursor;
    hasMore = page.has_more;
    lastId = page.bookmarks.at(-1)?.id ?? lastId;
    if (page.bookmarks.length === 0) continue;
    const next = formatPosition({ lastId, listCursor: cursor });
    yield { bookmarks: page.bookmarks, cursor: next, isCaughtUp: !hasMore };
  }
}

async function* syncFrom(
  requester: Requester,
  { clock, random }: FollowParts,
  lastId: number,
  signal: AbortSignal | undefined,
  follow: boolean,
): AsyncGenerator<SyncBatch, void, undefined> {
  for (let cursor = lastId; ; ) {
    const askedMs = clock.now();
    const answer = await requester.request(
      '/bookmarks/sync',
      { cursor, limit: SYNC_LIMIT, wait: follow },
      { signal, ...WITHOUT_END },
    );
    if (answer.bookmarks.length > 0) {
      cursor = answer.cursor;
      yield { bookmarks: answer.bookmarks, cursor: String(cursor), isCaughtUp: !answer.has_more };
    } else if (follow && (!answer.waited || clock.now() - askedMs < PAUSE_MS)) {
      // Not held; or held by a replica that is about to end, while its balancer still sends everybody there.
      await sleep(clock, PAUSE_MS + random() * (PAUSE_MS / 4), signal);
    }
    if (!follow && !answer.has_more) return;
  }
}
