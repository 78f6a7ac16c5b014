import { check, make } from '../dom.ts';
import { keyList } from '../key-list.ts';
import { moreTexts } from '../more-texts.ts';
import { setShortcuts, shortcutsAreOn } from '../shortcuts.ts';
import { section } from './section.ts';

/** Creates the section with the keyboard shortcuts, and with the switch that turns them off. */
export function keyboardSection(): HTMLElement {
  const words = moreTexts.keys;
  const list = keyList();
  const box = make('input', {
    type: 'checkbox',
    checked: shortcutsAreOn(),
    onchange: () => {
      setShortcuts(box.checked);
      list.hidden = !box.checked;
    },
  });
  list.hidden = !box.checked;
  return section('keyboard', words.title, words.lead, check(box, words.use), list);
}
