import { countCodePoints, hasManyMarks, isStorable } from './text.ts';

/** Rules for texts and tag names. They use no schema library, because the page and the CLI use them too. */

/** The limits of sections 2.5 and 8 (decision 9). Those of a bookmark's own fields are in `BOOKMARK_FIELDS`. */
export const BOUNDS = {
  tagName: 255,
  tagsPerBookmark: 100,
  tagsPerUser: 10_000,
  tagPaths: 10,
  apiTokensPerUser: 50,
  passkeysPerUser: 20,
  query: 1_000,
  phrases: 10,
  importEntries: 100_000,
  idsPerRequest: 500,
} as const;

/** Returns the rule that a text breaks; undefined if it is valid. */
export function textRule(text: string, max: number, min: number): string | undefined {
  if (!isStorable(text)) return 'may not contain U+0000 or a lone surrogate';
  if (countCodePoints(text, max) > max) return `at most ${max} characters`;
  return text.length < min ? 'may not be empty' : undefined;
}

/**
 * NFC combines at most four characters into one, and a character has at most two code units. So a name of this length
 * is too long in NFC too. It is not normalized, because that takes time that grows with the square of the number of
 * combining marks in a row.
 */
const isTooLongInAnyForm = (name: string): boolean =>
  name.length > 8 * BOUNDS.tagName ||
  (countCodePoints(name, BOUNDS.tagName) > BOUNDS.tagName && hasManyMarks(name));

/** Returns a tag name trimmed and in NFC (decision 12). A name that is too long in any form is not normalized. */
export function cleanTagName(name: string): string {
  const trimmed = name.trim();
  return isTooLongInAnyForm(trimmed) ? trimmed : trimmed.normalize('NFC');
}

/** The sort orders of a search. The first is the default. `search_bookmarks` raises an error for any other. */
export const SORTS = ['newest', 'oldest', 'created', 'updated', 'title'] as const;

export type Sort = (typeof SORTS)[number];
