import type { Bookmark, BookmarkTag, Changes } from '../domain/resources.ts';
import type { BookmarkVersion, IdRange } from './digests.ts';
import { type Requester, type RequestOptions, WITHOUT_END } from './requester.ts';
import { POLL_PAUSE_MS, PollPause } from './timing.ts';
import { inTurn } from './turns.ts';

/**
 * Where a mirror keeps its copy: a `MemoryStore`, a `SqliteStore` for Node, or an `IndexedDbStore` for browsers.
 *
 * A store must apply pages in the way that the type `Changes` describes. It must change its cursor and its content
 * together. If a store keeps these two rules, then whenever `isCaughtUp` of a `MirrorBatch` is true, the copy equals
 * the collection as it was at one moment.
 */
export interface MirrorStore {
  /** Returns the cursor of the last applied page. Undefined in a new store. */
  readCursor(): Promise<string | undefined>;
  /**
   * Applies a page and stores its cursor in one transaction, so that a crash loses nothing. `after` is the cursor that
   * the page was read with. Throws `MirrorConflict` if the page no longer fits because another writer has changed the
   * store: see `requireNext` and `requireNoAttempt`.
   *
   * Resolves with the ids of the stored bookmarks that have a tag which the page renames or deletes. Bookmarks that the
   * page itself contains or deletes are left out.
   */
  apply(page: MirrorPage, after?: string | undefined): Promise<number[]>;
  /**
   * Returns the ids of bookmarks in the copy that no page of changes has contained yet. See
   * `CollectionStore.readAhead`.
   */
  readAhead?(): Promise<number[]>;
  /**
   * Returns the ids, versions and tags of the bookmarks in a range of ids, by ascending id. They and the store's cursor
   * come from one transaction. `limit` is the largest number of bookmarks. Only `verify` needs this method.
   */
  readVersions?(
    range: IdRange,
    limit?: number,
  ): Promise<{ cursor?: string | undefined; versions: BookmarkVersion[] }>;
  /** Returns all tags and the store's cursor, from one transaction. Only `verify` needs this method. */
  readTags?(): Promise<{ cursor?: string | undefined; tags: BookmarkTag[] }>;
}

/**
 * Thrown if another process writes to the same store. The page of changes is then not applied, because it could replace
 * newer content. A new call of `mirror` or `sync` continues from the store's current content.
 */
export class MirrorConflict extends Error {
  override readonly name = 'MirrorConflict';
}

/**
 * Throws `MirrorConflict` if the cursor that the page was read with (`after`) is not the store's cursor. Two kinds of
 * page are accepted whatever the store's cursor is: a page with `reset`, because it replaces everything, and the first
 * page of a mirror, which is read without a cursor.
 */
export function requireNext(
  { reset }: MirrorPage,
  after: string | undefined,
  storeCursor: string | undefined,
): void {
  if (reset || after === undefined || after === storeCursor) return;
  throw new MirrorConflict('another mirror is writing to this store');
}

/**
 * Throws `MirrorConflict` while the outcome of a sent write (`attempt`) is unknown. The response to that write could be
 * older than the page. If it is, storing the response after the page would replace newer content.
 */
export function requireNoAttempt(attempt: object | undefined): void {
  if (attempt !== undefined) throw new MirrorConflict('a write to this store is in progress');
}

/**
 * Returns the bookmarks of a page, without those that the store has in a newer version. The store has a newer version
 * if another process sent a write after the page was read, and stored the response. `findVersion` returns the stored
 * `updated_at` of a bookmark, which grows with each change. A page with `reset` replaces everything, so none of its
 * bookmarks is left out. Neither is a bookmark whose stored version is known to be wrong.
 */
export function omitOutdated(
  { reset, bookmarks, wrongVersions }: MirrorPage,
  findVersion: (id: number) => string | undefined,
): Bookmark[] {
  if (reset) return bookmarks;
  return bookmarks.filter(({ id, updated_at }) => {
    const storedVersion = findVersion(id);
    if (storedVersion === undefined || storedVersion === wrongVersions?.[id]) return true;
    return updated_at >= storedVersion;
  });
}

/** A page of `/bookmarks/changes`, or a repair, as a store applies it. */
export interface MirrorPage extends Omit<Changes, 'has_more' | 'waited'> {
  /**
   * Stored versions that a verification found to be wrong, by the bookmark's id. The page replaces them even if its own
   * version is older.
   */
  wrongVersions?: Readonly<Record<number, string>> | undefined;
}

export interface MirrorOptions {
  store: MirrorStore;
  /** Aborting this signal ends the iteration, which then throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** If false, the iteration ends when the copy is up to date, instead of waiting for changes. */
  follow?: boolean | undefined;
  /**
   * The longest time in seconds that the service may hold a request, 1 to 30. Default: as long as the service allows,
   * usually 29. Use less where a program may not wait that long, as in the background worker of a browser.
   */
  waitSeconds?: number | undefined;
}

