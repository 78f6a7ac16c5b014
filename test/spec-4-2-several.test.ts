import { describe, expect, test } from 'vitest';
import { findFaults } from './support/invariants.ts';
import { startService, type TestUser, useService } from './support/service.ts';

// Section 4.2 of docs/contract.md: with `ids`, one transaction edits or deletes several bookmarks.

const service = useService();
const other = useService({}, { beside: service });

const NEVER = Number.MAX_SAFE_INTEGER;

interface Shown {
  id: number;
  tags: { name: string }[];
  updated_at: string;
}

async function addAll(user: TestUser, tagSets: string[][]): Promise<Shown[]> {
  const bookmarks = tagSets.map((tags, n) => ({ url: `http://a/${n}`, tags }));
  await user.post('/import', { bookmarks });
  return list(user);
}

const list = async (user: TestUser): Promise<Shown[]> =>
  (await user.post('/bookmarks/list', { limit: 500 })).body.bookmarks;
const edit = async (user: TestUser, body: object) => user.post('/bookmarks/edit', body);
const remove = async (user: TestUser, body: object) => user.post('/bookmarks/delete', body);
const idsOf = (bookmarks: Shown[]) => bookmarks.map(({ id }) => id);
const namesOf = (bookmarks: Shown[]) => bookmarks.map(({ tags }) => tags.map(({ name }) => name));
const counts = async (user: TestUser) =>
  Object.fromEntries(
    (await user.post('/tags/list')).body.tags.map((tag: { name: string; bookmark_count: number }) => [
      tag.name,
      tag.bookmark_count,
    ]),
  );

/** Returns the changes after a cursor, as a follower sees them. */
async function follow(user: TestUser, cursor: string) {
  const { body } = await user.post('/bookmarks/changes', { cursor, limit: 500 });
  expect(body).toMatchObject({ reset: false, has_more: false });
  return body;
}
const now = async (user: TestUser): Promise<string> =>
  (await user.post('/bookmarks/changes', { from: 'now' })).body.cursor;

