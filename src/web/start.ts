import type { Account } from '../domain/resources.ts';
import { button, make } from './dom.ts';
import { describeError, isUnreachable } from './errors.ts';
import { forgetOthers, forgetShown, readKept } from './offline-store.ts';
import { findUser, signals } from './session.ts';
import { texts } from './texts.ts';

/** Takes the code from a link's fragment (`#code=…`), which browsers do not send to servers. */
function takeLinkedCode(): string | undefined {
  const code = /^#code=([A-Z0-9]{8,12})$/.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(history.state, '', location.pathname + location.search);
  return code;
}

/** Resolves with the user who is signed in. Shows the sign-in page first if nobody is. */
export async function requireUser(): Promise<Account> {
  for (;;) {
    try {
      const user = await findUserSoon();
      if (user !== undefined) {
        // A user who is signed in does not need the code of a link.
        takeLinkedCode();
        forgetOthers(user.email);
        // Another tab may be waiting for this sign-in, because signing in again through a provider opens a new tab.
        signals.postMessage('signed-in');
        signals.postMessage({ user: user.email });
        return user;
      }
      // Nobody is signed in now, so nobody may see the previous user's bookmarks.
      forgetShown();
      const { showSignIn } = await import('./sign-in.ts');
      await showSignIn(takeLinkedCode());
    } catch (error) {
      const kept = readKept();
      if (kept === undefined || !isUnreachable(error)) await showFailure(error);
      else await (await import('./offline-page.ts')).showOfflinePage(kept);
    }
  }
}

/**
 * Returns the user who is signed in. If the browser keeps bookmarks for the offline page, a request that gets no
 * response is not retried, so that the offline page appears soon. `navigator.onLine` would not help, because it may be
 * true without a connection.
 */
async function findUserSoon(): Promise<Account | undefined> {
  if (readKept() === undefined) return findUser();
  try {
    return await findUser({ retryForMs: 0 });
  } catch (error) {
    if (isUnreachable(error)) throw error;
    return findUser();
  }
}

/** Shows why the page cannot load. Resolves when the user tries again. */
const showFailure = (error: unknown): Promise<void> =>
  new Promise((resolve) => {
    const again = button(texts.tryAgain, () => resolve(), { kind: 'primary' });
    document.body.replaceChildren(
      make(
        'main',
        { class: 'sign-in' },
        make('h1', {}, texts.name),
        make('p', { role: 'alert' }, describeError(error)),
        again,
      ),
    );
  });
