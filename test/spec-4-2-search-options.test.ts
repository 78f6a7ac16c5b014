import { beforeEach, describe, expect, test } from 'vitest';
import { makeMatcher } from '../src/client/match-search.ts';
import { parseSearch } from '../src/client/search-text.ts';
import { SORTS } from '../src/domain/bounds.ts';
import type { Bookmark } from '../src/domain/resources.ts';
import type { SearchFilter } from '../src/domain/search.ts';
import { createDatabaseOfLocale } from './support/database.ts';
import { startService, type TestUser, useService } from './support/service.ts';
import { makeRandom } from './support/texts.ts';

// Section 4.2 of docs/contract.md: the filters of /bookmarks/search, its orders and its cursor.

const seed = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

const service = useService();
let user: TestUser;

beforeEach(async () => {
  user = await service.user({ premium: true });
});

interface Shown {
  id: number;
  title: string;
  updated_at: string;
}

const ask = (body: object, asker = user) => asker.post('/bookmarks/search', body);
const search = async (body: object) => (await ask(body)).body;
const titles = async (body: object): Promise<string[]> =>
  (await search(body)).bookmarks.map(({ title }: Shown) => title);
const addAll = (entries: object[]) =>
  user.post('/import', {
    mode: 'replace',
    bookmarks: entries.map((entry, n) => ({ url: `http://a/${n}`, ...entry })),
  });

describe('tags', () => {
  beforeEach(() =>
    addAll([
      { title: 'ab', tags: ['a', 'b'] },
      { title: 'a', tags: ['a'] },
      { title: 'c', tags: ['c'] },
      { title: 'none' },
    ]),
  );

  test.each([
    [{ tags: ['A'] }, ['a', 'ab']],
    [{ tags: ['a', 'b'] }, ['ab']],
    [{ tags: ['a', 'unknown'] }, []],
    [{ tags: [] }, ['none', 'c', 'a', 'ab']],
    [{ tag: 'a', tags: ['b'] }, ['ab']],
    [{ tag: 'a', tags: ['a'] }, ['a', 'ab']],
    [{ without_tags: ['B'] }, ['none', 'c', 'a']],
    [{ without_tags: ['b', 'c', 'unknown'] }, ['none', 'a']],
    [{ without_tags: ['unknown'] }, ['none', 'c', 'a', 'ab']],
    [{ tags: ['a'], without_tags: ['b'] }, ['a']],
    [{ tags: ['a'], without_tags: ['a'] }, []],
    [{ untagged: true }, ['none']],
    [{ untagged: false }, ['none', 'c', 'a', 'ab']],
    [{ untagged: true, without_tags: ['a'] }, ['none']],
    [{ tags: ['a'], query: 'ab' }, ['ab']],
  ])('%j finds %j', async (body, expected) => {
    expect(await titles(body)).toEqual(expected);
    expect((await search(body)).total).toBe(expected.length);
  });
});

/** For each filter, some values, and the bookmark that each value finds: `old` or `new`. */
const FILTERS: Record<keyof SearchFilter, [value: unknown, found: 'old' | 'new'][]> = {
  tag: [['x', 'new']],
  tags: [[['x'], 'new']],
  tag_under: [['in', 'new']],
  without_tags: [[['x'], 'old']],
  untagged: [[true, 'old']],
  created_after: [['2020-06-01T00:00:00Z', 'new']],
  created_before: [['2020-06-01T00:00:00Z', 'old']],
  updated_after: [['2020-06-01T00:00:00Z', 'new']],
  site: [
    ['old.example', 'old'],
    ['new.example', 'new'],
  ],
  without_phrases: [
    [['OLD.example'], 'new'],
    [['nothing', 'new'], 'old'],
  ],
  any: [
    [[{ phrases: ['nothing'] }, { phrases: ['NEW.', 'word'] }], 'new'],
    [[{ tags: ['unknown'] }, { phrases: ['old'] }], 'old'],
    [[{ tags: ['X', 'in/x'] }, { tags: ['x'] }, { phrases: ['old', 'new'] }], 'new'],
    [[{ phrases: ['word'], tags: ['x'] }], 'new'],
  ],
};

