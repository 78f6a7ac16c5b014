import { describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { MemoryStore } from '../src/client/memory-store.ts';
import { deleteLeftovers } from '../src/process/sweeper.ts';
import { deleteUser } from '../src/store/admin.ts';
import { createDatabase, runOn } from './support/database.ts';
import { startService, type TestUser, useService } from './support/service.ts';
import { newEmail } from './support/users.ts';

/** `/bookmarks/changes` reports every change since a cursor (decision 37). */

// Polls are held for longer than a test may take, so a test can only pass if a notification ends them.
const service = useService({ syncWaitSeconds: 60 });

const url = (name: string | number) => `https://example.org/${name}`;
const read = async (user: TestUser, body: object = {}) => (await user.post('/bookmarks/changes', body)).body;
const add = async (user: TestUser, name: string | number, tags: string[] = []) =>
  (await user.post('/bookmarks/add', { url: url(name), tags })).body;

/** Returns what a mirror of the account must contain. */
async function shown(user: TestUser) {
  const { bookmarks } = (await user.post('/export')).body;
  const { tags } = (await user.post('/tags/list')).body;
  return { bookmarks, tags: tags.map(({ id, name }: { id: number; name: string }) => ({ id, name })) };
}

const contentOf = (store: MemoryStore) => ({ bookmarks: [...store.bookmarks()], tags: store.tags() });

/** Reads pages of changes into a store until the store is up to date. Returns the pages. */
async function catchUp(user: TestUser, store: MemoryStore, limit = 2) {
  const pages = [];
  for (;;) {
    const page = await read(user, { cursor: await store.readCursor(), limit });
    await store.apply(page);
    pages.push(page);
    if (!page.has_more) return pages;
  }
}

/** Returns a store with the current contents of the account. */
async function openMirror(user: TestUser) {
  const store = new MemoryStore();
  await catchUp(user, store, 500);
  return store;
}

async function expectMirrored(user: TestUser, store: MemoryStore, limit?: number) {
  const pages = await catchUp(user, store, limit);
  expect(contentOf(store)).toEqual(await shown(user));
  return pages;
}

describe('a page of changes', () => {
  test('starts from the beginning with reset if there is no cursor', async () => {
    const user = await service.user();
    const added = await add(user, 1, ['b', 'A']);
    const page = await read(user);
    expect(page).toEqual({
      reset: true,
      bookmarks: [added],
      deleted: [],
      tags: [...added.tags].sort((a, b) => a.id - b.id),
      deleted_tags: [],
      cursor: expect.any(String),
      has_more: false,
      waited: false,
    });
  });

  test('starts from the beginning with an empty cursor too', async () => {
    const user = await service.user();
    const bookmark = await add(user, 1);
    const { cursor, ...beginning } = await read(user);
    expect(await read(user, { cursor: '' })).toMatchObject({ ...beginning, bookmarks: [bookmark] });
    expect(await read(user, { cursor: '', from: 'now' })).toMatchObject({ reset: false, cursor });
  });

  test('is empty for an empty account, with a cursor for the next request', async () => {
    const user = await service.user();
    const first = await read(user);
    expect(first).toMatchObject({ reset: true, bookmarks: [], tags: [], has_more: false });
    const added = await add(user, 1);
    expect(await read(user, { cursor: first.cursor })).toMatchObject({ reset: false, bookmarks: [added] });
  });

  test('contains edits, deletions, and renamed and deleted tags, each once; the next page is empty', async () => {
    const user = await service.user();
    const [kept, gone] = [await add(user, 1, ['old', 'doomed']), await add(user, 2)];
    const store = await openMirror(user);
    const tagId = (name: string) => kept.tags.find((tag: { name: string }) => tag.name === name).id;
    const edited = (await user.post('/bookmarks/edit', { id: kept.id, title: 'new' })).body;
    await user.post('/bookmarks/edit', { id: kept.id, comment: 'again' });
    await user.post('/bookmarks/delete', { id: gone.id });
    await user.post('/tags/update', { id: tagId('old'), name: 'new' });
    await user.post('/tags/delete', { id: tagId('doomed') });
    const page = await read(user, { cursor: await store.readCursor() });
    expect(page).toMatchObject({
      reset: false,
      bookmarks: [{ id: kept.id, title: edited.title, comment: 'again' }],
      deleted: [gone.id],
      tags: [{ id: tagId('old'), name: 'new' }],
      deleted_tags: [tagId('doomed')],
      has_more: false,
    });
    await store.apply(page);
    expect(contentOf(store)).toEqual(await shown(user));
    const after = await read(user, { cursor: page.cursor });
    expect(after).toEqual({
      ...after,
      reset: false,
      bookmarks: [],
      deleted: [],
      tags: [],
      deleted_tags: [],
      cursor: page.cursor,
    });
  });

  test('contains one entry for a renamed tag of many bookmarks', async () => {
    const user = await service.user();
    for (const n of [1, 2, 3]) await add(user, n, ['t']);
    const store = await openMirror(user);
    const [tag] = store.tags();
    await user.post('/tags/update', { id: tag!.id, name: 'T2' });
    expect(await read(user, { cursor: await store.readCursor() })).toMatchObject({
      bookmarks: [],
      tags: [{ id: tag!.id, name: 'T2' }],
    });
  });

  test('contains a tag that was created without a bookmark', async () => {
    const user = await service.user();
    const store = await openMirror(user);
    const { id } = (await user.post('/tags/create', { name: 'alone' })).body;
    expect(await read(user, { cursor: await store.readCursor() })).toMatchObject({
      tags: [{ id, name: 'alone' }],
    });
    await expectMirrored(user, store);
  });

  test('contains nothing for an edit without effect', async () => {
    const user = await service.user();
    const { id } = await add(user, 1);
    const store = await openMirror(user);
    await user.post('/bookmarks/edit', { id });
    expect(await read(user, { cursor: await store.readCursor() })).toMatchObject({ bookmarks: [] });
  });

  test('contains at most the requested number of objects of any kind', async () => {
    const user = await service.user();
    for (const n of [1, 2, 3, 4]) await add(user, n, [`t${n}`]);
    const store = new MemoryStore();
    const sizeOf = (page: { bookmarks: []; deleted: []; tags: []; deleted_tags: [] }) =>
      page.bookmarks.length + page.deleted.length + page.tags.length + page.deleted_tags.length;
    const pages = await expectMirrored(user, store, 3);
    expect(pages.map(sizeOf)).toEqual([3, 3, 2]);
    await user.post('/bookmarks/delete', { id: store.bookmarks().next().value!.id });
    for (const tag of store.tags()) await user.post('/tags/update', { id: tag.id, name: `${tag.name}x` });
    expect((await expectMirrored(user, store, 3)).map(sizeOf)).toEqual([3, 2]);
  });

  test('has a size limit of about 1 MiB of bookmarks, and contains at least one bookmark', async () => {
    const user = await service.user();
    const long = '\u0001'.repeat(10_000);
    const ids: number[] = [];
    for (let n = 0; n < 40; n += 1) {
      ids.push(
        (await user.post('/bookmarks/add', { url: url(n), comment: long, title: long.slice(0, 2_048) })).body
          .id,
      );
    }
    const store = new MemoryStore();
    const from = await read(user, { from: 'now' });
    await expectMirrored(user, store, 500);
    for (const id of ids) await user.post('/bookmarks/edit', { id, title: 'short' });
    const page = await read(user, { cursor: from.cursor, limit: 500 });
    expect(page.has_more).toBe(true);
    expect(page.bookmarks.length).toBeLessThan(30);
    await expectMirrored(user, store, 500);
  });

  test('leaves bookmarks with higher ids to later pages, and never omits a tag of a returned bookmark', async () => {
    const user = await service.user();
    const made = [];
    for (const n of [1, 2, 3, 4]) made.push(await add(user, n, ['shared', `own${n}`]));
    const store = new MemoryStore();
    await store.apply(await read(user, { limit: 2 }));
    // The page above contains neither the third bookmark nor the tags.
    await user.post('/bookmarks/edit', { id: made[2].id, title: 'edited before it was shown' });
    await user.post('/bookmarks/delete', { id: made[3].id });
    const shared = made[0].tags.find((tag: { name: string }) => tag.name === 'shared');
    await user.post('/tags/delete', { id: shared.id });
    const own = made[1].tags.find((tag: { name: string }) => tag.name === 'own2');
    await user.post('/tags/update', { id: own.id, name: 'renamed' });
    await expectMirrored(user, store, 1);
  });
});

describe('the option from: now', () => {
  test('returns an empty page, after which only later changes are returned', async () => {
    const user = await service.user();
    const { id } = await add(user, 1, ['t']);
    const now = await read(user, { from: 'now', wait: true });
    expect(now).toMatchObject({ reset: false, bookmarks: [], tags: [], has_more: false, waited: false });
    await user.post('/bookmarks/edit', { id, title: 'x' });
    const added = await add(user, 2, ['t', 'u']);
    const page = await read(user, { cursor: now.cursor });
    expect(page.bookmarks.map((bookmark: { id: number }) => bookmark.id)).toEqual([id, added.id]);
    expect(page.tags).toHaveLength(1);
  });
});

describe('a reset', () => {
  test('is sent after a replace, and starts with that page', async () => {
    const user = await service.user();
    await add(user, 1, ['t']);
    const store = await openMirror(user);
    await user.post('/import', { mode: 'replace', bookmarks: [{ url: url(2) }] });
    const page = await read(user, { cursor: await store.readCursor() });
    expect(page).toMatchObject({ reset: true, bookmarks: [{ url: url(2) }], tags: [{ name: 't' }] });
    await expectMirrored(user, store);
  });

  test('is sent during a first read if a replace interrupts it', async () => {
    const user = await service.user();
    for (const n of [1, 2, 3]) await add(user, n);
    const store = new MemoryStore();
    await store.apply(await read(user, { limit: 2 }));
    await user.post('/import', { mode: 'replace', bookmarks: [{ url: url(9) }] });
    await expectMirrored(user, store, 1);
  });

  test('is sent for a cursor older than the kept changes, and for no other', async () => {
    const user = await service.user();
    const [one, two] = [await add(user, 1), await add(user, 2)];
    const late = await openMirror(user);
    await user.post('/bookmarks/delete', { id: one.id });
    const early = await openMirror(user);
    await runOn(
      service.database.url,
      `update changes set changed_at = now() - interval '91 days' where user_id = ${user.id}`,
    );
    await deleteLeftovers(service.context);
    await user.post('/bookmarks/edit', { id: two.id, title: 'x' });
    expect(await read(user, { cursor: await early.readCursor() })).toMatchObject({
      reset: false,
      bookmarks: [{ id: two.id }],
    });
    expect(await read(user, { cursor: await late.readCursor() })).toMatchObject({ reset: true });
    await expectMirrored(user, late);
    await expectMirrored(user, early);
  });

  test("is not needed for a bookmark's old change that a newer one followed", async () => {
    const user = await service.user();
    const { id } = await add(user, 1);
    await user.post('/bookmarks/edit', { id, title: 'first' });
    await runOn(
      service.database.url,
      `update changes set changed_at = now() - interval '91 days' where user_id = ${user.id}`,
    );
    const store = await openMirror(user);
    await user.post('/bookmarks/edit', { id, title: 'second' });
    await deleteLeftovers(service.context);
    expect(await read(user, { cursor: await store.readCursor() })).toMatchObject({
      reset: false,
      bookmarks: [{ id, title: 'second' }],
    });
  });

  test('is sent if the database has another history, for example after a restore', async () => {
    const user = await service.user();
    await add(user, 1);
    const store = await openMirror(user);
    const forget = `update epoch set system_identifier = system_identifier - 1, server_started_at = '2026-01-01'`;
    await runOn(service.database.url, forget);
    expect(await read(user, { cursor: await store.readCursor() })).toMatchObject({ reset: true });
    await expectMirrored(user, store);
  });

  test('is not sent after a restart of the server', async () => {
    const user = await service.user();
    await add(user, 1);
    const store = await openMirror(user);
    await runOn(service.database.url, `update epoch set server_started_at = '2026-01-01'`);
    expect(await read(user, { cursor: await store.readCursor() })).toMatchObject({ reset: false });
    const [row] = await runOn<{ kept: boolean }>(
      service.database.url,
      `select bool_or(server_started_at > '2026-01-01') as kept from epoch`,
    );
    expect(row!.kept).toBe(true);
  });

  // Does not run on a sharded database. There, `file_path` is the file of the coordinator's empty table, which is never
  // rewritten.
  test.runIf(inject('citusUrl') === undefined)('is not sent if the table was only rewritten', async () => {
    const user = await service.user();
    await add(user, 1);
    const store = await openMirror(user);
    const pathOf = () =>
      runOn<{ path: string }>(service.database.url, 'select file_path as path from epoch order by node');
    const before = await pathOf();
    await runOn(service.database.url, 'vacuum full epoch');
    expect(await read(user, { cursor: await store.readCursor() })).toMatchObject({ reset: false });
    expect(await pathOf()).not.toEqual(before);
  });

  test.runIf(inject('citusUrl') === undefined)(
    'is sent in a copy of the database on the same server',
    async () => {
      await using original = await createDatabase();
      const { user, cursor } = await (async () => {
        await using first = await startService({}, { database: original });
        const user = await first.user();
        await add(user, 1);
        return { user, cursor: (await read(user)).cursor };
      })();
      await using copy = await createDatabase(original.name);
      await using second = await startService({}, { database: copy });
      const { body } = await second.post('/bookmarks/changes', { cursor }, { token: user.token });
      expect(body).toMatchObject({ reset: true, bookmarks: [{ url: url(1) }] });
      await using third = await startService({}, { database: original });
      const { body: there } = await third.post('/bookmarks/changes', { cursor }, { token: user.token });
      expect(there).toMatchObject({ reset: false, bookmarks: [] });
    },
  );

  test('is sent for a cursor that is ahead of the account', async () => {
    const user = await service.user();
    const { id } = await add(user, 1);
    await user.post('/bookmarks/edit', { id, title: 'x' });
    const store = await openMirror(user);
    await runOn(
      service.database.url,
      `update accounts set last_change = last_change - 1 where user_id = ${user.id}`,
    );
    expect(await read(user, { cursor: await store.readCursor() })).toMatchObject({ reset: true });
  });
});

describe('unusual histories', () => {
  test('a tag that was renamed and deleted since the last page is shown only as deleted', async () => {
    const user = await service.user();
    const [one, two] = [await add(user, 1, ['a', 'b']), await add(user, 2, ['b'])];
    const [a, b] = one.tags;
    const store = await openMirror(user);
    await user.post('/bookmarks/edit', { id: one.id, title: 'renamed' });
    await user.post('/tags/rename', { id: b.id, name: 'c' });
    await user.post('/bookmarks/delete', { id: one.id });
    await user.post('/tags/delete', { id: b.id });
    const again = (await user.post('/tags/create', { name: 'c' })).body;
    const page = await read(user, { cursor: await store.readCursor() });
    expect(page).toMatchObject({ deleted: [one.id], deleted_tags: [b.id], has_more: false });
    expect(page.bookmarks.map(({ id }: { id: number }) => id)).not.toContain(one.id);
    expect(page.tags.map(({ id }: { id: number }) => id)).not.toContain(b.id);
    expect(page.tags).toContainEqual({ id: again.id, name: 'c' });
    await expectMirrored(user, store, 1);
    expect(store.find(two.id)!.tags).toEqual([]);
    expect(store.tags().map(({ id }) => id)).toContain(a.id);
  });

  test('a thousand edits of one bookmark are stored as one row and returned as one entry', async () => {
    const user = await service.user();
    const { id } = await add(user, 1);
    const store = await openMirror(user);
    const edit = (n: number) => user.post('/bookmarks/edit', { id, title: `edit ${n}` });
    for (let n = 0; n < 1_000; n += 50) await Promise.all(Array.from({ length: 50 }, (_, k) => edit(n + k)));
    const rows = await runOn(service.database.url, `select from changes where user_id = ${user.id}`);
    expect(rows).toHaveLength(1);
    expect(await expectMirrored(user, store, 1)).toMatchObject([{ bookmarks: [{ id }], has_more: false }]);
  });

  test('if the retention of changes is shortened, a reader whose changes are gone starts again', async () => {
    const user = await service.user();
    const ids: number[] = [];
    for (const n of [1, 2, 3, 4]) ids.push((await add(user, n, ['t'])).id);
    const store = await openMirror(user);
    await user.post('/bookmarks/delete', { ids: ids.slice(0, 3) });
    const first = await read(user, { cursor: await store.readCursor(), limit: 1 });
    expect(first).toMatchObject({ reset: false, has_more: true, deleted: [ids[0]] });
    await store.apply(first);
    await runOn(
      service.database.url,
      `update changes set changed_at = now() - interval '2 days' where user_id = ${user.id}`,
    );
    await deleteLeftovers({ ...service.context, config: { ...service.context.config, changesDays: 1 } });
    const [second] = await expectMirrored(user, store, 1);
    expect(second!.reset).toBe(true);
    expect(store.find(ids[1]!)).toBeUndefined();
  });

  test("if the database's clock is set back by a day, nothing is missed and ids keep increasing", async () => {
    await using set = await startService();
    const user = await set.user();
    const [one, two] = [await add(user, 1, ['a']), await add(user, 2, ['b'])];
    await user.post('/bookmarks/edit', { id: one.id, title: 'before' });
    const store = await openMirror(user);
    const [floor] = await runOn<{ text: string }>(
      set.database.url,
      `select pg_get_functiondef('min_id_now'::regproc) as text`,
    );
    await runOn(
      set.database.url,
      floor!.text.replace('clock_timestamp()', `(clock_timestamp() - interval '1 day')`),
    );
    const three = await add(user, 3, ['c']);
    expect(three.id).toBeGreaterThan(two.id);
    await user.post('/bookmarks/edit', { id: one.id, title: 'after' });
    await user.post('/bookmarks/delete', { id: two.id });
    await user.post('/tags/rename', { id: one.tags[0].id, name: 'renamed' });
    const pages = await catchUp(user, store, 1);
    expect(pages.some(({ reset }) => reset)).toBe(false);
    expect(contentOf(store)).toEqual(await shown(user));
    const { body } = await user.post('/bookmarks/sync', { cursor: two.id });
    expect(body.bookmarks).toMatchObject([{ id: three.id }]);
    await runOn(set.database.url, floor!.text);
    await user.post('/bookmarks/edit', { id: one.id, title: 'set forward again' });
    expect(await expectMirrored(user, store)).toMatchObject([{ bookmarks: [{ id: one.id }], reset: false }]);
  });

  test('after a user is deleted and created again, the old cursor belongs to another user, and the old token is invalid', async () => {
    const email = newEmail();
    const gone = await service.user({ email });
    await add(gone, 1);
    const { cursor } = await read(gone);
    expect(await deleteUser(service.context.database, email)).toBe(true);
    expect((await gone.post('/bookmarks/changes', { cursor })).status).toBe(401);
    const again = await service.user({ email });
    expect((await again.post('/bookmarks/changes', { cursor })).body).toEqual({
      code: 'VALIDATION_ERROR',
      error: 'cursor: belongs to another user',
    });
    expect(await read(again)).toMatchObject({ reset: true, bookmarks: [] });
  });
});

describe('a cursor', () => {
  const refused = async (user: TestUser, body: object) => {
    const { status, body: answer } = await user.post('/bookmarks/changes', body);
    return [status, answer.code, answer.error];
  };

  test.each([' ', 'x', 'MTo0Mjo0Mg', '!!', `${'A'.repeat(200)}`])('%j is malformed', async (cursor) => {
    const user = await service.user();
    expect(await refused(user, { cursor })).toEqual([400, 'VALIDATION_ERROR', 'cursor: is malformed']);
  });

  test('is refused if it is of another user or of list, too long, or together with from', async () => {
    const [user, other] = [await service.user(), await service.user()];
    const { cursor } = await read(other);
    expect(await refused(user, { cursor })).toEqual([
      400,
      'VALIDATION_ERROR',
      'cursor: belongs to another user',
    ]);
    for (const n of [1, 2]) await add(user, n);
    const list = (await user.post('/bookmarks/list', { limit: 1 })).body.next_cursor;
    for (const body of [{ cursor: list }, { cursor: 'A'.repeat(201) }]) {
      expect((await refused(user, body)).slice(0, 2)).toEqual([400, 'VALIDATION_ERROR']);
    }
    const own = (await read(user)).cursor;
    expect((await refused(user, { cursor: own, from: 'now' }))[2]).toMatch(/^from: /);
    expect((await refused(user, { from: 'then' }))[2]).toMatch(/^from: /);
    expect((await user.post('/bookmarks/list', { cursor: own })).status).toBe(400);
  });

  test.each([0, 501, 1.5, '1'])('a limit outside of 1 to 500 is refused: %j', async (limit) => {
    const user = await service.user();
    expect(await refused(user, { limit })).toEqual([
      400,
      'VALIDATION_ERROR',
      expect.stringMatching(/^limit: /),
    ]);
  });
});

describe('waiting', () => {
  /** Sends a poll. When the service holds the poll, resolves with a promise of the response. */
  async function holdPoll(user: TestUser, path: string, body: object) {
    const { notifier } = service.context.coordination;
    const before = notifier.held;
    const response = user.post(path, { ...body, wait: true });
    await expect.poll(() => notifier.held, { interval: 10 }).toBe(before + 1);
    return { response };
  }

  const CHANGES: [
    string,
    (user: TestUser, made: { id: number; tags: { id: number }[] }) => Promise<unknown>,
  ][] = [
    ['an edit of the title', (user, { id }) => user.post('/bookmarks/edit', { id, title: 'x' })],
    ['an edit of the comment', (user, { id }) => user.post('/bookmarks/edit', { id, comment: 'x' })],
    ['an edit of the url', (user, { id }) => user.post('/bookmarks/edit', { id, url: url('other') })],
    ['an edit of the tags', (user, { id }) => user.post('/bookmarks/edit', { id, tags: ['t', 'x'] })],
    ['a removal of all tags', (user, { id }) => user.post('/bookmarks/edit', { id, tags: [] })],
    ['a deletion', (user, { id }) => user.post('/bookmarks/delete', { id })],
    ['an edit of several', (user, { id }) => user.post('/bookmarks/edit', { ids: [id], add_tags: ['x'] })],
    ['a deletion of several', (user, { id }) => user.post('/bookmarks/delete', { ids: [id] })],
    ['a renamed tag', (user, { tags }) => user.post('/tags/update', { id: tags[0]!.id, name: 'renamed' })],
    ['a deleted tag', (user, { tags }) => user.post('/tags/delete', { id: tags[0]!.id })],
    [
      'a merged tag',
      async (user, { tags }) => {
        const { body } = await user.post('/tags/create', { name: 'into' });
        return user.post('/tags/merge', { id: tags[0]!.id, into_id: body.id });
      },
    ],
    ['a created tag', (user) => user.post('/tags/create', { name: 'created' })],
    ['an added bookmark', (user) => add(user, 'later')],
    ['an import', (user) => user.post('/import', { bookmarks: [{ url: url('imported') }] })],
    ['a replace', (user) => user.post('/import', { bookmarks: [], mode: 'replace' })],
  ];

  test.each(CHANGES)('%s ends the wait at once', async (_, change) => {
    const user = await service.user();
    const made = await add(user, 1, ['t']);
    const store = await openMirror(user);
    const { response } = await holdPoll(user, '/bookmarks/changes', { cursor: await store.readCursor() });
    await change(user, made);
    const { body } = await response;
    expect(body.waited).toBe(true);
    await store.apply(body);
    await expectMirrored(user, store);
  });

  test('an edit does not end polls of sync', async () => {
    const user = await service.user();
    const made = await add(user, 1, ['t']);
    const { response } = await holdPoll(user, '/bookmarks/sync', { cursor: made.id });
    const read = vi.spyOn(service.context.pageReader, 'read');
    onTestFinished(() => read.mockRestore());
    await user.post('/bookmarks/edit', { id: made.id, title: 'x' });
    await user.post('/bookmarks/edit', { ids: [made.id], add_tags: ['x'] });
    await user.post('/bookmarks/delete', { ids: [made.id] });
    expect(read).not.toHaveBeenCalled();
    const added = await add(user, 2);
    expect((await response).body.bookmarks).toEqual([added]);
    expect(read).toHaveBeenCalledOnce();
  });

  test('ends with 401 when the token is revoked', async () => {
    const user = await service.session();
    const store = await openMirror(user);
    const { response } = await holdPoll(user, '/bookmarks/changes', { cursor: await store.readCursor() });
    await user.post('/logout');
    expect((await response).status).toBe(401);
  });

  test('is skipped if something is new, and on the first call', async () => {
    const user = await service.user();
    expect(await read(user, { wait: true })).toMatchObject({ reset: true, waited: false });
    const store = await openMirror(user);
    await add(user, 1);
    expect(await read(user, { cursor: await store.readCursor(), wait: true })).toMatchObject({
      waited: false,
    });
  });
});
