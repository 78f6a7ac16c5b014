import { button, buttonRow, make, makeDialog, showDialog } from './dom.ts';
import { moreTexts } from './more-texts.ts';
import { texts } from './texts.ts';

/** Creates the list of the keyboard shortcuts. */
export const keyList = (): HTMLElement =>
  make(
    'dl',
    { class: 'key-list' },
    ...moreTexts.keys.list.flatMap(([key, what]) => [
      make('dt', {}, make('kbd', {}, key)),
      make('dd', {}, what),
    ]),
  );

/** Shows the list of the keyboard shortcuts in a dialog. */
export function showKeys(): void {
  const dialog = makeDialog(
    moreTexts.keys.title,
    keyList(),
    buttonRow(
      button(texts.close, () => dialog.close()),
      make('a', { class: 'button plain', href: '/settings#keyboard' }, moreTexts.keys.change),
    ),
  );
  void showDialog(dialog);
}