test.each(
  Object.entries(FILTERS).flatMap(([name, values]) =>
    values.map(([value, found]) => [{ [name]: value }, found] as const),
  ),
)('%j finds only the %s bookmark, with and without words, in any order', async (filter, found) => {
  await addAll([
    { url: 'https://old.example/', title: 'old', comment: 'word', created_at: '2020-01-01T00:00:00Z' },
    {
      url: 'https://new.example/',
      title: 'new',
      comment: 'word',
      created_at: '2021-01-01T00:00:00Z',
      tags: ['x', 'in/x'],
    },
  ]);
  for (const query of ['', 'word']) {
    for (const sort of SORTS) {
      const { bookmarks, total } = await search({ ...filter, query, sort });
      const shown = bookmarks.map(({ title }: Shown) => title);
      expect([shown, total], `${sort}, query "${query}"`).toEqual([[found], 1]);
    }
  }
});

describe('without_phrases and any', () => {
  beforeEach(() =>
    addAll([
      { title: 'Postgres Sync', comment: 'to be\tor not', tags: ['a', 'b'] },
      { title: 'Postgres', tags: ['a'] },
      { title: 'MySQL 100%', tags: ['c'] },
      { title: '-mysql OR' },
    ]),
  );

  test.each([
    [{ without_phrases: ['mysql'] }, ['Postgres', 'Postgres Sync']],
    [{ without_phrases: ['TO BE OR', 'mysql'] }, ['Postgres']],
    [{ without_phrases: ['sync to'] }, ['-mysql OR', 'MySQL 100%', 'Postgres', 'Postgres Sync']],
    [{ without_phrases: ['_', '0\\'] }, ['-mysql OR', 'MySQL 100%', 'Postgres', 'Postgres Sync']],
    [{ without_phrases: ['%'] }, ['-mysql OR', 'Postgres', 'Postgres Sync']],
    [{ without_phrases: ['http'] }, []],
    [{ without_phrases: [] }, ['-mysql OR', 'MySQL 100%', 'Postgres', 'Postgres Sync']],
    [{ query: 'postgres', without_phrases: ['sync'] }, ['Postgres']],
    [{ query: '-mysql OR' }, ['-mysql OR']],
    [{ tags: ['a'], without_phrases: ['sync'] }, ['Postgres']],
    [{ tag: 'a', without_phrases: ['sync'] }, ['Postgres']],
    [{ any: [] }, ['-mysql OR', 'MySQL 100%', 'Postgres', 'Postgres Sync']],
    [{ any: [{ phrases: ['sync'] }, { phrases: ['100%'] }] }, ['MySQL 100%', 'Postgres Sync']],
    [{ any: [{ phrases: ['sync', 'mysql'] }, { phrases: ['to be or'] }] }, ['Postgres Sync']],
    [{ any: [{ tags: ['A'] }, { phrases: ['sync'] }] }, ['Postgres', 'Postgres Sync']],
    [{ any: [{ tags: ['a', 'b'] }, { tags: ['C'] }] }, ['MySQL 100%', 'Postgres Sync']],
    [{ any: [{ tags: ['a'], phrases: ['sync'] }] }, ['Postgres Sync']],
    [{ any: [{ tags: ['a', 'unknown'] }, { phrases: ['100'] }] }, ['MySQL 100%']],
    [{ any: [{ tags: ['unknown'] }] }, []],
    [{ query: 'postgres', any: [{ phrases: ['sync'] }, { tags: ['c'] }] }, ['Postgres Sync']],
    [{ tags: ['a'], any: [{ phrases: ['sync'] }, { tags: ['c'] }] }, ['Postgres Sync']],
    [{ untagged: true, any: [{ phrases: ['mysql'] }, { tags: ['c'] }] }, ['-mysql OR']],
    [{ tag_under: ['a'], any: [{ phrases: ['sync'] }, { phrases: ['mysql'] }] }, ['Postgres Sync']],
    [
      { any: [{ tags: ['a'] }, { phrases: ['mysql'] }], without_phrases: ['sync', 'or'] },
      ['MySQL 100%', 'Postgres'],
    ],
    [{ any: [{ tags: ['a'] }], without_phrases: ['sync'], without_tags: ['c'], site: 'a' }, ['Postgres']],
  ])('%j finds %j, on one page and page by page in each order', async (body, expected) => {
    expect(await titles(body)).toEqual(expected);
    expect((await search(body)).total).toBe(expected.length);
    for (const sort of SORTS) {
      const { found } = await scroll({ ...body, sort, per_page: 1 });
      expect([sort, found.map(({ title }) => title).toSorted()]).toEqual([sort, expected.toSorted()]);
    }
  });

  test(`the matcher of the page and of local copies finds what the service finds (seed ${seed})`, async () => {
    const random = makeRandom(seed);
    const pick = (values: readonly string[]) => values[Math.floor(random() * values.length)]!;
    const texts = ['alpha', 'Beta', 'İstanbul', 'istanbul', 'köln', 'std::move', 'a b', '-x', 'OR', '100%'];
    const tags = ['Work', 'work/a', 'İş', 'done'];
    await addAll(
      Array.from({ length: 60 }, (_, n) => ({
        url: `https://${pick(['a', 'b'])}.example/${pick(['', 'K%C3%B6ln', 'x'])}?${n}`,
        title: `${pick(texts)} ${pick(texts)}`,
        comment: pick(texts),
        tags: [pick(tags), pick(tags)].slice(0, Math.floor(random() * 3)),
      })),
    );
    const all: Bookmark[] = (await search({ per_page: 100 })).bookmarks;
    const operators = [
      'tag:work',
      '#iş',
      '-tag:done',
      'under:WORK',
      'is:untagged',
      'site:a.example',
      '-',
      'tag:',
    ];
    const parts = [...texts, ...texts.map((text) => `-${text}`), ...operators, '"a b"', '-"a b"', 'OR', 'OR'];
    for (let n = 0; n < 100; n += 1) {
      const text = Array.from({ length: 1 + Math.floor(random() * 6) }, () => pick(parts)).join(' ');
      const parsed = parseSearch(text).search;
      const { bookmarks } = await search({ ...parsed, per_page: 100 });
      expect([text, bookmarks], text).toEqual([text, all.filter(makeMatcher(parsed))]);
    }
  });

  test('a cursor belongs to its excluded texts and alternatives', async () => {
    const body = { any: [{ tags: ['a'] }], without_phrases: ['x'], per_page: 1 };
    const { next_cursor: cursor } = await search({ ...body, cursor: '' });
    for (const changed of [
      { any: [{ tags: ['a'] }, { tags: ['c'] }] },
      { any: [{ phrases: ['a'] }] },
      { without_phrases: ['y'] },
    ])
      expect((await search({ ...body, ...changed, cursor })).code).toBe('VALIDATION_ERROR');
    expect(await titles({ ...body, cursor })).toEqual(['Postgres Sync']);
  });
});

