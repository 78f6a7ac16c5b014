import { SEARCHED_NAMES } from './bookmark-fields.ts';

/** Text as the service compares and counts it (decision 5). */

/**
 * Putting the marks of one character into their order takes the square of their number: 10,000 took 170 ms, half a
 * million seven minutes. Stream-Safe Text (UAX 15) has no more than 30 marks in a row; more are normalised in pieces.
 */
const LONGEST_MARKS = 30;
const HAS_LONGER_MARKS = /\p{M}{31}/u;
const PIECES = /\P{M}*\p{M}{0,30}/gu;

/** Whether a text has more combining marks in a row than Stream-Safe Text has. */
export const hasManyMarks = (text: string): boolean =>
  text.length > LONGEST_MARKS && HAS_LONGER_MARKS.test(text);

function normalize(text: string): string {
  if (!hasManyMarks(text)) return text.normalize('NFC');
  return text.replace(PIECES, (piece) => piece.normalize('NFC'));
}

/** Nothing but case is to be folded in it: so are most urls, and much else. */
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

/**
 * Folds text for comparison without regard to case: NFC, lower case, final sigma as sigma. The only place where
 * case is folded; its result is stored beside the text, so that no database locale has a say.
 */
export const foldText = (text: string): string =>
  PRINTABLE_ASCII.test(text)
    ? text.toLowerCase()
    : normalize(normalize(text).toLowerCase().replaceAll('ς', 'σ'));

/** The folded terms of a search query, split at ECMAScript white space; none for a blank query (decision 13). */
export const searchTerms = (query: string): string[] =>
  [...new Set(foldText(query).split(/\s+/u))].filter(Boolean);

/** A field as searches scan it: folded, white space as blanks, so that it is one line. */
export const searchTextLine = (text: string): string =>
  PRINTABLE_ASCII.test(text) ? text.toLowerCase() : foldText(text).replace(/\s/gu, ' ');

/** What searches scan: the searched fields, a line each, so that no term spans two of them. */
export function searchText(bookmark: Record<(typeof SEARCHED_NAMES)[number], string>): string {
  let text = '';
  for (const name of SEARCHED_NAMES) text += `${text === '' ? '' : '\n'}${searchTextLine(bookmark[name])}`;
  return text;
}

/** Counts Unicode code points, at most up to `limit + 1`. */
export function countCodePoints(text: string, limit: number): number {
  if (text.length <= limit) return text.length;
  if (text.length > 2 * limit) return limit + 1;
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/**
 * Compares by code points, as collation "C" does. JavaScript compares the units of UTF-16, which puts U+10000 and beyond
 * before U+E000.
 */
export function compareByCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at += 1) {
    const [left, right] = [a.charCodeAt(at), b.charCodeAt(at)];
    if (left === right) continue;
    return fixSurrogate(left) - fixSurrogate(right);
  }
  return a.length - b.length;
}

const fixSurrogate = (unit: number): number =>
  unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit;

/** Whether text holds neither U+0000 nor a lone surrogate, so that Postgres stores it as it is. */
export const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0');

/** The first code points of a text, with an ellipsis where there are more; half a character becomes U+FFFD. */
export function cutText(text: string, limit: number): string {
  const kept = [...text.slice(0, 2 * limit)].slice(0, limit).join('').toWellFormed();
  return kept.length < text.length ? `${kept}…` : kept;
}

/** `a/` and `a//` mean `a` where a search asks for all tags below one. */
export function withoutEndSlashes(name: string): string {
  let end = name.length;
  while (name[end - 1] === '/') end -= 1;
  return name.slice(0, end);
}

/** Whether a tag is the one of a path or below it: `a/b` is below `a`. Both are folded (`foldText`). */
export const isUnder = (name: string, path: string): boolean => name === path || name.startsWith(`${path}/`);
