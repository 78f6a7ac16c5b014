/**
 * Bloom filters of blocks of search texts: one bit for each sequence of up to five letters that is in them, by its hash. A block
 * can hold a term only where its filter has the bits of the term's own sequences. Measured on blocks of 60 texts, it has
 * them in 1 of 100 blocks that do not hold the term
 * (docs/decisions/0090-search-blocks-with-bloom-filters.md). If the sequences or the hash change, all filters must be built again.
 */

/** Four rows of it fill a page of Postgres. */
const FILTER_BYTES = 1_984;

const LONGEST_SEQUENCE = 5;

/** Each takes a test of each block; more exclude hardly any further ones. */
const MOST_BITS = 8;

/** Of longer texts nearly all bits would be set. */
export const MOST_FILTERED_BYTES = 65_536;

const BLANK = 0x20;
const LINE_FEED = 0x0a;

/** Calls `visit` with the bit and the length of each sequence that begins at a letter. None has a blank, for no term has. */
function visitSequences(text: string, start: number, visit: (bit: number, length: number) => void): void {
  let hash = 0;
  const end = Math.min(start + LONGEST_SEQUENCE, text.length);
  for (let at = start; at < end; at += 1) {
    const letter = text.charCodeAt(at);
    if (letter === BLANK || letter === LINE_FEED) return;
    hash = Math.imul(hash ^ letter, 0x9e3779b1);
    hash ^= hash >>> 15;
    visit(((hash >>> 16) * (FILTER_BYTES * 8)) >>> 16, at + 1 - start);
  }
}

/** The filter of a block's texts, with blanks or line feeds between them; null stands for texts that may hold any term. */
export function buildBloomFilter(texts: string | null): Buffer {
  if (texts === null) return Buffer.alloc(FILTER_BYTES, 0xff);
  const filter = Buffer.alloc(FILTER_BYTES);
  const set = (bit: number): void => {
    filter[bit >> 3]! |= 1 << (bit & 7);
  };
  for (let start = 0; start < texts.length; start += 1) visitSequences(texts, start, set);
  return filter;
}

/** Bits of a term, those of its longest sequences first, which few texts have. */
function bitsOf(term: string): number[] {
  const found: { bit: number; length: number }[] = [];
  for (let start = 0; start < Math.min(term.length, 4 * MOST_BITS); start += 1) {
    visitSequences(term, start, (bit, length) => found.push({ bit, length }));
  }
  return found.toSorted((a, b) => b.length - a.length).map(({ bit }) => bit);
}

/** One to eight bits that the filter of each block has which holds all these terms; none without terms. */
export function bloomFilterBits(terms: readonly string[]): number[] {
  const longest = terms.toSorted((a, b) => b.length - a.length).slice(0, MOST_BITS);
  const lists = longest.map(bitsOf);
  const share = Math.floor(MOST_BITS / lists.length);
  return [...new Set(lists.flatMap((bits) => bits.slice(0, share)))];
}