test.each([
  [{ created_after: '2020-01-01T00:00:00Z' }, ['c', 'b']],
  [{ created_after: '2020-01-01T00:00:00.001Z' }, ['c']],
  [{ created_before: '2020-01-01T00:00:00.001Z' }, ['a']],
  [{ created_before: '2020-01-01T01:00:00.002+01:00' }, ['b', 'a']],
  [{ created_after: '2020-01-01T00:00:00Z', created_before: '2020-01-01T00:00:00.002Z' }, ['b']],
  [{ created_after: '2021-01-01T00:00:00Z', created_before: '2020-01-01T00:00:00Z' }, []],
  [{ created_after: '9999-12-31T23:59:59.999Z' }, []],
])('the limits of created_after and created_before are exclusive: %j finds %j', async (body, expected) => {
  await addAll([
    { title: 'a', created_at: '2020-01-01T00:00:00.000Z' },
    { title: 'b', created_at: '2020-01-01T00:00:00.001Z' },
    { title: 'c', created_at: '9999-12-31T23:59:59.999Z' },
  ]);
  expect(await titles(body)).toEqual(expected);
});

describe('site', () => {
  const URLS = [
    'https://example.org/',
    'HTTP://user:pw@WWW.Example.ORG:8080/x?y#z',
    'https://example.org./dot',
    'http://notexample.org/',
    'http://example.org.evil.example/',
    'http://evil.example/example.org',
    'http://example.org@evil.example/',
    'http://bücher.example/',
    'http://sub.xn--bcher-kva.example/',
    'http://1.1/',
    'http://[2001:DB8::1]:80/',
    'http://ex%61mple.org/percent',
  ];
  beforeEach(() => addAll(URLS.map((url, n) => ({ url, title: String(n) }))));

  test.each([
    ['example.org', [11, 2, 1, 0]],
    ['EXAMPLE.org.', [11, 2, 1, 0]],
    [' www.example.org ', [1]],
    ['org', [11, 3, 2, 1, 0]],
    ['evil.example', [6, 5, 4]],
    ['BÜCHER.example', [8, 7]],
    ['xn--bcher-kva.example', [8, 7]],
    ['1.0.0.1', [9]],
    ['0.0.1', []],
    ['[2001:db8:0::1]', [10]],
    ['xample.org', []],
    ['%', []],
  ])('accepts %s as a host in any form, and includes its subdomains', async (site, expected) => {
    const response = await ask({ site });
    if (site === '%') expect(response.body.error).toBe('site: expected a host name');
    else expect((await titles({ site })).map(Number)).toEqual(expected);
  });

  test('finds a bookmark by its new url after an edit', async () => {
    const [{ id }] = (await search({ site: 'www.example.org' })).bookmarks;
    await user.post('/bookmarks/edit', { id, url: 'http://moved.example/' });
    expect(await titles({ site: 'www.example.org' })).toEqual([]);
    expect(await titles({ site: 'MOVED.example' })).toEqual(['1']);
    await user.post('/bookmarks/add', { url: 'http://deep.moved.example/', title: 'added' });
    expect(await titles({ site: 'moved.example' })).toEqual(['added', '1']);
  });

  test.each([
    '',
    'http://example.org',
    'example.org/',
    'example.org:80',
    'a@b',
    'a b',
    '::1',
    '.',
    '%2e',
    'x'.repeat(256),
  ])('refuses %j with a VALIDATION_ERROR', async (site) => {
    expect(await ask({ site })).toMatchObject({ status: 400, body: { code: 'VALIDATION_ERROR' } });
    expect((await search({ site })).error).toMatch(/^site: /);
  });
});

