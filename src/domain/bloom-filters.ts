/**
 * Bloom filters for blocks of search texts. A filter has one bit, chosen by a hash, for each sequence of up to five
 * letters in the block. If the bits of a term's sequences are not all set, the block cannot contain the term.
 *
 * About 1 in 100 blocks is a false positive (docs/decisions/0090-search-blocks-with-bloom-filters.md). If the sequences
 * or the hash change, all filters must be rebuilt.
 */

/** At this size, four rows, each with one filter, fill one page of Postgres. */
const FILTER_BYTES = 1_984;

const LONGEST_SEQUENCE = 5;

/** A search tests at most this many bits in each filter. Testing more would exclude hardly any more blocks. */
const MOST_BITS = 8;

/**
 * A block with more bytes than this gets a filter that matches every term, because nearly all bits of its own filter
 * would be set.
 */
export const MOST_FILTERED_BYTES = 65_536;

const BLANK = 0x20;
const LINE_FEED = 0x0a;

/**
 * Calls `visit` with the bit and the length of each sequence that starts at `start`. No sequence contains a blank or a
 * line feed. So a search for a phrase tests the sequences of its words.
 */
function visitSequences(text: string, start: number, visit: (bit: number, length: number) => void): void {
  let hash = 0;
  const end = Math.min(start + LONGEST_SEQUENCE, text.length);
  for (let at = start; at < end; at += 1) {
    const letter = text.charCodeAt(at);
    if (letter === BLANK || letter === LINE_FEED) return;
    // The factor is a prime near 2^32 divided by the golden ratio. The upper 16 bits of the hash choose the bit.
    hash = Math.imul(hash ^ letter, 0x9e3779b1);
    hash ^= hash >>> 15;
    visit(((hash >>> 16) * (FILTER_BYTES * 8)) >>> 16, at + 1 - start);
  }
}

/** Builds the filter of a block from its texts, one on each line. If `texts` is null, the filter matches every term. */
export function buildBloomFilter(texts: string | null): Buffer {
  if (texts === null) return Buffer.alloc(FILTER_BYTES, 0xff);
  const filter = Buffer.alloc(FILTER_BYTES);
  const set = (bit: number): void => {
    filter[bit >> 3]! |= 1 << (bit & 7);
  };
  for (let start = 0; start < texts.length; start += 1) visitSequences(texts, start, set);
  return filter;
}

/** Returns the bits of a term. Bits of longer sequences come first, because fewer texts contain longer sequences. */
function bitsOf(term: string): number[] {
  const sequences: { bit: number; length: number }[] = [];
  // Only sequences that start in the first 32 letters are used. Nearly always, these are enough.
  const usedLength = Math.min(term.length, 4 * MOST_BITS);
  for (let start = 0; start < usedLength; start += 1) {
    visitSequences(term, start, (bit, length) => sequences.push({ bit, length }));
  }
  return sequences.toSorted((a, b) => b.length - a.length).map(({ bit }) => bit);
}

/**
 * Returns up to eight bits that are set in the filter of every block that contains all these terms. Without terms,
 * returns none.
 */
export function bloomFilterBits(terms: readonly string[]): number[] {
  const longestTerms = terms.toSorted((a, b) => b.length - a.length).slice(0, MOST_BITS);
  const bitsPerTerm = Math.floor(MOST_BITS / longestTerms.length);
  return [...new Set(longestTerms.flatMap((term) => bitsOf(term).slice(0, bitsPerTerm)))];
}
