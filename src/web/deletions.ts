import type { Bookmark } from '../domain/resources.ts';
import type { Collection } from './collection.ts';
import { describeError } from './errors.ts';
import { notify, notifyBriefly, notifyError } from './notices.ts';
import { titleOf } from './row.ts';
import { ask, client, isLarge, type RunQuietly, trashDays } from './session.ts';
import { texts } from './texts.ts';

/**
 * Deletes bookmarks. The user can undo the latest deletions, even after a reload of the page. Undo restores the
 * bookmarks from the trash.
 */

/** How long the page shows the notice of a deletion. The notice has a button that undoes the deletion. */
const NOTICE_MS = 10_000;

/** How long a deletion can be undone with the keyboard or after a reload. */
const UNDO_MS = 5 * 60_000;

/** After a reload, at most this many deletions can be undone. */
const MAX_KEPT = 20;

interface Deletion {
  ids: number[];
  /** The text of the notice. */
  text: string;
  /** When the user deleted the bookmarks, as a time in ms. */
  atMs: number;
}

interface Deletions {
  remove(bookmarks: readonly Bookmark[]): void;
  /** Undoes the latest deletion that is not undone yet, if it is recent enough (`UNDO_MS`). */
  undo(): void;
}

/**
 * Creates the functions that delete bookmarks of one user. The tab's storage keeps the deletions under the user's email
 * address, so that the next user of the tab cannot undo them.
 */
export function createDeletions(collection: Collection, user: string, runQuietly: RunQuietly): Deletions {
  const key = `deleted:${user}`;
  const isRecent = ({ atMs }: Deletion) => Date.now() - atMs < UNDO_MS;
  const read = (): Deletion[] => JSON.parse(sessionStorage.getItem(key) ?? '[]');
  const kept = read().filter(isRecent);
  /** For each deletion, the function that removes its notice. */
  const notices = new Map<Deletion, () => void>();
  /** For each deletion with pending requests, a promise that resolves to true if all of them succeed. */
  const sending = new Map<Deletion, Promise<boolean>>();

  const keep = () => {
    try {
      sessionStorage.setItem(key, JSON.stringify(kept.slice(-MAX_KEPT)));
    } catch {
      // The tab's storage is full. Undo works until the page is reloaded.
    }
  };
  /** Removes a deletion and its notice, so that it can no longer be undone. Returns false if it was removed before. */
  const drop = (deletion: Deletion) => {
    notices.get(deletion)?.();
    const index = kept.indexOf(deletion);
    if (index >= 0) kept.splice(index, 1);
    keep();
    return index >= 0;
  };
  const offer = (deletion: Deletion) => {
    const action = { text: texts.undo, run: () => void restore(deletion) };
    notices.set(deletion, notify(deletion.text, { action, forMs: NOTICE_MS }));
  };
  const add = (ids: readonly number[], text: string): Deletion => {
    const deletion = { ids: [...ids], text, atMs: Date.now() };
    kept.push(deletion);
    keep();
    return deletion;
  };
  const send = async (deletion: Deletion) => {
    try {
      // This is one request, and it is sent immediately, so that nothing is left out if the user closes the page.
      await ask(() => client.deleteBookmarks({ ids: deletion.ids, trash: true }, { retryForMs: 10_000 }));
      collection.forget(deletion.ids);
      return true;
    } catch (error) {
      drop(deletion);
      collection.show(deletion.ids);
      notifyError(texts.notDeleted(describeError(error)));
      return false;
    } finally {
      sending.delete(deletion);
    }
  };
  const restore = async (deletion: Deletion) => {
    // `drop` returns false on a second click, and if the deletion has failed.
    if (!drop(deletion)) return;
    if ((await sending.get(deletion)) === false) return;
    const { ids } = deletion;
    let left: readonly number[] = ids;
    try {
      if (isLarge(ids.length)) left = await (await import('./many.ts')).restoreMany(ids, runQuietly);
      else {
        const { restored } = await ask(() => client.restoreBookmarks(ids, { retryForMs: 10_000 }));
        left = [];
        notifyBriefly(texts.restored(restored.length, ids.length));
      }
    } catch (error) {
      notifyError(texts.notRestored(describeError(error)));
    }
    if (left.length > 0) add(left, deletion.text);
  };
  const removeMany = async (ids: readonly number[], first: Bookmark) => {
    const { deleteMany } = await import('./many.ts');
    const deleted = await deleteMany(ids, runQuietly);
    if (deleted.length === 0) return;
    const text = texts.deleted(deleted.length, titleOf(first));
    if (trashDays() === 0) notifyBriefly(text);
    else offer(add(deleted, text));
  };
  const last = kept.at(-1);
  if (last !== undefined) offer(last);
  return {
    remove(bookmarks) {
      const [first] = bookmarks;
      if (first === undefined) return;
      const ids = bookmarks.map(({ id }) => id);
      // Without a trash, every deletion asks first, because it cannot be undone.
      if (isLarge(ids.length) || trashDays() === 0) return void removeMany(ids, first).catch(notifyError);
      collection.hide(ids);
      const deletion = add(ids, texts.deleted(ids.length, titleOf(first)));
      offer(deletion);
      sending.set(deletion, send(deletion));
    },
    undo() {
      const deletion = kept.filter(isRecent).at(-1);
      if (deletion !== undefined) void restore(deletion);
    },
  };
}
