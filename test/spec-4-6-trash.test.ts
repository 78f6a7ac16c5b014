import { describe, expect, test } from 'vitest';
import { parseToken } from '../src/domain/tokens.ts';
import { deleteLeftovers } from '../src/process/sweeper.ts';
import { findFaults } from './support/invariants.ts';
import { runOn } from './support/run-on.ts';
import { startService, type TestUser, useService } from './support/service.ts';

// Section 4.6 of docs/contract.md: deleted bookmarks can be listed, restored and deleted permanently.

// Polls are held for longer than a test may take, so a test can only pass if a notification ends them.
const service = useService({ syncWaitSeconds: 3_600 });
const other = useService({}, { beside: service });

interface Shown {
  id: number;
  url: string;
  title: string;
  comment: string;
  tags: { id: number; name: string }[];
  created_at: string;
  updated_at: string;
}

const add = async (user: TestUser, n: number, more: object = {}): Promise<Shown> =>
  (await user.post('/bookmarks/add', { url: `https://a.example/${n}`, ...more })).body;
const remove = (user: TestUser, body: object) => user.post('/bookmarks/delete', { ...body, trash: true });
const restore = (user: TestUser, ids: number[], options?: object) =>
  user.post('/trash/restore', { ids }, options);
/** Sends a request of the user to the other replica. */
const postToOther = (user: TestUser, path: string, body: object) =>
  other.post(path, body, { token: user.token });
const list = async (user: TestUser): Promise<Shown[]> =>
  (await user.post('/bookmarks/list', { limit: 500 })).body.bookmarks;
const idsOf = (bookmarks: { id: number }[]) => bookmarks.map(({ id }) => id);

/** Reads the trash page by page, and returns all bookmarks in it. */
async function readTrash(user: TestUser, limit = 500): Promise<(Shown & { deleted_at: string })[]> {
  const found = [];
  let cursor: string | undefined;
  do {
    const { status, body } = await user.post('/trash/list', { limit, cursor });
    expect(status).toBe(200);
    expect(body.has_more).toBe(body.next_cursor !== undefined);
    found.push(...body.bookmarks);
    cursor = body.next_cursor;
  } while (cursor !== undefined);
  return found;
}

const contentOf = ({ url, title, comment, tags, created_at, updated_at }: Shown) => ({
  url,
  title,
  comment,
  created_at,
  updated_at,
  tags: tags.map(({ name }) => name),
});

