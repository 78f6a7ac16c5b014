import { beforeEach, describe, expect, test } from 'vitest';
import { type TestUser, useService } from './support/service.ts';

// Section 4.2 of docs/contract.md and decision 13: /bookmarks/search.

const service = useService();
let user: TestUser;

beforeEach(async () => {
  user = await service.user();
});

interface Found {
  bookmarks: { id: number; title: string }[];
  total: number;
  page: number;
  per_page: number;
  has_more: boolean;
}

const search = async (body: object): Promise<Found> => (await user.post('/bookmarks/search', body)).body;
const add = async (title: string, fields: object = {}): Promise<number> =>
  (await user.post('/bookmarks/add', { url: 'https://example.org/', title, ...fields })).body.id;
const titles = ({ bookmarks }: Found) => bookmarks.map(({ title }) => title);

describe('what matches', () => {
  test('a query matches url, title and comment', async () => {
    await add('none', { url: 'https://example.org/needle' });
    await add('a needle in it');
    await add('none', { comment: 'the needle' });
    await add('none', { tags: ['needle'] });
    expect((await search({ query: 'needle' })).total).toBe(3);
    expect((await search({ query: 'example.org' })).total).toBe(4);
  });

  test('every term must occur, in any field and any order', async () => {
    await add('alpha beta', { comment: 'gamma' });
    await add('beta', { comment: 'delta' });
    for (const [query, total] of [
      ['alpha gamma', 1],
      ['gamma alpha', 1],
      ['beta', 2],
      ['beta delta', 1],
      ['alpha delta', 0],
      ['beta beta beta', 2],
      ['alpha example', 1],
    ] as const) {
      expect((await search({ query })).total, query).toBe(total);
    }
  });

  test('a term is a substring, not a word, and its characters are consecutive', async () => {
    await add('Postgresql');
    for (const query of ['gres', 'POST', 'sql', 'postgresql'])
      expect((await search({ query })).total).toBe(1);
    for (const query of ['pgsql', 'postgresqls', 'psql']) expect((await search({ query })).total).toBe(0);
  });

  test('a phrase matches with its blanks, within one field, ignoring case and the kind of white space', async () => {
    await add('To Be or not', { comment: 'first line\nsecond' });
    await add('be or to', { comment: 'line first' });
    for (const [phrases, total] of [
      [['to be'], 1],
      [[' BE OR '], 2],
      [['line second'], 1],
      [['line\tsecond', 'not'], 1],
      [['to be', 'line first'], 0],
      [['not first'], 0],
      [['%', '_'], 0],
      [[], 2],
    ] as const) {
      expect((await search({ phrases })).total, phrases.join()).toBe(total);
    }
    expect((await search({ query: 'or', phrases: ['to be'] })).total).toBe(1);
    const many = ['to', 'be', 'or', 'not', 'to be', 'or n'];
    expect((await search({ phrases: many })).total).toBe(1);
  });

  test('no term matches across two fields', async () => {
    await add('end', { url: 'https://example.org/start', comment: 'next' });
    for (const query of ['startend', 'endnext', 'start\nend']) {
      expect((await search({ query })).total, query).toBe(query.includes('\n') ? 1 : 0);
    }
  });

  test('the query is split at the white space of ECMAScript', async () => {
    await add('one two');
    for (const space of ['\t', '\n', '\u00a0', '\u3000', '\ufeff', '  \u2028 ']) {
      expect((await search({ query: `two${space}one` })).total, JSON.stringify(space)).toBe(1);
    }
    expect((await search({ query: 'one\u200btwo' })).total).toBe(0);
  });

  test('white space inside a field separates words, and no term matches it', async () => {
    await add('first\nsecond\u3000third');
    expect((await search({ query: 'second third first' })).total).toBe(1);
    expect((await search({ query: 'firstsecond' })).total).toBe(0);
  });

  test.each([
    ['ASCII', 'Hello', 'hELLO'],
    ['umlauts', 'ÄRGER', 'ärger'],
    ['Cyrillic', 'ПРИВЕТ', 'привет'],
    ['Greek with a final sigma in the text', 'ὈΔΥΣΣΕΎΣ ΟΔΟΣ', 'οδος'],
    ['Greek with a final sigma in the query', 'οδοσ', 'ΟΔΟΣ'],
    ['a sigma that is final only in the query', 'οδοσήμανση', 'ΟΔΟΣ'],
    ['Turkish dotted capital i', 'İstanbul', 'i\u0307stanbul'],
    ['Turkish dotted capital i in the query', 'i\u0307stanbul', 'İSTANBUL'],
    ['Turkish dotted capital i as i', 'İSTANBUL', 'istanbul'],
    ['i as Turkish dotted capital i', 'Istanbul', 'İSTANBUL'],
    ['a dotted capital i with an accent', 'I\u0307\u0301', 'í'],
    ['the rest of a word that begins with it', 'İstanbul', 'STANBUL'],
    ['a letter of four bytes', '𐐀𐐁', '𐐨𐐩'],
    ['the other normal form', 'Café', 'CAFE\u0301'],
    ['the other normal form in the text', 'Cafe\u0301', 'CAFÉ'],
    ['a Kelvin sign', '300 \u212a', 'k'],
    ['a letter that is composed only in lower case', 'J\u030casmin', '\u01f0ASMIN'],
    ['right-to-left text', 'שלום עולם', 'עולם'],
    ['an emoji', 'a 👩‍👩‍👧 b', '👩‍👩‍👧'],
  ])('a match ignores case: %s', async (_, title, query) => {
    await add(title);
    expect((await search({ query })).total).toBe(1);
  });

  test.each([
    ['https://example.org/K%C3%B6ln', ['köln', 'KÖLN', 'k%c3%b6ln', 'example.org/köln', '%b6ln']],
    ['https://example.org/?q=%E6%9B%B8%20x%2Fy', ['書', '書%20x%2fy', '%E6%9B%B8']],
    ['https://example.org/%41%c3%b6%ff', ['%41%c3%b6%ff', '%FF']],
    ['https://example.org/%C4%B0zmir', ['izmir', 'İZMİR']],
  ])('the percent-encoded letters of %s are also found as people read them', async (url, queries) => {
    await add('', { url: 'https://example.org/' });
    await user.post('/bookmarks/edit', { id: await add('', { url }), url: `${url}?edited` });
    for (const query of queries) expect((await search({ query })).total, query).toBe(1);
    expect((await search({ query: '/A' })).total).toBe(0);
  });

  test.each([
    ['dotless i and i', 'ılık', 'ilik'],
    ['sharp s and ss', 'Straße', 'strasse'],
    ['an accent', 'Café', 'cafe '],
    ['half of a character of four bytes', '😀', '😁'],
  ])('a match ignores nothing but case and normal form: %s', async (_, title, query) => {
    await add(title);
    expect((await search({ query })).total).toBe(0);
  });

  test.each([
    '%',
    '_',
    '\\',
    '%%',
    '\\%',
    '\\\\',
    '100%',
    'a_b',
    'C:\\',
    '[a]',
    '.*',
    "'",
    '"',
    '$1',
    '{x}',
    '^',
  ])('%s consists of ordinary characters, alone and as the last of many terms', async (query) => {
    const many = 'first1 second third3';
    await add(`${many} before${query}after`);
    await add(`${many} before after 100 aXb C: a x`);
    for (const asked of [query, `${many} ${query}`]) {
      const found = await search({ query: asked });
      expect(titles(found)).toEqual([`${many} before${query}after`]);
      expect(found.total).toBe(1);
    }
  });

  test.each([[{}], [{ query: '' }], [{ query: ' \t\n\u3000' }]])(
    'an empty or blank query matches everything: %j',
    async (body) => {
      await add('one');
      await add('');
      expect((await search(body)).total).toBe(2);
    },
  );

  test('a query of 1,000 characters in 250 terms is accepted', async () => {
    const terms = Array.from({ length: 250 }, (_, i) => String(100 + i));
    await add(terms.join(' '));
    expect((await search({ query: terms.toReversed().join(' ') })).total).toBe(1);
    expect((await search({ query: `${terms.slice(1).join(' ')} ö` })).total).toBe(0);
  });
});