/** The changes of one page, after the store has applied it. */
export interface MirrorBatch {
  /** True if the copy was emptied and is being filled again. */
  reset: boolean;
  bookmarks: Bookmark[];
  deleted: number[];
  tags: BookmarkTag[];
  deletedTags: number[];
  /**
   * The ids of bookmarks that are not on the page, but changed because a tag was renamed or deleted. If you keep
   * bookmarks elsewhere too, update these bookmarks there.
   */
  retagged: number[];
  /** True if the copy was up to date when the page was read. */
  isCaughtUp: boolean;
}

/** The largest `limit` that the service accepts for a page of changes. */
const LIMIT = 500;

/**
 * Keeps a store up to date. Reads the changes after the store's cursor, applies them, and waits for more. Yields each
 * page that changed something. Also yields each page at which `isCaughtUp` changes, even if that page is empty.
 */
export async function* mirrorBookmarks(
  requester: Requester,
  {
    store,
    signal,
    follow = true,
    waitSeconds,
    request = WITHOUT_END,
  }: MirrorOptions & { request?: RequestOptions },
): AsyncGenerator<MirrorBatch, void, undefined> {
  const { timing } = requester;
  const pause = new PollPause(timing);
  const onHeaders = (headers: Headers) => {
    pause.onHeaders(headers);
    request.onHeaders?.(headers);
  };
  let cursor = await store.readCursor();
  let isFilling = false;
  for (let wasCaughtUp = false; ; ) {
    const askedMs = timing.clock.now();
    // The first request does not wait, so its response shows at once whether the copy is up to date.
    const wait: boolean = follow && wasCaughtUp;
    const aheadIds: number[] = (await store.readAhead?.()) ?? [];
    const page: Changes = await requester.request(
      '/bookmarks/changes',
      { cursor, limit: LIMIT, wait, wait_seconds: wait ? waitSeconds : undefined },
      // The later pages of a catch-up leave a part of the quota to other requests.
      { ...request, signal, onHeaders, isInBackground: isFilling },
    );
    // The last page of a catch-up removes the bookmarks that no page has contained: see `CollectionStore.readAhead`.
    if (!page.has_more && aheadIds.length > 0) {
      const idsOnPage = new Set(page.bookmarks.map(({ id }) => id));
      page.deleted = [...page.deleted, ...aheadIds.filter((id) => !idsOnPage.has(id))];
    }
    const isCaughtUp = !page.has_more;
    let retagged: number[] = [];
    if (page.cursor !== cursor || page.reset || aheadIds.length > 0) {
      const after = cursor;
      // Waits until a verification has repaired the copy. Otherwise pages could move the store's cursor before each try
      // of the repair.
      retagged = await inTurn(store, () => store.apply(page, after));
      cursor = page.cursor;
    }
    if (hasContent(page) || isCaughtUp !== wasCaughtUp) yield toBatch(page, retagged);
    wasCaughtUp = isCaughtUp;
    isFilling = !isCaughtUp;
    if (!follow && isCaughtUp) return;
    // Only a poll that found nothing needs a pause.
    if (!wait || hasContent(page)) continue;
    // A poll is short if the service did not hold it, or if a replica that is shutting down ended it early.
    const wasShort = !page.waited || timing.clock.now() - askedMs < POLL_PAUSE_MS;
    await pause.wait(wasShort, signal);
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

/**
 * Returns the ids of tags that the page deletes, and of tags whose name on the page differs from the store's. Returns
 * none for a page with `reset`. `findName` returns the stored name of a tag.
 */
export function findChangedTags(
  { reset, bookmarks, tags, deleted_tags }: MirrorPage,
  findName: (tagId: number) => string | undefined,
): Set<number> {
  // The page replaces the whole copy, so no stored bookmark keeps an old name.
  if (reset) return new Set();
  const nameByTag = new Map(
    [...bookmarks.flatMap((bookmark) => bookmark.tags), ...tags].map(({ id, name }) => [id, name]),
  );
  const isRenamed = (tagId: number) => {
    const storedName = findName(tagId);
    return storedName !== undefined && storedName !== nameByTag.get(tagId);
  };
  return new Set([...[...nameByTag.keys()].filter(isRenamed), ...deleted_tags]);
}

/** Returns `ids` without the bookmarks that a page contains or deletes, in ascending order without duplicates. */
export function omitBookmarksOf({ bookmarks, deleted }: MirrorPage, ids: Iterable<number>): number[] {
  const idsOnPage = new Set([...bookmarks.map(({ id }) => id), ...deleted]);
  return [...new Set(ids)].filter((id) => !idsOnPage.has(id)).sort((a, b) => a - b);
}
