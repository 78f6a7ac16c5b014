import { ApiError } from '../client/errors.ts';
import type { Bookmark, Profile } from '../domain/resources.ts';
import { describeError } from './errors.ts';
import { notifyError } from './notices.ts';
import { keep, readKept } from './offline-store.ts';
import { scriptAddress } from './script-address.ts';
import { ask, client } from './session.ts';

/** Makes the page an app that works without a network. Loaded after the first list, so that it delays nothing. */

/**
 * Registers the service worker, which shows the page without a network. Keeps the newest bookmarks for the next visit
 * and sends those that were added offline.
 */
export async function startApp({ email }: Profile, newest: readonly Bookmark[] | undefined): Promise<void> {
  // Browsers support service workers only over TLS and on `localhost`.
  if ('serviceWorker' in navigator)
    void navigator.serviceWorker.register(scriptAddress('/service-worker.js')).catch(() => {});
  try {
    if (newest !== undefined) keep(email, { bookmarks: [...newest] });
  } catch {
    // The browser's storage is full.
  }
  await sendWaiting(email);
}

/** Sends the waiting bookmarks. Each has a key, so two tabs that send the same one add it only once. */
async function sendWaiting(email: string): Promise<void> {
  const kept = readKept();
  if (kept?.email !== email) return;
  // The oldest is last in the list.
  for (const { key, bookmark } of kept.waiting.toReversed()) {
    try {
      await ask(() => client.addBookmark(bookmark, { idempotencyKey: key }));
    } catch (error) {
      if (!(error instanceof ApiError) || [0, 401].includes(error.status) || error.status >= 429) return;
      // The service will never accept this bookmark. Report it once and drop it.
      notifyError(`${bookmark.url}: ${describeError(error)}`);
    }
    keep(email, { waiting: (readKept() ?? kept).waiting.filter((one) => one.key !== key) });
  }
}