describe('sort', () => {
  test('orders by id, by the time of the last edit, and by title', async () => {
    await addAll([
      { title: 'Éa', updated_at: '2020-01-03T00:00:00Z' },
      { title: 'b', updated_at: '2020-01-01T00:00:00Z' },
      { title: 'A', updated_at: '2020-01-02T00:00:00Z' },
      { title: '', url: 'http://0.example/', updated_at: '2020-01-02T00:00:00Z' },
    ]);
    expect(await titles({})).toEqual(['', 'A', 'b', 'Éa']);
    expect(await titles({ sort: 'newest' })).toEqual(['', 'A', 'b', 'Éa']);
    expect(await titles({ sort: 'oldest' })).toEqual(['Éa', 'b', 'A', '']);
    expect(await titles({ sort: 'updated' })).toEqual(['Éa', '', 'A', 'b']);
    expect(await titles({ sort: 'title' })).toEqual(['', 'A', 'b', 'Éa']);
    expect(await titles({ sort: 'oldest', page: 2, per_page: 3 })).toEqual(['']);
  });

  test('orders by creation time, and by id for equal times', async () => {
    await addAll([
      { title: 'today', created_at: '2026-01-02T00:00:00Z' },
      { title: 'imported', created_at: '2023-01-01T00:00:00Z', updated_at: '2026-06-01T00:00:00Z' },
      { title: 'later today', created_at: '2026-01-02T00:00:00Z' },
    ]);
    expect(await titles({ sort: 'created' })).toEqual(['later today', 'today', 'imported']);
    expect(await titles({ sort: 'created_oldest' })).toEqual(['imported', 'today', 'later today']);
    expect(await search({ sort: 'created', page: 2, per_page: 2 })).toMatchObject({
      total: 3,
      has_more: false,
    });
    const { next_cursor: cursor } = await search({ sort: 'created', per_page: 1, cursor: '' });
    expect(await titles({ sort: 'created', cursor, per_page: 5 })).toEqual(['today', 'imported']);
    expect(await titles({ sort: 'created', query: 'today' })).toEqual(['later today', 'today']);
    expect(await titles({ sort: 'created', site: 'nowhere.example' })).toEqual([]);
  });

  test('orders a bookmark without a title by its url as programs show it', async () => {
    await addAll([
      { title: 'MNO' },
      { url: 'https://www.Example.org/b' },
      { title: 'a' },
      { url: 'http://x.example/' },
      { url: 'https://example.org/a' },
      { title: 'f' },
    ]);
    const { bookmarks } = await search({ sort: 'title' });
    expect(bookmarks.map(({ title, url }: Shown & { url: string }) => title || new URL(url).href)).toEqual([
      'a',
      'https://example.org/a',
      'https://www.example.org/b',
      'f',
      'MNO',
      'http://x.example/',
    ]);
  });

  test('compares white space in titles as blanks', async () => {
    await addAll(['a\tc', 'a\u3000b', 'a a', 'a\nd'].map((title) => ({ title })));
    expect(await titles({ sort: 'title' })).toEqual(['a a', 'a\u3000b', 'a\tc', 'a\nd']);
  });

  test("orders titles by code points, whatever the database's locale", async () => {
    await using database = await createDatabaseOfLocale('en-US');
    await using american = await startService({}, { database });
    user = await american.user();
    await addAll(['a', '_a', 'b', '-b', '1', 'ab'].map((title) => ({ title })));
    const ordered = ['-b', '1', '_a', 'a', 'ab', 'b'];
    expect(await titles({ sort: 'title' })).toEqual(ordered);
    const paged: string[] = [];
    let cursor: string | undefined = '';
    do {
      const { bookmarks, next_cursor }: { bookmarks: Shown[]; next_cursor?: string } = await search({
        sort: 'title',
        cursor,
        per_page: 1,
      });
      paged.push(...bookmarks.map(({ title }) => title));
      cursor = next_cursor;
    } while (cursor !== undefined);
    expect(paged).toEqual(ordered);
  });

  test('SQL refuses an unknown order', async () => {
    const found = service.context.database.sql`
      select from search_bookmarks(
        p_user_id => 1, p_token_hash => '', p_terms => '{}', p_patterns => null, p_bits => null, p_filter => '{}',
        p_sort => 'unheard', p_offset => 0, p_last_id => null, p_last_key => null, p_limit => 1, p_bytes => 1
      )`;
    await expect(found).rejects.toThrow('unknown sort: unheard');
  });
});

