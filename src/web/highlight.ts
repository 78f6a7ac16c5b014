import { foldText } from '../domain/text.ts';
import { make } from './dom.ts';

/** Highlights the matches of a search in a text. The limits below keep this fast for any bookmark and any search. */

/** Matches are highlighted only in this many characters from the start of a text. A row shows fewer characters. */
const MARKED_LENGTH = 500;

const MOST_TERMS = 10;

const MOST_MARKS = 20;

/**
 * Normalizes a text for search. Code unit `n` of `folded` comes from the letter at position `places[n]` of the original
 * text. `places` is undefined if each code unit has the same position in both texts.
 */
function foldWithPlaces(text: string): { folded: string; places: number[] | undefined } {
  const folded = foldText(text);
  if (folded.length === text.length) return { folded, places: undefined };
  // The letters are normalized one by one, so that the place of each is known.
  let foldedLetters = '';
  const places: number[] = [];
  let place = 0;
  for (const letter of text) {
    const foldedLetter = foldText(letter);
    for (let unit = 0; unit < foldedLetter.length; unit += 1) places.push(place);
    foldedLetters += foldedLetter;
    place += letter.length;
  }
  places.push(place);
  return { folded: foldedLetters, places };
}

/** The number of characters to show before the first match. */
const CONTEXT = 14;

/** Leaves out the start of a text if the first match of the normalized terms would otherwise be far from the start. */
export function excerpt(text: string, terms: readonly string[]): string {
  if (terms.length === 0 || text.length <= CONTEXT) return text;
  const { folded, places } = foldWithPlaces(text);
  const found = terms.slice(0, MOST_TERMS).map((term) => folded.indexOf(term));
  const first = Math.min(...found.filter((at) => at >= 0));
  if (first === Number.POSITIVE_INFINITY) return text;
  const place = places?.[first] ?? first;
  if (place <= CONTEXT) return text;
  const context = text.slice(place - CONTEXT, place);
  // The excerpt begins with a whole word if there is one.
  return `…${context.slice(context.search(/\s/) + 1).toWellFormed()}${text.slice(place)}`;
}

/** Splits a text into nodes and puts matches of the normalized terms into `<mark>`. */
export function highlight(text: string, terms: readonly string[]): (string | Node)[] {
  if (terms.length === 0 || text === '') return [text];
  const head = text.slice(0, MARKED_LENGTH);
  const { folded, places } = foldWithPlaces(head);
  const found: [from: number, to: number][] = [];
  for (const term of terms.slice(0, MOST_TERMS)) {
    let at = folded.indexOf(term);
    for (let count = 0; at >= 0 && count < MOST_MARKS; count += 1) {
      found.push([at, at + term.length]);
      at = folded.indexOf(term, at + term.length);
    }
  }
  found.sort(([one], [other]) => one - other);
  const nodes: (string | Node)[] = [];
  /** The position in the original text where the previous mark ends. */
  let markedEnd = 0;
  const placeOf = (at: number) => places?.[at] ?? at;
  for (const [from, to] of found) {
    // A match may overlap the one before it, or be inside it.
    const [start, end] = [Math.max(placeOf(from), markedEnd), placeOf(to)];
    if (end <= start) continue;
    nodes.push(text.slice(markedEnd, start), make('mark', {}, text.slice(start, end)));
    markedEnd = end;
  }
  return [...nodes, text.slice(markedEnd)];
}
