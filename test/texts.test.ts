import { describe, expect, test } from 'vitest';
import { makeTexts, type SampleText } from './support/texts.ts';

/** Checks that the texts for benchmarks and for tests of the search resemble real bookmarks. */

/** Statistics of 5,312 bookmarks from public lists of software. The functions below computed them. */
const FITTED = {
  count: 5_312,
  urlLengths: [20, 30, 34, 39, 47],
  titleLengths: [3, 5, 7, 10, 18],
  commentLengths: [22, 46, 70, 104, 176],
  bytes: 125,
  words: 73_720,
  distinctWords: 10_540,
  wordsThatOccurOnce: 0.572,
  /** By rank, the share of bookmarks that contain the word with this rank. Rank 1 is the most common word. */
  bookmarksWithWord: { 1: 0.997, 3: 0.759, 10: 0.196, 20: 0.0719, 50: 0.0367, 100: 0.0164, 300: 0.0062 },
  distinctTrigrams: 18_509,
  trigramsOfABookmark: 106.6,
  bookmarksWithTrigram: { 50: 0.198, 200: 0.0825, 500: 0.0416, 1000: 0.0215, 2000: 0.009 },
  hosts: 1_140,
  onCommonestHost: 0.747,
  notAscii: 0.0143,
  withoutComment: 0.0296,
  tagsOfABookmark: 2.64,
  distinctTags: 342,
};

const QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95];

const next = makeTexts(1);
const texts = Array.from({ length: FITTED.count }, next);
const lines = texts.map(({ url, title, comment }) => `${url}\n${title}\n${comment}`.toLowerCase());

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
const mean = (numbers: readonly number[]): number =>
  numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
const share = (holds: (text: SampleText) => boolean): number => texts.filter(holds).length / texts.length;

function lengthsOf(field: 'url' | 'title' | 'comment'): number[] {
  const lengths = texts.map((text) => text[field].length).toSorted((a, b) => a - b);
  return QUANTILES.map((quantile) => lengths[Math.floor(quantile * lengths.length)]!);
}

function trigramsOf(text: string): Set<string> {
  return new Set(Array.from({ length: Math.max(0, text.length - 2) }, (_, n) => text.slice(n, n + 3)));
}

function countEach(groups: Iterable<Iterable<string>>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const group of groups) for (const each of group) counts.set(each, (counts.get(each) ?? 0) + 1);
  return counts;
}

/** Returns for each rank the share of texts that contain the word or trigram of this rank. Rank 1 is the commonest. */
function sharesByRank(counts: Map<string, number>, ranks: object): Record<string, number> {
  const sorted = [...counts.values()].toSorted((a, b) => b - a);
  return Object.fromEntries(Object.keys(ranks).map((n) => [n, sorted[Number(n) - 1]! / texts.length]));
}

/**
 * Checks that each figure is near the fitted one. The two may differ by `part` times the fitted figure at most. If
 * the fitted figure is at least 2 and below 30, a difference of 2 is always allowed.
 */
function expectNear(found: object, fitted: object, part: number): void {
  for (const [name, expected] of Object.entries(fitted)) {
    const value = (found as Record<string, number>)[name]!;
    const tolerance = Math.max(part * expected, expected >= 2 && expected < 30 ? 2 : 0);
    expect(Math.abs(value - expected), `${name}: ${value}, fitted ${expected}`).toBeLessThanOrEqual(
      tolerance,
    );
  }
}

describe('the generated texts', () => {
  test('are the same for the same seed, and different for another', () => {
    const again = makeTexts(1);
    expect(Array.from({ length: 100 }, again)).toEqual(texts.slice(0, 100));
    const [other] = [makeTexts(2)()];
    expect(other).not.toEqual(texts[0]);
    expect(new Set(lines).size).toBe(lines.length);
  });

  test('have the fitted lengths', () => {
    expectNear(lengthsOf('url'), FITTED.urlLengths, 0.15);
    expectNear(lengthsOf('title'), FITTED.titleLengths, 0.25);
    expectNear(lengthsOf('comment'), FITTED.commentLengths, 0.3);
    expectNear([mean(lines.map((line) => Buffer.byteLength(line)))], [FITTED.bytes], 0.05);
  });

  test('have the fitted number of words and frequencies', () => {
    const counts = countEach(texts.map(({ title, comment }) => wordsOf(`${title} ${comment}`)));
    const words = [...counts.values()];
    expectNear(
      [mean(words) * words.length, words.length, words.filter((count) => count === 1).length / words.length],
      [FITTED.words, FITTED.distinctWords, FITTED.wordsThatOccurOnce],
      0.25,
    );
    const held = countEach(lines.map((line) => new Set(wordsOf(line))));
    expectNear(sharesByRank(held, FITTED.bookmarksWithWord), FITTED.bookmarksWithWord, 0.25);
  });

  test('have the fitted number of trigrams and frequencies', () => {
    const each = lines.map(trigramsOf);
    const counts = countEach(each);
    expectNear(
      [counts.size, mean(each.map(({ size }) => size))],
      [FITTED.distinctTrigrams, FITTED.trigramsOfABookmark],
      0.15,
    );
    expectNear(sharesByRank(counts, FITTED.bookmarksWithTrigram), FITTED.bookmarksWithTrigram, 0.35);
  });

  test('have the fitted hosts, tags and alphabets', () => {
    const hostOf = ({ url }: SampleText) => new URL(url).host;
    const hosts = [...countEach(texts.map((text) => [hostOf(text)])).entries()];
    const [commonest] = hosts.toSorted(([, a], [, b]) => b - a)[0]!;
    expectNear([hosts.length], [FITTED.hosts], 0.2);
    expectNear(
      [share((text) => hostOf(text) === commonest), share(({ comment }) => comment === '')],
      [FITTED.onCommonestHost, FITTED.withoutComment],
      0.1,
    );
    expectNear(
      [mean(texts.map(({ tags }) => tags.length)), new Set(texts.flatMap(({ tags }) => tags)).size],
      [FITTED.tagsOfABookmark, FITTED.distinctTags],
      0.1,
    );
    // The generated texts contain a little more non-ASCII text than the lists do, so that a search in another script
    // finds something.
    const notAscii = share(({ title, comment }) => /\P{ASCII}/u.test(title + comment));
    expectNear([notAscii], [FITTED.notAscii], 0.5);
  });
});
