import { make, newId } from '../dom.ts';
import { keyList } from '../key-list.ts';
import { moreTexts } from '../more-texts.ts';
import { setShortcuts, shortcutsAreOn } from '../shortcuts.ts';
import { section } from './section.ts';

/** The list of keyboard shortcuts, and the switch that turns them off. */
export function keyboardSection(): HTMLElement {
  const words = moreTexts.keyboard;
  const list = keyList();
  const box = make('input', {
    type: 'checkbox',
    id: newId(),
    onchange: () => {
      setShortcuts(box.checked);
      list.hidden = !box.checked;
    },
  });
  box.checked = shortcutsAreOn();
  list.hidden = !box.checked;
  const check = make('div', { class: 'check' }, box, make('label', { for: box.id }, words.single));
  return section('keyboard', words.title, words.lead, check, list);
}
