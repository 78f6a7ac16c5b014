import { button, make } from './dom.ts';
import { moreTexts } from './more-texts.ts';
import { texts } from './texts.ts';

/** The list of keyboard shortcuts. */

/** Lists what each key does. */
export const keyList = (): HTMLElement =>
  make(
    'dl',
    { class: 'key-list' },
    ...moreTexts.keys.list.flatMap(([key, what]) => [
      make('dt', {}, make('kbd', {}, key!)),
      make('dd', {}, what!),
    ]),
  );

/** Shows the list in a dialog. */
export function showKeys(): void {
  const dialog = make(
    'dialog',
    { class: 'keys', 'aria-labelledby': 'keys' },
    make('h2', { id: 'keys' }, moreTexts.keys.title),
    keyList(),
    make(
      'div',
      { class: 'buttons' },
      button(texts.close, () => dialog.close()),
      make('a', { class: 'button plain', href: '/settings#keyboard' }, moreTexts.keys.change),
    ),
  );
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
