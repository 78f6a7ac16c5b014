import { FIELD_NAMES, type FieldName } from '../domain/bookmark-fields.ts';
import type { Bookmark } from '../domain/resources.ts';
import type { RequestOptions } from './requester.ts';

/** A local bookmark: its id, and the fields to compare. */
export type LocalBookmark = Pick<Bookmark, 'id'> & Partial<Omit<Bookmark, 'id'>>;

export interface ReconcileOptions extends RequestOptions {
  /** Return the result even if more than half of the local set no longer exists. */
  force?: boolean | undefined;
}

export interface Reconciliation {
  /** Bookmarks that exist only on the service. */
  added: Bookmark[];
  /** Bookmarks that differ in a field, as they are on the service. */
  changed: Bookmark[];
  /** The ids of local bookmarks that no longer exist on the service. */
  gone: number[];
  /** The number of bookmarks that are equal. */
  unchanged: number;
}

/** So many bookmarks are missing that a wrong account or database is more likely than deletions. */
export class TooManyGone extends Error {
  override readonly name = 'TooManyGone';
  readonly gone: number;
  readonly local: number;

  constructor(gone: number, local: number) {
    super(`${gone} of ${local} bookmarks no longer exist on the service; set force to get the result`);
    this.gone = gone;
    this.local = local;
  }
}

/**
 * Compares the local set with all pages of the list. The result is exact for bookmarks that nobody changes in the
 * meantime, because the list returns each of them exactly once. A renamed or deleted tag does not change
 * `updated_at`, so compare `tags` too.
 */
export async function reconcile(
  pages: AsyncIterable<Bookmark[]>,
  local: Iterable<LocalBookmark> | AsyncIterable<LocalBookmark>,
  { force = false }: ReconcileOptions = {},
): Promise<Reconciliation> {
  const unseen = new Map<number, LocalBookmark>();
  for await (const bookmark of local) unseen.set(bookmark.id, bookmark);
  const localCount = unseen.size;
  const result = { added: [] as Bookmark[], changed: [] as Bookmark[], unchanged: 0 };
  for await (const page of pages) {
    for (const bookmark of page) {
      const known = unseen.get(bookmark.id);
      unseen.delete(bookmark.id);
      if (known === undefined) result.added.push(bookmark);
      else if (differs(known, bookmark)) result.changed.push(bookmark);
      else result.unchanged += 1;
    }
  }
  if (!force && unseen.size * 2 > localCount) throw new TooManyGone(unseen.size, localCount);
  return { ...result, gone: [...unseen.keys()].sort((a, b) => a - b) };
}

function differs(known: LocalBookmark, bookmark: Bookmark): boolean {
  return FIELD_NAMES.some(
    (name) => known[name] !== undefined && textOf(known[name]) !== textOf(bookmark[name]),
  );
}

/** Returns the value by which a field is compared. Tags are compared by ids and names, in order. */
const textOf = (value: Bookmark[FieldName]): unknown => (Array.isArray(value) ? nameTags(value) : value);

const nameTags = (tags: Bookmark['tags']): string => JSON.stringify(tags.map(({ id, name }) => [id, name]));