/** Follows the cursor through all pages of a search. Calls `between` after each page except the last. */
async function scroll(body: object, between: (page: Shown[]) => Promise<unknown> = async () => {}) {
  const found: Shown[] = [];
  const pages: { total: number; page: number }[] = [];
  for (let cursor = ''; ; ) {
    const response = await ask({ ...body, cursor });
    expect(response.status, response.text).toBe(200);
    const { bookmarks, has_more, next_cursor, total, page } = response.body;
    expect(next_cursor !== undefined).toBe(has_more);
    found.push(...bookmarks);
    pages.push({ total, page });
    if (!has_more) return { found, pages };
    cursor = next_cursor;
    await between(bookmarks);
  }
}

test('updated_after finds bookmarks that were edited since, whenever they were created', async () => {
  await addAll([
    { title: 'edited', created_at: '2020-01-01T00:00:00Z' },
    { title: 'kept', created_at: '2021-01-01T00:00:00.001Z' },
  ]);
  const { bookmarks } = await search({ sort: 'oldest' });
  await user.post('/bookmarks/edit', { id: bookmarks[0]!.id, comment: 'c' });
  for (const sort of SORTS) {
    expect(await titles({ updated_after: '2021-01-01T00:00:00.001Z', sort })).toEqual(['edited']);
    expect(await titles({ updated_after: '2021-01-01T00:00:00Z', sort })).toHaveLength(2);
  }
});

