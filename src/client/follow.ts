import type { Bookmark } from '../domain/resources.ts';
import { type Requester, WITHOUT_END } from './requester.ts';
import { POLL_PAUSE_MS, PollPause } from './timing.ts';

export interface FollowOptions {
  /** The cursor of the last stored batch, or the id of the last bookmark seen. Omit it to start from the beginning. */
  cursor?: string | number | undefined;
  /** Aborting this signal ends the iteration, which then throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** If false, the iteration ends after all existing bookmarks, instead of waiting for new ones. */
  follow?: boolean | undefined;
  /**
   * The longest time in seconds that the service may hold a request, 1 to 30. Default: as long as the service allows,
   * usually 29. Use less where a program may not wait that long, as in the background worker of a browser.
   */
  waitSeconds?: number | undefined;
}

export interface SyncBatch {
  /** Ordered by ascending id. Never empty. */
  bookmarks: Bookmark[];
  /**
   * Store this cursor together with the bookmarks. A `sync` that starts with it, even in another process, continues
   * after these bookmarks.
   */
  cursor: string;
  /** True if there were no more bookmarks when the batch was read. */
  isCaughtUp: boolean;
}

/** The largest `limit` of `/bookmarks/list`, and the largest of `/bookmarks/sync` (docs/contract.md, section 8). */
const LIST_LIMIT = 500;
const SYNC_LIMIT = 100;

/** What a cursor of `sync` contains. */
interface Position {
  /** The id of the last bookmark received. 0 at the beginning. */
  lastId: number;
  /** The cursor of `/bookmarks/list`. Undefined before the first page of the list and after its last page. */
  listCursor: string | undefined;
}

const formatPosition = ({ lastId, listCursor }: Position): string =>
  listCursor === undefined ? String(lastId) : `${lastId}.${listCursor}`;

/** Parses what `formatPosition` returns. Throws a `TypeError` for any other text. */
function parsePosition(cursor: string | number): Position {
  const groups = /^(?<lastId>\d{1,16})(?:\.(?<listCursor>.+))?$/.exec(String(cursor))?.groups;
  const lastId = Number(groups?.lastId);
  if (!Number.isSafeInteger(lastId)) throw new TypeError('cursor: expected a cursor from sync()');
  return { lastId, listCursor: groups?.listCursor };
}

/**
 * Yields, in batches, the bookmarks after a cursor. The first catch-up reads `/bookmarks/list`, because the pages of
 * the list are larger than those of `/bookmarks/sync`. After the first catch-up, this function reads
 * `/bookmarks/sync`, and waits there for new bookmarks.
 *
 * No bookmark is lost between the two endpoints. Both return bookmarks by ascending id, and a user's ids become visible
 * in order (docs/contract.md, decision 15). So if a bookmark becomes visible after a page of the list was read, its id
 * is larger than all ids of that page, and a later page of the list, or `/bookmarks/sync`, returns it. For the same
 * reason, `/bookmarks/sync` needs only the last id in order to continue.
 */
export async function* followBookmarks(
  requester: Requester,
  { cursor = 0, signal, follow = true, waitSeconds }: FollowOptions = {},
): AsyncGenerator<SyncBatch, void, undefined> {
  let position = parsePosition(cursor);
  const isFirstCatchUp = position.lastId === 0 || position.listCursor !== undefined;
  if (isFirstCatchUp) {
    for await (const batch of listFrom(requester, position, signal)) {
      position = parsePosition(batch.cursor);
      yield batch;
    }
  }
  yield* syncFrom(requester, position.lastId, signal, follow, waitSeconds);
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
    const nextCursor = formatPosition({ lastId, listCursor: cursor });
    yield { bookmarks: page.bookmarks, cursor: nextCursor, isCaughtUp: !hasMore };
  }
}

async function* syncFrom(
  requester: Requester,
  lastId: number,
  signal: AbortSignal | undefined,
  follow: boolean,
  waitSeconds: number | undefined,
): AsyncGenerator<SyncBatch, void, undefined> {
  const { timing } = requester;
  const pause = new PollPause(timing);
  for (let cursor = lastId; ; ) {
    const askedMs = timing.clock.now();
    const page = await requester.request(
      '/bookmarks/sync',
      { cursor, limit: SYNC_LIMIT, wait: follow, wait_seconds: follow ? waitSeconds : undefined },
      { signal, onHeaders: pause.onHeaders, ...WITHOUT_END },
    );
    if (page.bookmarks.length > 0) {
      cursor = page.cursor;
      yield { bookmarks: page.bookmarks, cursor: String(cursor), isCaughtUp: !page.has_more };
    } else if (follow) {
      // A poll is short if the service did not hold it, or if a replica that is shutting down ended it early.
      const wasShort = !page.waited || timing.clock.now() - askedMs < POLL_PAUSE_MS;
      await pause.wait(wasShort, signal);
    }
    if (!follow && !page.has_more) return;
  }
}
