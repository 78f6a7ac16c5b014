import { describe, expect, test } from 'vitest';
import { runOn } from './support/database.ts';
import { findFaults } from './support/invariants.ts';
import { type TestUser, useService } from './support/service.ts';

// Section 4.2 of docs/contract.md and decision 43: `updated_at` is a bookmark's version. A write with `if_updated_at`
// succeeds only if the bookmark has that version.

const service = useService();
const other = useService({}, { beside: service });

interface Shown {
  id: number;
  title: string;
  tags: { name: string }[];
  updated_at: string;
}

const add = async (user: TestUser, body: object = {}): Promise<Shown> =>
  (await user.post('/bookmarks/add', { url: 'http://a/', ...body })).body;
const find = async (user: TestUser, id: number): Promise<Shown | undefined> =>
  (await user.post('/bookmarks/get', { id })).body.bookmarks[0];
const list = async (user: TestUser): Promise<Shown[]> => (await user.post('/bookmarks/list')).body.bookmarks;
const versionOf = ({ id, updated_at }: Shown) => ({ id, if_updated_at: updated_at });
const later = (time: string, ms: number) => new Date(Date.parse(time) + ms).toISOString();

const CONFLICT = {
  status: 409,
  body: { code: 'CONFLICT', error: 'the bookmark was changed since if_updated_at' },
};

describe('updated_at', () => {
  test('increases with every change by at least a millisecond, whatever the clock says', async () => {
    const user = await service.user();
    const future = '2999-01-01T00:00:00.000Z';
    await user.post('/import', { bookmarks: [{ url: 'http://f/', updated_at: future }] });
    const [{ id }] = (await list(user)) as [Shown];
    const edited = await user.post('/bookmarks/edit', { id, title: 'x' });
    expect(edited.body.updated_at).toBe(later(future, 1));
    await user.post('/bookmarks/edit', { ids: [id], add_tags: ['t'] });
    expect((await find(user, id))!.updated_at).toBe(later(future, 2));
    // An edit by `ids` makes a new version only if it changes tags. An edit by `id` makes a new version even if it
    // changes no value.
    await user.post('/bookmarks/edit', { ids: [id], add_tags: ['t'] });
    expect((await find(user, id))!.updated_at).toBe(later(future, 2));
    await user.post('/bookmarks/edit', { id, title: 'x' });
    expect((await find(user, id))!.updated_at).toBe(later(future, 3));
    const quick = await add(user);
    const times = [quick.updated_at];
    for (let n = 0; n < 5; n += 1)
      times.push((await user.post('/bookmarks/edit', { id: quick.id, title: `${n}` })).body.updated_at);
    expect(times).toEqual([...new Set(times)].sort());
  });

  test('becomes the current time after the last millisecond of the year 9999', async () => {
    const user = await service.user();
    await user.post('/import', {
      bookmarks: [{ url: 'http://f/', updated_at: '9999-12-31T23:59:59.999Z' }],
    });
    const [last] = (await list(user)) as [Shown];
    const edited = await user.post('/bookmarks/edit', { ...versionOf(last), title: 'x' });
    expect(Math.abs(Date.parse(edited.body.updated_at) - Date.now())).toBeLessThan(60_000);
    expect(await user.post('/bookmarks/edit', { ...versionOf(last), title: 'y' })).toMatchObject(CONFLICT);
  });

  test('does not change when a tag is renamed, merged or deleted, so these requests cause no conflict', async () => {
    const user = await service.user();
    const before = await add(user, { tags: ['a', 'b', 'c'] });
    const tags: { id: number }[] = (await user.post('/tags/list')).body.tags;
    const [a, b, c] = tags.map(({ id }) => id);
    await user.post('/tags/update', { id: a, name: 'renamed' });
    await user.post('/tags/merge', { id: b, into_id: a });
    await user.post('/tags/delete', { id: c });
    const edited = await user.post('/bookmarks/edit', { ...versionOf(before), title: 'x' });
    expect(edited).toMatchObject({ status: 200, body: { title: 'x', tags: [{ name: 'renamed' }] } });
  });
});

