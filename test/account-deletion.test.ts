import { describe, expect, test } from 'vitest';
import { findFaults } from './support/invariants.ts';
import { type TestUser, useService } from './support/service.ts';
import { holdAccount, holdLock, untilBlocked } from './support/sessions.ts';

// Tests that users can delete their own accounts.

// Polls are held for longer than a test may take, so only a notification can end them.
const service = useService({ syncWaitSeconds: 3_600 });
const other = useService({}, { beside: service });

const TABLES = [
  'users',
  'accounts',
  'tokens',
  'bookmarks',
  'tags',
  'changes',
  'trash',
  'search_blocks',
  'search_signatures',
  'identities',
  'idempotency_keys',
];

async function rowsOf({ id }: TestUser): Promise<Record<string, number>> {
  const { sql } = service.context.database;
  const counts = TABLES.map(async (table) => {
    const column = sql(table === 'users' ? 'id' : 'user_id');
    const [row] = await sql<{ count: number }[]>`
      select count(*)::int as count from ${sql(table)} where ${column} = ${id}`;
    return [table, row!.count] as const;
  });
  return Object.fromEntries(await Promise.all(counts));
}

const remove = (user: TestUser, confirm = user.email) => user.post('/account/delete', { confirm });

/** Resolves when the user has a bookmark. */
const untilAdded = ({ id }: TestUser) =>
  expect
    .poll(
      () =>
        service.context.database.sql`select from bookmarks where user_id = ${id}`.then(
          ({ length }) => length,
        ),
      { interval: 1 },
    )
    .toBeGreaterThan(0);

/** Creates a user with rows in every table. */
async function userWithEverything(): Promise<TestUser> {
  const user = await service.session();
  const headers = { 'idempotency-key': 'once' };
  await user.post('/bookmarks/add', { url: 'https://a.example/', tags: ['a'] }, { headers });
  const { body } = await user.post('/bookmarks/add', { url: 'https://b.example/' });
  await user.post('/bookmarks/delete', { id: body.id, trash: true });
  await user.post('/tokens/create', { name: 'n' });
  // 64 bookmarks fill a search block.
  await user.post('/import', {
    bookmarks: Array.from({ length: 64 }, (_, n) => ({ url: `https://${n}.example/` })),
  });
  await service.context.database.sql`
    insert into identities (issuer, subject, user_id) values ('https://id.example', ${`s${user.id}`}, ${user.id})`;
  return user;
}

describe('/account/delete', () => {
  test('deletes everything of the account, and nothing of other users', async () => {
    const user = await userWithEverything();
    const stranger = await userWithEverything();
    const before = await rowsOf(stranger);
    expect(Object.values(await rowsOf(user))).not.toContain(0);
    await service.invite(user.email);
    expect((await remove(user, ` ${user.email.toUpperCase()}\n`)).body).toEqual({ deleted: true });
    expect(Object.values(await rowsOf(user))).toEqual(TABLES.map(() => 0));
    expect(await rowsOf(stranger)).toEqual(before);
    const { sql } = service.context.database;
    expect(await sql`select from invites where email = ${user.email}`).toHaveLength(0);
    for (const replica of [service, other])
      expect((await replica.post('/user/profile', {}, { token: user.token })).status).toBe(401);
    expect((await service.session(user.email)).id).not.toBe(user.id);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test("refuses an address other than the account's, and deletes nothing", async () => {
    const [user, stranger] = [await service.session(), await service.session()];
    for (const confirm of [stranger.email, `${user.email}.`, 'yes'])
      expect((await remove(user, confirm)).body).toEqual({
        code: 'VALIDATION_ERROR',
        error: 'confirm: is not the e-mail address of this account',
      });
    for (const each of [user, stranger]) expect((await each.post('/user/profile')).status).toBe(200);
  });

  test('requires a login within the last 15 minutes if the account is linked to a provider', async () => {
    const user = await userWithEverything();
    await service.context.database.sql`
      update tokens set authenticated_at = now() - interval '16 minutes' where user_id = ${user.id}`;
    expect((await remove(user)).body).toEqual({
      code: 'PERMISSION_DENIED',
      error: 'log in again: this needs a person who logged in within the last 15 minutes',
    });
    expect((await user.post('/user/profile')).status).toBe(200);
  });

  test('ends held polls at once', async () => {
    const user = await service.session();
    const poll = user.post('/bookmarks/sync', { wait: true });
    await expect.poll(() => service.context.coordination.notifier.held).toBe(1);
    await remove(user);
    expect((await poll).body.code).toBe('INVALID_TOKEN');
  });

  test('waits for a writer of the account, and deletes nothing if the session is revoked while it waits', async () => {
    const [user] = [await service.session()];
    const thief = await service.session(user.email);
    await using lock = await holdAccount(service.database.url, user);
    const deleting = remove(thief);
    await untilBlocked(service.database.url, 'delete_account');
    expect((await user.post('/sessions/revoke-others')).body).toEqual({ revoked: 1 });
    await lock.release();
    expect((await deleting).body.code).toBe('INVALID_TOKEN');
    expect((await user.post('/user/profile')).status).toBe(200);
  });

  test('works during all other requests: none of them fails, and no deleted row comes back', async () => {
    const user = await service.session();
    const more = await Promise.all(Array.from({ length: 4 }, () => service.session(user.email)));
    const all = more.flatMap((session, n) => [
      session.post('/sessions/revoke-others'),
      session.post('/tokens/create', { name: `n${n}` }),
      session.post('/bookmarks/add', { url: 'https://a.example/', tags: ['a'] }),
      session.post('/import', { mode: 'replace', bookmarks: [{ url: 'https://a.example/', tags: ['b'] }] }),
    ]);
    const [removed, ...responses] = await Promise.all([
      remove(user),
      other.post('/account/delete', { confirm: user.email }, { token: more[0]!.token }),
      ...all,
    ]);
    for (const { status, text } of [removed!, ...responses]) expect([200, 401], text).toContain(status);
    await service.context.database.sql`select delete_user(${user.email})`;
    expect(Object.values(await rowsOf(user))).toEqual(TABLES.map(() => 0));
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test("concurrent adds do not cause a deadlock with the operator's deletion", async () => {
    const { sql } = service.context.database;
    for (let round = 0; round < 10; round++) {
      const user = await service.user();
      const adds = Array.from({ length: 5 }, (_, n) =>
        user.post('/bookmarks/add', { url: 'https://a.example/', tags: [`t${n}`] }),
      );
      await untilAdded(user);
      await sql`select delete_user(${user.email})`;
      for (const { status } of await Promise.all(adds)) expect([200, 401]).toContain(status);
    }
  });

  test('deletes nothing if Postgres does not finish in time', async () => {
    const user = await userWithEverything();
    const before = await rowsOf(user);
    await using lock = await holdLock(
      service.database.url,
      `select from users where id = ${user.id} for update`,
    );
    const deleting = remove(user);
    const { pid } = await untilBlocked(service.database.url, 'delete_account');
    await service.context.database.sql`select pg_cancel_backend(${pid})`;
    expect((await deleting).body.code).toBe('UNAVAILABLE');
    await lock.release();
    expect(await rowsOf(user)).toEqual(before);
  });
});