describe('the option tag', () => {
  test("must equal a tag's whole name, ignoring case", async () => {
    await add('one', { tags: ['Machine Learning'] });
    await add('other', { tags: ['Machine'] });
    expect(titles(await search({ tag: 'MACHINE learning' }))).toEqual(['one']);
    expect(titles(await search({ tag: ' machine ' }))).toEqual(['other']);
    expect((await search({ tag: 'learning' })).total).toBe(0);
    expect((await search({ tag: 'Machin%' })).total).toBe(0);
  });

  test.each([
    ['ΟΔΟΣ', 'οδος'],
    ['İ', 'i\u0307'],
    ['İş', 'iş'],
    ['iş', 'İŞ'],
    ['é', 'E\u0301'],
  ])('is normalized like the names: %s', async (name, tag) => {
    await add('one', { tags: [name] });
    expect((await search({ tag })).total).toBe(1);
  });

  test('must match, and so must the query', async () => {
    await add('red apple', { tags: ['fruit'] });
    await add('red brick', { tags: ['stone'] });
    await add('green apple', { tags: ['fruit', 'sour'] });
    expect(titles(await search({ query: 'red', tag: 'fruit' }))).toEqual(['red apple']);
    expect((await search({ query: '  ', tag: 'fruit' })).total).toBe(2);
    expect((await search({ query: 'brick', tag: 'fruit' })).total).toBe(0);
  });

  test.each(['', ' \u3000', null])(
    'is no filter if it is %j, so untagged bookmarks match too',
    async (tag) => {
      await add('one', { tags: ['known'] });
      await add('other');
      expect((await search({ tag })).total).toBe(2);
      expect((await search({ tag, untagged: true })).total).toBe(1);
    },
  );

  test('matches nothing if the tag does not exist', async () => {
    await add('one', { tags: ['known'] });
    const other = await service.user();
    await other.post('/tags/create', { name: 'theirs' });
    for (const tag of ['unknown', 'theirs']) {
      expect(await search({ tag })).toEqual({
        bookmarks: [],
        total: 0,
        page: 1,
        per_page: 50,
        has_more: false,
      });
    }
  });
});