describe('/trash/list', () => {
  test('shows bookmarks deleted by id, by ids and by replace, the last deleted one first', async () => {
    const user = await service.user();
    const one = await add(user, 1, { title: 'One "quoted"', comment: 'ü\n', tags: ['a', 'B'] });
    const [two, three, four] = [await add(user, 2), await add(user, 3), await add(user, 4)];
    await remove(user, { id: one.id });
    await remove(user, { ids: [three.id, two.id] });
    await user.post('/import', { mode: 'replace', bookmarks: [{ url: 'https://b.example/' }] });
    const trash = await readTrash(user);
    expect(idsOf(trash)).toEqual([four.id, three.id, two.id, one.id]);
    const { deleted_at, ...kept } = trash[3]!;
    expect(kept).toEqual(one);
    expect(deleted_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(await readTrash(user, 1)).toEqual(trash);
    expect((await user.post('/trash/list', { cursor: '' })).body.bookmarks).toEqual(trash);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('returns pages of about 1 MiB, and nothing twice while bookmarks are deleted and restored', async () => {
    const user = await service.user();
    const comment = 'ä'.repeat(10_000);
    await user.post('/import', {
      bookmarks: Array.from({ length: 120 }, (_, n) => ({ url: `https://a.example/${n}`, comment })),
    });
    const ids: number[] = [];
    // A page of `/bookmarks/list` has about 1 MiB too, so two requests are necessary to read all bookmarks.
    for (const _ of [1, 2]) {
      const page = idsOf(await list(user));
      ids.push(...page);
      await remove(user, { ids: page });
    }
    const { body: first } = await user.post('/trash/list', { limit: 500 });
    expect(first.bookmarks.length).toBeLessThan(60);
    const late = await add(user, 1_000);
    await remove(user, { id: late.id });
    await restore(user, [ids[0]!]);
    const { body: second } = await user.post('/trash/list', { limit: 500, cursor: first.next_cursor });
    expect(idsOf([...first.bookmarks, ...second.bookmarks])).toEqual(
      ids.toReversed().slice(0, first.bookmarks.length + second.bookmarks.length),
    );
  });

  test.each([
    [
      'a cursor of list',
      async (user: TestUser) => (await user.post('/bookmarks/list', { limit: 1 })).body.next_cursor,
    ],
    ['a malformed text', () => 'x'],
    [
      'a time beyond the year 9999',
      ({ id }: TestUser) => Buffer.from(`4:${id}:9007199254740991:1`).toString('base64url'),
    ],
    ["another user's", () => Buffer.from('4:1:1:1').toString('base64url')],
  ])('refuses %s as a cursor', async (_, make) => {
    const user = await service.user();
    await add(user, 1);
    await add(user, 2);
    const { status, body } = await user.post('/trash/list', { cursor: await make(user) });
    expect([status, body.code, body.error]).toEqual([
      400,
      'VALIDATION_ERROR',
      expect.stringMatching(/^cursor: /),
    ]);
  });
});

describe('a deletion without trash: true', () => {
  test.each([
    ['id', {}],
    ['ids', {}],
    ['items', {}],
    ['id', { trash: false }],
  ])('by %s with %j is permanent, and followers of changes see it', async (kind, more) => {
    const user = await service.user();
    const bookmark = await add(user, 1, { title: 'gone', tags: ['a'] });
    const { id, updated_at } = bookmark;
    const { body: start } = await user.post('/bookmarks/changes', { from: 'now' });
    const bodies = { id: { id }, ids: { ids: [id] }, items: { items: [{ id, if_updated_at: updated_at }] } };
    const body = { ...bodies[kind as keyof typeof bodies], ...more };
    expect((await user.post('/bookmarks/delete', body)).status).toBe(200);
    expect(await readTrash(user)).toEqual([]);
    expect((await restore(user, [id])).body).toEqual({ restored: [], missing: [id] });
    expect(await runOn(service.database.url, `select id from trash where id = ${id}`)).toEqual([]);
    expect((await user.post('/bookmarks/search', { query: 'gone' })).body.total).toBe(0);
    const { body: changes } = await user.post('/bookmarks/changes', { cursor: start.cursor });
    expect(changes.deleted).toEqual([id]);
    expect((await user.post('/tags/list')).body.tags).toMatchObject([{ name: 'a', bookmark_count: 0 }]);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('keeps the bookmark if it changed since if_updated_at', async () => {
    const user = await service.user();
    const { id, updated_at } = await add(user, 1);
    await user.post('/bookmarks/edit', { id, title: 'new' });
    const { body } = await user.post('/bookmarks/delete', { id, if_updated_at: updated_at });
    expect(body.code).toBe('CONFLICT');
    expect(await list(user)).toMatchObject([{ id, title: 'new' }]);
  });

  test('differs from one with trash: true under the same key', async () => {
    const user = await service.user();
    const { id } = await add(user, 1);
    const headers = { 'idempotency-key': 'delete' };
    await user.post('/bookmarks/delete', { id, trash: true }, { headers });
    const { body } = await user.post('/bookmarks/delete', { id }, { headers });
    expect(body.code).toBe('VALIDATION_ERROR');
    expect(idsOf(await readTrash(user))).toEqual([id]);
  });

  test('and one with trash: true at the same time leave the bookmark in at most one place', async () => {
    const user = await service.user();
    for (let round = 0; round < 10; round += 1) {
      const { id } = await add(user, round);
      const statuses = await Promise.all([
        user.post('/bookmarks/delete', { id }),
        postToOther(user, '/bookmarks/delete', { id, trash: true }),
      ]);
      expect(statuses.map(({ status }) => status).sort()).toEqual([200, 404]);
    }
    expect(await list(user)).toEqual([]);
    expect(await findFaults(service.database.url)).toEqual([]);
  });
});

describe('/trash/restore', () => {
  test('returns a bookmark to the collection with a new id and all its fields, and followers see it', async () => {
    const user = await service.user();
    const before = await add(user, 1, { title: 'One', comment: 'c', tags: ['Work', 'a'] });
    const last = await add(user, 2);
    await remove(user, { id: before.id });
    const { body: sync } = await user.post('/bookmarks/sync', { cursor: 0 });
    const { body: changes } = await user.post('/bookmarks/changes', { from: 'now' });
    const poll = user.post('/bookmarks/sync', { cursor: sync.cursor, wait: true });
    await expect.poll(() => service.context.coordination.notifier.held).toBe(1);
    const { status, body } = await restore(user, [before.id, 999, before.id]);
    const newId = body.restored[0]?.new_id;
    expect([status, body]).toEqual([200, { restored: [{ id: before.id, new_id: newId }], missing: [999] }]);
    expect(newId).toBeGreaterThan(last.id);
    const [, after] = await list(user);
    expect(after).toEqual({ ...before, id: newId });
    expect((await poll).body.bookmarks).toEqual([after]);
    expect((await user.post('/bookmarks/changes', { cursor: changes.cursor })).body.bookmarks).toEqual([
      after,
    ]);
    expect((await user.post('/bookmarks/search', { query: 'one' })).body.bookmarks).toEqual([after]);
    expect(await readTrash(user)).toEqual([]);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('restores tags by name: it creates renamed and deleted ones again, and ignores case', async () => {
    const user = await service.user();
    const bookmark = await add(user, 1, { tags: ['gone', 'Kept', 'old', 'Μαΐου'] });
    const idOf = (name: string) => bookmark.tags.find((tag) => tag.name === name)!.id;
    await remove(user, { id: bookmark.id });
    await user.post('/tags/delete', { id: idOf('gone') });
    await user.post('/tags/update', { id: idOf('old'), name: 'new' });
    await user.post('/tags/update', { id: idOf('Kept'), name: 'KEPT' });
    await restore(user, [bookmark.id]);
    const [after] = await list(user);
    expect(after!.tags.map(({ name }) => name)).toEqual(['gone', 'KEPT', 'old', 'Μαΐου']);
    expect((await user.post('/tags/list')).body.tags).toContainEqual(
      expect.objectContaining({ name: 'new', bookmark_count: 0 }),
    );
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('keeps the order of several bookmarks, restores each once, and keeps existing bookmarks with the same url', async () => {
    const user = await service.user();
    await user.post('/import', {
      bookmarks: Array.from({ length: 200 }, (_, n) => ({
        url: `https://a.example/${n}`,
        tags: [`t${n % 7}`, 'all'],
        created_at: '2020-01-02T03:04:05.678Z',
        updated_at: '2021-01-02T03:04:05.678Z',
      })),
    });
    const before = await list(user);
    await remove(user, { ids: idsOf(before) });
    await add(user, 0);
    const ids = idsOf(before);
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        n % 2 === 0 ? restore(user, ids) : postToOther(user, '/trash/restore', { ids }),
      ),
    );
    const restored = answers.flatMap(({ body }) => body.restored);
    expect(restored).toHaveLength(200);
    const after = await list(user);
    expect(after.slice(1).map(contentOf)).toEqual(before.map(contentOf));
    expect(restored.map(({ new_id }) => new_id)).toEqual(idsOf(after.slice(1)));
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('counts the restored bookmarks as unpacked', async () => {
    const user = await service.user();
    const bookmarks = Array.from({ length: 200 }, (_, n) => ({ url: `https://a.example/${n}` }));
    await user.post('/import', { bookmarks });
    const first = idsOf(await list(user)).slice(0, 30);
    await remove(user, { ids: first });
    expect((await restore(user, first)).body.restored).toHaveLength(30);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('creates no tag that none of the restored bookmarks has, if others were restored meanwhile', async () => {
    const user = await service.user();
    const { id } = await add(user, 1, { tags: ['a'] });
    await remove(user, { id });
    await user.post('/tags/delete', { path: 'a', with_children: true });
    // The replica reads the names before it sends the statement. Here the tag b was a name of another bookmark then.
    const names = `'{a,b}', '{a,b}'`;
    await runOn(
      service.database.url,
      `select restore_bookmarks(
        ${user.id}, decode('${parseToken(user.token)!.hash.toString('hex')}', 'hex'), '{${id}}', ${names}, 100, 100, null, null
      )`,
    );
    expect((await user.post('/tags/list')).body.tags).toMatchObject([{ name: 'a', bookmark_count: 1 }]);
  });

  test('refuses to exceed a limit under any concurrency, and then restores nothing', async () => {
    await using small = await startService({ freeBookmarkLimit: 10 }, { database: service.database });
    const user = await small.user();
    const ids: number[] = [];
    for (let n = 0; n < 6; n += 1) ids.push((await add(user, n)).id);
    await remove(user, { ids });
    for (let n = 10; n < 17; n += 1) await add(user, n);
    const answers = await Promise.all(ids.map((id) => restore(user, [id])));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.map(({ body }) => body.code)).toEqual([
      'LIMIT_EXCEEDED',
      'LIMIT_EXCEEDED',
      'LIMIT_EXCEEDED',
    ]);
    expect(await list(user)).toHaveLength(10);
    expect(await readTrash(user)).toHaveLength(3);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('restores once for repeats with the same key, which get the same response', async () => {
    const user = await service.user();
    const { id } = await add(user, 1);
    await remove(user, { id });
    const headers = { 'idempotency-key': 'restore' };
    const [one, two] = [await restore(user, [id], { headers }), await restore(user, [id], { headers })];
    expect(one.body.restored).toHaveLength(1);
    expect(two.body).toEqual(one.body);
    expect(await list(user)).toHaveLength(1);
  });

  test('a bookmark that several clients delete, restore and edit at once is in exactly one place', async () => {
    const user = await service.user();
    let ids = idsOf([await add(user, 1, { tags: ['a'] }), await add(user, 2, { tags: ['b'] })]);
    for (let round = 0; round < 10; round += 1) {
      const [tag] = (await user.post('/tags/list')).body.tags;
      await Promise.all([
        remove(user, { ids }),
        postToOther(user, '/trash/restore', { ids }),
        user.post('/bookmarks/edit', { ids, add_tags: [`r${round}`] }),
        user.post('/tags/delete', { id: tag?.id ?? 1 }),
        postToOther(user, '/bookmarks/delete', { ids, trash: true }),
      ]);
      const trash = await readTrash(user);
      const kept = await list(user);
      expect(new Set([...trash, ...kept].map(({ url }) => url)).size).toBe(2);
      expect(trash.length + kept.length).toBe(2);
      ids = idsOf([...trash, ...kept]);
    }
    expect(await findFaults(service.database.url)).toEqual([]);
  });
});

describe('/trash/delete', () => {
  test("deletes some or all bookmarks of the trash permanently, and never another user's", async () => {
    const [user, stranger] = [await service.user(), await service.user()];
    const ids = idsOf([await add(user, 1), await add(user, 2), await add(user, 3)]);
    const foreign = await add(stranger, 1);
    await remove(user, { ids });
    await remove(stranger, { id: foreign.id });
    const some = await user.post('/trash/delete', { ids: [ids[0], foreign.id, ids[0]] });
    expect(some.body).toEqual({ deleted: true, count: 1 });
    expect((await restore(user, [ids[0]!, foreign.id])).body).toEqual({
      restored: [],
      missing: [ids[0], foreign.id],
    });
    expect((await user.post('/trash/delete', { all: true })).body).toEqual({ deleted: true, count: 2 });
    expect(await readTrash(user)).toEqual([]);
    expect(await readTrash(stranger)).toHaveLength(1);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test.each([{}, { all: false }, { all: true, ids: [1] }, { ids: [] }, { all: null }])(
    'refuses %j',
    async (body) => {
      const user = await service.user();
      expect((await user.post('/trash/delete', body)).body.code).toBe('VALIDATION_ERROR');
    },
  );
});

test('the trash of a premium account holds more than that of a free account', async () => {
  await using small = await startService({ freeBookmarkLimit: 10 }, { database: service.database });
  const user = await small.user({ premium: true });
  const bookmarks = Array.from({ length: 20 }, (_, n) => ({ url: `https://a.example/${n}` }));
  await user.post('/import', { bookmarks });
  await remove(user, { ids: idsOf(await list(user)) });
  expect(await readTrash(user)).toHaveLength(20);
  expect(await findFaults(service.database.url)).toEqual([]);
});

describe('with TRASH_DAYS=0', () => {
  const off = useService({ trashDays: 0 }, { beside: service });

  test('nothing is kept: neither a deletion with trash: true nor a replace fills the trash', async () => {
    const user = await off.user();
    const ids = idsOf([await add(user, 1, { tags: ['a'] }), await add(user, 2), await add(user, 3)]);
    expect((await remove(user, { id: ids[0] })).body).toEqual({ deleted: true });
    expect((await remove(user, { ids: [ids[1]] })).body).toEqual({ deleted: true, count: 1, missing: [] });
    await user.post('/import', { mode: 'replace', bookmarks: [{ url: 'https://b.example/' }] });
    expect(await readTrash(user)).toEqual([]);
    expect((await restore(user, ids)).body).toEqual({ restored: [], missing: ids });
    expect(await list(user)).toMatchObject([{ url: 'https://b.example/' }]);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('a large replace keeps nothing either', async () => {
    await using staging = await startService(
      { trashDays: 0, importInlineBytes: 0 },
      { database: service.database },
    );
    const user = await staging.user();
    await add(user, 1);
    const { body } = await user.post('/import', { mode: 'replace', bookmarks: [] });
    expect(body).toEqual({ imported: 0, skipped: 0, errors: [] });
    expect(await readTrash(user)).toEqual([]);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('the next sweep deletes what is still in the trash', async () => {
    const user = await service.user();
    await remove(user, { id: (await add(user, 1)).id });
    await deleteLeftovers(off.context);
    expect(await readTrash(user)).toEqual([]);
    expect(await findFaults(service.database.url)).toEqual([]);
  });
});

test("the trash has the account's limit of bookmarks, and the oldest ones are deleted first", async () => {
  await using small = await startService({ freeBookmarkLimit: 10 }, { database: service.database });
  const user = await small.user();
  const bookmarks = (from: number) =>
    Array.from({ length: 10 }, (_, n) => ({ url: `https://a.example/${from + n}` }));
  const replace = (from: number) => user.post('/import', { mode: 'replace', bookmarks: bookmarks(from) });
  await replace(0);
  await remove(user, { ids: idsOf(await list(user)).slice(0, 4) });
  await user.post('/import', { bookmarks: [{ url: 'https://a.example/x' }] });
  await replace(100);
  const urlsOf = async () => (await readTrash(user)).map(({ url }) => url.slice('https://a.example/'.length));
  expect(await urlsOf()).toEqual(['x', '9', '8', '7', '6', '5', '4', '3', '2', '1']);
  await replace(200);
  expect(await urlsOf()).toEqual(['109', '108', '107', '106', '105', '104', '103', '102', '101', '100']);
  expect(await findFaults(service.database.url)).toEqual([]);
});

test('a sweep deletes bookmarks that were deleted more than TRASH_DAYS ago', async () => {
  const user = await service.user();
  const [one, two] = [await add(user, 1), await add(user, 2)];
  await remove(user, { ids: [one.id, two.id] });
  await runOn(
    service.database.url,
    `update trash set deleted_at = now() - interval '30 days 1 minute' where user_id = ${user.id} and id = ${one.id}`,
  );
  await deleteLeftovers(service.context);
  expect(idsOf(await readTrash(user))).toEqual([two.id]);
  expect(await findFaults(service.database.url)).toEqual([]);
});

test('deleting an account deletes its trash', async () => {
  const user = await service.user();
  await remove(user, { id: (await add(user, 1)).id });
  await runOn(service.database.url, `select delete_user(email_key) from users where id = ${user.id}`);
  expect(await runOn(service.database.url, `select id from trash where user_id = ${user.id}`)).toEqual([]);
});
