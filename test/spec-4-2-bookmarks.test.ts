import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { startService, type TestUser, useService, useUser } from './support/service.ts';

// Section 4.2 of docs/contract.md and decisions 8, 11, 12 and 28: add, edit and delete.

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

/** Resolves when the service's clock has reached a later millisecond. */
const nextMillisecond = async () => {
  const now = Date.now();
  while (Date.now() <= now) await new Promise(setImmediate);
};

describe('/bookmarks/add', () => {
  test('returns the bookmark with its stored values', async () => {
    const body = await add({ title: 'T', comment: 'C', tags: ['one'] });
    expect(body).toMatchObject({ url: URL, title: 'T', comment: 'C', tags: [{ name: 'one' }] });
    expect(await find(body.id)).toEqual(body);
  });

  test('creates missing tags and uses existing ones, ignoring case', async () => {
    const owner = await service.user();
    const created = (await owner.post('/tags/create', { name: 'Known' })).body;
    const { tags } = await add({ tags: ['KNOWN', 'new'] }, owner);
    expect(tags).toEqual([
      { id: created.id, name: 'Known' },
      { id: expect.any(Number), name: 'new' },
    ]);
    expect(await tagCounts(owner)).toEqual({ Known: 1, new: 1 });
  });

  test('counts repeated tag names in one request once, and keeps the case given first (decision 12)', async () => {
    const owner = await service.user();
    const { tags } = await add({ tags: ['Ab', 'AB', ' ab ', 'ab'] }, owner);
    expect(names(tags)).toEqual(['Ab']);
    expect(await tagCounts(owner)).toEqual({ Ab: 1 });
  });

  test('an add does not look for duplicates (decision 11)', async () => {
    const owner = await service.user();
    const [one, other] = [await add({}, owner), await add({}, owner)];
    expect(other.id).toBeGreaterThan(one.id);
    expect((await owner.post('/bookmarks/search')).body.total).toBe(2);
  });

  test('leaves nothing behind if it is refused, not even tags', async () => {
    const owner = await service.user();
    await add({ tags: ['fine', 'x'.repeat(256)] }, owner);
    await add({ url: 'nonsense', tags: ['fine'] }, owner);
    expect(await tagCounts(owner)).toEqual({});
    expect((await owner.post('/bookmarks/search')).body.total).toBe(0);
  });
});

