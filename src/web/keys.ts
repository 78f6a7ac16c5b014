import type { Bookmark } from '../domain/resources.ts';
import { shortcutsAreOn } from './shortcuts.ts';

/**
 * The keyboard shortcuts of the list. They are inactive while the user types, and while Ctrl, Alt or Meta is pressed.
 * Users can turn off the shortcuts on character keys.
 */

interface KeyActions {
  search(): void;
  add(): void;
  undo(): void;
  move(by: number): void;
  /** Returns the bookmark that has the focus. */
  row(): Bookmark | undefined;
  edit(bookmark: Bookmark): void;
  remove(bookmark: Bookmark): void;
  select(bookmark: Bookmark): void;
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  target.closest('input:not([type=checkbox]), textarea, select, dialog') !== null;

export function addKeys(actions: KeyActions): void {
  const onRow = (run: (bookmark: Bookmark) => void) => () => {
    const bookmark = actions.row();
    if (bookmark) run(bookmark);
  };
  const keys: Record<string, () => void> = {
    '/': actions.search,
    n: actions.add,
    z: actions.undo,
    j: () => actions.move(1),
    k: () => actions.move(-1),
    ArrowDown: () => actions.move(1),
    ArrowUp: () => actions.move(-1),
    e: onRow(actions.edit),
    x: onRow(actions.select),
    Delete: onRow(actions.remove),
    '?': () => void import('./key-list.ts').then(({ showKeys }) => showKeys()),
  };
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || isTyping(event.target)) return;
    // The arrow keys scroll the page unless a bookmark has the focus.
    if (event.key.startsWith('Arrow') && actions.row() === undefined) return;
    const run = keys[event.key];
    if (run === undefined || (event.key.length === 1 && !shortcutsAreOn())) return;
    event.preventDefault();
    run();
  });
}
