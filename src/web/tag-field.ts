import type { Tag } from '../domain/resources.ts';
import { make, newId, refill } from './dom.ts';
import { texts } from './texts.ts';

/** A field for the tags of a bookmark. Each tag is a chip, and the user's own tags are suggested while typing. */

interface TagField {
  readonly element: HTMLElement;
  readonly input: HTMLInputElement;
  /** Returns the tags, including one that is still being typed. */
  read(): string[];
}

const SHOWN = 8;

const isSame = (one: string, other: string): boolean =>
  one.normalize('NFC').toLowerCase() === other.normalize('NFC').toLowerCase();

/** Suggests tags that begin with the text, then those that contain it. In both groups the most used come first. */
export function suggestTags(own: readonly Tag[], text: string, taken: readonly string[]): string[] {
  const sought = text.toLowerCase();
  const rank = (name: string) => (name.toLowerCase().startsWith(sought) ? 0 : 1);
  return own
    .filter(({ name }) => name.toLowerCase().includes(sought) && !taken.some((tag) => isSame(tag, name)))
    .sort((one, other) => rank(one.name) - rank(other.name) || other.bookmark_count - one.bookmark_count)
    .slice(0, SHOWN)
    .map(({ name }) => name);
}

export function tagField(given: readonly string[], ownTags: () => readonly Tag[], label: string): TagField {
  const tags = [...given];
  const listId = newId();
  const chips = make('span', { class: 'chips' });
  const list = make('ul', {
    class: 'suggestions',
    role: 'listbox',
    id: listId,
    'aria-label': texts.editor.suggestions,
  });
  list.hidden = true;
  const input = make('input', {
    role: 'combobox',
    autocomplete: 'off',
    autocapitalize: 'none',
    spellcheck: 'false',
    dir: 'auto',
    id: newId(),
    'aria-expanded': 'false',
    'aria-controls': listId,
    'aria-autocomplete': 'list',
  });
  let active = -1;

  const drawChips = () =>
    refill(
      chips,
      ...tags.map((tag) =>
        make(
          'button',
          {
            type: 'button',
            class: 'chip removable',
            dir: 'auto',
            'aria-label': texts.editor.removeTag(tag),
            onclick: () => {
              tags.splice(tags.indexOf(tag), 1);
              drawChips();
              input.focus();
            },
          },
          tag,
        ),
      ),
    );
  const add = (text: string) => {
    const name = text.trim();
    if (name !== '' && !tags.some((tag) => isSame(tag, name))) tags.push(name);
    input.value = '';
    drawChips();
    close();
  };
  const close = () => {
    list.hidden = true;
    active = -1;
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
  };
  const drawList = () => {
    const names = suggestTags(ownTags(), input.value.trim(), tags);
    const isShown = names.length > 0 && document.activeElement === input;
    list.hidden = !isShown;
    input.setAttribute('aria-expanded', String(isShown));
    active = Math.min(active, names.length - 1);
    refill(
      list,
      ...names.map((name, at) =>
        make(
          'li',
          {
            role: 'option',
            id: `${listId}-${at}`,
            dir: 'auto',
            // The highlighted suggestion is the one that Enter chooses.
            onmousemove: () => {
              if (active === at) return;
              active = at;
              drawActive();
            },
            // Keeps the focus in the field.
            onmousedown: (event: MouseEvent) => event.preventDefault(),
            onclick: () => {
              add(name);
              input.focus();
            },
          },
          name,
        ),
      ),
    );
    drawActive();
  };
  const drawActive = () => {
    for (const [at, option] of [...list.children].entries())
      option.setAttribute('aria-selected', String(at === active));
    if (active >= 0) input.setAttribute('aria-activedescendant', `${listId}-${active}`);
    else input.removeAttribute('aria-activedescendant');
  };
  const move = (by: number) => {
    const count = list.childElementCount;
    if (list.hidden || count === 0) return drawList();
    active = (active + by + count) % count;
    drawList();
  };

  input.addEventListener('input', () => {
    active = -1;
    // Also handles pasted lists. Only a comma ends a tag, because names may contain spaces.
    const parts = input.value.split(',');
    const rest = parts.pop()!;
    for (const part of parts) add(part);
    input.value = rest;
    drawList();
  });
  input.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    const chosen = active >= 0 ? list.children[active]?.textContent : undefined;
    if (event.key === 'ArrowDown') move(1);
    else if (event.key === 'ArrowUp') move(-1);
    else if (event.key === 'Enter' && (chosen || input.value.trim() !== '')) add(chosen || input.value);
    else if (event.key === 'Tab' && chosen) add(chosen);
    else if (event.key === 'Escape' && !list.hidden) close();
    else if (event.key === 'Backspace' && input.value === '' && tags.length > 0) {
      tags.pop();
      drawChips();
      return;
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  input.addEventListener('focus', drawList);
  input.addEventListener('blur', close);
  drawChips();
  const box = make(
    'div',
    {
      class: 'tag-box',
      onclick: (event: MouseEvent) => {
        if (event.target === event.currentTarget) input.focus();
      },
    },
    chips,
    input,
    list,
  );
  const hint = make('p', { class: 'hint', id: newId() }, texts.editor.tagsHint);
  input.setAttribute('aria-describedby', hint.id);
  return {
    element: make('div', { class: 'field' }, make('label', { for: input.id }, label), box, hint),
    input,
    read: () => {
      const typed = input.value.trim();
      return typed === '' || tags.some((tag) => isSame(tag, typed)) ? [...tags] : [...tags, typed];
    },
  };
}
