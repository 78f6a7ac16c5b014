import type { MirrorPage } from './mirror.ts';

/** The ids of bookmarks that have changed in a copy. `all` means that any bookmark may have changed. */
export type ChangedIds = readonly number[] | 'all';

/** The functions that a store tells about changes. */
export class Watchers {
  readonly #listeners = new Set<(ids: ChangedIds) => void>();

  /** Adds a function. Returns a function that removes it. */
  watch(listener: (ids: ChangedIds) => void): () => void {
    const own = (ids: ChangedIds) => listener(ids);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** Calls the functions soon. An error that one of them throws does not reach the store. */
  tell(ids: ChangedIds): void {
    if (ids.length === 0) return;
    const told = distinct(ids);
    for (const listener of this.#listeners) queueMicrotask(() => listener(told));
  }
}

/** Returns the ids of the bookmarks that a page of changes has changed. `retagged` is the result of `apply`. */
export const changedBy = (
  { reset, bookmarks, deleted }: MirrorPage,
  retagged: readonly number[],
): ChangedIds => (reset ? 'all' : [...bookmarks.map(({ id }) => id), ...deleted, ...retagged]);

/** Returns whether an `update` of a bookmark writes anything. */
export const isChange = (change: object): boolean => Object.keys(change).length > 0;

/** Returns each id once, without 0, which stands for a bookmark that is being added. */
export const distinct = (ids: ChangedIds): ChangedIds =>
  ids === 'all' ? ids : [...new Set(ids)].filter((id) => id !== 0);
