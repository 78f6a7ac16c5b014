import { formatTag, formatUnder, splitSearch } from '../client/search-text.ts';
import type { Tag } from '../domain/resources.ts';
import { make, newId, refill } from './dom.ts';
import { moreTexts } from './more-texts.ts';
import { suggestTags } from './tag-field.ts';
import { texts } from './texts.ts';

/**
 * Suggestions below the search field: the user's tags and the operators. An empty field lists all operators. No
 * suggestion is selected until the reader highlights one, so Enter searches for the typed text.
 */

/** A text that can replace the part being typed, and a description of what it finds. */
interface Suggestion {
  text: string;
  about: string;
}

const OPERATORS = Object.entries(moreTexts.operators).map(([shown, about]) => ({
  text: shown,
  shown,
  about,
}));

const needsValue = (text: string): boolean => /[:"]$/.test(text);

/** Returns the last part of a text while it is being typed. Undefined after a space. */
function typedPart(text: string): string | undefined {
  if (text.trim() === '') return '';
  const last = splitSearch(text).at(-1)!.text;
  return text.endsWith(last) ? last : undefined;
}

/** Lists texts that could replace the part being typed. */
function suggest(text: string, own: readonly Tag[]): Suggestion[] {
  const part = typedPart(text);
  if (part === undefined) return [];
  if (part === '') return OPERATORS;
  const { key, value, isNegated } = splitSearch(part)[0]!;
  const operators = OPERATORS.filter(({ text }) => text.startsWith(part.toLowerCase()) && text !== part);
  if (key !== undefined && key !== 'tag' && key !== 'under') return operators;
  const sought = key === undefined ? part.replace(/^[-#]+/, '') : value;
  const counts = new Map(own.map((tag) => [tag.name, tag.bookmark_count]));
  const prefix = isNegated || part.startsWith('-') ? '-' : '';
  const tags = (sought === '' && key === undefined ? [] : suggestTags(own, sought, [])).map((name) => ({
    text: key === 'under' ? formatUnder(name) : prefix + formatTag(name),
    about: prefix === '' ? texts.bookmarks(counts.get(name)!) : moreTexts.operators['-tag:'],
  }));
  return [...tags.filter(({ text }) => text !== part), ...operators];
}

/** Adds suggestions to the search field. Calls `onChosen` after a suggestion has changed the text. */
export function addSuggestions(
  input: HTMLInputElement,
  ownTags: () => readonly Tag[],
  onChosen: () => void,
): void {
  const list = make('ul', {
    class: 'suggestions',
    role: 'listbox',
    id: newId(),
    'aria-label': moreTexts.suggestions,
  });
  let shown: Suggestion[] = [];
  let active = -1;
  list.hidden = true;
  input.after(list);
  for (const [name, value] of Object.entries({
    role: 'combobox',
    'aria-controls': list.id,
    'aria-autocomplete': 'list',
    'aria-expanded': 'false',
  }))
    input.setAttribute(name, value);

  const highlight = (at: number) => {
    active = at;
    for (const [index, option] of [...list.children].entries())
      option.setAttribute('aria-selected', String(index === active));
    if (active < 0) return input.removeAttribute('aria-activedescendant');
    input.setAttribute('aria-activedescendant', `${list.id}-${active}`);
    list.children[active]!.scrollIntoView({ block: 'nearest' });
  };
  const draw = (suggestions: Suggestion[]) => {
    shown = suggestions;
    list.hidden = shown.length === 0;
    input.setAttribute('aria-expanded', String(!list.hidden));
    refill(list, ...shown.map(option));
    highlight(-1);
  };
  const option = ({ text, about }: Suggestion, at: number) =>
    make(
      'li',
      {
        role: 'option',
        id: `${list.id}-${at}`,
        onmousemove: () => active !== at && highlight(at),
        // Keeps the focus in the field.
        onmousedown: (event: MouseEvent) => event.preventDefault(),
        onclick: () => choose(at),
      },
      make('span', { class: 'name', dir: 'auto' }, text),
      make('span', { class: 'hint' }, about),
    );
  const choose = (at: number) => {
    const { text } = shown[at]!;
    const part = typedPart(input.value) ?? '';
    const isWhole = !needsValue(text);
    input.value = `${input.value.slice(0, input.value.length - part.length)}${text}${isWhole ? ' ' : ''}`;
    input.focus();
    draw(isWhole ? [] : suggest(input.value, ownTags()));
    onChosen();
  };
  const close = () => draw([]);
  /** Suggests only at the end of the text. Elsewhere a suggestion would replace a different part. */
  const update = () => {
    const isAtEnd = input.selectionStart === input.value.length;
    draw(isAtEnd && document.activeElement === input ? suggest(input.value, ownTags()) : []);
  };
  input.addEventListener('input', update);
  input.addEventListener('blur', close);
  input.addEventListener('click', () => list.hidden && update());
  input.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    const count = shown.length;
    if (event.key === 'Enter' && active < 0) return close();
    if (event.key === 'ArrowDown' && count === 0) update();
    else if (event.key === 'ArrowDown') highlight((active + 1) % count);
    else if (event.key === 'ArrowUp' && count > 0) highlight((active <= 0 ? count : active) - 1);
    else if ((event.key === 'Enter' || event.key === 'Tab') && active >= 0) choose(active);
    else if (event.key === 'Escape' && count > 0) close();
    else return;
    event.preventDefault();
  });
  update();
}
