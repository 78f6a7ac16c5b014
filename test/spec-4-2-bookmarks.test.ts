import { describe, expect, test } from 'vitest';
import { startService, type TestUser, useService, useUser } from './support/service.ts';

// Spec 4.2: add, edit and delete; decisions 8, 11, 12 and 28.

const service = useService();
const user = useUser(service);

const URL = 'https://example.org/';

const add = async (fields: object = {}, owner = user) =>
  (await owner.post('/bookmarks/add', { url: URL, ...fields })).body;
const edit = (fields: object, owner = user) => owner.post('/bookmarks/edit', fields);
const find = async (id: number, owner = user) =>
  (await owner.post('/bookmarks/sync', { cursor: id - 1, limit: 1 })).body.bookmarks[0];
const tagCounts = async (owner: TestUser) =>
  Object.fromEntries(
    (await owner.post('/tags/list')).body.tags.map((tag: { name: string; bookmark_count: number }) => [
      tag.name,
      tag.bookmark_count,
    ]),
  );
const names = (tags: { name: string }[]) => tags.map(({ name }) => name);

/** Resolves when the clock of the service shows a later millisecond. */
const nextMillisecond = async () => {
  const now = Date.now();
  while (Date.now() <= now) await new Promise(setImmediate);
};

describe('/bookmarks/add', () => {
  test('answers the bookmark as it is stored', async () => {
    const body = await add({ title: 'T', comment: 'C', tags: ['one'] });
    expect(body).toMatchObject({ url: URL, title: 'T', comment: 'C', tags: [{ name: 'one' }] });
    expect(await find(body.id)).toEqual(body);
  });

  test('creates the tags that do not exist and takes those that do, whatever their case', async () => {
    const owner = await service.user();
    const created = (await owner.post('/tags/create', { name: 'Known' })).body;
    const { tags } = await add({ tags: ['KNOWN', 'new'] }, owner);
    expect(tags).toEqual([
      { id: created.id, name: 'Known' },
      { id: expect.any(Number), name: 'new' },
    ]);
    expect(await tagCounts(owner)).toEqual({ Known: 1, new: 1 });
  });

  test('repeated tag names in one request count once, in the case first given (decision 12)', async () => {
    const owner = await service.user();
    const { tags } = await add({ tags: ['Ab', 'AB', ' ab ', 'ab'] }, owner);
    expect(names(tags)).toEqual(['Ab']);
    expect(await tagCounts(owner)).toEqual({ Ab: 1 });
  });

  test('does not look for duplicates (decision 11)', async () => {
    const owner = await service.user();
    const [one, other] = [await add({}, owner), await add({}, owner)];
    expect(other.id).toBeGreaterThan(one.id);
    expect((await owner.post('/bookmarks/search')).body.total).toBe(2);
  });

  test('a refused one leaves nothing behind, no tags either', async () => {
    const owner = await service.user();
    await add({ tags: ['fine', 'x'.repeat(256)] }, owner);
    await add({ url: 'nonsense', tags: ['fine'] }, owner);
    expect(await tagCounts(owner)).toEqual({});
    expect((await owner.post('/bookmarks/search')).body.total).toBe(0);
  });
});

