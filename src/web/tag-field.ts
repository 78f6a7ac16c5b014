import type { Tag } from '../domain/resources.ts';
import { showTag } from '../formats/folders.ts';
import { field, make, refill } from './dom.ts';
import { suggestionList } from './suggestion-list.ts';
import { texts } from './texts.ts';

/** A field for the tags of a bookmark. Each tag is a chip. While the user types, the field suggests existing tags. */

interface TagField {
  readonly element: HTMLElement;
  /** Returns the tags, including one that is still being typed. */
  read(): string[];
}

const SHOWN = 8;

const isSame = (one: string, other: string): boolean =>
  one.normalize('NFC').toLowerCase() === other.normalize('NFC').toLowerCase();

/**
 * Returns suggestions: first the tags that begin with the text, then those that contain it. In both groups, the most
 * used tags come first.
 */
export function suggestTags(own: readonly Tag[], text: string, taken: readonly string[]): Tag[] {
  const sought = text.toLowerCase();
  const rank = (name: string) => (name.toLowerCase().startsWith(sought) ? 0 : 1);
  return own
    .filter(({ name }) => name.toLowerCase().includes(sought) && !taken.some((tag) => isSame(tag, name)))
    .sort((one, other) => rank(one.name) - rank(other.name) || other.bookmark_count - one.bookmark_count)
    .slice(0, SHOWN);
}

export function tagField(given: readonly string[], ownTags: () => readonly Tag[], label: string): TagField {
  let tags = given;
  const chips = make('span', { class: 'chips' });
  const input = make('input', {
    autocomplete: 'off',
    autocapitalize: 'none',
    spellcheck: 'false',
    dir: 'auto',
  });
  const chip = (tag: string) =>
    make(
      'button',
      {
        type: 'button',
        class: 'chip removable',
        dir: 'auto',
        'aria-label': texts.editor.removeTag(showTag(tag)),
        onclick: () => {
          set(tags.filter((each) => each !== tag));
          input.focus();
        },
      },
      showTag(tag),
    );
  const set = (next: readonly string[]) => {
    tags = next;
    refill(chips, ...tags.map(chip));
  };
  const withTag = (text: string) => {
    const name = text.trim();
    return name === '' || tags.some((tag) => isSame(tag, name)) ? tags : [...tags, name];
  };
  const add = (text: string) => {
    set(withTag(text));
    input.value = '';
    list.close();
  };
  input.addEventListener('input', () => {
    // A pasted text may contain several tags. Only a comma ends a tag, because names may contain spaces.
    const ended = input.value.split(',');
    const rest = ended.pop() ?? '';
    for (const text of ended) add(text);
    input.value = rest;
  });
  const list = suggestionList(input, {
    label: texts.editor.suggestions,
    suggest: () => suggestTags(ownTags(), input.value.trim(), tags).map(({ name }) => ({ text: name })),
    onChoose: add,
  });
  input.addEventListener('focus', list.update);
  input.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    if (event.key === 'Backspace' && input.value === '') return set(tags.slice(0, -1));
    if (event.key !== 'Enter' || input.value.trim() === '') return;
    add(input.value);
    event.preventDefault();
    event.stopPropagation();
  });
  set(given);
  const box = make(
    'div',
    { class: 'tag-box', onclick: (event: MouseEvent) => event.target === box && input.focus() },
    chips,
    input,
    list.element,
  );
  return {
    element: field(label, input, texts.editor.tagsHint, box),
    read: () => [...withTag(input.value)],
  };
}
