import { field, makeChoice } from '../dom.ts';
import { moreTexts } from '../more-texts.ts';
import { LANGUAGES } from '../texts/language.ts';
import { section } from './section.ts';

/**
 * How the page looks in this browser: colours, height of rows, language. The first script of each page reads the
 * colours and the height of rows before the browser draws anything.
 */

type Choice = 'theme' | 'rows' | 'language';

/** Stores and applies a choice. An empty value means the default. */
function choose(choice: Choice, value: string): void {
  if (value === '') localStorage.removeItem(choice);
  else localStorage.setItem(choice, value);
  if (choice === 'language') location.reload();
  else document.documentElement.dataset[choice] = value;
}

function chooser(choice: Choice, label: string, options: Readonly<Record<string, string>>): HTMLElement {
  const { element } = makeChoice(options, { onchange: () => choose(choice, element.value) });
  element.value = localStorage.getItem(choice) ?? '';
  return field(label, element);
}

export function appearanceSection(): HTMLElement {
  const words = moreTexts.appearance;
  return section(
    'appearance',
    words.title,
    words.lead,
    chooser('theme', words.theme, words.themes),
    chooser('rows', words.rows, words.heights),
    chooser('language', words.language, { '': words.asBrowser, ...LANGUAGES }),
  );
}
