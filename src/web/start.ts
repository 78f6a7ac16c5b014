import type { Profile } from '../domain/resources.ts';
import { button, make } from './dom.ts';
import { describeError } from './errors.ts';
import { forgetKept, readKept } from './offline-store.ts';
import { findUser, signals } from './session.ts';
import { dropLinkedCode, showSignIn } from './sign-in.ts';
import { texts } from './texts.ts';

/** Resolves with who is signed in; shows the page for signing in to who is not. */
export async function requireUser(): Promise<Profile> {
  for (;;) {
    try {
      const user = await findUser();
      if (user !== undefined) {
        dropLinkedCode();
        // Other tabs may wait for it: whoever signs in by a provider does so in a tab beside them.
        signals.postMessage('signed-in');
        return user;
      }
      // Whoever was signed in before is not any more.
      forgetKept();
      await showSignIn();
    } catch (error) {
      const kept = readKept();
      if (kept === undefined || navigator.onLine) await showFailure(error);
      else await (await import('./offline-page.ts')).showOfflinePage(kept);
    }
  }
}

/** Says why nothing can be shown; resolves when the reader wants it tried again. */
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
