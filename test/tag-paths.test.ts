import { beforeEach, describe, expect, test } from 'vitest';
import { SORTS } from '../src/domain/bounds.ts';
import { findFaults } from './support/invariants.ts';
import { type TestUser, useService } from './support/service.ts';

// Sections 4.2 and 4.3 of docs/contract.md: tags whose names are paths.

const service = useService();
let user: TestUser;

beforeEach(async () => {
  user = await service.user({ premium: true });
});

interface Tagged {
  title: string;
  tags: { id: number; name: string }[];
}

/** Adds a bookmark for each list of tags. The bookmark's title consists of the names of its tags. */
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

  test('matches only bookmarks with all given paths, and combines with all other filters, orders and cursors', async () => {
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
    for (const sort of SORTS) {
      const whole = await titles({ tag_under: 'a', sort });
      const first = await search({ tag_under: 'a', sort, per_page: 3, cursor: '' });
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

  test('counts a bookmark once, even if it has hundreds of tags below the path', async () => {
    await addAll([
      ...Array.from({ length: 120 }, (_, n) => [`a/${n}`, `a/b${n}`, ...(n % 2 ? ['odd/x'] : [])]),
      ['other'],
    ]);
    expect((await search({ tag_under: 'a' })).total).toBe(120);
    expect((await search({ tag_under: ['a', 'odd'] })).total).toBe(60);
    expect((await search({ tag_under: ['odd', 'a'], query: 'b11' })).total).toBe(6);
  });
});

describe('/tags/update with_children', () => {
  const listTags = async (): Promise<{ id: number; name: string }[]> =>
    (await user.post('/tags/list')).body.tags;
  const names = async () => (await listTags()).map(({ name }) => name);
  const idOf = async (name: string) => (await listTags()).find((tag) => tag.name === name)!.id;
  const rename = async (from: string, name: string) =>
    user.post('/tags/update', { id: await idOf(from), name, with_children: true });

  test('renames all tags below, ignoring case, and followers of changes see each of them', async () => {
    await addAll([['Work', 'Workshop'], ['work/a'], ['WORK/b/C', 'x']]);
    const { cursor } = (await user.post('/bookmarks/changes', { from: 'now' })).body;
    const waiting = user.post('/bookmarks/changes', { cursor, wait: true });
    expect(await rename('Work', 'Job 1\\2')).toMatchObject({ status: 200, body: { name: 'Job 1\\2' } });
    expect(await names()).toEqual(['Job 1\\2', 'Job 1\\2/a', 'Job 1\\2/b/C', 'Workshop', 'x']);
    const shown = (await search({ sort: 'oldest' })).bookmarks.map(({ tags }: Tagged) =>
      tags.map(({ name }) => name),
    );
    expect(shown).toEqual([['Job 1\\2', 'Workshop'], ['Job 1\\2/a'], ['Job 1\\2/b/C', 'x']]);
    await waiting;
    const changes = (await user.post('/bookmarks/changes', { cursor })).body;
    expect(changes.tags.map(({ name }: { name: string }) => name).sort()).toEqual([
      'Job 1\\2',
      'Job 1\\2/a',
      'Job 1\\2/b/C',
    ]);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test.each([
    ['Work', 'Work/x', ['Work', 'work/x', 'Work/x/x'], ['Work/x', 'Work/x/x', 'Work/x/x/x']],
    ['work', 'WORK', ['work', 'Work/a'], ['WORK', 'WORK/a']],
    ['a/b', 'a', ['a/b', 'a/b/c', 'a/d'], ['a', 'a/c', 'a/d']],
    ['a/a', 'a', ['a/a', 'a/a/a'], ['a', 'a/a']],
    ['İ', 'ß', ['İ', 'İ/İ', 'i̇/ς'], ['ß', 'ß/İ', 'ß/ς']],
    ['100%', 'a_b', ['100%', '100%/x', '1000/x'], ['1000/x', 'a_b', 'a_b/x']],
  ])('from %s to %s renames %j to %j', async (from, to, before, after) => {
    await addAll([before]);
    expect((await rename(from, to)).status).toBe(200);
    expect(await names()).toEqual(after);
    expect((await search({})).bookmarks[0].tags.map(({ name }: { name: string }) => name)).toEqual(after);
    expect((await search({ tag_under: to })).total).toBe(1);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('changes nothing if a new name is in use or too long', async () => {
    const long = `a/${'😀'.repeat(253)}`;
    await addAll([['a', 'a/x', 'b', 'C/X', 'a/y', long]]);
    const listed = await listTags();
    for (const [name, error] of [
      ['b', 'the tag "b" exists already'],
      ['c', 'the tag "C/X" exists already'],
      ['dd', `the tag "${long}" would have more than 255 characters`],
    ] as const)
      expect((await rename('a', name)).body).toEqual({ code: 'VALIDATION_ERROR', error: `name: ${error}` });
    expect(await listTags()).toEqual(listed);
  });

  test('supports an Idempotency-Key', async () => {
    await addAll([['a', 'a/x']]);
    const id = await idOf('a');
    const body = { id, name: 'b', with_children: true };
    const keyed = { headers: { 'idempotency-key': 'rename-with-children' } };
    const first = await user.post('/tags/update', body, keyed);
    await rename('b', 'c');
    expect((await user.post('/tags/update', body, keyed)).body).toEqual(first.body);
    expect(await names()).toEqual(['c', 'c/x']);
    const other = await user.post('/tags/update', { ...body, with_children: false }, keyed);
    expect(other.body.code).toBe('VALIDATION_ERROR');
  });

  test('is executed completely or refused completely at the same time as another one', async () => {
    await addAll(Array.from({ length: 40 }, (_, n) => ['a', `a/${n}`, 'b', `b/${n}`]));
    const [a, b] = [await idOf('a'), await idOf('b')];
    const responses = await Promise.all(
      [
        { id: a, name: 'c' },
        { id: a, name: 'd' },
        { id: b, name: 'c' },
      ].map((body) => user.post('/tags/update', { ...body, with_children: true })),
    );
    const statuses = responses.map(({ status }) => status);
    expect([...statuses].sort().slice(0, 2), `${statuses}`).toEqual([200, 200]);
    const roots = new Set((await names()).map((name) => name.split('/')[0]));
    expect(roots.size).toBe(2);
    expect(await names()).toHaveLength(82);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('an import that runs at the same time uses the current names for its tags', async () => {
    await addAll([['a', 'a/1']]);
    const importing = user.post('/import', {
      bookmarks: Array.from({ length: 500 }, (_, n) => ({
        url: `http://b.example/${n}`,
        tags: [`a/${n % 9}`],
      })),
    });
    await Promise.all([rename('a', 'z'), importing]);
    expect((await search({ tag_under: ['a'] })).total + (await search({ tag_under: ['z'] })).total).toBe(501);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('works at the limit of 10,000 tags, with 9,999 below the renamed one', async () => {
    const bookmarks = Array.from({ length: 10_000 }, (_, n) => ({
      url: `https://example.org/${n}`,
      tags: [n === 0 ? 'Work' : `Work/${n}`],
    }));
    expect((await user.post('/import', { bookmarks })).body.imported).toBe(10_000);
    // On a busy machine, the request may get 503 a few times.
    await expect.poll(async () => (await rename('Work', 'Work/sub')).status, { interval: 500 }).toBe(200);
    expect((await search({ tag_under: ['work/sub', 'work'] })).total).toBe(10_000);
    expect(await findFaults(service.database.url)).toEqual([]);
  });
});
