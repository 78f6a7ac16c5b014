import type { Bookmark } from '../domain/resources.ts';
import type { Collection } from './collection.ts';
import { describeError } from './errors.ts';
import { type Notice, notify, notifyBriefly } from './notices.ts';
import { titleOf } from './row.ts';
import { API_BASE, ask, client } from './session.ts';
import { texts } from './texts.ts';

/** Deleting with undo: rows go at once, the request five seconds later. A page that goes sends it before it goes. */

const UNDO_MS = 5_000;

interface Pending {
  ids: number[];
  timer: ReturnType<typeof setTimeout>;
  notice: Notice;
}

interface Deletions {
  remove(bookmarks: readonly Bookmark[]): void;
  /** Takes back what was deleted last, where it is not too late. */
  undo(): void;
}

export function createDeletions(collection: Collection): Deletions {
  const pending: Pending[] = [];
  const take = (one: Pending) => {
    clearTimeout(one.timer);
    one.notice.remove();
    const at = pending.indexOf(one);
    if (at < 0) return false;
    pending.splice(at, 1);
    return true;
  };
  const undo = (one: Pending | undefined) => {
    if (one && take(one)) collection.show(one.ids);
  };
  const send = async (one: Pending) => {
    if (!take(one)) return;
    try {
      await ask(() => deleteAll(one.ids));
      collection.forget(one.ids);
    } catch (error) {
      collection.show(one.ids);
      notify(texts.notDeleted(describeError(error)), { kind: 'error' });
    }
  };
  // Also where the page is only put aside, for it may never come back.
  addEventListener('pagehide', () => {
    for (const one of [...pending]) {
      take(one);
      collection.forget(one.ids);
      sendLast(one.ids);
    }
  });
  return {
    remove(bookmarks) {
      if (bookmarks.length === 0) return;
      const ids = bookmarks.map(({ id }) => id);
      collection.hide(ids);
      const notice = notify(texts.deleted(ids.length, titleOf(bookmarks[0]!)), {
        action: { text: texts.undo, run: () => undo(one) },
      });
      const one: Pending = { ids, notice, timer: setTimeout(() => void send(one), UNDO_MS) };
      pending.push(one);
    },
    undo() {
      if (pending.length > 0) {
        undo(pending.at(-1));
        notifyBriefly(texts.restored);
      }
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
