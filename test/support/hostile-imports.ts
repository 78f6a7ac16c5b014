/**
 * Bodies of imports that are valid or nearly valid. A parser that created all values of such a body would need far more
 * memory than the body's size.
 */

const MIB = 1_048_576;

/** The maximum number of entries of an import. */
const ENTRIES = 100_000;

/** Repeats one pattern, as an attacker would, until the body has the maximum length or number of entries. */
function fillBody(entryOf: (n: number) => string, entries = ENTRIES, bytes = 64 * MIB): string {
  const texts: string[] = [];
  let length = '{"bookmarks":[]}'.length;
  for (let n = 0; n < entries; n += 1) {
    const text = entryOf(n);
    length += text.length + 1;
    if (length > bytes) break;
    texts.push(text);
  }
  return `{"bookmarks":[${texts.join(',')}]}`;
}

const listOf = (count: number, elementOf: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => elementOf(n)).join(',');

const entry = (n: number, more: string): string => `{"url":"http://e/${n}",${more}}`;

/** The size of the largest entry that is accepted: 512 KiB, in bytes. */
const LARGEST_ENTRY = 524_288;
const fillEntry = (n: number, part: string): string =>
  entry(n, `"x":[${listOf(Math.floor((LARGEST_ENTRY - 100) / (part.length + 1)), () => part)}]`);

/** A body, and the response to its import. The key in `HOSTILE_IMPORTS` describes the body. */
export interface HostileImport {
  body: () => string;
  response: object;
}

export const HOSTILE_IMPORTS: Readonly<Record<string, HostileImport>> = {
  '3.5 million objects of distinct shapes': {
    body: () => fillBody((n) => entry(n, `"x":[${listOf(35, (m) => `{"k${n * 35 + m}":0}`)}]`)),
    response: { skipped: 0, errors: [] },
  },
  'tags of distinct shapes': {
    body: () => fillBody((n) => entry(n, `"tags":[${listOf(24, (m) => `{"k${n * 24 + m}":0,"name":"t"}`)}]`)),
    response: { skipped: 0, errors: [] },
  },
  '8.3 million distinct tags': {
    body: () => fillBody((n) => entry(n, `"tags":[${listOf(75, (m) => `"${(n * 75 + m).toString(36)}"`)}]`)),
    response: { code: 'LIMIT_EXCEEDED' },
  },
  'entries of 40,000 distinct keys': {
    body: () =>
      fillBody((n) =>
        entry(
          n,
          listOf(40_000, (m) => `"${n.toString(36)}k${m}":0`),
        ),
      ),
    response: { skipped: 0, errors: [] },
  },
  'one repeated key': {
    body: () =>
      fillBody((n) =>
        entry(
          n,
          listOf(40_000, () => '"title":"a"'),
        ),
      ),
    response: { skipped: 0, errors: [] },
  },
  'the field bookmarks, repeated': {
    body: () => `{${listOf(3_000_000, () => '"bookmarks":[null]')},"bookmarks":[]}`,
    response: { imported: 0, skipped: 0, errors: [] },
  },
  'entries as deep as they are long': {
    body: () => fillBody((n) => entry(n, `"x":${'['.repeat(262_000)}${']'.repeat(262_000)}`)),
    response: { skipped: 0, errors: [] },
  },
  'an entry of 64 MiB': {
    body: () => `{"bookmarks":[{"url":"http://e/","comment":"${'c'.repeat(64 * MIB - 100)}"}]}`,
    response: { imported: 0, skipped: 0, errors: [{ index: 0, url: null, error: 'at most 524288 bytes' }] },
  },
  'a field of 64 MiB next to the bookmarks': {
    body: () => `{"x":"${'\\u0041'.repeat(11_000_000)}","bookmarks":[]}`,
    response: { imported: 0, skipped: 0, errors: [] },
  },
  'entries of 512 KiB of small objects': {
    body: () => fillBody((n) => fillEntry(n, '{}')),
    response: { skipped: 0, errors: [] },
  },
  '100,001 entries': {
    body: () => `{"bookmarks":[${listOf(100_001, () => `"${'x'.repeat(600)}"`)}]}`,
    response: { code: 'VALIDATION_ERROR', error: 'bookmarks: at most 100000 entries' },
  },
  '100,000 errors with long urls': {
    body: () => fillBody(() => `{"url":"${'\\u0001'.repeat(100)}"}`),
    response: { imported: 0, skipped: 0 },
  },
};
