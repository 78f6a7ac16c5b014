import type { Bookmark } from '../domain/resources.ts';
import { type Requester, WITHOUT_END } from './requester.ts';
import { POLL_PAUSE_MS, pausePolling, type Timing } from './timing.ts';

export interface FollowOptions {
  /** The cursor of the last batch that was stored, or the id of the last bookmark seen; absent: from the start. */
  cursor?: string | number | undefined;
  /** Ends the iteration, which then throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** false: end when everything that exists has come, instead of waiting for more. */
  follow?: boolean | undefined;
}

export interface SyncBatch {
  /** By id, rising; never empty. */
  bookmarks: Bookmark[];
  /** Store it once the bookmarks are stored: `sync` goes on after them from here, in this process or another. */
  cursor: string;
  /** Whether nothing more existed when the batch was read. */
  isCaughtUp: boolean;
}

/** The largest pages (spec 8). */
const LIST_LIMIT = 500;
const SYNC_LIMIT = 100;

/** A position: the last id that came and, during the first catch-up, where the list goes on. */
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
 * Everything after a cursor, in batches: first a catch-up by the list, whose pages hold five times as many bookmarks
 * as those of sync; then sync; then long polls.
 *
 * No bookmark falls into the gap between list and sync. Both go by rising id, and a user's ids become visible in
 * their order (decision 15). So when a page of the list shows id n, everything that becomes visible later has an id
 * above n, and sync from n finds it. For the same reason the last id of the last batch is all that has to be
 * remembered.
 */
export async function* followBookmarks(
  requester: Requester,
  timing: Timing,
  { cursor = 0, signal, follow = true }: FollowOptions = {},
): AsyncGenerator<SyncBatch, void, undefined> {
  let position = parsePosition(cursor);
  if (position.lastId === 0 || position.listCursor !== undefined) {
    for await (const batch of listFrom(requester, position, signal)) {
      position = parsePosition(batch.cursor);
      yield batch;
    }
  }
  yield* syncFrom(requester, timing, position.lastId, signal, follow);
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
  timing: Timing,
  lastId: number,
  signal: AbortSignal | undefined,
  follow: boolean,
): AsyncGenerator<SyncBatch, void, undefined> {
  for (let cursor = lastId; ; ) {
    const askedMs = timing.clock.now();
    const page = await requester.request(
      '/bookmarks/sync',
      { cursor, limit: SYNC_LIMIT, wait: follow },
      { signal, ...WITHOUT_END },
    );
    if (page.bookmarks.length > 0) {
      cursor = page.cursor;
      yield { bookmarks: page.bookmarks, cursor: String(cursor), isCaughtUp: !page.has_more };
    } else if (follow) {
      // The poll was not held, or it was held by a replica that is about to end while its balancer still sends
      // requests there.
      const wasShort = !page.waited || timing.clock.now() - askedMs < POLL_PAUSE_MS;
      await pausePolling(timing, { wasShort, retryAfterMs: page.retry_after_ms }, signal);
    }
    if (!follow && !page.has_more) return;
  }
}
