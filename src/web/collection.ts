import { parseSearch } from '../client/search-text.ts';
import type { Bookmark, Changes } from '../domain/resources.ts';
import { isAbort } from './errors.ts';
import { isBlank, makeMatcher } from './search-text.ts';
import { ask, client, delayMs, unreached } from './session.ts';

/**
 * The bookmarks that the list shows. They are the results of one search, as far as they were read. Changes from
 * elsewhere are applied as they arrive. The list is read again only if the page itself cannot determine the order or
 * the total.
 */

export type Order = 'newest' | 'oldest' | 'created' | 'created_oldest' | 'updated' | 'title';

export interface Collection {
  /** The bookmarks read so far, without the hidden ones. */
  readonly rows: readonly Bookmark[];
  /** The number of bookmarks that match the search, without the hidden ones; undefined until the first page is read. */
  readonly total: number | undefined;
  readonly hasMore: boolean;
  readonly state: 'reading' | 'ready' | 'failed';
  /**
   * While the service cannot be reached: how many bookmarks this page has read. In that case, `rows` are those of them
   * that match.
   */
  readonly searched: number | undefined;
  /**
   * Starts another search and aborts the previous one. Reads the first page. Then reads the next pages until the list
   * has `count` bookmarks or more. If `count` is above `MOST_AT_ONCE`, `MOST_AT_ONCE` bookmarks are enough.
   */
  search(text: string, order: Order, count?: number): Promise<void>;
  /**
   * Reads the next page. If the latest read failed, repeats that read instead. Does nothing at the end of the results
   * or while a page is being read.
   */
  readMore(): Promise<void>;
  /** Reads all remaining pages of the search. Returns false if a page cannot be read or if `signal` was aborted. */
  readAll(signal: AbortSignal): Promise<boolean>;
  /** Applies a page of changes that were made after `sinceMs`. */
  apply(page: Changes, sinceMs: number): void;
  /** Inserts or moves a bookmark that the user has saved in this tab. */
  put(bookmark: Bookmark): void;
  /**
   * Hides bookmarks while they are being deleted. If the deletion fails, call `show` to show them again. If it
   * succeeds, call `forget` to remove them.
   */
  hide(ids: readonly number[]): void;
  show(ids: readonly number[]): void;
  forget(ids: readonly number[]): void;
}

interface Options {
  /** Called when the list or its state has changed. The first `added` rows are new. */
  onChange(added: number): void;
  /** Called with the bookmarks of each page that was read. */
  onRead(bookmarks: readonly Bookmark[]): void;
}

const FIRST_PAGE = 50;
const NEXT_PAGES = 100;

/** The most bookmarks to read again when the user returns to an earlier place in the list. */
const MOST_AT_ONCE = 500;

/** How many ms the page waits before it reads the list again. Several changes in this time need only one request. */
const REFRESH_MS = 300;

const compareTexts = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/**
 * The orders in which the page itself can find a bookmark's position. The order by title is missing, because only the
 * service can compare titles.
 */
const COMPARISONS: Partial<Record<Order, (one: Bookmark, other: Bookmark) => number>> = {
  newest: (one, other) => other.id - one.id,
  oldest: (one, other) => one.id - other.id,
  created: (one, other) => compareTexts(other.created_at, one.created_at) || other.id - one.id,
  created_oldest: (one, other) => compareTexts(one.created_at, other.created_at) || one.id - other.id,
  updated: (one, other) => compareTexts(other.updated_at, one.updated_at) || other.id - one.id,
};

