import { ApiError } from '../client/errors.ts';
import { WITHOUT_END } from '../client/requester.ts';
import type { Account, Bookmark } from '../domain/resources.ts';
import { describeError, isAbort } from './errors.ts';
import { notifyError } from './notices.ts';
import { keep, readKept, type Waiting } from './offline-store.ts';
import { scriptAddress } from './script-address.ts';
import { ask, client } from './session.ts';
// A dialog needs this module when the session ends. It is loaded early, because an update removes the old module.
import './sign-in.ts';

/**
 * Makes the page an app that works without a network. The page loads this file after it has shown the list, so that the
 * list is not delayed.
 */

/**
 * Registers the service worker, which shows the offline page. Stores the newest bookmarks, so that the offline page can
 * show them. Sends the bookmarks that were added offline. `newest` is undefined if this page has not read the newest
 * bookmarks.
 */
export async function startApp({ email }: Account, newest: readonly Bookmark[] | undefined): Promise<void> {
  // Browsers support service workers only over TLS and on `localhost`.
  if ('serviceWorker' in navigator)
    void navigator.serviceWorker.register(scriptAddress('/service-worker.js')).catch(() => {});
  try {
    if (newest !== undefined) keep(email, { bookmarks: [...newest] });
  } catch {
    // The browser's storage is full. Only the offline page needs these bookmarks.
  }
  await sendWaiting(email);
}

let sending: Promise<void> | undefined;

/** Sends the bookmarks that were added offline. Keeps trying while the service cannot be reached. */
export function sendWaiting(email: string): Promise<void> {
  sending ??= sendAll(email).finally(() => {
    sending = undefined;
  });
  return sending;
}

/** Adds a bookmark. Tries again as soon as the browser is online. */
async function send({ key, bookmark }: Waiting): Promise<void> {
  for (;;) {
    const attempt = new AbortController();
    const { signal } = attempt;
    const endPause = () => attempt.abort();
    addEventListener('online', endPause, { once: true });
    try {
      await ask(() => client.addBookmark(bookmark, { ...WITHOUT_END, idempotencyKey: key, signal }));
      return;
    } catch (error) {
      if (!isAbort(error)) throw error;
    } finally {
      removeEventListener('online', endPause);
    }
  }
}

/** Each bookmark has an idempotency key, so it is added only once even if two tabs send it. */
async function sendAll(email: string): Promise<void> {
  const kept = readKept();
  if (kept?.email !== email) return;
  // The newest bookmark is first in the list. The oldest is sent first.
  for (const waiting of kept.waiting.toReversed()) {
    try {
      await send(waiting);
    } catch (error) {
      // Status 0 means that there was no response, and 401 that the session has ended. A status of 429 or higher means
      // that the service is busy or has failed. In all these cases, the bookmarks stay stored for the next visit.
      if (!(error instanceof ApiError) || [0, 401].includes(error.status) || error.status >= 429) return;
      // The service will never accept this bookmark. The page reports it once and drops it.
      notifyError(`${waiting.bookmark.url}: ${describeError(error)}`);
    }
    // Another tab may have added or sent bookmarks meanwhile. So the stored list is read again.
    const left = (readKept() ?? kept).waiting.filter(({ key }) => key !== waiting.key);
    keep(email, { waiting: left });
  }
}
