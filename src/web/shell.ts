import { icon, make } from './dom.ts';
import { noticeElements, notifyError } from './notices.ts';
import { forgetKept } from './offline-store.ts';
import { describeFailure, hasStatus, post } from './post.ts';
import { signals } from './session.ts';
import { texts } from './texts.ts';

/**
 * The frame around the content of the bookmarks page and of the settings page: the header with its links, and the
 * notices.
 */

type PageName = 'bookmarks' | 'settings';

/** Fills the document. `middle` appears between the name and the links. */
export function showShell(page: PageName, content: HTMLElement, middle?: HTMLElement): void {
  const { menu } = texts;
  const link = (name: PageName, path: string) =>
    make('a', { href: path, ...(name === page && { 'aria-current': 'page' }) }, menu[name]);
  const header = make(
    'header',
    { class: 'top' },
    make(
      'a',
      { class: 'brand', href: '/', 'aria-label': texts.name },
      icon('mark'),
      make('span', {}, texts.name),
    ),
    middle,
    make(
      'nav',
      { 'aria-label': menu.label },
      page === 'settings' && link('bookmarks', '/'),
      page === 'bookmarks' && link('settings', '/settings'),
      make('button', { type: 'button', class: 'quiet', onclick: () => void signOut() }, menu.signOut),
    ),
  );
  content.id = 'content';
  const skip = make('a', { class: 'skip', href: '#content' }, texts.skip);
  document.body.replaceChildren(skip, header, content, ...noticeElements());
  document.body.dataset.started = 'yes';
}

/**
 * Ends the session in all tabs of this browser and loads the start page. Asks for confirmation if the user could not
 * sign in again, because they have no linked provider, no passkey and no other session.
 */
export async function signOut(): Promise<void> {
  const ways = await post<{ provider: boolean; passkeys: number; other_sessions: number }>(
    '/web/login/ways',
    {},
  ).catch(() => undefined);
  if (ways !== undefined && !ways.provider && ways.passkeys + ways.other_sessions === 0) {
    const { confirmSignOut } = await import('./device-code.ts');
    if (!(await confirmSignOut())) return;
  }
  try {
    await post('/web/logout', {});
  } catch (error) {
    // The session may have ended already.
    if (!hasStatus(error, 401)) return void notifyError(describeFailure(error));
  }
  forgetKept();
  signals.postMessage('signed-out');
  location.assign('/');
}
