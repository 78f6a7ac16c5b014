import { countCodePoints, hasManyMarks, isStorable } from './text.ts';

/** Rules for texts and tag names without a schema library, so that the page and the command line use them too. */

/**
 * The bounds of spec 2.5 and 8 (decision 9), except those of a bookmark's own fields, which are in `BOOKMARK_FIELDS`.
 */
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

/** The rule that a text breaks; undefined for one that the service stores. */
export function textRule(text: string, max: number, min: number): string | undefined {
  if (!isStorable(text)) return 'may not hold U+0000 or a lone surrogate';
  if (countCodePoints(text, max) > max) return `at most ${max} characters`;
  return text.length < min ? 'may not be empty' : undefined;
}

/**
 * NFC makes one character of at most four, and a character has at most two code units: a longer name is too long
 * after NFC too. Nor is a long name with many combining marks in a row normalized: the time grows with their square.
 */
const isTooLongInAnyForm = (name: string): boolean =>
  name.length > 8 * BOUNDS.tagName ||
  (countCodePoints(name, BOUNDS.tagName) > BOUNDS.tagName && hasManyMarks(name));

/**
 * A tag name, trimmed and in NFC (decision 12). A name that is too long in any case is not normalized.
 */
export function cleanTagName(name: string): string {
  const trimmed = name.trim();
  return isTooLongInAnyForm(trimmed) ? trimmed : trimmed.normalize('NFC');
}

/** The orders of a search; the first is the default. `search_bookmarks` raises for any other. */
export const SORTS = ['newest', 'oldest', 'created', 'updated', 'title'] as const;

export type Sort = (typeof SORTS)[number];
