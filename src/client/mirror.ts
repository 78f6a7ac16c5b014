import type { Bookmark, BookmarkTag, Changes } from '../domain/resources.ts';
import { type Requester, type RequestOptions, WITHOUT_END } from './requester.ts';
import { POLL_PAUSE_MS, pausePolling, type Timing } from './timing.ts';

/**
 * Where a mirror keeps its copy: a `MemoryStore`; for Node a `SqliteStore`; for browsers an `IndexedDbStore`.
 *
 * A store that applies pages as `Changes` says, and changes its cursor together with its content, is equal to the
 * collection at one moment after each page with `isCaughtUp`.
 */
export interface MirrorStore {
  /** The cursor of the last page that was applied; undefined in a new store. */
  readCursor(): Promise<string | undefined>;
  /**
   * Applies a page and stores its cursor: both or neither, so that a crash between two pages loses nothing. The page
   * follows the cursor `after`; a store that others can write to throws `MirrorConflict` where it is at another cursor.
   *
   * Resolves with the ids of the bookmarks that show another tag name than before, or one tag less, because a tag was
   * renamed or deleted. Bookmarks of the page itself are not among them.
   */
  apply(page: MirrorPage, after?: string | undefined): Promise<number[]>;
  /** Bookmarks that the last page of a walk removes unless a page has shown them: see `CollectionStore`. */
  readAhead?(): Promise<number[]>;
}

/**
 * Something else has written to the store since the mirror read its cursor. Nothing was applied: what is older than the
 * store's content must not replace it. A mirror that is begun again goes on from what the store then holds.
 */
export class MirrorConflict extends Error {
  override readonly name = 'MirrorConflict';
}

/** Throws `MirrorConflict` where a page does not follow the cursor of a store; a reset follows any. */
export function requireNext({ reset }: MirrorPage, after: string | undefined, at: string | undefined): void {
  if (reset || after === undefined || after === at) return;
  throw new MirrorConflict('another mirror writes to this store');
}

/**
 * Throws `MirrorConflict` while it is unknown whether a request of the outbox was done: its response could then be
 * older than the page.
 */
export function requireNoAttempt(attempt: object | undefined): void {
  if (attempt !== undefined) throw new MirrorConflict('a write to this store is under way');
}

/** A page of `/bookmarks/changes`, as a store applies it. */
export type MirrorPage = Omit<Changes, 'has_more' | 'waited' | 'retry_after_ms'>;

export interface MirrorOptions {
  store: MirrorStore;
  /** Ends the iteration, which then throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** false: end when the copy is up to date, instead of waiting for changes. */
  follow?: boolean | undefined;
}

/** What one page brought, after the store has applied it. */
export interface MirrorBatch {
  /** Whether the copy was emptied and is filled anew. */
  reset: boolean;
  bookmarks: Bookmark[];
  deleted: number[];
  tags: BookmarkTag[];
  deletedTags: number[];
  /**
   * The ids of the bookmarks that changed because a tag was renamed or deleted, besides those in `bookmarks`. A
   * consumer that keeps bookmarks elsewhere writes these too.
   */
  retagged: number[];
  /** Whether nothing more existed when the page was read: the copy is up to date. */
  isCaughtUp: boolean;
}

/** The largest page. */
const LIMIT = 500;

/**
 * Keeps a store up to date: reads what changed since its cursor, applies it, and waits for more. Yields each page
 * that changed something, and the first page after which the copy is up to date, also for an empty account.
 */
export async function* mirrorBookmarks(
  requester: Requester,
  timing: Timing,
  { store, signal, follow = true, request = WITHOUT_END }: MirrorOptions & { request?: RequestOptions },
): AsyncGenerator<MirrorBatch, void, undefined> {
  let cursor = await store.readCursor();
  for (let wasCaughtUp = false; ; ) {
    const askedMs = timing.clock.now();
    // The first response says at once whether the copy is up to date.
    const wait: boolean = follow && wasCaughtUp;
    const ahead: number[] = (await store.readAhead?.()) ?? [];
    const page: Changes = await requester.request(
      '/bookmarks/changes',
      { cursor, limit: LIMIT, wait },
      { ...request, signal },
    );
    if (!page.has_more && ahead.length > 0) {
      const named = new Set(page.bookmarks.map(({ id }) => id));
      page.deleted = [...page.deleted, ...ahead.filter((id) => !named.has(id))];
    }
    const isCaughtUp = !page.has_more;
    let retagged: number[] = [];
    if (page.cursor !== cursor || page.reset || ahead.length > 0) {
      retagged = await store.apply(page, cursor);
      cursor = page.cursor;
    }
    if (hasContent(page) || isCaughtUp !== wasCaughtUp) yield toBatch(page, retagged);
    wasCaughtUp = isCaughtUp;
    if (!follow && isCaughtUp) return;
    if (!wait || hasContent(page)) continue;
    // The poll was not held, or it was held by a replica that is about to end.
    const wasShort = !page.waited || timing.clock.now() - askedMs < POLL_PAUSE_MS;
    await pausePolling(timing, { wasShort, retryAfterMs: page.retry_after_ms }, signal);
  }
}

const hasContent = ({ reset, bookmarks, deleted, tags, deleted_tags }: Changes): boolean =>
  reset || bookmarks.length + deleted.length + tags.length + deleted_tags.length > 0;

const toBatch = (
  { reset, bookmarks, deleted, tags, deleted_tags, has_more }: Changes,
  retagged: number[],
): MirrorBatch => ({
  reset,
  bookmarks,
  deleted,
  tags,
  deletedTags: deleted_tags,
  retagged,
  isCaughtUp: !has_more,
});

/** The ids of a page's tags whose name differs from the one that the store has, and of its deleted tags. */
export function findChangedTags(
  { reset, bookmarks, tags, deleted_tags }: MirrorPage,
  findName: (tagId: number) => string | undefined,
): Set<number> {
  if (reset) return new Set();
  const names = new Map(
    [...bookmarks.flatMap((bookmark) => bookmark.tags), ...tags].map(({ id, name }) => [id, name]),
  );
  const renamed = [...names].filter(([id, name]) => (findName(id) ?? name) !== name).map(([id]) => id);
  return new Set([...renamed, ...deleted_tags]);
}

/** The ids of `carriers` that a page neither replaces nor deletes, rising. */
export function withoutThoseOf({ bookmarks, deleted }: MirrorPage, carriers: Iterable<number>): number[] {
  const named = new Set([...bookmarks.map(({ id }) => id), ...deleted]);
  return [...new Set(carriers)].filter((id) => !named.has(id)).sort((a, b) => a - b);
}