describe('an edit and a deletion by id with if_updated_at', () => {
  test('are executed for the named version, whatever the format of its time', async () => {
    const user = await service.user();
    const { id, updated_at } = await add(user);
    const local = new Date(Date.parse(updated_at) + 3_600_000).toISOString().replace('Z', '999+01:00');
    const edited = await user.post('/bookmarks/edit', { id, if_updated_at: local, title: 'x' });
    expect(edited).toMatchObject({ status: 200, body: { title: 'x' } });
    const version = { id, if_updated_at: edited.body.updated_at };
    expect((await user.post('/bookmarks/delete', version)).body).toEqual({ deleted: true });
    expect(await list(user)).toEqual([]);
  });

  test('are CONFLICT for another version, and change nothing, including tags and counts', async () => {
    const user = await service.user();
    const old = await add(user, { tags: ['kept'] });
    await user.post('/bookmarks/edit', { id: old.id, title: 'theirs' });
    const before = await list(user);
    const { cursor } = (await user.post('/bookmarks/changes', { from: 'now' })).body;
    await service.context.database.sql`update accounts set tag_count = 10000 where user_id = ${user.id}`;
    for (const if_updated_at of [old.updated_at, later(before[0]!.updated_at, 1)]) {
      const mine = { id: old.id, if_updated_at, title: 'mine', tags: ['new'] };
      expect(await user.post('/bookmarks/edit', mine)).toMatchObject(CONFLICT);
      expect(await user.post('/bookmarks/edit', { id: old.id, if_updated_at })).toMatchObject(CONFLICT);
      expect(await user.post('/bookmarks/delete', { id: old.id, if_updated_at })).toMatchObject(CONFLICT);
    }
    await service.context.database.sql`update accounts set tag_count = 1 where user_id = ${user.id}`;
    expect(await list(user)).toEqual(before);
    expect((await user.post('/bookmarks/changes', { cursor })).body).toMatchObject({
      bookmarks: [],
      tags: [],
    });
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('are NOT_FOUND if the bookmark was deleted or belongs to another user, because there is no version to compare', async () => {
    const user = await service.user();
    const stranger = await service.user();
    const gone = versionOf(await add(user));
    await user.post('/bookmarks/delete', { id: gone.id });
    for (const version of [gone, versionOf(await add(stranger))]) {
      for (const path of ['/bookmarks/edit', '/bookmarks/delete'])
        expect(await user.post(path, version)).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
    }
  });

  test('are NOT_FOUND for a bookmark that a replace restored with the same times, because its id is another one', async () => {
    const user = await service.user();
    const before = await add(user);
    const { bookmarks } = (await user.post('/export')).body;
    await user.post('/import', { mode: 'replace', bookmarks });
    const [after] = (await list(user)) as [Shown];
    expect(after.updated_at).toBe(before.updated_at);
    expect((await user.post('/bookmarks/edit', { ...versionOf(before), title: 'x' })).status).toBe(404);
  });

  test('exactly one of many simultaneous writes for one version succeeds on two replicas, whether sent alone or in batches', async () => {
    const user = await service.user();
    const version = versionOf(await add(user));
    const write = async (n: number) => {
      const kind = n % 3 ? 'edit' : 'delete';
      const fields = n % 3 ? { ...version, title: `${n}` } : version;
      const [path, body] =
        n % 4 < 2
          ? [`/bookmarks/${kind}`, fields]
          : ['/bookmarks/batch', { operations: [{ do: kind, ...fields }] }];
      const response = await (n % 2 ? service : other).post(path, body, { token: user.token });
      return response.body.results?.[0] ?? response.body;
    };
    const outcomes = await Promise.all(Array.from({ length: 24 }, (_, n) => write(n)));
    const codes = outcomes.map(({ code }) => code).filter((code) => code !== undefined);
    expect(codes).toHaveLength(outcomes.length - 1);
    for (const code of codes) expect(['CONFLICT', 'NOT_FOUND']).toContain(code);
  });

  test('get their first response again when they are repeated with their key', async () => {
    const user = await service.user();
    const version = versionOf(await add(user));
    const mine = { ...version, title: 'mine' };
    const keyed = { headers: { 'idempotency-key': 'mine' } };
    const first = await user.post('/bookmarks/edit', mine, keyed);
    const theirs = await user.post('/bookmarks/edit', { id: version.id, title: 'theirs' });
    const again = await user.post('/bookmarks/edit', mine, keyed);
    expect([again.status, again.text]).toEqual([200, first.text]);
    expect((await find(user, version.id))!.updated_at).toBe(theirs.body.updated_at);
    // The refused request does not use up its idempotency key. The client merges the two versions, and sends another
    // body with the same key.
    const next = { headers: { 'idempotency-key': 'next' } };
    expect(await user.post('/bookmarks/edit', mine, next)).toMatchObject(CONFLICT);
    const merged = { id: version.id, if_updated_at: theirs.body.updated_at, title: 'merged' };
    expect((await user.post('/bookmarks/edit', merged, next)).status).toBe(200);
  });
});

describe('conditional items', () => {
  test('an edit skips bookmarks that changed since, and returns them in conflicts', async () => {
    const user = await service.user();
    const [one, two, three] = [await add(user), await add(user), await add(user, { tags: ['x'] })];
    await user.post('/bookmarks/edit', { id: two.id, title: 'theirs' });
    const missing = { id: 1, if_updated_at: one.updated_at };
    const items = [versionOf(two), missing, versionOf(three), versionOf(one), versionOf(two)];
    const { body } = await user.post('/bookmarks/edit', { items, add_tags: ['x'] });
    expect(body).toEqual({ edited: true, count: 2, missing: [1], conflicts: [two.id] });
    const after = await list(user);
    expect(after.map(({ tags }) => tags.map(({ name }) => name))).toEqual([['x'], [], ['x']]);
    expect(after[0]!.updated_at > one.updated_at).toBe(true);
    // The third bookmark already had the tag, so it did not change.
    expect(after[2]).toEqual(three);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('an edit whose items all conflict creates no tag, and conflicting items do not count towards limits', async () => {
    const user = await service.user();
    const names = Array.from({ length: 100 }, (_, n) => `tag ${n}`);
    const [full, empty] = [await add(user, { tags: names }), await add(user)];
    const stale = { id: full.id, if_updated_at: later(full.updated_at, -1) };
    const none = await user.post('/bookmarks/edit', { items: [stale], add_tags: ['new'] });
    expect(none.body).toEqual({ edited: true, count: 0, missing: [], conflicts: [full.id] });
    expect((await user.post('/tags/list')).body.tags).toHaveLength(100);
    const one = await user.post('/bookmarks/edit', { items: [stale, versionOf(empty)], add_tags: ['new'] });
    expect(one.body).toMatchObject({ count: 1, conflicts: [full.id] });
  });

  test('a deletion of 500 skips bookmarks that changed since', async () => {
    const user = await service.user();
    const bookmarks = Array.from({ length: 500 }, (_, n) => ({ url: `http://a/${n}`, tags: [`t${n % 3}`] }));
    await user.post('/import', { bookmarks });
    const all: Shown[] = (await user.post('/bookmarks/list', { limit: 500 })).body.bookmarks;
    await user.post('/bookmarks/edit', { ids: [all[7]!.id, all[9]!.id], remove_tags: ['t1', 't0'] });
    const { body } = await user.post('/bookmarks/delete', { items: all.map(versionOf) });
    expect(body).toEqual({ deleted: true, count: 498, missing: [], conflicts: [all[7]!.id, all[9]!.id] });
    expect((await list(user)).map(({ id }) => id)).toEqual([all[7]!.id, all[9]!.id]);
    expect(await findFaults(service.database.url)).toEqual([]);
  });
});

const TIME = '2026-01-02T03:04:05.678Z';

test.each([
  ['/bookmarks/edit', { id: 1, if_updated_at: 'yesterday' }, 'if_updated_at: expected an ISO 8601'],
  ['/bookmarks/delete', { id: 1, if_updated_at: null }, 'if_updated_at: expected a string'],
  ['/bookmarks/edit', { id: 1, if_updated_at: null, title: 'T' }, 'if_updated_at: expected a string'],
  [
    '/bookmarks/edit',
    { items: [{ id: 1, if_updated_at: null }] },
    'items[0].if_updated_at: expected a string',
  ],
  ['/bookmarks/edit', { ids: [1], if_updated_at: TIME }, 'if_updated_at: cannot be given with ids'],
  ['/bookmarks/delete', { ids: [1], if_updated_at: TIME }, 'if_updated_at: cannot be given with ids'],
  ['/bookmarks/edit', { items: [{ id: 1, if_updated_at: TIME }], id: 1 }, 'items: expected either'],
  ['/bookmarks/delete', { items: [] }, 'items: may not be empty'],
  ['/bookmarks/delete', { items: Array(501).fill({ id: 1, if_updated_at: TIME }) }, 'items: at most 500'],
  ['/bookmarks/delete', { items: [{ id: 1 }] }, 'items[0].if_updated_at: is required'],
  ['/bookmarks/delete', { items: [{ if_updated_at: TIME }] }, 'items[0].id: is required'],
  ['/bookmarks/edit', { items: [1], add_tags: [] }, 'items[0]: expected an object'],
  [
    '/bookmarks/edit',
    { items: [{ id: 1, if_updated_at: TIME }], title: 'x' },
    'title: cannot be given with items',
  ],
  [
    '/bookmarks/delete',
    {
      items: [
        { id: 1, if_updated_at: TIME },
        { id: 1, if_updated_at: later(TIME, 1) },
      ],
    },
    'items[1].if_updated_at: this id is listed with two different times',
  ],
])('%s %j is a VALIDATION_ERROR that names the field', async (path, body, error) => {
  const user = await service.user();
  const response = await user.post(path, body);
  expect(response).toMatchObject({ status: 400, body: { code: 'VALIDATION_ERROR' } });
  expect(response.body.error).toContain(error);
});

test('a conditional write with a revoked token is INVALID_TOKEN, not CONFLICT', async () => {
  const user = await service.user();
  const { id, updated_at } = await add(user);
  await runOn(service.database.url, `delete from tokens where user_id = ${user.id}`);
  const stale = { id, if_updated_at: later(updated_at, -1), title: 'x' };
  expect((await user.post('/bookmarks/edit', stale)).body.code).toBe('INVALID_TOKEN');
});
