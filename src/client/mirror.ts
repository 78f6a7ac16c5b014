import type { Bookmark, BookmarkTag, Changes } from '../domain/resources.ts';
import type { Requester } from './requester.ts';
import { type Clock, sleep } from './timing.ts';

/**
 * Where a mirror keeps its copy. `MemoryStore` and, for Node, `SqliteStore` are such stores.
 *
 * A store that applies pages as `Changes` says, and keeps cursor and content in step, holds after each page with
 * `isCaughtUp` what the service had at one moment.
 */
export interface MirrorStore {
  /** The cursor of the last page that was applied; undefined in a new store. */
  readCursor(): Promise<string | undefined>;
  /** Applies a page and keeps its cursor: both or neither, so that a crash between two pages loses nothing. */
  apply(page: MirrorPage): Promise<void>;
}

/** A page of `/bookmarks/changes`, as a store applies it. */
export type MirrorPage = Omit<Changes, 'has_more' | 'waited'>;

export interface MirrorOptions {
  store: MirrorStore;
  /** Ends the iteration, which then throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** false: end once the copy is true, rather than wait for changes. */
  follow?: boolean | undefined;
}

/** What one page brought, after the store has applied it. */
export interface MirrorBatch {
  /** Whether the copy was dropped and begun anew. */
  reset: boolean;
  bookmarks: Bookmark[];
  deleted: number[];
  tags: BookmarkTag[];
  deletedTags: number[];
  /** Whether nothing more was there when the page was read: the copy is true. */
  isCaughtUp: boolean;
}

export interface MirrorParts {
  clock: Clock;
  random: () => number;
}

/** The largest page. */
const LIMIT = 500;

/** The pause after a poll that was not held (decision 16), so that it does not become a loop. */
const PAUSE_MS = 1_000;

/** Whatever happens to the service, it is asked again. */
const WITHOUT_END = { retryForMs: Number.POSITIVE_INFINITY };

/**
 * Keeps a store true: reads what changed since its cursor, applies it, and waits for more. Yields each page that brought
 * something, and the first one that finds the copy true, so that even an empty account is told to be caught up.
 */
export async function* mirrorBookmarks(
  requester: Requester,
  { clock, random }: MirrorParts,
  { store, signal, follow = true }: MirrorOptions,
): AsyncGenerator<MirrorBatch, void, undefined> {
  let cursor = await store.readCursor();
  for (let wasCaughtUp = false; ; ) {
    const askedMs = clock.now();
    // The first response says at once whether the copy is true.
    const wait: boolean = follow && wasCaughtUp;
    const page: Changes = await requester.request(
      '/bookmarks/changes',
      { cursor, limit: LIMIT, wait },
      { signal, ...WITHOUT_END },
    );
    const isCaughtUp = !page.has_more;
    if (page.cursor !== cursor || page.reset) {
      await store.apply(page);
      cursor = page.cursor;
    }
    if (hasContent(page) || isCaughtUp !== wasCaughtUp) yield toBatch(page);
    wasCaughtUp = isCaughtUp;
    if (!follow && isCaughtUp) return;
    // Not held, or held by a replica that is about to end.
    const wasShort = wait && !hasContent(page) && (!page.waited || clock.now() - askedMs < PAUSE_MS);
    if (wasShort) await sleep(clock, PAUSE_MS + random() * (PAUSE_MS / 4), signal);
  }
}

const hasContent = ({ reset, bookmarks, deleted, tags, deleted_tags }: Changes): boolean =>
  reset || bookmarks.length + deleted.length + tags.length + deleted_tags.length > 0;

const toBatch = ({ reset, bookmarks, deleted, tags, deleted_tags, has_more }: Changes): MirrorBatch => ({
  reset,
  bookmarks,
  deleted,
  tags,
  deletedTags: deleted_tags,
  isCaughtUp: !has_more,
});
