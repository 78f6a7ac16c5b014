import { make, newId, refill } from './dom.ts';

/**
 * A list of suggestions below a text field (an ARIA combobox). The arrow keys and the pointer highlight a suggestion.
 * Enter, Tab and a click choose it. Escape closes the list.
 */

interface Suggestion {
  text: string;
  about?: string;
}

interface SuggestionList {
  /**
   * The list. Insert it after the field. Its position on the screen is relative to the nearest positioned element
   * around it.
   */
  readonly element: HTMLElement;
  /** Shows the suggestions for the current text, with nothing highlighted. */
  update(): void;
  close(): void;
}

interface Options {
  label: string;
  /** Returns the suggestions for the text in the field. */
  suggest(): readonly Suggestion[];
  onChoose(text: string): void;
}

export function suggestionList(
  input: HTMLInputElement,
  { label, suggest, onChoose }: Options,
): SuggestionList {
  const element = make('ul', {
    class: 'suggestions',
    role: 'listbox',
    id: newId(),
    'aria-label': label,
    hidden: true,
  });
  let shown: readonly Suggestion[] = [];
  /** The index of the highlighted suggestion, or -1. */
  let active = -1;
  input.role = 'combobox';
  input.ariaAutoComplete = 'list';
  input.ariaExpanded = 'false';
  input.setAttribute('aria-controls', element.id);

  const highlight = (at: number) => {
    active = at;
    input.removeAttribute('aria-activedescendant');
    for (const [index, option] of [...element.children].entries()) {
      option.ariaSelected = String(index === at);
      if (index !== at) continue;
      input.setAttribute('aria-activedescendant', option.id);
      option.scrollIntoView({ block: 'nearest' });
    }
  };
  const draw = (suggestions: readonly Suggestion[]) => {
    shown = suggestions;
    element.hidden = shown.length === 0;
    input.ariaExpanded = String(!element.hidden);
    refill(element, ...shown.map(option));
    highlight(-1);
  };
  const option = ({ text, about }: Suggestion, at: number) =>
    make(
      'li',
      {
        role: 'option',
        id: `${element.id}-${at}`,
        onmousemove: () => active !== at && highlight(at),
        // Without `preventDefault`, the field would lose the focus.
        onmousedown: (event: MouseEvent) => event.preventDefault(),
        onclick: () => onChoose(text),
      },
      make('span', { class: 'name', dir: 'auto' }, text),
      about !== undefined && make('span', { class: 'hint' }, about),
    );
  const close = () => draw([]);
  const update = () => draw(document.activeElement === input ? suggest() : []);

  input.addEventListener('input', update);
  input.addEventListener('click', () => element.hidden && update());
  input.addEventListener('blur', close);
  input.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    const count = shown.length;
    // If the first suggestion or none is highlighted, the up arrow highlights the last suggestion.
    const previous = (active <= 0 ? count : active) - 1;
    const chosen = shown[active];
    if (event.key === 'ArrowDown' && count === 0) update();
    else if (event.key === 'ArrowDown') highlight((active + 1) % count);
    else if (event.key === 'ArrowUp' && count > 0) highlight(previous);
    else if ((event.key === 'Enter' || event.key === 'Tab') && chosen) onChoose(chosen.text);
    else if (event.key === 'Enter') return close();
    else if (event.key === 'Escape' && count > 0) close();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  });
  return { element, update, close };
}
