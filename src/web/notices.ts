import { button, iconButton, make, put, refill } from './dom.ts';
import { texts } from './texts.ts';

/** What the page says to its reader: short notices that go by themselves, and one line about the connection. */

const region = make('div', { class: 'notice-list', role: 'status' });
const line = make('p', { class: 'connection', role: 'status', hidden: true });

/** The corner with the notices and the line of the connection; once in each page. */
export const noticeElements = (): HTMLElement[] => [make('div', { class: 'notices' }, line, region)];

export interface Notice {
  remove(): void;
  say(text: string): void;
}

interface NoticeOptions {
  /** A button: what it says, and what it does. */
  action?: { text: string; run: () => void };
  /** How long it stays, in ms; undefined: until it is removed. */
  forMs?: number | undefined;
  kind?: 'plain' | 'error';
  /** Whether it can be closed, which a notice without an action and a time always can. */
  isClosable?: boolean;
}

/** Shows a notice. Errors stay until they are closed. */
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
  // More than these are not read, and would cover the list.
  while (region.childElementCount > 4) region.firstElementChild!.remove();
  return { remove, say: (next) => refill(words, next) };
}

/** A notice that goes after some seconds. */
export const notifyBriefly = (text: string): Notice => notify(text, { forMs: 4_000 });

/** Sets the line about the connection; undefined: all is well. */
export function sayConnection(text: string | undefined): void {
  if (text !== undefined && line.textContent !== text) line.textContent = text;
  line.hidden = text === undefined;
}
