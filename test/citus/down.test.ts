import { beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { issueInvite } from '../../src/admin/invites.ts';
import { foldText } from '../../src/domain/text.ts';
import { parseToken } from '../../src/domain/tokens.ts';
import { deleteLeftovers } from '../../src/process/sweeper.ts';
import { createUser, deleteUser, findUser, listUsers, setPremium } from '../../src/store/admin.ts';
import { countStagedImports, deleteOldImports, findQueuedImports } from '../../src/store/sweep.ts';
import { noteUses } from '../../src/store/tokens.ts';
import {
  type CitusNode,
  copyShardedDatabase,
  nodeOf,
  type ShardedDatabase,
  withNodeClosed,
} from '../support/citus.ts';
import { runOn } from '../support/database.ts';
import { catchUnavailable } from '../support/pool.ts';
import { startService, type TestService, type TestUser } from '../support/service.ts';

// While one worker is down, operations that cover all users continue for the users on the other worker.

let database: ShardedDatabase;
let service: TestService;
let users: TestUser[];
/** The users whose rows are on the worker that will be down, and the other users. */
let lost: number[];
let served: number[];
let down: CitusNode;

beforeAll(async () => {
  database = await copyShardedDatabase(inject('citusUrl')!, inject('citusTemplate')!);
  service = await startService({}, { database });
  down = database.nodes[2]!;
  return async () => {
    await service[Symbol.asyncDispose]();
    await database.drop();
  };
});

beforeEach(async () => {
  users = await Promise.all(Array.from({ length: 12 }, () => service.user()));
  const nodes = await Promise.all(users.map((user) => nodeOf(database, user)));
  const idsOf = (isLost: boolean) =>
    users.filter((_user, n) => (nodes[n]!.port === down.port) === isLost).map(({ id }) => id);
  [lost, served] = [idsOf(true), idsOf(false)];
  expect(lost.length * served.length).toBeGreaterThan(0);
});

/** Returns the users for whom the table has rows that meet the condition. */
async function usersOf(table: string, condition: string): Promise<number[]> {
  const rows = await runOn<{ id: number }>(
    database.url,
    `select distinct user_id::float8 as id from ${table} where ${condition} order by 1`,
  );
  return rows.map(({ id }) => id);
}

const sorted = (ids: readonly number[]) => ids.toSorted((a, b) => a - b);

test('sweeps delete expired rows of reachable users, and the remaining rows when the worker is back', async () => {
  for (const { id } of users) {
    await runOn(
      database.url,
      `insert into tokens (user_id, id, token_hash, last_four, kind, scope, expires_at)
      values (${id}, next_id('tokens_id_seq'), sha256('${id}'), '', 'api', 'read', now() - interval '1 second');
      insert into idempotency_keys (user_id, key, request_hash, response, bytes, created_at)
      values (${id}, 'old', '', '{}', 100, now() - interval '25 hours');
      update accounts set kept_bytes = kept_bytes + 100 where user_id = ${id};
      insert into imports (user_id, id, is_staged, state, expires_at)
      values (${id}, gen_random_uuid(), true, 'receiving', now() - interval '1 minute')`,
    );
    const token = users.find((user) => user.id === id)!.token;
    await service.post('/bookmarks/add', { url: 'https://example.org/' }, { token });
    await runOn(
      database.url,
      `update changes set changed_at = now() - interval '1 year' where user_id = ${id}`,
    );
  }
  const left = async () => [
    await usersOf('tokens', 'expires_at < now()'),
    await usersOf('idempotency_keys', "key = 'old'"),
    await usersOf('imports', "state = 'receiving'"),
    await usersOf('changes', "changed_at < now() - interval '200 days'"),
  ];
  const all = sorted(users.map(({ id }) => id));
  const [tokens, keys, imports] = await left();
  expect([tokens, keys, imports]).toEqual([all, all, all]);
  const sweep = async () => {
    await deleteLeftovers(service.context);
    await deleteOldImports(service.context.database);
  };
  await withNodeClosed(down, sweep);
  const rest = await left();
  expect(rest.slice(0, 3)).toEqual([sorted(lost), sorted(lost), sorted(lost)]);
  expect(rest[3]!.filter((id) => served.includes(id))).toEqual([]);
  await sweep();
  expect(await left()).toEqual([[], [], [], []]);
});

test('queued imports of reachable users are found, and the last uses of their tokens are recorded', async () => {
  const { database: db } = service.context;
  for (const { id } of users) {
    await runOn(
      database.url,
      `insert into imports (user_id, id, is_staged, state, touched_at)
      values (${id}, gen_random_uuid(), true, 'queued', now() - interval '1 minute')`,
    );
  }
  const owners = users.map(({ token }) => parseToken(token)!);
  await runOn(database.url, 'update tokens set last_used_at = null');
  await withNodeClosed(down, async () => {
    const queued = (await findQueuedImports(db, 1_000)).map(({ userId }) => userId);
    expect(sorted(queued)).toEqual(sorted(served));
    expect((await countStagedImports(db)).get('queued')).toBe(served.length);
    await noteUses(db, owners, 90);
  });
  const used = (await usersOf('tokens', 'last_used_at is not null')).filter((id) =>
    users.some((user) => user.id === id),
  );
  expect(used).toEqual(sorted(served));
  expect(sorted((await findQueuedImports(db, 1_000)).map(({ userId }) => userId))).toEqual(
    sorted([...lost, ...served]),
  );
  await runOn(database.url, "delete from imports where state = 'queued'");
});

test("the operator's commands find, list and change reachable users", async () => {
  const { database: db } = service.context;
  const [first] = served;
  const { email } = users.find(({ id }) => id === first)!;
  const last = Math.min(...users.map(({ id }) => id)) - 1;
  await withNodeClosed(down, async () => {
    expect(await findUser(db, { id: first! })).toMatchObject({ email, token_count: 1 });
    expect(await setPremium(db, foldText(email), true)).toMatchObject({ id: first, is_premium: true });
    expect(await findUser(db, { emailKey: foldText(email) })).toMatchObject({ is_premium: true });
    const listed = await listUsers(db, last, 100);
    expect(listed.map(({ id }) => id)).toEqual(sorted(users.map(({ id }) => id)));
    const unknown = listed.filter(({ is_premium }) => is_premium === null).map(({ id }) => id);
    expect(unknown).toEqual(sorted(lost));
    await catchUnavailable(findUser(db, { id: lost[0]! }));
  });
});

test('a user who cannot be created on every node is created on none; a retry works when the worker is back', async () => {
  const { database: db } = service.context;
  const email = 'new@example.org';
  await withNodeClosed(down, async () => {
    await catchUnavailable(createUser(db, email, email, false));
    await catchUnavailable(issueInvite(db, email, 7));
  });
  const count = `select count(*)::int as users from users where email_key = '${email}'`;
  for (const { url } of database.nodes) expect(await runOn(url, count)).toEqual([{ users: 0 }]);
  expect(await createUser(db, email, email, false)).toMatchObject({ email });
  for (const { url } of database.nodes) expect(await runOn(url, count)).toEqual([{ users: 1 }]);
});

/**
 * Sends every request that a user can make in their own session, except those that change tables which are replicated
 * on every node. Returns the statuses.
 */
async function useEverything({ token }: TestUser): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {};
  const ask = async (path: string, body: object) => {
    const response = await service.post(path, body, { token });
    statuses[path] = response.status;
    return response.body;
  };
  const { id } = await ask('/bookmarks/add', { url: 'https://example.org/a', tags: ['a', 'b'] });
  await ask('/bookmarks/edit', { id: id ?? 1, title: 'A' });
  await ask('/bookmarks/get', { id: id ?? 1 });
  await ask('/bookmarks/list', {});
  await ask('/bookmarks/search', { query: 'a' });
  await ask('/bookmarks/sync', { cursor: 0 });
  await ask('/bookmarks/changes', {});
  await ask('/import', { bookmarks: [{ url: 'https://example.org/b' }], mode: 'merge' });
  await ask('/export', {});
  const tag = await ask('/tags/create', { name: 'c' });
  await ask('/tags/update', { id: tag.id ?? 1, name: 'd' });
  await ask('/tags/delete', { id: tag.id ?? 1 });
  await ask('/tags/list', {});
  await ask('/user/profile', {});
  const made = await ask('/tokens/create', { name: 'script', scope: 'read' });
  await ask('/tokens/list', {});
  await ask('/tokens/revoke', { id: made.id ?? 1 });
  await ask('/sessions/list', {});
  await ask('/bookmarks/delete', { id: id ?? 1 });
  await ask('/logout', {});
  return statuses;
}

