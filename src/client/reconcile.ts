import { FIELD_NAMES, type FieldName } from '../domain/bookmark-fields.ts';
import type { Bookmark } from '../domain/resources.ts';
import type { RequestOptions } from './requester.ts';

/** A bookmark as it is held locally: its id, and whichever fields are to be compared. */
export type LocalBookmark = Pick<Bookmark, 'id'> & Partial<Omit<Bookmark, 'id'>>;

export interface ReconcileOptions extends RequestOptions {
  /** Report even where more than half of the local set is gone. */
  force?: boolean | undefined;
}

export interface Reconciliation {
  /** There, not here. */
  added: Bookmark[];
  /** As they are there; here they differ in a field. */
  changed: Bookmark[];
  /** The ids of those that are here and no longer there. */
  gone: number[];
  /** How many are the same. */
  unchanged: number;
}

/** So much seems gone that it is more likely a mistake, of an account or a database, than what somebody did. */
export class TooManyGone extends Error {
  override readonly name = 'TooManyGone';
  readonly gone: number;
  readonly local: number;

  constructor(gone: number, local: number) {
    super(`${gone} of ${local} bookmarks are gone from the service; nothing is reported unless forced`);
    this.gone = gone;
    this.local = local;
  }
}

/**
 * Compares with the pages of the whole list. Exact for what nobody changes meanwhile: the list shows each bookmark that
 * is there from its start to its end once, so that none of them is reported as gone.
 *
 * `updated_at` alone does not tell of a renamed or deleted tag; compare `tags` too.
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

/** What is compared of a field: of tags their ids and names, in their order. */
const textOf = (value: Bookmark[FieldName]): unknown => (Array.isArray(value) ? nameTags(value) : value);

const nameTags = (tags: Bookmark['tags']): string => JSON.stringify(tags.map(({ id, name }) => [id, name]));
