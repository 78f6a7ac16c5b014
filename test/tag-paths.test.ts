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
    ['İ', ['İ/a', 'i̇/b', 'i/c'], ['ı/a']],
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

const listTags = async (): Promise<{ id: number; name: string }[]> =>
  (await user.post('/tags/list')).body.tags;
const names = async () => (await listTags()).map(({ name }) => name);
const tagsOf = async (): Promise<string[][]> =>
  (await search({ sort: 'oldest' })).bookmarks.map(({ tags }: Tagged) => tags.map(({ name }) => name));

describe('/tags/update with_children', () => {
  const idOf = async (name: string) => (await listTags()).find((tag) => tag.name === name)!.id;
  const rename = async (from: string, name: string) =>
    user.post('/tags/update', { id: await idOf(from), name, with_children: true });

  test('renames all tags below, ignoring case, and followers of changes see each of them', async () => {
    await addAll([['Work', 'Workshop'], ['work/a'], ['WORK/b/C', 'x']]);
    const { cursor } = (await user.post('/bookmarks/changes', { from: 'now' })).body;
    const waiting = user.post('/bookmarks/changes', { cursor, wait: true });
    expect(await rename('Work', 'Job 1\\2')).toMatchObject({ status: 200, body: { name: 'Job 1\\2' } });
    expect(await names()).toEqual(['Job 1\\2', 'Job 1\\2/a', 'Job 1\\2/b/C', 'Workshop', 'x']);
    expect(await tagsOf()).toEqual([['Job 1\\2', 'Workshop'], ['Job 1\\2/a'], ['Job 1\\2/b/C', 'x']]);
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

describe('a path in place of an id', () => {
  const renamePath = (path: string, name: string) =>
    user.post('/tags/update', { path, name, with_children: true });
  const deletePath = (path: string) => user.post('/tags/delete', { path, with_children: true });

  test.each([
    [
      'Work',
      'Job',
      ['Work/a', 'WORK/b/c', 'Workshop', 'x/Work'],
      ['Job/a', 'Job/b/c', 'Workshop', 'x/Work'],
      2,
    ],
    ['work', 'Job', ['Work', 'Work/a'], ['Job', 'Job/a'], 2],
    ['Work', 'Job', ['Work'], ['Job'], 1],
    ['Work', 'Work/Old', ['Work/a', 'Work/Old'], ['Work/Old/a', 'Work/Old/Old'], 2],
    ['a/b', 'a', ['a/b/c', 'a/d'], ['a/c', 'a/d'], 1],
    ['Work', 'Job', ['Job', 'Job/b', 'Work/a'], ['Job', 'Job/a', 'Job/b'], 1],
    ['e\u0301', 'E', ['É/a', 'e/a'], ['E/a', 'e/a'], undefined],
    ['ΟΔΟΣ', 'o', ['οδος/a', 'οδοσ/b'], ['o/a', 'o/b'], 2],
    ['ı', 'I', ['ı/İ', 'i/a'], ['i/a', 'I/İ'], 1],
    ['A\\/B', 'A\\/C', ['A', 'A/x', 'A\\/B/Deep', 'A\\/BB'], ['A', 'A/x', 'A\\/BB', 'A\\/C/Deep'], 1],
    [' Work\t', ' Job ', ['Work/a'], ['Job/a'], 1],
    ['100%', 'a_b', ['1000/x', '100%/x'], ['1000/x', 'a_b/x'], 1],
    ['.*', 'x', ['.*/a', 'b/a'], ['b/a', 'x/a'], 1],
  ])('renames %s to %s: of %j remain %j', async (path, name, before, after, renamed) => {
    await addAll([before]);
    const response = await renamePath(path, name);
    if (renamed === undefined) {
      expect(response.body).toEqual({
        code: 'VALIDATION_ERROR',
        error: 'name: the tag "e/a" exists already',
      });
      return;
    }
    expect(response).toMatchObject({ status: 200, text: JSON.stringify({ name: name.trim(), renamed }) });
    expect(await names()).toEqual(after);
    expect((await tagsOf())[0]).toEqual(after);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test.each([
    ['Work', ['Work/a', 'WORK/b/c', 'Workshop', 'x/Work'], ['Workshop', 'x/Work']],
    ['work', ['Work', 'Work/a'], []],
    ['WORK', ['Work'], []],
    ['A\\/B', ['A', 'A/B', 'A\\/B/Deep', 'A\\/BB'], ['A', 'A/B', 'A\\/BB']],
    ['İ', ['i\u0307/a', 'i/b', 'ı/a'], ['ı/a']],
    ['a/', ['a', 'a/', 'a//b', 'a/b'], ['a', 'a/b']],
  ])('deletes %s: of %j remain %j', async (path, before, after) => {
    await addAll([before, []]);
    expect((await deletePath(path)).body).toEqual({ deleted: true });
    expect(await names()).toEqual(after);
    expect((await tagsOf())[0]).toEqual(after);
    expect((await search({})).total).toBe(2);
    expect((await deletePath(path)).body).toEqual({ code: 'NOT_FOUND', error: 'the tag does not exist' });
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('with an id, with_children deletes the tags below too', async () => {
    await addAll([['Work', 'Work/a', 'Workshop']]);
    const { id } = (await listTags()).find(({ name }) => name === 'Work')!;
    expect((await user.post('/tags/delete', { id, with_children: true })).body).toEqual({ deleted: true });
    expect(await tagsOf()).toEqual([['Workshop']]);
  });

  test("is NOT_FOUND without a tag of that name or below, and never finds another user's tags", async () => {
    const owner = await service.user();
    await owner.post('/tags/create', { name: 'Theirs/a' });
    await addAll([['Works/a', 'new/a']]);
    for (const path of ['Work', 'Theirs', 'new/a/b'])
      for (const response of [await renamePath(path, 'new'), await deletePath(path)])
        expect(response).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
    expect(await names()).toEqual(['new/a', 'Works/a']);
    expect((await owner.post('/tags/list')).body.tags).toHaveLength(1);
  });

  test('needs with_children, and no id', async () => {
    await addAll([['Work/a']]);
    const { id } = (await listTags())[0]!;
    for (const [path, more] of [
      ['/tags/update', { name: 'b' }],
      ['/tags/delete', {}],
    ] as const) {
      const refused = async (choice: object) => (await user.post(path, { ...choice, ...more })).body;
      const without = 'with_children: expected true, because path is given';
      expect(await refused({ path: 'Work' })).toEqual({ code: 'VALIDATION_ERROR', error: without });
      expect((await refused({ path: 'Work', with_children: false })).error).toBe(without);
      expect((await refused({ path: 'Work', id, with_children: true })).error).toBe(
        'path: expected either id or path',
      );
      expect((await refused({})).error).toBe('id: expected either id or path');
      expect((await refused({ path: ' ', with_children: true })).error).toBe('path: may not be empty');
    }
    expect(await names()).toEqual(['Work/a']);
  });

  test('changes nothing if a new name is in use or too long', async () => {
    const long = `a/${'😀'.repeat(253)}`;
    await addAll([['a/x', 'C/X', 'a/y', long]]);
    const listed = await listTags();
    for (const [name, error] of [
      ['c', 'the tag "C/X" exists already'],
      ['dd', `the tag "${long}" would have more than 255 characters`],
    ] as const)
      expect((await renamePath('a', name)).body).toEqual({
        code: 'VALIDATION_ERROR',
        error: `name: ${error}`,
      });
    expect((await renamePath('a', 'b')).body).toEqual({ name: 'b', renamed: 3 });
    expect((await listTags()).map(({ id }) => id).sort()).toEqual(listed.map(({ id }) => id).sort());
  });

  test('a follower of changes sees exactly the renamed and the deleted tags', async () => {
    await addAll([
      ['Work/a', 'x'],
      ['work/b', 'Workshop'],
    ]);
    await user.post('/tags/create', { name: 'Work/unused' });
    const idOf = Object.fromEntries((await listTags()).map(({ id, name }) => [name, id]));
    let { cursor } = (await user.post('/bookmarks/changes', { from: 'now' })).body;
    const next = async () => {
      const changes = (await user.post('/bookmarks/changes', { cursor, wait: true })).body;
      cursor = changes.cursor;
      return changes;
    };
    const [renamed] = await Promise.all([next(), renamePath('Work', 'Job')]);
    expect(renamed.tags.map(({ id }: { id: number }) => id).sort()).toEqual(
      [idOf['Work/a'], idOf['work/b'], idOf['Work/unused']].sort(),
    );
    expect(renamed).toMatchObject({ bookmarks: [], deleted: [], deleted_tags: [] });
    const [deleted] = await Promise.all([next(), deletePath('Job')]);
    expect(deleted.deleted_tags.sort()).toEqual([idOf['Work/a'], idOf['work/b'], idOf['Work/unused']].sort());
    expect(deleted).toMatchObject({ tags: [], deleted: [] });
    expect(await tagsOf()).toEqual([['x'], ['Workshop']]);
  });

  test('leaves all counters right, whatever else is written at the same time', async () => {
    await addAll(Array.from({ length: 30 }, (_, n) => [`a/${n % 7}`, `b/${n % 5}`, 'c']));
    const { bookmarks } = await search({ per_page: 50 });
    const responses = await Promise.all([
      renamePath('a', 'b/z'),
      deletePath('b'),
      renamePath('b', 'a'),
      deletePath('A'),
      renamePath('c', 'a/c'),
      user.post('/bookmarks/edit', { ids: bookmarks.map(({ id }: { id: number }) => id), add_tags: ['a/1'] }),
      user.post('/import', { bookmarks: [{ url: 'https://b.example/', tags: ['b/new', 'a/new'] }] }),
    ]);
    for (const { status } of responses) expect([200, 400, 404]).toContain(status);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('works at the limit of 10,000 tags', async () => {
    const bookmarks = Array.from({ length: 10_000 }, (_, n) => ({
      url: `https://example.org/${n}`,
      tags: [`Work/${n}`],
    }));
    expect((await user.post('/import', { bookmarks })).body.imported).toBe(10_000);
    const done = async (request: () => Promise<{ status: number; body: object }>) => {
      // On a busy machine, the request may get 503 a few times.
      await expect.poll(async () => (await request()).status, { interval: 500 }).toBe(200);
    };
    await done(() => renamePath('Work', 'Job'));
    await done(() => deletePath('job'));
    expect(await names()).toEqual([]);
    expect((await search({ untagged: true })).total).toBe(10_000);
    expect(await findFaults(service.database.url)).toEqual([]);
  });
});
