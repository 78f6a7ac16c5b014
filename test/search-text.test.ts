import { expect, test } from 'vitest';
import { formatTag, formatUnder, parseSearch } from '../src/client/search-text.ts';
import { foldText } from '../src/domain/text.ts';
import { makeMatcher, toggleTag } from '../src/web/search-text.ts';
import { makeBookmark } from './support/bookmark-samples.ts';
import { makeRandom } from './support/texts.ts';

// Tests the search syntax that the page, the CLI and the client share. Days are in the reader's time zone.

const searchOf = (text: string) => parseSearch(text).search;
const problemsOf = (text: string) => parseSearch(text).problems.map(({ part, kind }) => `${kind} ${part}`);

test('words form the query, and operators filter it, in any order', () => {
  expect(
    searchOf('rust tag:"to read" -tag:done under:Work site:https://Blog.Example.org/a?b #async is:untagged2'),
  ).toEqual({
    query: 'rust is:untagged2',
    tags: ['to read', 'async'],
    tag_under: ['Work'],
    without_tags: ['done'],
    site: 'blog.example.org',
  });
  expect(searchOf('IS:Untagged  ')).toEqual({ query: '', untagged: true });
});

test("`after:` includes its day and `before:` excludes it, in the reader's time zone", () => {
  expect(searchOf('after:2026-03 before:2026-03-15')).toEqual({
    query: '',
    created_after: new Date(new Date(2026, 2, 1).getTime() - 1).toISOString(),
    created_before: new Date(2026, 2, 15).toISOString(),
  });
});

test('text without an operator is searched unchanged', () => {
  for (const word of [
    ...[
      'https://example.org/a:b',
      '#',
      'C#',
      '12:30',
      'a:b',
      '--force',
      '-',
      '12"',
      'a-b',
      'a-',
      'or',
      'Or',
      'ORacle',
    ],
    ...['Zebra:', 'C:', 'std::move', 'std::', 'http:', 'mailto:', '::1', 'OR'],
  ])
    expect(parseSearch(word), word).toEqual({ search: { query: word }, problems: [] });
  expect(parseSearch('Zebra: book').search).toEqual({ query: 'Zebra: book' });
  expect(parseSearch('"Zebra: book" "tag:x"').search).toEqual({
    query: '',
    phrases: ['Zebra: book', 'tag:x'],
  });
});

test('a text in quotes is a phrase, even before the closing quote is typed', () => {
  expect(searchOf('"to be" or "not ""to"" be')).toEqual({ query: 'or', phrases: ['to be', 'not "to" be'] });
  for (const text of ['"', '""', '" ', '-"', '-""']) expect(searchOf(text), text).toEqual({ query: '' });
  expect(problemsOf('"a" '.repeat(11))).toEqual(['value "a"']);
});

test('a minus excludes a word or a phrase', () => {
  for (const [text, excluded] of [
    ['-draft', 'draft'],
    ['-"to be"', 'to be'],
    ['-"unfinished ', 'unfinished'],
    ['-12:30', '12:30'],
    ['-https://example.org/', 'https://example.org/'],
    ['-std::move', 'std::move'],
    ['-C#', 'C#'],
    ['-OR', 'OR'],
    ['-ö', 'ö'],
  ] as const)
    expect(parseSearch(text), text).toEqual({
      search: { query: '', without_phrases: [excluded] },
      problems: [],
    });
  expect(searchOf('a -b "c" -"d" -tag:e')).toEqual({
    query: 'a',
    phrases: ['c'],
    without_phrases: ['b', 'd'],
    without_tags: ['e'],
  });
  expect(problemsOf(Array.from({ length: 11 }, (_, n) => `-w${n}`).join(' '))).toEqual(['value -w10']);
});

test('OR joins words, phrases and tags, more tightly than a space', () => {
  for (const [text, search] of [
    ['a OR b', { query: '', any: [{ phrases: ['a'] }, { phrases: ['b'] }] }],
    ['a OR b c', { query: 'c', any: [{ phrases: ['a'] }, { phrases: ['b'] }] }],
    [
      'x tag:a OR #b OR "c d" site:e.example',
      { query: 'x', any: [{ tags: ['a'] }, { tags: ['b'] }, { phrases: ['c d'] }], site: 'e.example' },
    ],
    [
      'a OR b tag:c OR d',
      {
        query: '',
        any: [
          { phrases: ['a'], tags: ['c'] },
          { phrases: ['a', 'd'] },
          { phrases: ['b'], tags: ['c'] },
          { phrases: ['b', 'd'] },
        ],
      },
    ],
    ['OR a', { query: 'OR a' }],
    ['a OR', { query: 'a' }],
    ['a OR tag:', { query: 'a' }],
    ['a OR OR b', { query: '', any: [{ phrases: ['a'] }, { phrases: ['b'] }] }],
    ['a "OR" b', { query: 'a b', phrases: ['OR'] }],
    ['a OR Zebra:', { query: '', any: [{ phrases: ['a'] }, { phrases: ['Zebra:'] }] }],
  ] as const)
    expect(parseSearch(text), text).toEqual({ search, problems: [] });
});

