import type { Bookmark } from '../domain/resources.ts';
import type { Collection } from './collection.ts';
import { describeError } from './errors.ts';
import { type Notice, notify, notifyBriefly } from './notices.ts';
import { titleOf } from './row.ts';
import { API_BASE, ask, client } from './session.ts';
import { texts } from './texts.ts';

/** Deleting with undo: what was deleted last can be restored from the trash, also after the page was loaded again. */

/** How long a notice offers to undo. */
const NOTICE_MS = 10_000;

/** How long the key for undo, and a page that was loaded again, can bring back what was deleted. */
const UNDO_MS = 5 * 60_000;

/** How many deletions can be undone, one after the other. */
const MAX_KEPT = 20;

interface Deletion {
  ids: number[];
  /** What the notice says. */
  text: string;
  atMs: number;
}

interface Deletions {
  remove(bookmarks: readonly Bookmark[]): void;
  /** Restores what was deleted last, where it is not too late. */
  undo(): void;
}

/** The tab keeps what was deleted, for each user by themselves. */
export function createDeletions(collection: Collection, user: string): Deletions {
  const key = `deleted:${user}`;
  const isRecent = ({ atMs }: Deletion) => Date.now() - atMs < UNDO_MS;
  const read = (): Deletion[] => JSON.parse(sessionStorage.getItem(key) ?? '[]');
  const kept = read().filter(isRecent);
  const notices = new Map<Deletion, Notice>();
  /** The requests on their way; each resolves with whether its bookmarks are in the trash. */
  const sending = new Map<Deletion, Promise<boolean>>();

  const keep = () => {
    try {
      sessionStorage.setItem(key, JSON.stringify(kept.slice(-MAX_KEPT)));
    } catch {
      // Too much for the tab's storage: it can be undone until the page is loaded again.
    }
  };
  const drop = (deletion: Deletion) => {
    notices.get(deletion)?.remove();
    const at = kept.indexOf(deletion);
    if (at >= 0) kept.splice(at, 1);
    keep();
    return at >= 0;
  };
  const offer = (deletion: Deletion) => {
    const action = { text: texts.undo, run: () => void restore(deletion) };
    notices.set(deletion, notify(deletion.text, { action, forMs: NOTICE_MS }));
  };
  const send = async (deletion: Deletion) => {
    try {
      await ask(() => deleteAll(deletion.ids));
      collection.forget(deletion.ids);
      return true;
    } catch (error) {
      drop(deletion);
      collection.show(deletion.ids);
      notify(texts.notDeleted(describeError(error)), { kind: 'error' });
      return false;
    } finally {
      sending.delete(deletion);
    }
  };
  const restore = async (deletion: Deletion) => {
    // A second click finds nothing, and neither does one on a deletion that failed.
    if (!drop(deletion)) return;
    if ((await sending.get(deletion)) === false) return;
    try {
      notifyBriefly(texts.restored(await ask(() => restoreAll(deletion.ids)), deletion.ids.length));
    } catch (error) {
      kept.push(deletion);
      keep();
      notify(texts.notRestored(describeError(error)), { kind: 'error' });
    }
  };
  // The browser sends the request of a page that goes again: its first one may have been broken off.
  addEventListener('pagehide', () => {
    for (const { ids } of sending.keys()) sendLast(ids);
  });
  const last = kept.at(-1);
  if (last !== undefined) offer(last);
  return {
    remove(bookmarks) {
      if (bookmarks.length === 0) return;
      const ids = bookmarks.map(({ id }) => id);
      const text = texts.deleted(ids.length, titleOf(bookmarks[0]!));
      const deletion = { ids, text, atMs: Date.now() };
      collection.hide(ids);
      kept.push(deletion);
      keep();
      offer(deletion);
      sending.set(deletion, send(deletion));
    },
    undo() {
      const deletion = kept.filter(isRecent).at(-1);
      if (deletion !== undefined) void restore(deletion);
    },
  };
}

/** As many as one request takes. */
const BATCH = 500;

const batches = (ids: readonly number[]): number[][] =>
  Array.from({ length: Math.ceil(ids.length / BATCH) }, (_, at) => ids.slice(at * BATCH, (at + 1) * BATCH));

/** Deletes bookmarks; those that are gone already are no error. To repeat it does no harm. */
async function deleteAll(ids: readonly number[]): Promise<void> {
  for (const batch of batches(ids)) await client.deleteBookmarks(batch, { retryForMs: 10_000 });
}

/** Restores bookmarks from the trash; returns how many of them were still there. */
async function restoreAll(ids: readonly number[]): Promise<number> {
  let count = 0;
  for (const batch of batches(ids)) {
    const { restored } = await client.restoreBookmarks(batch, { retryForMs: 10_000 });
    count += restored.length;
  }
  return count;
}

/** The last request of a page: the browser sends it although the page has gone, and nobody reads the response. */
function sendLast(ids: readonly number[]): void {
  for (const batch of batches(ids)) {
    void fetch(`${API_BASE}/bookmarks/delete`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ids: batch }),
      keepalive: true,
    }).catch(() => {});
  }
}