test('users of the other nodes can use everything that belongs to them, including sessions and tokens', async () => {
  const sessions = await Promise.all(users.map(({ email }) => service.session(email)));
  await withNodeClosed(down, async () => {
    for (const user of sessions) {
      const expected = served.includes(user.id) ? 200 : 503;
      const statuses = Object.entries(await useEverything(user));
      expect(
        statuses.filter(([, status]) => status !== expected),
        user.email,
      ).toEqual([]);
    }
  });
  for (const user of sessions.filter(({ id }) => lost.includes(id)))
    expect(new Set(Object.values(await useEverything(user)))).toEqual(new Set([200]));
});

test('changes to replicated tables are refused completely, and the same requests work when the worker is back', async () => {
  const { database: db } = service.context;
  const here = users.find(({ id }) => served.includes(id))!;
  const [leaving, known] = [await service.session(), await service.session(here.email)];
  const invited = await issueInvite(db, 'invited@example.org', 7);
  const again = await issueInvite(db, here.email, 7);
  await service.post('/bookmarks/add', { url: 'https://example.org/kept' }, { token: leaving.token });
  const requests = [
    () => service.post('/auth/invite', { code: invited.code }),
    () => service.post('/auth/invite', { code: again.code }),
    () => service.post('/account/delete', { confirm: leaving.email }, { token: leaving.token }),
  ];
  const state = () =>
    runOn(
      database.url,
      `select
        (select count(*) from users) as users,
        (select count(*) from invites) as invites,
        (select count(*) from accounts where user_id <> all ('{${lost.join(',')}}')) as accounts`,
    );
  const before = await state();
  await withNodeClosed(down, async () => {
    for (const request of requests) expect((await request()).status).toBe(503);
    await catchUnavailable(deleteUser(db, foldText(here.email)));
    const { status } = await service.post('/user/profile', {}, { token: known.token });
    expect(status).toBe(200);
  });
  expect(await state()).toEqual(before);
  for (const { url } of database.nodes)
    expect(await runOn(url, 'select gid from pg_prepared_xacts where database = current_database()')).toEqual(
      [],
    );
  for (const request of requests) expect((await request()).status).toBe(200);
  expect((await service.post('/user/profile', {}, { token: leaving.token })).status).toBe(401);
  expect(await deleteUser(db, foldText(here.email))).toBe(true);
});