describe('created_at of an add', () => {
  test.each([
    ['1969-12-31T23:59:59.9999+14:00', '1969-12-31T09:59:59.999Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])(
    'is accepted like that of an import, past or future, and also becomes updated_at: %s',
    async (given, stored) => {
      const body = await add({ created_at: given });
      expect(body).toMatchObject({ created_at: stored, updated_at: stored });
      expect(await find(body.id)).toEqual(body);
      const edited = (await edit({ id: body.id, title: 'new' })).body;
      expect(Date.now() - Date.parse(edited.updated_at)).toBeLessThan(60_000);
      expect((await find(body.id)).created_at).toBe(stored);
    },
  );

  test('does not change the order in list and sync, which is by id', async () => {
    const owner = await service.user();
    const one = await add({}, owner);
    const other = await add({ created_at: '1999-01-01T00:00:00Z' }, owner);
    expect((await owner.post('/bookmarks/sync', { cursor: one.id })).body.bookmarks).toEqual([other]);
  });
});

describe('on_duplicate of an add', () => {
  const SAME = 'HTTPS://EXAMPLE.ORG:443';

  test('with "add", the default, adds another bookmark', async () => {
    const owner = await service.user();
    const ids = [(await add({}, owner)).id, (await add({ url: SAME, on_duplicate: 'add' }, owner)).id];
    expect(new Set(ids).size).toBe(2);
  });

  test('with "return" returns the newest existing bookmark unchanged', async () => {
    const owner = await service.user();
    await add({ title: 'older' }, owner);
    const there = await add({ title: 'newer', tags: ['a'] }, owner);
    const { cursor } = (await owner.post('/bookmarks/changes', { from: 'now' })).body;
    const sent = { url: SAME, title: 'other', tags: ['never'], created_at: '1999-01-01T00:00:00Z' };
    expect(await add({ ...sent, on_duplicate: 'return' }, owner)).toEqual(there);
    expect(await tagCounts(owner)).toEqual({ a: 1 });
    const changes = (await owner.post('/bookmarks/changes', { cursor })).body;
    expect(changes).toMatchObject({ bookmarks: [], tags: [], deleted: [] });
  });

  test('an add that returns an existing bookmark notifies no poll', async () => {
    const owner = await service.user();
    const notify = vi.spyOn(service.context.coordination.notifier, 'notify');
    onTestFinished(() => notify.mockRestore());
    const countAfter = async (body: object, headers: Record<string, string> = {}) => {
      notify.mockClear();
      expect((await owner.post('/bookmarks/add', { url: URL, ...body }, { headers })).status).toBeLessThan(
        500,
      );
      return notify.mock.calls.filter(([channel]) => channel.endsWith(`:${owner.id}`)).length;
    };
    const key = { 'idempotency-key': 'once' };
    // An add notifies the polls of additions and those of changes.
    expect(await countAfter({ on_duplicate: 'return' }, key)).toBe(2);
    expect(await countAfter({ on_duplicate: 'return', url: SAME })).toBe(0);
    expect(await countAfter({ on_duplicate: 'error' })).toBe(0);
    expect(await countAfter({})).toBe(2);
    // A repeat notifies again, because the notification of the first request may be lost.
    expect(await countAfter({ on_duplicate: 'return' }, key)).toBe(2);
  });

  test('with "error" refuses if one exists, and adds otherwise', async () => {
    const owner = await service.user();
    const sent = { url: SAME, tags: ['a'], on_duplicate: 'error' };
    const added = await owner.post('/bookmarks/add', sent);
    expect(added).toMatchObject({ status: 200, body: { url: SAME, tags: [{ name: 'a' }] } });
    expect(await owner.post('/bookmarks/add', { ...sent, url: URL, tags: ['never'] })).toMatchObject({
      status: 400,
      body: { code: 'VALIDATION_ERROR', error: 'url: another bookmark has this url' },
    });
    expect(await tagCounts(owner)).toEqual({ a: 1 });
    await owner.post('/bookmarks/delete', { id: added.body.id });
    expect((await owner.post('/bookmarks/add', sent)).status).toBe(200);
  });

  test('ignores the bookmarks of other users', async () => {
    await add();
    const owner = await service.user();
    expect(await add({ on_duplicate: 'error' }, owner)).toMatchObject({ url: URL });
  });

  test.each(['return', 'error'])(
    'with "%s" lets exactly one of many simultaneous adds on two replicas add a bookmark',
    async (onDuplicate) => {
      await using other = await startService({}, { database: service.database });
      const owner = await service.user();
      const responses = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          (n % 2 ? service : other).post(
            '/bookmarks/add',
            { url: n % 3 ? URL : SAME, title: String(n), on_duplicate: onDuplicate },
            { token: owner.token },
          ),
        ),
      );
      expect((await owner.post('/bookmarks/list')).body.bookmarks).toHaveLength(1);
      const taken = responses.filter(({ status }) => status === 200);
      if (onDuplicate === 'error') expect(taken).toHaveLength(1);
      else expect(new Set(taken.map(({ text }) => text)).size).toBe(1);
      expect(taken.length).toBe(onDuplicate === 'error' ? 1 : 20);
    },
  );

  test('a repeat with its key gets the first response, whatever happened to the bookmark since', async () => {
    const owner = await service.user();
    const there = await add({}, owner);
    const send = (key: string, onDuplicate: string) =>
      owner.post(
        '/bookmarks/add',
        { url: URL, on_duplicate: onDuplicate },
        { headers: { 'idempotency-key': key } },
      );
    expect((await send('k', 'return')).body).toEqual(there);
    expect((await send('e', 'error')).status).toBe(400);
    await owner.post('/bookmarks/delete', { id: there.id });
    expect((await send('k', 'return')).body).toEqual(there);
    // The refused request with this key did not use up the key.
    const added = (await send('e', 'error')).body;
    expect(added.url).toBe(URL);
    expect((await send('e', 'error')).body).toEqual(added);
    expect((await send('k', 'error')).body.error).toBe('Idempotency-Key: was used for another request');
    expect((await owner.post('/bookmarks/list')).body.bookmarks).toEqual([added]);
  });
});

