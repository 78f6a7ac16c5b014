import { expect, test } from 'vitest';
import { bloomFilterBits, buildBloomFilter } from '../src/domain/bloom-filters.ts';
import { searchText } from '../src/domain/text.ts';
import { makeRandom, makeTexts } from './support/texts.ts';

// A search skips a block of texts if the block's Bloom filter lacks a bit of the search terms.

const SCRIPTS = [...'abcxyz09-/.é書の𝒳😀\u0001\u0300'];

const mayHold = (filter: Buffer, terms: string[]): boolean =>
  bloomFilterBits(terms).every((bit) => (filter[bit >> 3]! & (1 << (bit & 7))) !== 0);

function makeBlock(next: ReturnType<typeof makeTexts>): string {
  return Array.from({ length: 60 }, () => searchText(next()).replaceAll('\n', ' ')).join('\n');
}

test('a filter has the bits of every part of its texts, in any script', () => {
  const random = makeRandom(1);
  const draw = (of: number): number => Math.floor(random() * of);
  for (let round = 0; round < 300; round += 1) {
    const words = Array.from({ length: 1 + draw(8) }, () =>
      Array.from({ length: 1 + draw(12) }, () => SCRIPTS[draw(SCRIPTS.length)]).join(''),
    );
    const filter = buildBloomFilter(words.join(round % 2 === 0 ? ' ' : '\n'));
    for (const word of words) {
      const letters = [...word];
      const from = draw(letters.length);
      const part = letters.slice(from, from + 1 + draw(letters.length - from)).join('');
      expect([part, mayHold(filter, [part])]).toEqual([part, true]);
      expect(mayHold(filter, [part, ...words])).toBe(true);
    }
  }
});

test('a filter skips nine of ten blocks that do not contain a word', () => {
  const next = makeTexts(2);
  const blocks = Array.from({ length: 60 }, () => makeBlock(next));
  const filters = blocks.map(buildBloomFilter);
  const words = blocks[0]!.match(/[a-z]{4,}/g)!.slice(0, 200);
  let [absent, left] = [0, 0];
  for (const word of words) {
    for (const [n, block] of blocks.entries()) {
      if (block.includes(word)) continue;
      absent += 1;
      if (mayHold(filters[n]!, [word])) left += 1;
    }
  }
  expect(absent).toBeGreaterThan(1_000);
  expect(left / absent).toBeLessThan(0.1);
});

test('a search requires at most eight bits, and some from each of its first terms', () => {
  expect(bloomFilterBits([])).toEqual([]);
  expect(bloomFilterBits(['a'])).toHaveLength(1);
  expect(bloomFilterBits(['x'.repeat(500), 'b'])).toContain(bloomFilterBits(['b'])[0]);
  expect(bloomFilterBits(Array.from({ length: 50 }, (_, n) => `term${n}`)).length).toBeLessThanOrEqual(8);
  expect(bloomFilterBits(['antidisestablishmentarianism'])).toHaveLength(8);
});

test('a block without a filter may contain anything', () => {
  expect(mayHold(buildBloomFilter(null), ['anything', 'at', 'all'])).toBe(true);
});