export function createCollection({ onChange, onRead }: Options): Collection {
  const hidden = new Set<number>();
  /**
   * The ids of the bookmarks that were added, changed or deleted since the first page was read. The total already
   * includes these changes, so a second report of the same change must not change the total again.
   */
  const counted = new Set<number>();
  /**
   * The highest id seen so far. If the search text is blank, the total includes every bookmark up to this id, but
   * perhaps not those with higher ids. A bookmark with a higher id is not always new, because a bookmark that is
   * restored from the trash gets a new id.
   */
  let highestId = 0;
  /** All bookmarks that were read, by id. They are searched while the service cannot be reached. */
  const seen = new Map<number, Bookmark>();
  let isPartial = false;
  /** True while the first page of a search is being read. */
  let isSearching = false;
  /** The changes that arrived while a page of the search was being read. */
  const missed: [page: Changes, sinceMs: number][] = [];
  let all: Bookmark[] = [];
  let rows: Bookmark[] = [];
  /** The number of bookmarks that match the search, including the hidden ones. */
  let found: number | undefined;
  let text = '';
  let matches = makeMatcher('');
  let order: Order = 'created';
  let cursor: string | undefined;
  let state: Collection['state'] = 'reading';
  /** When the total was last read, as a time in ms. */
  let readMs = 0;
  let reading: AbortController | undefined;
  /** The latest request for a page of the search. */
  let request: Promise<unknown> = Promise.resolve();
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** Repeats the latest read. Undefined unless that read failed. */
  let repeat: (() => Promise<void>) | undefined;

  const changed = (added = 0) => {
    rows = hidden.size === 0 ? all : all.filter(({ id }) => !hidden.has(id));
    onChange(added);
  };
  const note = (bookmarks: readonly Bookmark[]) => {
    for (const bookmark of bookmarks) seen.set(bookmark.id, bookmark);
    highestId = Math.max(highestId, ...bookmarks.map(({ id }) => id));
  };
  const addToTotal = (difference: number) => {
    if (found !== undefined) found += difference;
  };

  /**
   * Reads the first page, or the page at the cursor `from`. Returns undefined if a newer request has aborted this one.
   */
  const read = async (perPage: number, from?: string) => {
    reading?.abort();
    const own = new AbortController();
    reading = own;
    const asked = ask(() =>
      client.searchBookmarks(
        { ...parseSearch(text).search, sort: order, per_page: perPage, cursor: from ?? '' },
        { signal: own.signal },
      ),
    );
    request = asked;
    try {
      const page = await asked;
      return own.signal.aborted ? undefined : page;
    } finally {
      if (reading === own) reading = undefined;
    }
  };

  const load = async (perPage: number, from: string | undefined) => {
    clearTimeout(timer);
    state = 'reading';
    isSearching = from === undefined;
    try {
      const page = await read(perPage, from);
      if (page === undefined) return;
      if (from === undefined) {
        all = keepSame(all, page.bookmarks);
        found = page.total;
        counted.clear();
        readMs = Date.now();
        isPartial = false;
      } else {
        const ids = new Set(all.map(({ id }) => id));
        all = [...all, ...page.bookmarks.filter(({ id }) => !ids.has(id))];
      }
      cursor = page.next_cursor;
      note(page.bookmarks);
      repeat = undefined;
      state = 'ready';
      onRead(page.bookmarks);
    } catch (error) {
      if (isAbort(error)) return;
      repeat = () => load(perPage, from);
      state = 'failed';
    }
    for (const [page, sinceMs] of missed.splice(0)) apply(page, sinceMs);
    changed();
  };

  /** Shows the bookmarks that were read and match, until the service can be reached. */
  const searchSeen = () => {
    isPartial = true;
    all = [...seen.values()].filter(matches).sort(COMPARISONS[order] ?? COMPARISONS.created);
    found = all.length;
    cursor = undefined;
    changed();
  };
  unreached.addEventListener('/bookmarks/search', () => reading && isSearching && searchSeen());
  // The client may wait for some seconds before it sends the request again.
  addEventListener('online', () => isPartial && void load(FIRST_PAGE, undefined));

  /**
   * Reads the shown bookmarks again. If the list has more than `NEXT_PAGES` bookmarks, reads only the total, so that
   * the user keeps their place in the list.
   */
  const refresh = async () => {
    // While bookmarks are being deleted, nobody knows whether a new total would include them.
    if (reading !== undefined || hidden.size > 0) return refreshSoon();
    if (all.length <= NEXT_PAGES) return load(Math.max(FIRST_PAGE, all.length), undefined);
    const page = await read(1).catch(() => undefined);
    if (page === undefined) return;
    found = page.total;
    readMs = Date.now();
    changed();
  };
  const refreshSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void refresh(), delayMs(REFRESH_MS));
  };

  /**
   * Puts a bookmark at its position and updates the total. Returns the bookmark's index, or -1 if the bookmark does not
   * belong to the rows that were read so far. Returns undefined if only the service knows the order or the total.
   * `isNew` is true if the bookmark was never edited and is not in `counted`. `isSure` is true if the change was made
   * after the total was last read.
   */
  const place = (bookmark: Bookmark, isNew: boolean, isSure: boolean): number | undefined => {
    const compare = COMPARISONS[order];
    const oldIndex = all.findIndex(({ id }) => id === bookmark.id);
    const before = all[oldIndex];
    /** True if the total certainly includes this bookmark, whether or not its row was read. */
    const isInTotal = isBlank(text) && bookmark.id <= highestId;
    note([bookmark]);
    if (before !== undefined) all = all.toSpliced(oldIndex, 1);
    /** The index of the row that comes after this bookmark. -1 if there is none or if the order is unknown. */
    const nextIndex = compare === undefined ? -1 : all.findIndex((other) => compare(bookmark, other) < 0);
    /** True if the bookmark comes after all rows that were read, and more pages follow. */
    const isBeyond = nextIndex < 0 && cursor !== undefined;
    if (!matches(bookmark)) {
      if (before !== undefined) addToTotal(-1);
      // If an edited bookmark's row was not read, only the service knows whether the total included the bookmark.
      else if (!isNew && cursor !== undefined && (isBeyond || order === 'updated')) return undefined;
      return -1;
    }
    if (compare === undefined) {
      if (before !== undefined) all = all.toSpliced(oldIndex, 0, bookmark);
      const isInPlace =
        before?.title === bookmark.title && (before.title !== '' || before.url === bookmark.url);
      return isInPlace ? oldIndex : undefined;
    }
    if (isBeyond) {
      if (before !== undefined) return -1;
      // A new bookmark that was added before the last read may already be in the total.
      if (isNew ? !isSure : !isInTotal) return undefined;
      if (isNew) addToTotal(1);
      return -1;
    }
    const newIndex = nextIndex < 0 ? all.length : nextIndex;
    all = all.toSpliced(newIndex, 0, bookmark);
    if (before !== undefined) return newIndex;
    // In the order `updated`, an edited bookmark may come from a page that was not read yet. In that case, the total
    // already includes the bookmark.
    if (isNew || order !== 'updated' || cursor === undefined) addToTotal(1);
    else if (!isInTotal) return undefined;
    return newIndex;
  };

  /** Inserts or moves a bookmark. Returns true if it has appeared at the top of the list. */
  const insert = (bookmark: Bookmark, isSure: boolean): boolean => {
    // A bookmark whose times are equal was never edited.
    const isNew = bookmark.created_at === bookmark.updated_at && !counted.has(bookmark.id);
    const wasShown = all.some(({ id }) => id === bookmark.id);
    const at = place(bookmark, isNew, isSure);
    counted.add(bookmark.id);
    if (at === undefined) refreshSoon();
    return at === 0 && !wasShown;
  };

  /**
   * Removes deleted bookmarks from the list, and lowers the total by their number. Returns false if only the service
   * knows the total, because it may include a deleted bookmark whose row was not read.
   */
  const drop = (ids: readonly number[]): boolean => {
    const gone = new Set(ids);
    const shown = new Set(all.map(({ id }) => id));
    const isKnown = cursor === undefined || ids.every((id) => counted.has(id) || shown.has(id));
    const kept = all.filter(({ id }) => !gone.has(id));
    addToTotal(kept.length - all.length);
    all = kept;
    for (const id of ids) {
      hidden.delete(id);
      seen.delete(id);
      counted.add(id);
    }
    return isKnown;
  };

  const apply = (page: Changes, sinceMs: number) => {
    if (reading !== undefined) missed.push([page, sinceMs]);
    const isSure = sinceMs >= readMs;
    /** False if only the service knows the list or its total after this page of changes. */
    let isKnown = drop(page.deleted) && !page.reset && !page.has_more;
    all = applyTags(all, page);
    if (page.reset) seen.clear();
    for (const bookmark of applyTags([...seen.values()], page)) seen.set(bookmark.id, bookmark);
    // Bookmarks lose the deleted tag, so other bookmarks may match the search now.
    if (page.deleted_tags.length > 0 && !isBlank(text)) isKnown = false;
    let added = 0;
    for (const bookmark of page.bookmarks.toSorted((one, other) => one.id - other.id))
      if (insert(bookmark, isSure)) added += 1;
    if (!isKnown) refreshSoon();
    changed(added);
  };

  return {
    get rows() {
      return rows;
    },
    get total() {
      return found === undefined ? undefined : found - (all.length - rows.length);
    },
    get hasMore() {
      return cursor !== undefined;
    },
    get state() {
      return state;
    },
    get searched() {
      return isPartial ? seen.size : undefined;
    },
    async search(newText, newOrder, wanted = FIRST_PAGE) {
      text = newText;
      matches = makeMatcher(text);
      order = newOrder;
      await load(Math.min(NEXT_PAGES, Math.max(FIRST_PAGE, wanted)), undefined);
      while (state === 'ready' && cursor !== undefined && all.length < Math.min(wanted, MOST_AT_ONCE))
        await load(NEXT_PAGES, cursor);
    },
    async readMore() {
      if (reading !== undefined || (cursor === undefined && state === 'ready')) return;
      await (repeat?.() ?? load(NEXT_PAGES, cursor));
    },
    async readAll(signal) {
      while (cursor !== undefined && !signal.aborted) {
        if (reading === undefined) await load(NEXT_PAGES, cursor);
        else await request.catch(() => {});
        if (state === 'failed') return false;
      }
      return !signal.aborted;
    },
    apply,
    put(bookmark) {
      changed(insert(bookmark, true) ? 1 : 0);
    },
    hide(ids) {
      for (const id of ids) hidden.add(id);
      changed();
    },
    show(ids) {
      for (const id of ids) hidden.delete(id);
      changed();
    },
    forget(ids) {
      if (!drop(ids)) refreshSoon();
      changed();
    },
  };
}

