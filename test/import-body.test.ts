import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { parse } from 'secure-json-parse';
import { describe, expect, test } from 'vitest';
import { BodyScanner } from '../src/operations/import/body-scanner.ts';
import { MAX_ENTRY_BYTES, OVERSIZED } from '../src/operations/import/entry-bytes.ts';
import { EntryReader } from '../src/operations/import/entry-reader.ts';

/** The body of an import is read entry by entry, from parts cut anywhere, as `JSON.parse` would read it whole. */

interface Read {
  replace: boolean;
  entries: unknown[];
}

/** Scans a body part by part, takes what can be taken once it is more than `takeAt` bytes, and reads its entries. */
function scan(parts: readonly Uint8Array[], takeAt = 0): Read {
  const scanner = new BodyScanner();
  let entries: unknown[] = [];
  let restarts = 0;
  const take = () => {
    if (scanner.restarts !== restarts) entries = [];
    restarts = scanner.restarts;
    const reader = new EntryReader(scanner.take().toString());
    for (let entry = reader.next(); entry !== undefined; entry = reader.next()) entries.push(entry);
  };
  for (const part of parts) {
    scanner.push(Buffer.from(part));
    if (scanner.takeable > takeAt) take();
  }
  const { replace } = scanner.end();
  take();
  return { replace, entries };
}

function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const sorted = places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b);
  return [0, ...sorted].map((place, n) => bytes.subarray(place, sorted[n] ?? bytes.length));
}

const FIELDS = ['url', 'title', 'comment', 'created_at', 'updated_at'] as const;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What stands for a value that is no text. */
const standIn = (value: unknown): unknown => {
  if (typeof value === 'number') return 0;
  if (typeof value === 'boolean') return true;
  if (Array.isArray(value)) return [];
  return isObject(value) ? {} : value;
};

function readTags(tags: readonly unknown[]): unknown[] {
  const names = tags.map((tag) => (isObject(tag) ? tag.name : tag));
  const wrong = names.findIndex((name) => typeof name !== 'string');
  return wrong < 0 ? names : [...names.slice(0, wrong), null];
}

/** An entry of `JSON.parse` as the reader gives it. */
function expectedEntry(entry: unknown): unknown {
  if (!isObject(entry)) return standIn(entry);
  const own = (field: string) => (Object.hasOwn(entry, field) ? entry[field] : undefined);
  const tags = own('tags');
  return {
    ...Object.fromEntries(FIELDS.map((field) => [field, standIn(own(field))])),
    tags: Array.isArray(tags) ? readTags(tags) : standIn(tags),
  };
}

/** The faults that a body may be refused for, none where it is an import; and then what is read from it. */
function expected(bytes: Buffer): { faults: string[]; read?: Read } {
  if (bytes.length === 0) return { faults: ['body: is required'] };
  if (!isUtf8(bytes)) return { faults: ['body: is not UTF-8', 'body: malformed JSON'] };
  let body: unknown;
  try {
    body = parse(bytes.toString(), null, { protoAction: 'error', constructorAction: 'error' });
  } catch {
    return { faults: ['body: malformed JSON'] };
  }
  if (!isObject(body)) return { faults: ['body: expected an object'] };
  if (!Object.hasOwn(body, 'bookmarks')) return { faults: ['bookmarks: is required'] };
  const { bookmarks } = body;
  const mode = Object.hasOwn(body, 'mode') ? body.mode : 'merge';
  if (!Array.isArray(bookmarks)) return { faults: ['bookmarks: expected an array'] };
  if (mode !== 'merge' && mode !== 'replace') return { faults: ['mode: expected "merge" or "replace"'] };
  return { faults: [], read: { replace: mode === 'replace', entries: bookmarks.map(expectedEntry) } };
}

function expectAsParsed(bytes: Buffer, parts: readonly Uint8Array[], takeAt = 0): 'read' | 'refused' {
  const { faults, read } = expected(bytes);
  if (faults.length === 0) {
    expect(scan(parts, takeAt)).toEqual(read);
    return 'read';
  }
  let fault = '';
  try {
    scan(parts, takeAt);
  } catch (error) {
    fault = (error as Error).message;
  }
  expect(faults, bytes.toString()).toContain(fault);
  return 'refused';
}

/** The text of one JSON string, with any of its characters escaped. */
const spell = (text: string, escaped: boolean): string =>
  escaped
    ? `"${[...Array(text.length).keys()].map((n) => `\\u${text.charCodeAt(n).toString(16).padStart(4, '0')}`).join('')}"`
    : JSON.stringify(text);

const text = fc
  .tuple(
    fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.constantFrom('', '"', '\\', '\\"', 'ä€😀', '\ud800', '{"a":[', '\u2028', 'a\\u0022'),
    ),
    fc.boolean(),
  )
  .map(([given, escaped]) => spell(given, escaped));
