import type { Bookmark, Changes } from '../domain/resources.ts';
import { isAbort } from './errors.ts';
import { isBlank, parseSearch } from './search-text.ts';
import { ask, client } from './session.ts';

/**
 * The bookmarks that the list shows: the pages read so far of one search. It never holds the whole collection. Changes
 * made elsewhere are applied to it as they come; what a search finds then, the service says.
 */

export type Order = 'newest' | 'oldest' | 'updated' | 'title';

export interface Collection {
  /** The bookmarks read so far, without those that are about to be deleted. */
  readonly rows: readonly Bookmark[];
  /** How many the search finds. */
  readonly total: number;
  readonly hasMore: boolean;
  readonly state: 'reading' | 'ready' | 'failed';
  find(id: number): Bookmark | undefined;
  /** Begins another search; what an earlier one still reads is dropped. */
  search(text: string, order: Order): Promise<void>;
  /** Reads the next page, where there is one and none is being read. */
  readMore(): Promise<void>;
  apply(page: Changes): void;
  /** Puts a bookmark in the place of the one with its id, or at the top where it is new. */
  put(bookmark: Bookmark): void;
  /** Hides bookmarks that will be deleted, until they are shown again or forgotten. */
  hide(ids: readonly number[]): void;
  show(ids: readonly number[]): void;
  forget(ids: readonly number[]): void;
}

const FIRST_PAGE = 50;
const NEXT_PAGES = 100;

/** `onChange` is called whenever something that the list shows has changed; `added` rows came in at the top. */
export function createCollection(onChange: (added: number) => void): Collection {
  const hidden = new Set<number>();
  let all: Bookmark[] = [];
  let rows: Bookmark[] = [];
  let total = 0;
  let text = '';
  let order: Order = 'newest';
  let cursor: string | undefined;
  let state: Collection['state'] = 'reading';
  let reading: AbortController | undefined;

  const changed = (added = 0) => {
    rows = hidden.size === 0 ? all : all.filter(({ id }) => !hidden.has(id));
    onChange(added);
  };
  const isPlain = () => order === 'newest' && isBlank(text);

  /** Reads a page; `undefined` where a newer search took its place. */
  const read = async (perPage: number, from?: string) => {
    reading?.abort();
    const own = new AbortController();
    reading = own;
    const found = await ask(() =>
      client.searchBookmarks(
        { ...parseSearch(text), sort: order, per_page: perPage, cursor: from },
        { signal: own.signal },
      ),
    );
    if (own.signal.aborted) return undefined;
    reading = undefined;
    return found;
  };

  const load = async (perPage: number, from: string | undefined) => {
    state = 'reading';
    try {
      const found = await read(perPage, from);
      if (found === undefined) return;
      all = from === undefined ? keepSame(all, found.bookmarks) : [...all, ...found.bookmarks];
      total = found.total;
      cursor = found.next_cursor;
      state = 'ready';
    } catch (error) {
      if (isAbort(error)) return;
      reading = undefined;
      state = 'failed';
    }
    changed();
  };

  /** Reads again what is shown, where only the service knows what belongs there. */
  const refresh = () => load(Math.min(100, Math.max(FIRST_PAGE, all.length)), undefined);

  const apply = (page: Changes) => {
    if (page.reset) return void refresh();
    const gone = new Set(page.deleted);
    // What is hidden was taken off the total when it was hidden.
    total -= all.filter(({ id }) => gone.has(id) && !hidden.has(id)).length;
    if (gone.size > 0) all = all.filter(({ id }) => !gone.has(id));
    for (const id of gone) hidden.delete(id);
    all = applyTags(all, page);
    const places = new Map(all.map(({ id }, at) => [id, at]));
    const fresh = page.bookmarks.filter(({ id }) => !places.has(id));
    all = [...all];
    for (const bookmark of page.bookmarks) {
      const at = places.get(bookmark.id);
      if (at !== undefined) all[at] = bookmark;
    }
    // What a search finds now only the service knows. Where much of it was read, the reader is not taken back to its start.
    if (!isPlain() && page.bookmarks.length > 0 && all.length <= NEXT_PAGES) return void refresh();
    if (!isPlain()) return changed();
    // By id, so above all that are shown; an older one is not shown yet, and will be read where it belongs.
    const newest = Math.max(0, ...all.map(({ id }) => id));
    const added = fresh.filter(({ id }) => id > newest).sort((one, other) => other.id - one.id);
    all = [...added, ...all];
    total += added.length;
    changed(added.length);
  };

  const leave = (ids: readonly number[], change: (id: number) => void, difference: number) => {
    const known = new Set(all.map(({ id }) => id));
    for (const id of ids) {
      change(id);
      if (known.has(id)) total += difference;
    }
  };

  return {
    get rows() {
      return rows;
    },
    get total() {
      return total;
    },
    get hasMore() {
      return cursor !== undefined;
    },
    get state() {
      return state;
    },
    find: (id) => all.find((bookmark) => bookmark.id === id),
    async search(newText, newOrder) {
      text = newText;
      order = newOrder;
      await load(FIRST_PAGE, undefined);
    },
    async readMore() {
      if (reading !== undefined || (cursor === undefined && state === 'ready')) return;
      await load(cursor === undefined ? FIRST_PAGE : NEXT_PAGES, cursor);
    },
    apply,
    put(bookmark) {
      const at = all.findIndex(({ id }) => id === bookmark.id);
      if (at < 0) {
        all = [bookmark, ...all];
        total += 1;
      } else {
        all = all.with(at, bookmark);
      }
      changed(at < 0 ? 1 : 0);
    },
    hide(ids) {
      leave(ids, (id) => hidden.add(id), -1);
      changed();
    },
    show(ids) {
      leave(ids, (id) => hidden.delete(id), 1);
      changed();
    },
    forget(ids) {
      const gone = new Set(ids);
      all = all.filter(({ id }) => !gone.has(id));
      for (const id of ids) hidden.delete(id);
      changed();
    },
  };
}

/** Renames tags, and takes deleted ones off, in all that is shown. */
function applyTags(bookmarks: Bookmark[], { tags, deleted_tags }: Changes): Bookmark[] {
  if (tags.length + deleted_tags.length === 0) return bookmarks;
  const names = new Map(tags.map(({ id, name }) => [id, name]));
  const gone = new Set(deleted_tags);
  return bookmarks.map((bookmark) => {
    if (!bookmark.tags.some(({ id }) => names.has(id) || gone.has(id))) return bookmark;
    const kept = bookmark.tags.filter(({ id }) => !gone.has(id));
    return { ...bookmark, tags: kept.map((tag) => ({ ...tag, name: names.get(tag.id) ?? tag.name })) };
  });
}

/** The bookmarks found; those that are shown already, and have not changed, as the same objects: their rows stay. */
function keepSame(shown: readonly Bookmark[], found: readonly Bookmark[]): Bookmark[] {
  const ids = new Set(found.map(({ id }) => id));
  const before = new Map(shown.filter(({ id }) => ids.has(id)).map((bookmark) => [bookmark.id, bookmark]));
  return found.map((bookmark) => {
    const known = before.get(bookmark.id);
    return known !== undefined && JSON.stringify(known) === JSON.stringify(bookmark) ? known : bookmark;
  });
}
