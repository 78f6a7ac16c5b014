import { randomId } from '../client/requester.ts';
import { completeUrl } from '../domain/typed-url.ts';
import { parseWebUrl } from '../domain/web-url.ts';
import { fillTime } from './dates.ts';
import { button, field, icon, make, makeForm, refill, submitButton } from './dom.ts';
import { readDraft } from './editor.ts';
import { moreTexts } from './more-texts.ts';
import { type Kept, keepWaiting, readKept } from './offline-store.ts';
import { drawLink } from './row.ts';
import { isServiceReachable } from './session.ts';
import { texts } from './texts.ts';

/**
 * The offline page, which appears when there is no network. It shows the newest bookmarks of the last visit, and a form
 * for a new bookmark. The new bookmark is sent later.
 */

/** The pause between two attempts to reach the service. Browsers do not always report when it can be reached again. */
const CHECK_MS = 5_000;

/** Shows the page. Resolves when the service can be reached again or when the user tries again. */
export function showOfflinePage(kept: Kept): Promise<void> {
  const words = moreTexts.offline;
  const draft = readDraft();
  const url = make('input', { type: 'url', value: draft.url, autocomplete: 'off', required: true });
  const title = make('input', { value: draft.title, autocomplete: 'off', dir: 'auto' });
  const message = make('p', { role: 'status' });
  const list = make('ul', { class: 'items' });
  const draw = () => {
    const { bookmarks, waiting } = readKept() ?? kept;
    const entry = (one: { url: string; title?: string | undefined; created_at?: string | undefined }) => {
      const time = make('time', { class: 'hint' });
      if (one.created_at !== undefined) fillTime(time, one.created_at);
      else refill(time, words.waits);
      return make('li', {}, drawLink({ url: one.url, title: one.title ?? '' }, []), time);
    };
    refill(list, ...waiting.map(({ bookmark }) => entry(bookmark)), ...bookmarks.map(entry));
  };
  const save = () => {
    const address = completeUrl(url.value);
    if (parseWebUrl(address) === null) return refill(message, texts.editor.wrongUrl);
    const bookmark = { url: address, title: title.value, on_duplicate: 'return' as const };
    try {
      keepWaiting(kept.email, { key: randomId(), bookmark });
    } catch {
      return refill(message, texts.editor.noSpace);
    }
    url.value = '';
    title.value = '';
    refill(message, texts.editor.kept);
    draw();
  };
  draw();
  return new Promise((resolve) => {
    let isOver = false;
    const end = () => {
      isOver = true;
      removeEventListener('online', end);
      resolve();
    };
    const check = async () => {
      if (isOver) return;
      if (await isServiceReachable()) end();
      else setTimeout(() => void check(), CHECK_MS);
    };
    setTimeout(() => void check(), CHECK_MS);
    addEventListener('online', end);
    document.body.replaceChildren(
      make(
        'main',
        { class: 'save' },
        make('div', { class: 'brand' }, icon('mark')),
        make('h1', {}, texts.name),
        make('p', { role: 'status' }, words.lead),
        button(texts.tryAgain, end),
        makeForm(
          'editor',
          save,
          field(texts.editor.url, url),
          field(texts.editor.title, title),
          message,
          submitButton(texts.editor.later),
        ),
        list,
      ),
    );
    document.body.dataset.started = 'yes';
  });
}
