import { field, make } from '../dom.ts';
import { moreTexts } from '../more-texts.ts';
import { section } from './section.ts';

/**
 * How the page looks in this browser: light or dark, and how high rows are. The first script of each page reads the same
 * entries before anything is drawn.
 */

type Choice = 'theme' | 'rows';

/** An empty value is the default, and is not stored. */
function choose(choice: Choice, value: string): void {
  if (value === '') localStorage.removeItem(choice);
  else localStorage.setItem(choice, value);
  document.documentElement.dataset[choice] = value;
}

function chooser(choice: Choice, label: string, options: Readonly<Record<string, string>>): HTMLElement {
  const select = make(
    'select',
    { onchange: () => choose(choice, select.value) },
    ...Object.entries(options).map(([value, text]) => make('option', { value }, text)),
  );
  select.value = localStorage.getItem(choice) ?? '';
  return field(label, select);
}

export function appearanceSection(): HTMLElement {
  const words = moreTexts.appearance;
  return section(
    'appearance',
    words.title,
    words.lead,
    chooser('theme', words.theme, words.themes),
    chooser('rows', words.rows, words.heights),
  );
}
