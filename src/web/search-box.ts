import type { Tag } from '../domain/resources.ts';
import { icon, iconButton, make, makeForm, newId } from './dom.ts';
import { quotaLeft } from './session.ts';
import { nameKey } from './shortcuts.ts';
import { texts } from './texts.ts';

/** The search field. It starts a search as soon as the user stops typing for a moment. */

interface SearchBox {
  readonly element: HTMLFormElement;
  readonly input: HTMLInputElement;
  /**
   * The text of the latest search. The field may already have a newer text, which is searched for shortly afterwards.
   */
  text: string;
}

/**
 * Returns how long to wait after a key before the search, in ms. The pause is longer if little of the quota of requests
 * is left.
 */
function pauseMs(): number {
  if (quotaLeft() > 50) return 60;
  return quotaLeft() > 20 ? 350 : 1_500;
}

export function searchBox(onSearch: (text: string) => void, ownTags: () => readonly Tag[]): SearchBox {
  const hint = make('p', { class: 'hidden', id: newId() }, texts.search.hint);
  const input = make('input', {
    type: 'search',
    name: 'q',
    autocomplete: 'off',
    spellcheck: 'false',
    dir: 'auto',
    maxlength: 1_000,
    placeholder: texts.search.placeholder,
    'aria-label': texts.search.label,
    'aria-describedby': hint.id,
  });
  nameKey(input, '/');
  let timer: ReturnType<typeof setTimeout> | undefined;
  let last = '';
  const search = () => {
    clearTimeout(timer);
    if (input.value === last) return;
    last = input.value;
    onSearch(last);
  };
  const clear = iconButton('close', texts.search.clear, () => {
    input.value = '';
    search();
    input.focus();
  });
  input.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(search, pauseMs());
  });
  /** Loads the suggestions when the field is first used. The field works without them. */
  const loadSuggestions = async () => {
    const { addSuggestions } = await import('./search-suggestions.ts');
    addSuggestions(input, ownTags, search);
  };
  input.addEventListener('focus', () => void loadSuggestions().catch(() => {}), { once: true });
  const element = makeForm('search', search, icon('search'), input, clear, hint);
  element.role = 'search';
  return {
    element,
    input,
    get text() {
      return last;
    },
    set text(text) {
      if (input.value !== text) input.value = text;
      last = text;
    },
  };
}