describe('/bookmarks/edit', () => {
  test.each([
    ['title', { title: 'new' }],
    ['comment', { comment: 'new' }],
    ['tags', { tags: [] }],
    ['title to ""', { title: '' }],
    ['comment to ""', { comment: ' ' }],
  ])('only the field provided is updated: %s', async (_, change) => {
    const before = await add({ title: 'T', comment: 'C', tags: ['a', 'b'] });
    await nextMillisecond();
    const { body } = await edit({ id: before.id, ...change });
    const after = await find(before.id);
    const wanted = 'comment' in change ? { comment: change.comment.trim() } : change;
    expect(after).toEqual({ ...before, ...wanted, updated_at: after.updated_at });
    expect(after.updated_at > before.updated_at).toBe(true);
    const { created_at: _created, ...six } = after;
    expect(body).toEqual(six);
  });

  test('a provided list replaces the existing tags', async () => {
    const owner = await service.user();
    const { id, tags } = await add({ tags: ['stays', 'goes'] }, owner);
    const { body } = await edit({ id, tags: ['New', 'STAYS', 'new'] }, owner);
    expect(names(body.tags)).toEqual(['New', 'stays']);
    expect(body.tags[1]).toEqual(tags[1]);
    expect(await tagCounts(owner)).toEqual({ stays: 1, goes: 0, New: 1 });
  });

  test('with only an id changes nothing, updated_at included (decision 11)', async () => {
    const before = await add({ title: 'T', comment: 'C', tags: ['a'] });
    await nextMillisecond();
    const { body } = await edit({ id: before.id });
    const { created_at: _, ...six } = before;
    expect(body).toEqual(six);
    expect(await find(before.id)).toEqual(before);
  });

  test('does not change the url, which is no field of it', async () => {
    const { id } = await add();
    expect((await edit({ id, url: 'https://other.example/' })).body.url).toBe(URL);
  });

  test('what was edited is found by its new text and no longer by its old', async () => {
    const owner = await service.user();
    const { id } = await add({ title: 'Before', comment: 'Remark' }, owner);
    await edit({ id, title: 'ÄNDERUNG\nzwei' }, owner);
    const total = async (query: string) => (await owner.post('/bookmarks/search', { query })).body.total;
    expect(await total('before')).toBe(0);
    expect(await total('änderung zwei remark example.org')).toBe(1);
    await edit({ id, comment: '' }, owner);
    expect(await total('remark')).toBe(0);
    expect(await total('änderung')).toBe(1);
  });

  test('an edit leaves the place in list and sync as it is', async () => {
    const owner = await service.user();
    const [one, other] = [await add({}, owner), await add({}, owner)];
    await edit({ id: one.id, title: 'edited' }, owner);
    const { bookmarks } = (await owner.post('/bookmarks/list')).body;
    expect(bookmarks.map(({ id }: { id: number }) => id)).toEqual([one.id, other.id]);
    expect((await owner.post('/bookmarks/sync', { cursor: other.id })).body.bookmarks).toEqual([]);
  });
});

describe('/bookmarks/delete', () => {
  test('deletion is permanent', async () => {
    const { id } = await add();
    expect((await user.post('/bookmarks/delete', { id })).body).toEqual({ deleted: true });
    for (const path of ['/bookmarks/delete', '/bookmarks/edit']) {
      expect(await user.post(path, { id, title: 'T' })).toMatchObject({
        status: 404,
        body: { code: 'NOT_FOUND' },
      });
    }
    const found = (await user.post('/bookmarks/list', { limit: 500 })).body.bookmarks;
    expect(found.some((bookmark: { id: number }) => bookmark.id === id)).toBe(false);
  });

  test('a tag stays when its last bookmark goes (decision 12)', async () => {
    const owner = await service.user();
    const { id } = await add({ tags: ['kept'] }, owner);
    await owner.post('/bookmarks/delete', { id });
    expect(await tagCounts(owner)).toEqual({ kept: 0 });
  });

  test('succeeds once where it is sent several times at once', async () => {
    const { id } = await add();
    const responses = await Promise.all(
      Array.from({ length: 8 }, () => user.post('/bookmarks/delete', { id })),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(404)]);
  });
});

describe('the cap of the free tier (decision 28)', () => {
  test('add is refused beyond it with LIMIT_EXCEEDED, and a deleted bookmark makes room', async () => {
    await using small = await startService({ freeBookmarkLimit: 2 });
    const owner = await small.user();
    const first = await add({}, owner);
    await add({}, owner);
    const refused = await owner.post('/bookmarks/add', { url: URL, tags: ['never'] });
    expect(refused).toMatchObject({ status: 403, body: { code: 'LIMIT_EXCEEDED' } });
    expect(await tagCounts(owner)).toEqual({});
    await owner.post('/bookmarks/delete', { id: first.id });
    expect((await owner.post('/bookmarks/add', { url: URL })).status).toBe(200);
  });

  test('premium has no cap', async () => {
    await using none = await startService({ freeBookmarkLimit: 0 });
    const [free, premium] = [await none.user(), await none.user({ premium: true })];
    expect((await free.post('/bookmarks/add', { url: URL })).body.code).toBe('LIMIT_EXCEEDED');
    expect((await free.post('/import', { bookmarks: [{ url: URL }] })).body.code).toBe('LIMIT_EXCEEDED');
    expect((await premium.post('/bookmarks/add', { url: URL })).status).toBe(200);
    expect((await premium.post('/import', { bookmarks: [{ url: `${URL}a` }] })).body.imported).toBe(1);
  });
});
