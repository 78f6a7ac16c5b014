import { button, iconButton, make, put } from './dom.ts';
import { describeError } from './errors.ts';
import { texts } from './texts.ts';

/** The page's messages to the reader: short notices that disappear by themselves, and one line about the connection. */

const region = make('div', { class: 'notice-list', role: 'status' });
const line = make('p', { class: 'connection', role: 'status', hidden: true });

/** Returns the corner with the notices and the connection line. Each page adds it once. */
export const noticeElements = (): HTMLElement[] => [make('div', { class: 'notices' }, line, region)];

interface NoticeOptions {
  /** A button: its text and its action. */
  action?: { text: string; run: () => void };
  /** How long the notice stays, in ms. If undefined, until it is removed. */
  forMs?: number;
  kind?: 'plain' | 'error';
  /** Adds a close button. Default: only for a notice without an action and a time. */
  isClosable?: boolean;
}

/** Shows a notice. Returns a function that removes it. */
export function notify(
  text: string,
  { action, forMs, kind = 'plain', isClosable = forMs === undefined && !action }: NoticeOptions = {},
): () => void {
  const element = make('div', { class: `notice ${kind}` }, make('span', { dir: 'auto' }, text));
  const remove = () => element.remove();
  if (action) put(element, button(action.text, action.run, { kind: 'quiet' }));
  if (isClosable) put(element, iconButton('close', texts.close, remove));
  if (forMs !== undefined) setTimeout(remove, forMs);
  region.append(element);
  // More notices would cover the list.
  while (region.childElementCount > 4) region.firstElementChild?.remove();
  return remove;
}

/** Shows a notice that disappears after a few seconds. */
export const notifyBriefly = (text: string): (() => void) => notify(text, { forMs: 4_000 });

/** Shows an error or a text about one until the reader closes it. */
export const notifyError = (error: unknown): (() => void) =>
  notify(typeof error === 'string' ? error : describeError(error), { kind: 'error' });

/** Sets the line about the connection. Undefined hides it. */
export function sayConnection(text: string | undefined): void {
  if (text !== undefined && line.textContent !== text) line.textContent = text;
  line.hidden = text === undefined;
}