describe('the cursor', () => {
  const COUNT = 40;
  const fill = () =>
    addAll(
      Array.from({ length: COUNT }, (_, n) => ({
        // Many bookmarks have the same sort key, so the id decides their order.
        title: `${'long title '.repeat(30)}${n % 3}`,
        created_at: `2019-01-0${1 + (n % 4)}T00:00:00Z`,
        updated_at: `2020-01-0${1 + (n % 3)}T00:00:00Z`,
        tags: n % 2 ? ['odd'] : [],
      })),
    );

  test.each(SORTS)(
    'leads through all bookmarks by %s, each once, in the order of one large page',
    async (sort) => {
      await fill();
      const whole = (await search({ sort, per_page: 100 })).bookmarks;
      for (const filter of [{}, { query: 'long' }, { tags: ['odd'] }, { without_tags: ['odd'] }]) {
        const { found, pages } = await scroll({ sort, per_page: 7, ...filter });
        const expected = (await search({ sort, per_page: 100, ...filter })).bookmarks;
        expect(found).toEqual(expected);
        expect(pages).toEqual(pages.map((_, n) => ({ total: expected.length, page: n + 1 })));
      }
      expect(whole).toHaveLength(COUNT);
    },
  );

  test.each(SORTS)(
    'shows nothing twice and misses no unchanged bookmark during writes, by %s',
    async (sort) => {
      await fill();
      const all: Shown[] = (await search({ sort, per_page: 100 })).bookmarks;
      const touched = new Set<number>();
      let turn = 0;
      const { found } = await scroll({ sort, per_page: 3 }, async (page) => {
        turn += 1;
        await user.post('/bookmarks/add', { url: 'http://new/', title: `new ${turn}` });
        await user.post('/bookmarks/add', { url: 'http://new/', title: 'zzz' });
        // Edits one bookmark of this page and the first bookmark that is not yet shown. Then deletes the last bookmark
        // of this page and a later bookmark.
        const at = all.findIndex(({ id }) => id === page.at(-1)!.id);
        for (const { id } of [page[0]!, all[(at + 1) % COUNT]!]) {
          touched.add(id);
          await user.post('/bookmarks/edit', { id, title: `edited ${turn}` });
        }
        const gone = [page.at(-1)!.id, all[(at + 9) % COUNT]!.id];
        for (const id of gone) touched.add(id);
        await user.post('/bookmarks/delete', { ids: gone });
      });
      const ids = found.map(({ id }) => id);
      const stood = all.map(({ id }) => id).filter((id) => !touched.has(id));
      expect(stood.length).toBeGreaterThan(0);
      expect(ids.filter((id) => stood.includes(id))).toEqual(stood);
      // In the orders `updated` and `title`, an edit may move a bookmark, which is then shown again. Each bookmark that
      // did not change is shown exactly once.
      if (sort !== 'updated' && sort !== 'title') expect(new Set(ids).size).toBe(ids.length);
      expect(new Set(ids.filter((id) => stood.includes(id))).size).toBe(stood.length);
    },
  );

  test('continues after any page, also with another page size', async () => {
    await fill();
    const whole: Shown[] = (await search({ per_page: 100 })).bookmarks;
    const first = await search({ cursor: '', per_page: 4 });
    const second = await search({ cursor: first.next_cursor, per_page: 6 });
    const rest = await search({ cursor: second.next_cursor, per_page: 100 });
    expect(rest.bookmarks).toEqual(whole.slice(10));
    expect(rest).toMatchObject({ page: 3, per_page: 100, total: COUNT, has_more: false });
  });

  test('begins at the page that a request with an empty cursor names', async () => {
    await fill();
    const titlesOf = ({ bookmarks }: { bookmarks: Shown[] }) => bookmarks.map(({ title }) => title);
    const all = titlesOf(await search({ per_page: 100 }));
    const third = await search({ cursor: '', page: 3, per_page: 2 });
    expect(third).toMatchObject({ page: 3, total: all.length });
    const fourth = await search({ cursor: third.next_cursor, per_page: 2 });
    expect(fourth).toMatchObject({ page: 4, total: all.length });
    expect([...titlesOf(third), ...titlesOf(fourth)]).toEqual(all.slice(4, 8));
    const beyond = await search({ cursor: '', page: 1_000, per_page: 2 });
    expect(beyond).toMatchObject({ bookmarks: [], has_more: false, total: all.length });
    expect(beyond).not.toHaveProperty('next_cursor');
  });

  test('is only in the response to a request that has a cursor', async () => {
    await fill();
    for (const body of [{}, { page: 1 }, { query: 'long' }, { tag: 'odd', sort: 'title' }]) {
      const plain = await search({ ...body, per_page: 1 });
      expect(Object.keys(plain)).toEqual(['bookmarks', 'total', 'page', 'per_page', 'has_more']);
      expect(plain.has_more).toBe(true);
      if ('page' in body) continue;
      const { next_cursor, ...walk } = await search({ ...body, per_page: 1, cursor: '' });
      expect(walk).toEqual(plain);
      expect(next_cursor).toEqual(expect.any(String));
    }
  });

  test('is absent after a last page that is full', async () => {
    await fill();
    const { next_cursor } = await search({ per_page: 20, cursor: '' });
    const last = await search({ cursor: next_cursor, per_page: 20 });
    expect(last.bookmarks).toHaveLength(20);
    expect(last.has_more).toBe(false);
    expect(last).not.toHaveProperty('next_cursor');
  });

  test.each([
    [{ query: 'other' }],
    [{ tag: 'odd' }],
    [{ sort: 'oldest' }],
    [{ site: 'a' }],
    [{ untagged: true }],
    [{ created_after: '2020-01-01T00:00:00Z' }],
  ])('is a VALIDATION_ERROR with another search: %j', async (other) => {
    await fill();
    const { next_cursor: cursor } = await search({ query: 'long', per_page: 1, cursor: '' });
    expect((await ask({ query: 'long', cursor })).status).toBe(200);
    expect(await ask({ query: 'long', ...other, cursor })).toMatchObject({
      status: 400,
      body: { code: 'VALIDATION_ERROR', error: 'cursor: belongs to another search' },
    });
  });

  test('is a VALIDATION_ERROR if it belongs to another user or to list, or comes together with a page', async () => {
    await fill();
    const { next_cursor: cursor } = await search({ per_page: 1, cursor: '' });
    const stranger = await service.user();
    expect((await ask({ cursor }, stranger)).body.error).toBe('cursor: belongs to another user');
    expect((await ask({ cursor, page: 1 })).body.error).toBe('page: cannot be given with cursor');
    const list = (await user.post('/bookmarks/list', { limit: 1 })).body.next_cursor;
    expect((await ask({ cursor: list })).body.error).toBe('cursor: is malformed');
    expect((await user.post('/bookmarks/list', { cursor })).body.error).toBe('cursor: is malformed');
  });

  test('may be invented by a client: it then causes a VALIDATION_ERROR or is a valid position, and never causes a fault', async () => {
    await fill();
    const { next_cursor } = await search({ sort: 'updated', per_page: 1, cursor: '' });
    const parts = JSON.parse(Buffer.from(next_cursor, 'base64url').toString());
    const encode = (changed: unknown) => Buffer.from(JSON.stringify(changed)).toString('base64url');
    const at = (place: number, value: unknown) => encode(parts.with(place, value));
    for (const cursor of [
      at(6, 'yesterday'),
      at(6, 'infinity'),
      at(6, null),
      at(6, '2020-01-01'),
      at(6, 'a\u0000'),
      at(5, -1),
      at(5, 2 ** 53),
      at(5, '1'),
      at(4, 0.5),
      at(0, 9),
      encode({}),
      encode(null),
      `${next_cursor}=`,
      'nonsense',
    ]) {
      expect((await ask({ sort: 'updated', cursor })).body.error).toBe('cursor: is malformed');
    }
    expect((await ask({ sort: 'updated', cursor: at(5, 7) })).status).toBe(200);
  });
});

