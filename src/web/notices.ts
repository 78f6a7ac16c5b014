import { button, iconButton, make, put } from './dom.ts';
import { describeError } from './errors.ts';
import { texts } from './texts.ts';

/** The page's messages to the user: short notices that disappear by themselves, and a line about the connection. */

const region = make('div', { class: 'notice-list', role: 'status' });
const line = make('p', { class: 'connection', role: 'status', hidden: true });

const element = make('div', { class: 'notices' }, line, region);

/** Returns the element that shows the notices and the line about the connection. Each page adds it once. */
export const noticeElements = (): HTMLElement[] => [element];

/**
 * Moves the notices into the top dialog, because a dialog covers everything outside of it. When the dialog closes,
 * moves them back.
 */
function showOnTop(): void {
  const dialog = [...document.querySelectorAll('dialog[open]')].at(-1);
  if (dialog === undefined || dialog.contains(element)) return;
  dialog.append(element);
  const moveBack = () => {
    document.body.append(element);
    showOnTop();
  };
  dialog.addEventListener('close', moveBack, { once: true });
}

interface NoticeOptions {
  /** The text and the action of a button in the notice. */
  action?: { text: string; run: () => void };
  /** How long the notice stays, in ms. If undefined, it stays until it is removed. */
  forMs?: number;
  kind?: 'plain' | 'error';
  /** Whether the notice has a close button. Default: only if it has neither an action nor `forMs`. */
  isClosable?: boolean;
}

/** Shows a notice. Returns a function that removes it. */
export function notify(
  text: string,
  { action, forMs, kind = 'plain', isClosable = forMs === undefined && !action }: NoticeOptions = {},
): () => void {
  const notice = make('div', { class: `notice ${kind}` }, make('span', { dir: 'auto' }, text));
  const remove = () => notice.remove();
  if (action) put(notice, button(action.text, action.run, { kind: 'quiet' }));
  if (isClosable) put(notice, iconButton('close', texts.close, remove));
  if (forMs !== undefined) setTimeout(remove, forMs);
  showOnTop();
  region.append(notice);
  // More than four notices would cover the list, so the oldest ones are removed.
  while (region.childElementCount > 4) region.firstElementChild?.remove();
  return remove;
}

/** Shows a notice that disappears after a few seconds. */
export const notifyBriefly = (text: string): (() => void) => notify(text, { forMs: 4_000 });

/** Shows the message of an error, or the given text, until the user closes the notice. */
export const notifyError = (error: unknown): (() => void) =>
  notify(typeof error === 'string' ? error : describeError(error), { kind: 'error' });

/** Sets the line about the connection. Undefined hides the line. */
export function sayConnection(text: string | undefined): void {
  if (text !== undefined) showOnTop();
  if (text !== undefined && line.textContent !== text) line.textContent = text;
  line.hidden = text === undefined;
}
