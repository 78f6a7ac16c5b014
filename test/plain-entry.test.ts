import fc from 'fast-check';
import { expect, test } from 'vitest';
import { importedEntry as entry } from '../src/domain/bookmark-schemas.ts';
import { PlainEntries } from '../src/operations/import/plain-entry.ts';

const strange = fc.constantFrom(
  null,
  undefined,
  0,
  true,
  [],
  {},
  '',
  ' ',
  '\0',
  '\ud800',
  'ς',
  'é',
  'e\u0301',
);
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string().map((given) => ` ${given}\n`),
  fc.constantFrom('x'.repeat(255), 'x'.repeat(256), 'é'.repeat(2_048), 'x'.repeat(2_049), '😀'.repeat(1_025)),
);
const url = fc.oneof(
  fc.webUrl({ withQueryParameters: true, withFragments: true }),
  fc.constantFrom(
    'http://',
    'https://a b/',
    'HTTP://EXAMPLE.org',
    'https://[::1',
    'https://ex%ample/',
    'ftp://a/',
  ),
  fc.string().map((tail) => `https://example.org/${tail}`),
  fc.nat(8_200).map((length) => `https://example.org/${'x'.repeat(length)}`),
);
const tag = fc.oneof(
  text,
  text.map((name) => ({ name })),
  fc.constantFrom('Tag', 'tag', 'TAG '),
  strange,
);
const time = fc.oneof(
  fc
    .date({ noInvalidDate: true, min: new Date('0000-06-01'), max: new Date('9999-12-31') })
    .map((date) => date.toISOString()),
  fc.constantFrom(
    '2023-02-29T00:00:00.000Z',
    '2024-02-29T00:00:00.000Z',
    '0000-01-01T00:00:00.000Z',
    '2024-01-31T24:00:00.000Z',
  ),
  fc.constantFrom(
    '2024-05-01T12:00:00+02:00',
    '2024-05-01T12:00:00.123456Z',
    '2024-05-01',
    '2016-12-31T23:59:60Z',
  ),
);
const likely = <T>(usual: fc.Arbitrary<T>) =>
  fc.option(fc.oneof({ arbitrary: usual, weight: 9 }, strange), { nil: undefined });

const given = fc.record({
  url: likely(url),
  title: likely(text),
  comment: likely(text),
  tags: likely(fc.array(tag, { maxLength: 6 })),
  created_at: likely(time),
  updated_at: likely(time),
});

test('the short way of an entry takes what the schema takes, and reads the same from it', () => {
  let taken = 0;
  const check = fc.property(fc.array(given, { minLength: 1, maxLength: 4 }), (entries) => {
    const plainEntries = new PlainEntries();
    for (const raw of JSON.parse(JSON.stringify(entries))) {
      const plain = plainEntries.read(raw);
      if (plain === undefined) continue;
      taken += 1;
      const { href, created_at, updated_at, ...rest } = plain;
      const times = { ...(created_at && { created_at }), ...(updated_at && { updated_at }) };
      expect(entry.parse(raw)).toEqual({ ...rest, ...times });
      expect(href).toBe(new URL(rest.url).href);
    }
  });
  fc.assert(check, { numRuns: 3_000 });
  expect(taken).toBeGreaterThan(300);
});

test('what the service itself exports goes the short way', () => {
  const exported = {
    id: 1,
    url: 'https://example.org/a?b=c#d',
    title: 'Über die ς',
    comment: 'two\nlines',
    tags: [{ id: 2, name: 'Größe' }],
    created_at: '2024-02-29T23:59:59.999Z',
    updated_at: '2024-12-31T00:00:00.000Z',
  };
  expect(new PlainEntries().read(exported)).toMatchObject({
    comment: 'two\nlines',
    tags: { names: ['Größe'], keys: ['größe'] },
  });
});
