import { ApiError } from '../client/errors.ts';
import type { Bookmark, Profile } from '../domain/resources.ts';
import { describeError } from './errors.ts';
import { notify } from './notices.ts';
import { keep, readKept } from './offline-store.ts';
import { scriptAddress } from './script-address.ts';
import { ask, client } from './session.ts';

/** What makes the page an app that works without a network. It is loaded after the first list, so it delays nothing. */

/**
 * Registers the worker that shows the page without a network, sends the bookmarks that were added without one, and keeps
 * the newest ones for the next time.
 */
export async function startApp({ email }: Profile, newest: readonly Bookmark[] | undefined): Promise<void> {
  // Browsers have workers over TLS and on `localhost` only.
  const workers = (navigator as Partial<Navigator>).serviceWorker;
  void workers?.register(scriptAddress('/service-worker.js')).catch(() => {});
  try {
    if (newest !== undefined) keep(email, { bookmarks: [...newest] });
  } catch {
    // The browser has no space left.
  }
  await sendWaiting(email);
}

/** Sends what waits. Two tabs that send the same one add it once, because each has a key. */
async function sendWaiting(email: string): Promise<void> {
  const kept = readKept();
  if (kept?.email !== email) return;
  // The oldest is last.
  for (const { key, bookmark } of kept.waiting.toReversed()) {
    try {
      await ask(() => client.addBookmark(bookmark, { idempotencyKey: key }));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status === 0 || error.status >= 429) return;
      // The service will never take this one: say so, once.
      notify(`${bookmark.url}: ${describeError(error)}`, { kind: 'error' });
    }
    keep(email, { waiting: (readKept() ?? kept).waiting.filter((one) => one.key !== key) });
  }
}