test.each([
  [{ untagged: true, tag: 'a' }, 'tag: cannot be given with untagged'],
  [{ untagged: true, tags: ['a'] }, 'tags: cannot be given with untagged'],
  [
    { sort: 'random' },
    'sort: expected "newest" or "oldest" or "created" or "created_oldest" or "updated" or "title"',
  ],
  [{ tags: Array.from({ length: 101 }, (_, n) => `t${n}`) }, 'tags: at most 100 tags'],
  [{ created_after: 'now' }, 'created_after: expected an ISO 8601 time of the years 0001 to 9999'],
])('%j is a VALIDATION_ERROR', async (body, error) => {
  expect(await ask(body)).toMatchObject({ status: 400, body: { code: 'VALIDATION_ERROR', error } });
});

test('a numbered page is complete; a page by cursor has at most about 1 MiB, and the next one continues after it', async () => {
  const comment = '\u0001'.repeat(10_000);
  await addAll(
    Array.from({ length: 60 }, (_, n) => ({ title: String(n), comment: n % 20 ? comment : '', tags: ['t'] })),
  );
  for (const body of [
    {},
    { query: 'http' },
    { tag: 't' },
    { sort: 'oldest' },
    { sort: 'title' },
    { sort: 'updated' },
  ]) {
    const second = await ask({ ...body, page: 2, per_page: 30 });
    expect(second.body.bookmarks).toHaveLength(30);
    const first = await ask({ ...body, per_page: 5, cursor: '' });
    const behind = await ask({ ...body, cursor: first.body.next_cursor, per_page: 100 });
    expect(Buffer.byteLength(behind.text)).toBeLessThan(1_100_000);
    expect(behind.body).toMatchObject({ has_more: true, total: 60 });
    const { found } = await scroll({ ...body, per_page: 25 });
    expect(new Set(found.map(({ id }) => id)).size).toBe(60);
    expect(found).toHaveLength(60);
  }
});