test('parts that OR cannot join are searched as text, with a notice', () => {
  const many = Array.from({ length: 11 }, (_, n) => `w${n}`).join(' OR ');
  for (const text of [
    'a OR -b',
    'site:a.example OR site:b.example',
    'a OR under:b',
    `a OR tag:${'x'.repeat(256)}`,
    many,
  ]) {
    expect(problemsOf(text), text).toEqual([`or ${text}`]);
    expect(searchOf(text), text).toEqual({ query: '', phrases: [text] });
  }
  const four = 'a OR b OR c OR d';
  expect(problemsOf(`${four} ${four}`)).toEqual([`or ${four}`]);
});

test('an operator without a value is ignored while it is typed', () => {
  for (const text of ['tag:', '-tag:', 'tag:""', 'under:', 'site:', 'is:', 'before:'])
    expect(parseSearch(text), text).toEqual({ search: { query: '' }, problems: [] });
});

test('unknown operators, negated ones and invalid values are searched as text, with a notice', () => {
  const texts = {
    'color:red': 'unknown color:red',
    'Re:x': 'unknown Re:x',
    '-under:a': 'minus -under:a',
    'under:/': 'value under:/',
    '-site:example.org': 'minus -site:example.org',
    '-is:untagged': 'minus -is:untagged',
    'before:yesterday': 'value before:yesterday',
    'after:2026-02-30': 'value after:2026-02-30',
    'site:%': 'value site:%',
    'site:.': 'value site:.',
    [`site:a${'\u0301'.repeat(500)}`]: `value site:a${'\u0301'.repeat(500)}`,
    [`tag:${'x'.repeat(256)}`]: `value tag:${'x'.repeat(256)}`,
  };
  for (const [text, problem] of Object.entries(texts)) {
    expect(problemsOf(text), text).toEqual([problem]);
    expect(searchOf(text), text).toEqual({ query: text });
  }
  expect(problemsOf('-color:red color:"dark red')).toEqual(['unknown -color:red', 'unknown color:"dark red']);
  expect(searchOf('-color:red color:"dark red')).toEqual({
    query: '',
    phrases: ['color:"dark red'],
    without_phrases: ['color:red'],
  });
  expect(searchOf('is:untagged tag:a')).toEqual({ query: '', tags: ['a'] });
  expect(problemsOf('is:untagged tag:a')).toEqual(['untagged is:untagged']);
  expect(searchOf('is:untagged under:a')).toEqual({ query: '', tag_under: ['a'] });
});

test('a tag with any name is found by the search text that is generated for it', () => {
  for (const name of ['rust', 'to read', 'say "hi"', '"', 'a:b', '#1', '-x', 'é']) {
    expect(searchOf(formatTag(name)).tags, name).toEqual([name]);
    expect(searchOf(formatUnder(name)).tag_under, name).toEqual([name]);
  }
});

test('toggling a tag removes it if the search contains it, in any case, and otherwise adds it', () => {
  expect(toggleTag('tag:Rust async', 'rust')).toBe('async');
  expect(toggleTag('-tag:rust', 'rust')).toBe('-tag:rust tag:rust');
  expect(toggleTag('a OR tag:rust b', 'rust')).toBe('a OR tag:rust b tag:rust');
  expect(toggleTag('a OR tag:rust b tag:rust', 'rust')).toBe('a OR tag:rust b');
});

test('a normalized text is normalized again to itself', () => {
  const letters = [...'aİIiıςΣσ\u0307\u0301\u0323éK'];
  const random = makeRandom(1);
  for (let n = 0; n < 3_000; n += 1) {
    const text = Array.from({ length: 6 }, () => letters[Math.floor(random() * letters.length)]).join('');
    expect([text, foldText(foldText(text))]).toEqual([text, foldText(text)]);
    expect(foldText(text)).not.toMatch(/i\u0307/);
  }
});

test('the page finds the same bookmarks as the service', () => {
  const bookmark = makeBookmark({
    url: 'https://blog.example.org/Post',
    title: 'Straße nach KYOTO',
    tags: [{ id: 1, name: 'Travel/Japan' }],
  });
  const matches = (text: string) => makeMatcher(text)(bookmark);
  for (const text of [
    '',
    '"nach kyoto"',
    'kyoto post',
    'tag:travel/japan',
    'under:TRAVEL',
    'under:travel/japan/',
    'site:example.org',
    '-tag:food',
    'after:2025',
    '-osaka',
    '-"kyoto nach" post',
    'osaka OR KYOTO',
    'osaka OR tag:Travel/Japan post',
    'post OR osaka kyoto OR tag:food',
  ])
    expect([text, matches(text)]).toEqual([text, true]);
  for (const text of [
    'osaka',
    '"kyoto nach"',
    'tag:trav',
    'under:trav',
    'site:ample.org',
    '-tag:TRAVEL/japan',
    'is:untagged',
    'before:2026',
    '-Kyoto',
    'post -"Nach Kyoto"',
    'osaka OR tag:food',
    'post OR kyoto osaka',
  ])
    expect([text, matches(text)]).toEqual([text, false]);
});