describe('/bookmarks/edit', () => {
  test.each([
    ['title', { title: 'new' }],
    ['comment', { comment: 'new' }],
    ['tags', { tags: [] }],
    ['title to ""', { title: '' }],
    ['comment to ""', { comment: ' ' }],
  ])('updates only the given field: %s', async (_, change) => {
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

  test('replaces the existing tags by a given list', async () => {
    const owner = await service.user();
    const { id, tags } = await add({ tags: ['stays', 'goes'] }, owner);
    const { body } = await edit({ id, tags: ['New', 'STAYS', 'new'] }, owner);
    expect(names(body.tags)).toEqual(['New', 'stays']);
    expect(body.tags[1]).toEqual(tags[1]);
    expect(await tagCounts(owner)).toEqual({ stays: 1, goes: 0, New: 1 });
  });

  test('an edit with only an id changes nothing, not even updated_at (decision 11)', async () => {
    const before = await add({ title: 'T', comment: 'C', tags: ['a'] });
    await nextMillisecond();
    const { body } = await edit({ id: before.id });
    const { created_at: _, ...six } = before;
    expect(body).toEqual(six);
    expect(await find(before.id)).toEqual(before);
  });

  test('changes the url, and lookups by url use the new one', async () => {
    const owner = await service.user();
    const { id } = await add({ title: 'Kept' }, owner);
    const url = ' https://Other.example/Ä?q ';
    expect((await edit({ id, url }, owner)).body).toMatchObject({ url: url.trim(), title: 'Kept' });
    const ids = async (path: string, body: object) =>
      (await owner.post(path, body)).body.bookmarks.map((found: { id: number }) => found.id);
    expect(await ids('/bookmarks/get', { url: 'https://other.example/%C3%84?q' })).toEqual([id]);
    expect(await ids('/bookmarks/get', { url: URL })).toEqual([]);
    expect(await ids('/bookmarks/search', { query: 'OTHER.example/ä kept' })).toEqual([id]);
    expect(await ids('/bookmarks/search', { query: 'example.org' })).toEqual([]);
    const entries = [{ url: 'https://OTHER.example/Ä?q' }, { url: URL }];
    expect((await owner.post('/import', { bookmarks: entries })).body).toMatchObject({
      imported: 1,
      skipped: 1,
    });
  });

  test('does not look for another bookmark with the new url', async () => {
    const owner = await service.user();
    const { id } = await add({ url: 'https://other.example/' }, owner);
    const { id: there } = await add({}, owner);
    expect((await edit({ id, url: URL }, owner)).status).toBe(200);
    const { bookmarks } = (await owner.post('/bookmarks/get', { url: URL })).body;
    expect(bookmarks.map((found: { id: number }) => found.id)).toEqual([there, id]);
  });

  test('an edited bookmark is found by its new text and no longer by its old text', async () => {
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

  test('does not change the order in list and sync', async () => {
    const owner = await service.user();
    const [one, other] = [await add({}, owner), await add({}, owner)];
    await edit({ id: one.id, title: 'edited' }, owner);
    const { bookmarks } = (await owner.post('/bookmarks/list')).body;
    expect(bookmarks.map(({ id }: { id: number }) => id)).toEqual([one.id, other.id]);
    expect((await owner.post('/bookmarks/sync', { cursor: other.id })).body.bookmarks).toEqual([]);
  });
});

describe('/bookmarks/delete', () => {
  test('removes the bookmark, which can no longer be edited, deleted or listed', async () => {
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

  test('a tag is kept when its last bookmark is deleted (decision 12)', async () => {
    const owner = await service.user();
    const { id } = await add({ tags: ['kept'] }, owner);
    await owner.post('/bookmarks/delete', { id });
    expect(await tagCounts(owner)).toEqual({ kept: 0 });
  });

  test('succeeds once if it is sent several times at once', async () => {
    const { id } = await add();
    const responses = await Promise.all(
      Array.from({ length: 8 }, () => user.post('/bookmarks/delete', { id })),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(404)]);
  });
});

describe('the cap of the free tier (decision 28)', () => {
  test('refuses an add beyond it with LIMIT_EXCEEDED, until a deletion makes room', async () => {
    await using small = await startService({ freeBookmarkLimit: 2 });
    const owner = await small.user();
    const first = await add({}, owner);
    await add({}, owner);
    const refused = await owner.post('/bookmarks/add', { url: URL, tags: ['never'] });
    expect(refused).toMatchObject({ status: 403, body: { code: 'LIMIT_EXCEEDED' } });
    expect(await tagCounts(owner)).toEqual({});
    const full = (fields: object) => owner.post('/bookmarks/add', { url: URL, ...fields });
    // A request that would add nothing succeeds even at the cap.
    expect((await full({ on_duplicate: 'return' })).status).toBe(200);
    expect((await full({ on_duplicate: 'error' })).body.code).toBe('VALIDATION_ERROR');
    expect((await full({ on_duplicate: 'return', url: 'http://new/' })).body.code).toBe('LIMIT_EXCEEDED');
    expect((await full({ on_duplicate: 'error', url: 'http://new/' })).body.code).toBe('LIMIT_EXCEEDED');
    await owner.post('/bookmarks/delete', { id: first.id });
    expect((await owner.post('/bookmarks/add', { url: URL })).status).toBe(200);
  });

  test('does not apply to premium accounts', async () => {
    await using none = await startService({ freeBookmarkLimit: 0 });
    const [free, premium] = [await none.user(), await none.user({ premium: true })];
    expect((await free.post('/bookmarks/add', { url: URL })).body.code).toBe('LIMIT_EXCEEDED');
    expect((await free.post('/import', { bookmarks: [{ url: URL }] })).body.code).toBe('LIMIT_EXCEEDED');
    expect((await premium.post('/bookmarks/add', { url: URL })).status).toBe(200);
    expect((await premium.post('/import', { bookmarks: [{ url: `${URL}a` }] })).body.imported).toBe(1);
  });
});
