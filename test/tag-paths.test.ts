import { beforeEach, describe, expect, test } from 'vitest';
import { type TestUser, useService } from './support/service.ts';

// Spec 4.2 and 4.3: tags whose names are paths.

const service = useService();
let user: TestUser;

beforeEach(async () => {
  user = await service.user({ premium: true });
});

interface Tagged {
  title: string;
  tags: { id: number; name: string }[];
}

/** Adds a bookmark for each list of tags, with the names as its title. */
const addAll = (lists: string[][]) =>
  user.post('/import', {
    bookmarks: lists.map((tags, n) => ({ url: `http://a.example/${n}`, title: tags.join(' '), tags })),
  });
const search = async (body: object) => (await user.post('/bookmarks/search', body)).body;
const titles = async (body: object): Promise<string[]> =>
  (await search(body)).bookmarks.map(({ title }: Tagged) => title);

describe('tag_under', () => {
  test.each([
    ['a/b', ['a/b', 'A/B/c', 'a/b/', 'a/b//d'], ['a/bc', 'a', 'x/a/b', 'a/b0', 'a/b.']],
    ['A/B//', ['a/b', 'A/B/c'], ['a/bc']],
    ['/a', ['/a', '/a/b'], ['a', 'a/b']],
    ['100%', ['100%', '100%/x'], ['100', '1000/x', '100/x']],
    ['a_b', ['a_b/c'], ['axb/c', 'axb']],
    ['İ', ['İ/a', 'i̇/b'], ['i/a', 'ı/a']],
    ['ΟΔΟΣ', ['οδος/a', 'οδοσ/b', 'ΟΔΟΣ/c'], ['οδο/a']],
    ['é', ['e\u0301/a', 'É/b'], ['e/a']],
    ['a', ['a/\u{10ffff}', 'a/\u0301'], []],
    ['unknown', [], ['unknow', 'unknownx']],
  ])('%j finds %j and not %j', async (tag_under, below, others) => {
    await addAll([...below, ...others].map((name) => [name]));
    expect((await titles({ tag_under })).sort()).toEqual([...below].sort());
    expect((await search({ tag_under })).total).toBe(below.length);
  });

  test('several must all hold, together with all other filters, in every order and by cursor', async () => {
    await addAll([['a/x', 'b'], ['a/y'], ['a', 'b/z', 'c'], ['b'], [], ['A/x', 'B/x']]);
    expect(await titles({ tag_under: ['a', 'B'] })).toEqual(['A/x B/x', 'a b/z c', 'a/x b']);
    expect(await titles({ tag_under: ['a', 'unknown'] })).toEqual([]);
    expect(await titles({ tag_under: [] })).toHaveLength(6);
    expect(await titles({ tag_under: 'a', without_tags: ['c'] })).toEqual(['A/x B/x', 'a/y', 'a/x b']);
    expect(await titles({ tag_under: 'a', tag: 'b' })).toEqual(['a/x b']);
    expect(await titles({ tag_under: 'b', tags: ['c'] })).toEqual(['a b/z c']);
    expect(await titles({ tag_under: 'a', query: 'y' })).toEqual(['a/y']);
    expect(await titles({ tag_under: 'a', site: 'b.example' })).toEqual([]);
    expect(await titles({ tag_under: 'a', created_after: '2000-01-01T00:00:00Z' })).toHaveLength(4);
    expect((await search({ tag_under: 'a', untagged: true })).error).toBe(
      'tag_under: cannot be given with untagged',
    );
    for (const sort of ['newest', 'oldest', 'created', 'updated', 'title'] as const) {
      const whole = await titles({ tag_under: 'a', sort });
      const first = await search({ tag_under: 'a', sort, per_page: 3 });
      const rest = await search({ tag_under: 'a', sort, per_page: 3, cursor: first.next_cursor });
      expect([first.total, rest.total, rest.has_more]).toEqual([4, 4, false]);
      expect([...first.bookmarks, ...rest.bookmarks].map(({ title }: Tagged) => title)).toEqual(whole);
      expect((await search({ tag_under: 'b', sort, cursor: first.next_cursor })).code).toBe(
        'VALIDATION_ERROR',
      );
    }
    expect(await titles({ tag_under: 'a', sort: 'oldest' })).toEqual(['a/x b', 'a/y', 'a b/z c', 'A/x B/x']);
    expect(await titles({ tag_under: 'a', page: 2, per_page: 3 })).toEqual(['a/x b']);
  });

  test('counts a bookmark once, also with hundreds of tags below it', async () => {
    await addAll([
      ...Array.from({ length: 120 }, (_, n) => [`a/${n}`, `a/b${n}`, ...(n % 2 ? ['odd/x'] : [])]),
      ['other'],
    ]);
    expect((await search({ tag_under: 'a' })).total).toBe(120);
    expect((await search({ tag_under: ['a', 'odd'] })).total).toBe(60);
    expect((await search({ tag_under: ['odd', 'a'], query: 'b11' })).total).toBe(6);
  });
});
