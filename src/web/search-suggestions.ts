import { formatTag, formatUnder, splitSearch } from '../client/search-text.ts';
import type { Tag } from '../domain/resources.ts';
import { moreTexts } from './more-texts.ts';
import { suggestionList } from './suggestion-list.ts';
import { suggestTags } from './tag-field.ts';
import { texts } from './texts.ts';

/**
 * Suggestions below the search field: the user's tags and the operators. An empty field lists all operators. Enter
 * searches for the typed text, unless the user has highlighted a suggestion.
 */

/** A text that can replace the part of the search that the user is typing, and a description of what it finds. */
interface Suggestion {
  text: string;
  about: string;
}

const OPERATORS: readonly Suggestion[] = Object.entries(moreTexts.operators).map(([text, about]) => ({
  text,
  about,
}));

/**
 * Returns the last part of a text, which is the part that the user is typing. Returns undefined if the text ends with a
 * space.
 */
function typedPart(text: string): string | undefined {
  if (text.trim() === '') return '';
  const last = splitSearch(text).at(-1)?.text;
  return last !== undefined && text.endsWith(last) ? last : undefined;
}

/** Returns texts that could replace the part that the user is typing. */
function suggest(searchText: string, own: readonly Tag[]): readonly Suggestion[] {
  const part = typedPart(searchText);
  if (part === undefined) return [];
  const [parsed] = splitSearch(part);
  if (parsed === undefined) return OPERATORS;
  const { key, value, isNegated } = parsed;
  const operators = OPERATORS.filter(({ text }) => text.startsWith(part.toLowerCase()) && text !== part);
  if (key !== undefined && key !== 'tag' && key !== 'under') return operators;
  const sought = key === undefined ? part.replace(/^[-#]+/, '') : value;
  /** True if the part excludes a tag, even if the operator `-tag:` is not complete yet. */
  const isWithout = isNegated || part.startsWith('-');
  const tags = sought === '' && key === undefined ? [] : suggestTags(own, sought, []);
  const suggestions = tags.map(({ name, bookmark_count }) => ({
    text: key === 'under' ? formatUnder(name) : `${isWithout ? '-' : ''}${formatTag(name)}`,
    about: isWithout ? moreTexts.operators['-tag:'] : texts.bookmarks(bookmark_count),
  }));
  return [...suggestions.filter(({ text }) => text !== part), ...operators];
}

/** Adds suggestions to the search field. Calls `onChosen` after a suggestion has changed the text. */
export function addSuggestions(
  input: HTMLInputElement,
  ownTags: () => readonly Tag[],
  onChosen: () => void,
): void {
  const list = suggestionList(input, {
    label: moreTexts.suggestions,
    // A suggestion replaces the last part of the text. So none is shown unless the caret is at the end.
    suggest: () => (input.selectionStart === input.value.length ? suggest(input.value, ownTags()) : []),
    onChoose(text) {
      const part = typedPart(input.value) ?? '';
      const before = input.value.slice(0, input.value.length - part.length);
      const needsValue = /[:"]$/.test(text);
      input.value = `${before}${text}${needsValue ? '' : ' '}`;
      list.update();
      onChosen();
    },
  });
  input.after(list.element);
  list.update();
}
