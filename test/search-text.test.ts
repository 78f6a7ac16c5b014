import { expect, test } from 'vitest';
import { formatTag, formatUnder, parseSearch } from '../src/client/search-text.ts';
import { makeMatcher, toggleTag } from '../src/web/search-text.ts';

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
  for (const word of ['https://example.org/a:b', '#', 'C#', '12:30', 'a:b', '-Wall', '12"'])
    expect(searchOf(word), word).toEqual({ query: word });
});

test('a text in quotes is a phrase, even before the closing quote is typed', () => {
  expect(searchOf('"to be" or "not ""to"" be')).toEqual({ query: 'or', phrases: ['to be', 'not "to" be'] });
  for (const text of ['"', '""', '" ']) expect(searchOf(text), text).toEqual({ query: '' });
  expect(problemsOf('-"to be"')).toEqual(['minus -"to be"']);
  expect(problemsOf('"a" '.repeat(11))).toEqual(['value "a"']);
});

test('an operator without a value is ignored while it is typed', () => {
  for (const text of ['tag:', '-tag:', 'tag:""', 'under:', 'site:', 'is:', 'before:'])
    expect(parseSearch(text), text).toEqual({ search: { query: '' }, problems: [] });
});

test('unknown operators, negated ones and invalid values are searched as text, with a notice', () => {
  const texts = {
    'color:red': 'unknown color:red',
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
});

test('the page finds the same bookmarks as the service', () => {
  const bookmark = {
    id: 1,
    url: 'https://blog.example.org/Post',
    title: 'Straße nach KYOTO',
    comment: '',
    tags: [{ id: 1, name: 'Travel/Japan' }],
    created_at: '2026-01-31T12:00:00.000Z',
    updated_at: '2026-01-31T12:00:00.000Z',
  };
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
  ])
    expect([text, matches(text)]).toEqual([text, false]);
});