/** Renames tags and removes deleted tags in the shown bookmarks. */
function applyTags(bookmarks: Bookmark[], { tags, deleted_tags }: Changes): Bookmark[] {
  if (tags.length + deleted_tags.length === 0) return bookmarks;
  const newNames = new Map(tags.map(({ id, name }) => [id, name]));
  const deletedIds = new Set(deleted_tags);
  return bookmarks.map((bookmark) => {
    if (!bookmark.tags.some(({ id }) => newNames.has(id) || deletedIds.has(id))) return bookmark;
    const remainingTags = bookmark.tags.filter(({ id }) => !deletedIds.has(id));
    const renamedTags = remainingTags.map((tag) => ({ ...tag, name: newNames.get(tag.id) ?? tag.name }));
    return { ...bookmark, tags: renamedTags };
  });
}

/**
 * Returns the bookmarks of `found`. Reuses the object from `shown` for each bookmark that has not changed, so that its
 * row is not drawn again.
 */
function keepSame(shown: readonly Bookmark[], found: readonly Bookmark[]): Bookmark[] {
  const shownById = new Map(shown.map((bookmark) => [bookmark.id, bookmark]));
  return found.map((bookmark) => {
    const before = shownById.get(bookmark.id);
    return before !== undefined && JSON.stringify(before) === JSON.stringify(bookmark) ? before : bookmark;
  });
}