const space = fc.constantFrom('', '', '', ' ', '\n', '\t\r ', ' '.repeat(70));
const word = fc.constantFrom('null', 'true', 'false', '0', '-0', '1.5e+10', '-12E-3', '123456789');

const { value } = fc.letrec<{ value: string }>((tie) => {
  const list = fc
    .tuple(fc.array(tie('value'), { maxLength: 4 }), space)
    .map(([values, gap]) => `[${gap}${values.join(`${gap},${gap}`)}${gap}]`);
  const key = fc.oneof(text, fc.constantFrom('"name"', '"url"', '"constructor"', '"prototypes"'));
  const object = fc
    .tuple(fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }), space)
    .map(
      ([pairs, gap]) => `{${gap}${pairs.map((pair) => pair.join(`${gap}:${gap}`)).join(`,${gap}`)}${gap}}`,
    );
  return { value: fc.oneof({ maxDepth: 4 }, text, word, list, object) };
});

const objectOf = (pairs: fc.Arbitrary<[string, string]>, maxLength: number) =>
  fc
    .tuple(fc.array(pairs, { maxLength }), space)
    .map(([given, gap]) => `{${gap}${given.map((pair) => pair.join(`${gap}:${gap}`)).join(`,${gap}`)}}`);

const fieldName = fc
  .tuple(fc.constantFrom(...FIELDS, 'tags', 'id', 'name'), fc.boolean())
  .map(([name, escaped]) => spell(name, escaped));
const tagList = fc
  .array(
    fc.oneof(text, objectOf(fc.tuple(fc.constantFrom('"name"', '"id"'), fc.oneof(text, value)), 3), word),
    {
      maxLength: 5,
    },
  )
  .map((tags) => `[${tags.join(',')}]`);
const entry = fc.oneof(
  { arbitrary: objectOf(fc.tuple(fieldName, fc.oneof(text, value, tagList)), 8), weight: 4 },
  value,
);
const entries = fc
  .tuple(fc.array(entry, { maxLength: 6 }), space)
  .map(([given, gap]) => `[${gap}${given.join(`${gap},${gap}`)}${gap}]`);
const mode = fc.constantFrom(
  '"merge"',
  '"replace"',
  '"replace"',
  spell('merge', true),
  '"Merge"',
  'null',
  '{}',
);
const rare = <T>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<T>) =>
  fc.oneof({ arbitrary: usual, weight: 9 }, odd);
const member = fc.oneof(
  fc.tuple(fc.constantFrom('"bookmarks"', spell('bookmarks', true)), rare(entries, value)),
  fc.tuple(fc.constant('"mode"'), mode),
  fc.tuple(text, value),
);
const usualBody = fc
  .tuple(objectOf(member, 4), entries)
  .map(([body, list]) =>
    body.endsWith('{}') ? `{"bookmarks":${list}}` : body.replace(/^\{/, `{"bookmarks":${list},`),
  );
const body = fc
  .tuple(fc.constantFrom('', '', '\ufeff', ' \n'), rare(rare(usualBody, objectOf(member, 4)), value), space)
  .map((pieces) => Buffer.from(pieces.join('')));

/** One byte more, less or other than a body should have. */
const broken = fc
  .tuple(
    body,
    fc.nat(),
    fc.constantFrom('insert', 'remove', 'change', 'end'),
    fc.integer({ min: 0, max: 255 }),
  )
  .map(([bytes, place, how, byte]) => {
    const at = place % (bytes.length + 1);
    const inserted = how === 'insert' || how === 'change' ? [byte] : [];
    const rest = how === 'end' ? [] : bytes.subarray(how === 'insert' ? at : at + 1);
    return Buffer.from([...bytes.subarray(0, at), ...inserted, ...rest]);
  });

const cuts = fc.array(fc.nat(), { maxLength: 6 });

describe('a body cut anywhere is read, or refused, as JSON.parse would', () => {
  test.each([
    ['that is whole', body, 'read'],
    ['with a byte at fault', broken, 'refused'],
  ] as const)('%s', (_, bodies, most) => {
    const counts = { read: 0, refused: 0 };
    const check = fc.property(bodies, cuts, fc.constantFrom(0, 10, 1_000), (bytes, places, takeAt) => {
      counts[expectAsParsed(bytes, cut(bytes, places), takeAt)] += 1;
    });
    fc.assert(check, { numRuns: 5_000 });
    expect(counts[most]).toBeGreaterThan(1_500);
  });

  test.each([
    '{"mode":"replace","bookmarks":[{"url":"\\u0061ä€😀\\\\\\"","tags":["x",{"id":1,"name":"y"}]},null]}',
    '\ufeff{"bookmarks":[],"bookmarks":[1,{"a":[[]]}],"mode":"merge","mode":"replace"}',
    '{"bookmarks":[-1.50e+7,true],"x":{"constructor":{"prototypes":0}}}',
    '{"bookmarks":[{"tags":[1e5,"a"]}],"mode":"\\u006derge"} ',
  ])('at each of its bytes: %s', (given) => {
    const bytes = Buffer.from(given);
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(expectAsParsed(bytes, cut(bytes, [at]))).toBe('read');
      if (at < bytes.length) expectAsParsed(bytes.subarray(0, at), [bytes.subarray(0, at)]);
    }
    expectAsParsed(
      bytes,
      Array.from(bytes, (byte) => Uint8Array.of(byte)),
    );
  });

  test.each([
    '',
    ' ',
    '\ufeff',
    '\ufeff\ufeff{}',
    '[]',
    '1',
    '-',
    '01',
    '1.',
    '1.e5',
    '.5',
    '+1',
    '1e',
    '1e+',
    '0x1',
    'nul',
    'nulll',
    'True',
    'NaN',
    '"',
    '"\\x"',
    '"\\u12g4"',
    '"\n"',
    '"\u0000"',
    "'a'",
    '{} {}',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{,}',
    '{a:1}',
    '[1,]',
    '[,]',
    '[1 2]',
    '[}',
    '{]',
    ']',
    '{"bookmarks":[]]',
    '{"bookmarks":[{}}',
    '/**/{}',
    '\u00a0{}',
    '{"bookmarks":[{"__proto__":1}]}',
    '{"bookmarks":[],"x":[{"\\u005f_proto__":1}]}',
    '{"bookmarks":[{"x":{"constructor":{"prototype":1}}}]}',
    '{"bookmarks":[],"constructor":{"a":1,"\\u0070rototype":1}}',
    '{"bookmarks":[{"constructor":1,"prototype":1},{"constructor":[{"prototype":1}]}]}',
  ])('%j', (given) => {
    const bytes = Buffer.from(given);
    expectAsParsed(bytes, [bytes]);
    expectAsParsed(
      bytes,
      Array.from(bytes, (byte) => Uint8Array.of(byte)),
    );
  });
});

