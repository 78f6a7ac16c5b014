import { SEARCHED_NAMES } from './bookmark-fields.ts';
import { BOUNDS } from './bounds.ts';

/** How the service compares, counts and checks text (docs/contract.md, decision 5). */

/**
 * The time that Unicode normalization takes grows with the square of the number of combining marks in a row. Half a
 * million marks would take minutes. Stream-Safe Text (UAX 15) allows 30 in a row, so longer runs are normalized in
 * chunks of 30.
 */
const LONGEST_MARKS = 30;
const HAS_LONGER_MARKS = /\p{M}{31}/u;
const CHUNKS = /\P{M}*\p{M}{0,30}/gu;

/** Whether a text has more combining marks in a row than Stream-Safe Text allows. */
const hasManyMarks = (text: string): boolean => text.length > LONGEST_MARKS && HAS_LONGER_MARKS.test(text);

function normalize(text: string): string {
  if (!hasManyMarks(text)) return text.normalize('NFC');
  return text.replace(CHUNKS, (chunk) => chunk.normalize('NFC'));
}

/** Matches most urls and many other texts. To normalize them, conversion to lower case is enough. */
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

/**
 * Normalizes text so that comparisons ignore case: converts it to NFC and to lower case. Replaces each final sigma (ς)
 * with the ordinary one (σ), and the lower case of İ, an i with a dot above (U+0307), with i. The database stores the
 * result with the text. So searches and comparisons do not depend on the locale of the database.
 */
export function foldText(text: string): string {
  if (PRINTABLE_ASCII.test(text)) return text.toLowerCase();
  const lowerCase = normalize(text)
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .replace(/i\u0307+/g, 'i');
  // The lower case of a text in NFC is not always in NFC.
  return normalize(lowerCase);
}

/**
 * Returns the normalized terms of a query, split at ECMAScript white space. A blank query has none (docs/contract.md,
 * decision 13).
 */
export const searchTerms = (query: string): string[] =>
  [...new Set(foldText(query).split(/\s+/u))].filter(Boolean);

/**
 * Returns a field's line in the search text: the field's text, normalized, with each white-space character replaced by
 * a blank. So the line contains no line break.
 */
export const searchTextLine = (text: string): string =>
  PRINTABLE_ASCII.test(text) ? text.toLowerCase() : foldText(text).replace(/\s/gu, ' ');

/** Matches percent-encoded bytes that are not ASCII. */
const ENCODED = /(?:%[89a-f][\da-f])+/gi;

/** Decodes the percent-encoded letters of a url that are not ASCII. Bytes that are not UTF-8 stay as they are. */
const decodeLetters = (url: string): string =>
  url.replace(ENCODED, (bytes) => {
    try {
      return decodeURIComponent(bytes);
    } catch {
      return bytes;
    }
  });

/**
 * Returns the line of a searched field in the search text. The line of a url with percent-encoded letters also contains
 * the url as people read it: `K%C3%B6ln` is also `köln`.
 */
export function searchedLine(name: (typeof SEARCHED_NAMES)[number], text: string): string {
  const decoded = name === 'url' ? decodeLetters(text) : text;
  return searchTextLine(decoded === text ? text : `${text} ${decoded}`);
}

/** Returns the text that searches scan. It has one line for each searched field, so that no term spans two fields. */
export function searchText(bookmark: Record<(typeof SEARCHED_NAMES)[number], string>): string {
  let text = '';
  for (const name of SEARCHED_NAMES)
    text += `${text === '' ? '' : '\n'}${searchedLine(name, bookmark[name])}`;
  return text;
}

/** Returns whether a text has more than `limit` Unicode code points. */
function hasMoreCodePoints(text: string, limit: number): boolean {
  // `length` counts UTF-16 code units. A code point has one or two of them.
  if (text.length <= limit) return false;
  if (text.length > 2 * limit) return true;
  let count = 0;
  for (const _ of text) count += 1;
  return count > limit;
}

/**
 * Compares texts by code points, like the collation "C" of Postgres. JavaScript's own comparison is by UTF-16 code
 * units, so it sorts U+10000 before U+E000.
 */
export function compareByCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const unitOfA = a.charCodeAt(index);
    const unitOfB = b.charCodeAt(index);
    if (unitOfA !== unitOfB) return rankUnit(unitOfA) - rankUnit(unitOfB);
  }
  return a.length - b.length;
}

const FIRST_SURROGATE = 0xd800;
const AFTER_SURROGATES = 0xe000;

/**
 * Returns the rank of a UTF-16 code unit in the order of code points. Surrogates, which encode U+10000 and above, get
 * the highest ranks. The code units above the surrogates move down into the ranks of the surrogates.
 */
function rankUnit(unit: number): number {
  if (unit < FIRST_SURROGATE) return unit;
  if (unit >= AFTER_SURROGATES) return unit - (AFTER_SURROGATES - FIRST_SURROGATE);
  return unit + (0x10000 - AFTER_SURROGATES);
}

/** Whether Postgres can store the text unchanged: it contains neither U+0000 nor a lone surrogate. */
export const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0');

/** Returns the first `limit` code points, with an ellipsis if the text was cut. Lone surrogates become U+FFFD. */
export function cutText(text: string, limit: number): string {
  // A code point has at most two code units.
  const firstUnits = text.slice(0, 2 * limit);
  const firstPart = [...firstUnits].slice(0, limit).join('').toWellFormed();
  return firstPart.length < text.length ? `${firstPart}…` : firstPart;
}

/** Removes trailing slashes. In a search for a tag and the tags below it, `a/` and `a//` mean `a`. */
export function withoutEndSlashes(name: string): string {
  let end = name.length;
  while (name[end - 1] === '/') end -= 1;
  return name.slice(0, end);
}

/** Whether a tag equals a path or is below it: `a/b` is below `a`. `foldText` must have normalized both texts. */
export const isUnder = (name: string, path: string): boolean => name === path || name.startsWith(`${path}/`);

/** Returns the rule that a text breaks; undefined if it is valid. */
export function textRule(text: string, max: number, min: number): string | undefined {
  if (!isStorable(text)) return 'may not contain U+0000 or a lone surrogate';
  if (hasMoreCodePoints(text, max)) return `at most ${max} characters`;
  return text.length < min ? 'may not be empty' : undefined;
}

/**
 * Whether a tag name is refused before it is normalized, for one of two reasons:
 *
 * - It has more than eight code units per allowed character. NFC combines at most four characters into one, and each of
 *   the four has at most two code units. So the name would be too long in NFC too.
 * - It is too long as sent, and has many combining marks in a row. Normalizing it would take too much time.
 */
const isRefusedUnnormalized = (name: string): boolean =>
  name.length > 8 * BOUNDS.tagName || (hasMoreCodePoints(name, BOUNDS.tagName) && hasManyMarks(name));

/**
 * Returns a tag name trimmed and in NFC (docs/contract.md, decision 12). A name that is refused as too long is not
 * normalized.
 */
export function cleanTagName(name: string): string {
  const trimmed = name.trim();
  return isRefusedUnnormalized(trimmed) ? trimmed : trimmed.normalize('NFC');
}
