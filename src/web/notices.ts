import { button, iconButton, make, put, refill } from './dom.ts';
import { texts } from './texts.ts';

/** The page's messages to the reader: short notices that disappear by themselves, and one line about the connection. */

const region = make('div', { class: 'notice-list', role: 'status' });
const line = make('p', { class: 'connection', role: 'status', hidden: true });

/** Returns the corner with the notices and the connection line. Each page adds it once. */
export const noticeElements = (): HTMLElement[] => [make('div', { class: 'notices' }, line, region)];

export interface Notice {
  remove(): void;
  say(text: string): void;
}

interface NoticeOptions {
  /** A button: its text and its action. */
  action?: { text: string; run: () => void };
  /** How long the notice stays, in ms. If undefined, until it is removed. */
  forMs?: number | undefined;
  kind?: 'plain' | 'error';
  /** Adds a close button. Default: only for a notice without an action and a time. */
  isClosable?: boolean;
}

/** Shows a notice. Errors stay until the reader closes them. */
export function notify(
  text: string,
  { action, forMs, kind = 'plain', isClosable = forMs === undefined && !action }: NoticeOptions = {},
): Notice {
  const words = make('span', { dir: 'auto' }, text);
  const element = make('div', { class: `notice ${kind}` }, words);
  const remove = () => element.remove();
  if (action) put(element, button(action.text, action.run, { kind: 'notice-action' }));
  if (isClosable) put(element, iconButton('close', texts.close, remove));
  if (forMs !== undefined) setTimeout(remove, forMs);
  region.append(element);
  // More notices would cover the list.
  while (region.childElementCount > 4) region.firstElementChild!.remove();
  return { remove, say: (next) => refill(words, next) };
}

/** Shows a notice that disappears after a few seconds. */
export const notifyBriefly = (text: string): Notice => notify(text, { forMs: 4_000 });

/** Sets the line about the connection. Undefined hides it. */
export function sayConnection(text: string | undefined): void {
  if (text !== undefined && line.textContent !== text) line.textContent = text;
  line.hidden = text === undefined;
}