describe('an entry', () => {
  const bodyOf = (...given: string[]) => Buffer.from(`{"bookmarks":[${given.join(' , ')}]}`);
  /** An entry of so many bytes. */
  const entryOf = (bytes: number) => `{"url":"${'x'.repeat(bytes - 10)}"}`;

  test.each([1_000, 65_536, 10_000_000])(
    'of 512 KiB is read, one byte more is left out: parts of %i bytes',
    (length) => {
      const longest = entryOf(MAX_ENTRY_BYTES);
      expect(longest).toHaveLength(MAX_ENTRY_BYTES);
      const bytes = bodyOf(
        '1',
        longest,
        entryOf(MAX_ENTRY_BYTES + 1),
        '2',
        entryOf(2 * MAX_ENTRY_BYTES),
        longest,
      );
      const parts = Array.from({ length: Math.ceil(bytes.length / length) }, (_, n) =>
        bytes.subarray(n * length, (n + 1) * length),
      );
      for (const takeAt of [0, 100_000, 10_000_000]) {
        const read = scan(parts, takeAt).entries;
        expect(read.map((each) => (typeof each === 'object' ? 'read' : each))).toEqual([
          0,
          'read',
          OVERSIZED,
          0,
          OVERSIZED,
          'read',
        ]);
      }
    },
  );

  test('with a fault is refused even where it is left out', () => {
    const bytes = bodyOf(`["${'x'.repeat(MAX_ENTRY_BYTES)}",]`);
    expect(() => scan([bytes])).toThrow('body: malformed JSON');
  });

  test('text that only the reader marks with is none of its marks', () => {
    expect(() => scan([bodyOf(OVERSIZED)])).toThrow('body: malformed JSON');
  });
});

test('100,001 entries end it where the last one begins', () => {
  const scanner = new BodyScanner();
  scanner.push(Buffer.from(`{"bookmarks":[${'0,'.repeat(100_000)}`));
  expect(() => scanner.push(Buffer.from('['))).toThrow('bookmarks: at most 100000 entries');
});

test('what is kept of a body is its entries: neither white space nor other fields', () => {
  const scanner = new BodyScanner();
  const blanks = Buffer.from(' '.repeat(65_536));
  scanner.push(Buffer.from('{"x":"'));
  for (let n = 0; n < 20; n += 1) scanner.push(Buffer.from('x'.repeat(65_536)));
  scanner.push(Buffer.from('","bookmarks":[1'));
  for (let n = 0; n < 20; n += 1) scanner.push(blanks);
  scanner.push(Buffer.from(',2'));
  scanner.push(Buffer.from(']}'));
  expect(scanner.take().toString()).toBe(',1,2');
});