describe('pages', () => {
  test('contain the newest matches first, 50 per page, with the exact total; has_more is true until the last one', async () => {
    const ids: number[] = [];
    for (let i = 0; i < 51; i++) ids.unshift(await add(`b${i}`));
    const first = await search({});
    expect(first).toMatchObject({ total: 51, page: 1, per_page: 50, has_more: true });
    expect(first.bookmarks.map(({ id }) => id)).toEqual(ids.slice(0, 50));
    const second = await search({ page: 2 });
    expect(second).toMatchObject({ total: 51, page: 2, per_page: 50, has_more: false });
    expect(second.bookmarks.map(({ id }) => id)).toEqual(ids.slice(50));
  });

  test('do not announce a further page if the last one is full', async () => {
    for (const title of ['a', 'b', 'c', 'd']) await add(title);
    expect(await search({ per_page: 2, page: 2 })).toMatchObject({ total: 4, has_more: false });
    expect(await search({ per_page: 4 })).toMatchObject({ total: 4, has_more: false });
    expect(await search({ per_page: 3 })).toMatchObject({ total: 4, has_more: true });
  });

  test.each([2, 1_000_000, 2 ** 31, Number.MAX_SAFE_INTEGER])(
    'are empty beyond the last one, with the exact total: page %i',
    async (page) => {
      await add('only');
      for (const per_page of [1, 100]) {
        const found = await search({ page, per_page });
        expect(found).toEqual({ bookmarks: [], total: 1, page, per_page, has_more: false });
      }
    },
  );

  test('contain each match once, however far back they are', async () => {
    const bookmarks = Array.from({ length: 2_500 }, (_, i) => ({
      url: `https://example.org/${i}`,
      tags: i % 2 === 0 ? ['even'] : [],
    }));
    await user.post('/import', { bookmarks });
    const seen: number[] = [];
    for (let page = 1; ; page++) {
      const found = await search({ tag: 'even', query: 'example', page, per_page: 100 });
      expect(found.total).toBe(1_250);
      seen.push(...found.bookmarks.map(({ id }) => id));
      if (!found.has_more) break;
    }
    expect(seen).toHaveLength(1_250);
    expect(seen).toEqual([...new Set(seen)].sort((a, b) => b - a));
    expect((await search({ query: '/249' })).total).toBe(11);
  });
});

test("another user's bookmarks are never found", async () => {
  const other = await service.user();
  await other.post('/bookmarks/add', { url: 'https://example.org/', title: 'secret', tags: ['secret'] });
  for (const body of [{}, { query: 'secret' }, { tag: 'secret' }]) expect((await search(body)).total).toBe(0);
});