describe('/bookmarks/edit with ids', () => {
  test('adds and removes tags, and keeps the other tags of a bookmark', async () => {
    const user = await service.user();
    const before = await addAll(user, [['a', 'b'], ['b'], ['c'], ['a']]);
    const cursor = await now(user);
    const ids = idsOf(before).slice(0, 3);
    const { status, body } = await edit(user, { ids, add_tags: ['C', 'New'], remove_tags: ['B', 'unknown'] });
    expect([status, body]).toEqual([200, { edited: true, count: 3, missing: [] }]);
    const after = await list(user);
    expect(namesOf(after)).toEqual([['a', 'c', 'New'], ['c', 'New'], ['c', 'New'], ['a']]);
    expect(await counts(user)).toEqual({ a: 2, b: 0, c: 3, New: 3 });
    const changes = await follow(user, cursor);
    expect(idsOf(changes.bookmarks)).toEqual(ids);
    expect(changes.bookmarks).toEqual(after.slice(0, 3));
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('does not change bookmarks that already have these tags, not even their updated_at', async () => {
    const user = await service.user();
    const before = await addAll(user, [['a'], ['b'], []]);
    const cursor = await now(user);
    const ids = idsOf(before);
    expect((await edit(user, { ids, add_tags: ['a'], remove_tags: ['b'] })).body.count).toBe(3);
    const after = await list(user);
    expect(after[0]).toEqual(before[0]);
    expect(after[1]!.updated_at > before[1]!.updated_at).toBe(true);
    expect(idsOf((await follow(user, cursor)).bookmarks)).toEqual(ids.slice(1));
    expect((await edit(user, { ids, add_tags: ['A'], remove_tags: ['B'] })).body.count).toBe(3);
    expect((await edit(user, { ids })).body).toEqual({ edited: true, count: 3, missing: [] });
    expect(await list(user)).toEqual(after);
  });

  test('returns the missing ids, each once, in the order of the request', async () => {
    const user = await service.user();
    const [mine] = await addAll(user, [[]]);
    const stranger = await service.user();
    const [theirs] = await addAll(stranger, [[]]);
    const ids = [NEVER, mine!.id, theirs!.id, NEVER, mine!.id, 1];
    const { body } = await edit(user, { ids, add_tags: ['x'] });
    expect(body).toEqual({ edited: true, count: 1, missing: [NEVER, theirs!.id, 1] });
    expect(namesOf(await list(user))).toEqual([['x']]);
    expect(namesOf(await list(stranger))).toEqual([[]]);
  });

  test('creates no tag if none of the bookmarks exists', async () => {
    const user = await service.user();
    const { body } = await edit(user, { ids: [NEVER], add_tags: ['x'] });
    expect(body).toEqual({ edited: true, count: 0, missing: [NEVER] });
    expect(await counts(user)).toEqual({});
  });

  test('refuses everything if any bookmark would have more than 100 tags', async () => {
    const user = await service.user();
    const names = Array.from({ length: 99 }, (_, n) => `tag ${n}`);
    const bookmarks = await addAll(user, [[], names]);
    const ids = idsOf(bookmarks);
    const refused = await edit(user, { ids, add_tags: ['x', 'y'] });
    expect(refused).toMatchObject({
      status: 400,
      body: { code: 'VALIDATION_ERROR', error: 'add_tags: a bookmark would have more than 100 tags' },
    });
    expect(await list(user)).toEqual(bookmarks);
    expect(await counts(user)).not.toHaveProperty('x');
    // A tag that a bookmark already has is not counted twice, and a removed tag is not counted.
    const exact = { ids, add_tags: ['x', 'y', 'tag 5'], remove_tags: ['tag 7'] };
    expect((await edit(user, exact)).status).toBe(200);
    expect(namesOf(await list(user)).map(({ length }) => length)).toEqual([3, 100]);
    expect((await edit(user, { ids: ids.slice(1), add_tags: ['z'] })).status).toBe(400);
  });

  test("refuses everything beyond the account's tag limit", async () => {
    const user = await service.user();
    const bookmarks = await addAll(user, [[]]);
    await service.context.database.sql`update accounts set tag_count = 9999 where user_id = ${user.id}`;
    const ids = idsOf(bookmarks);
    expect(await edit(user, { ids, add_tags: ['x', 'y'] })).toMatchObject({
      status: 403,
      body: { code: 'LIMIT_EXCEEDED' },
    });
    expect(await counts(user)).toEqual({});
    expect((await edit(user, { ids, add_tags: ['x'] })).status).toBe(200);
    await service.context.database.sql`update accounts set tag_count = 1 where user_id = ${user.id}`;
  });

  test('edits 500 bookmarks at once', async () => {
    const user = await service.user();
    const bookmarks = await addAll(
      user,
      Array.from({ length: 500 }, (_, n) => [`t${n % 7}`]),
    );
    const ids = idsOf(bookmarks);
    const names = Array.from({ length: 90 }, (_, n) => `added ${n}`);
    const { body } = await edit(user, { ids, add_tags: names, remove_tags: ['t3'] });
    expect(body).toEqual({ edited: true, count: 500, missing: [] });
    expect(await counts(user)).toMatchObject({ t3: 0, 'added 89': 500 });
    expect((await remove(user, { ids })).body).toEqual({ deleted: true, count: 500, missing: [] });
    expect(await findFaults(service.database.url)).toEqual([]);
  });
});

describe('/bookmarks/delete with ids', () => {
  test('deletes the existing ones, and returns the missing ids', async () => {
    const user = await service.user();
    const bookmarks = await addAll(user, [['a', 'b'], ['b'], ['a']]);
    const cursor = await now(user);
    const [first, second, third] = idsOf(bookmarks) as [number, number, number];
    const { body } = await remove(user, { ids: [third, 1, first, third] });
    expect(body).toEqual({ deleted: true, count: 2, missing: [1] });
    expect(idsOf(await list(user))).toEqual([second]);
    expect(await counts(user)).toEqual({ a: 0, b: 1 });
    expect((await follow(user, cursor)).deleted).toEqual([first, third]);
    expect((await user.post('/account/get')).body.bookmark_count).toBe(1);
    const again = await remove(user, { ids: [third, first] });
    expect([again.status, again.body]).toEqual([200, { deleted: true, count: 0, missing: [third, first] }]);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test("makes room below the account's limit", async () => {
    await using small = await startService({ freeBookmarkLimit: 3 });
    const user = await small.user();
    const bookmarks = await addAll(user, [[], [], []]);
    await remove(user, { ids: idsOf(bookmarks) });
    expect(await addAll(user, [[], [], []])).toHaveLength(3);
  });
});

test('several simultaneous deletions on two replicas count each bookmark once', async () => {
  const user = await service.user();
  const ids = idsOf(
    await addAll(
      user,
      Array.from({ length: 40 }, () => ['t']),
    ),
  );
  const responses = await Promise.all(
    Array.from({ length: 12 }, (_, n) => {
      const replica = n % 2 ? service : other;
      const body = n % 3 ? { ids: ids.slice(n * 2, n * 2 + 15) } : { ids, add_tags: [`n${n}`] };
      return replica.post(n % 3 ? '/bookmarks/delete' : '/bookmarks/edit', body, { token: user.token });
    }),
  );
  for (const { status } of responses) expect(status).toBe(200);
  const deleted = responses.filter(({ body }) => body.deleted).reduce((sum, { body }) => sum + body.count, 0);
  expect(await list(user)).toHaveLength(40 - deleted);
  expect((await user.post('/account/get')).body.bookmark_count).toBe(40 - deleted);
  expect(await findFaults(service.database.url)).toEqual([]);
});

test.each([
  ['/bookmarks/edit', {}, 'id: expected either id, ids or items'],
  ['/bookmarks/delete', {}, 'id: expected either id, ids or items'],
  ['/bookmarks/edit', { id: 1, ids: [1] }, 'ids: expected either id, ids or items'],
  ['/bookmarks/delete', { id: 1, ids: [1] }, 'ids: expected either id, ids or items'],
  ['/bookmarks/edit', { id: 1, add_tags: ['x'] }, 'add_tags: cannot be given with id'],
  ['/bookmarks/edit', { id: 1, remove_tags: [] }, 'remove_tags: cannot be given with id'],
  ['/bookmarks/edit', { ids: [1], title: 'x' }, 'title: cannot be given with ids'],
  ['/bookmarks/edit', { ids: [1], tags: [] }, 'tags: cannot be given with ids'],
  ['/bookmarks/edit', { ids: [1], url: 'http://a/' }, 'url: cannot be given with ids'],
  [
    '/bookmarks/edit',
    { ids: [1], add_tags: ['a', 'B'], remove_tags: ['b'] },
    'remove_tags: contains a tag of add_tags',
  ],
  ['/bookmarks/delete', { ids: [1, 2 ** 53] }, `ids[1]: expected an integer from 1 to ${NEVER}`],
  ['/bookmarks/delete', { ids: [] }, 'ids: may not be empty'],
])('%s %j is a VALIDATION_ERROR', async (path, body, error) => {
  const user = await service.user();
  expect(await user.post(path, body)).toMatchObject({
    status: 400,
    body: { code: 'VALIDATION_ERROR', error },
  });
});
