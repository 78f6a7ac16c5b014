import { domainToUnicode } from 'node:url';
import { expect, test } from 'vitest';
import { tagName } from '../src/domain/fields.ts';
import { MAX_HOST_LENGTH, parseWebUrl } from '../src/domain/web-url.ts';

/** Tests that any url is parsed in bounded time (section 2.5). */

const MARKS = `${'\u0301'.repeat(127)}${'\u0323'.repeat(127)}`;

test.each([
  `http://a${MARKS}`,
  `HTTP://a${MARKS}:80/path`,
  `http:a${MARKS}/`,
  `http:///a${MARKS}?`,
  `http:\\\\a${MARKS}\\`,
  `https:/\\//a${MARKS}#`,
  `http://user:password@a${MARKS}/`,
  `http://@@a${MARKS}/`,
  `http://user@b/@a:${MARKS}@a${MARKS}/`.replace('b/', 'b'),
  `http://a[:${MARKS}/`,
  `http://[${'1:'.repeat(127)}]/`,
  `http://${'%CC%81'.repeat(43)}/`,
  `http://a\t${MARKS}/`,
  `h\nttp://a${MARKS}/`,
  ` http://a${MARKS}/ `,
  `\u0001http://a${MARKS}/`,
  `ftp://a${MARKS}/`,
  `//a${MARKS}/`,
])('a host of more than 253 characters is refused before it is parsed: %#', (text) => {
  expect(parseWebUrl(text)).toBeNull();
});

test('different spellings of a host cannot hide its length', () => {
  const parts = [
    'http:',
    '/',
    '\\',
    '@',
    ':',
    '[',
    ']',
    '?',
    '#',
    'a'.repeat(200),
    'b.',
    '%61',
    '%CC%81',
    '8',
  ];
  let seed = 1;
  const next = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  let parsed = 0;
  for (let n = 0; n < 20_000; n += 1) {
    const text = `http:${Array.from({ length: next(9) }, () => parts[next(parts.length)]).join('')}`;
    const url = parseWebUrl(text);
    if (url === null) continue;
    parsed += 1;
    expect(domainToUnicode(url.hostname).length, text).toBeLessThanOrEqual(MAX_HOST_LENGTH);
  }
  expect(parsed).toBeGreaterThan(1_000);
});

test('an ordinary url is parsed as the platform parses it', () => {
  const text = 'https://user@bücher.example:8080/a?b#c';
  expect(parseWebUrl(text)?.href).toBe(new URL(text).href);
});

test('a tag name of many combining marks is refused before it is normalized', () => {
  const name = `a${'\u0301'.repeat(1_000)}${'\u0323'.repeat(1_000)}`;
  expect(tagName.safeParse(name).error?.issues[0]?.message).toBe('at most 255 characters');
  // NFC sorts combining marks. In a normalized name, the marks of the second kind would come first.
  const short = `a${'\u0301'.repeat(100)}${'\u0323'.repeat(100)}`;
  expect(tagName.parse(short)).toBe(short.normalize('NFC'));
});
