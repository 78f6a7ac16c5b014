import { describe, expect, test } from 'vitest';
import { parseToken } from '../src/domain/tokens.ts';
import { LastUses } from '../src/store/last-uses.ts';
import { startReplica } from './support/replica.ts';
import { startService, type TestUser, useService } from './support/service.ts';
import { holdLock } from './support/sessions.ts';

// The service records when a token was last used, at most once every 15 minutes. The use of a session also extends it.

const service = useService();
const other = useService({}, { beside: service });

const write = ({ context } = service) => context.lastUses.write(context.database, context.config.sessionDays);

/** Uses the token at a replica after removing it from the replica's cache. */
async function use({ token }: { token: string }, at = service): Promise<number> {
  at.context.principals.forget(parseToken(token)!);
  return (await at.post('/user/profile', {}, { token })).status;
}

interface Row {
  last_used_at: Date | null;
  expires_at: Date;
  created_at: Date;
}

async function rowOf({ token }: { token: string }): Promise<Row> {
  const { userId, hash } = parseToken(token)!;
  const [row] = await service.context.database.sql<Row[]>`
    select last_used_at, expires_at, created_at from tokens where user_id = ${userId} and token_hash = ${hash}`;
  return row!;
}

/** Sets one of a token's times to this many minutes from now. */
async function set({ token }: TestUser, column: keyof Row, minutes: number): Promise<Date> {
  const { userId, hash } = parseToken(token)!;
  const { sql } = service.context.database;
  await sql`
    update tokens set ${sql(column)} = date_trunc('milliseconds', now() + ${minutes} * interval '1 minute')
    where user_id = ${userId} and token_hash = ${hash}`;
  return (await rowOf({ token }))[column]!;
}

const DAY = 24 * 60;
const days = (from: Date, to: Date) => (to.getTime() - from.getTime()) / 86_400_000;

describe('the last use of a token', () => {
  test('is recorded at the first use, and then at most every 15 minutes', async () => {
    const user = await service.user();
    expect((await rowOf(user)).last_used_at).toBeNull();
    await use(user);
    await write();
    const first = (await rowOf(user)).last_used_at;
    expect(Date.now() - first!.getTime()).toBeLessThan(60_000);
    for (const [minutesAgo, isNoted] of [
      [12, false],
      [14, true],
      [10_000, true],
    ] as const) {
      const before = await set(user, 'last_used_at', -minutesAgo);
      await use(user);
      await write();
      const { last_used_at } = await rowOf(user);
      if (isNoted) expect(last_used_at!.getTime()).toBeGreaterThan(before.getTime());
      else expect(last_used_at).toEqual(before);
    }
  });

  test('is not recorded for a token that is refused', async () => {
    const user = await service.user();
    await service.post('/user/profile', {}, { token: `${user.token.slice(0, -1)}-` });
    await write();
    expect((await rowOf(user)).last_used_at).toBeNull();
  });

  test('does not delay any request: a locked row is skipped and recorded later', async () => {
    const user = await service.user();
    {
      await using _ = await holdLock(
        service.database.url,
        `select from tokens where user_id = ${user.id} for update`,
      );
      expect(await use(user)).toBe(200);
      await write();
      expect((await rowOf(user)).last_used_at).toBeNull();
    }
    await use(user);
    await write();
    expect((await rowOf(user)).last_used_at).not.toBeNull();
  });

  test('does not make a token valid again if it is revoked or expires before the last use is recorded', async () => {
    const [revoked, expired] = [await service.session(), await service.session()];
    for (const user of [revoked, expired]) {
      await set(user, 'last_used_at', -60);
      await use(user);
    }
    await revoked.post('/logout');
    const end = await set(expired, 'expires_at', -1);
    const { last_used_at } = await rowOf(expired);
    await write();
    expect(await rowOf(revoked)).toBeUndefined();
    expect(await rowOf(expired)).toMatchObject({ expires_at: end, last_used_at });
    for (const user of [revoked, expired]) expect(await use(user)).toBe(401);
  });

  test('does not delay a concurrent revocation or make it fail', async () => {
    const users = await Promise.all(Array.from({ length: 20 }, () => service.session()));
    for (const user of users) {
      await set(user, 'last_used_at', -60);
      await use(user);
      await use(user, other);
    }
    const ended = users.map((user, n) => (n % 2 ? user.post('/logout') : user.post('/user/profile')));
    await Promise.all([write(), write(other), ...ended]);
    for (const { status } of await Promise.all(ended)) expect(status).toBe(200);
    for (const [n, user] of users.entries()) expect(await use(user)).toBe(n % 2 ? 401 : 200);
  });

  test('is recorded in batches, and only for as many tokens as the replica caches', async () => {
    const { id } = await service.user();
    const { database } = service.context;
    await database.sql`
      insert into tokens (user_id, token_hash, kind, scope)
      select ${id}, sha256(n::text::bytea), 'api', 'read' from generate_series(1, 2600) n`;
    const rows = await database.sql<{ hash: Buffer }[]>`
      select token_hash as hash from tokens where user_id = ${id} and last_four = ''`;
    const uses = new LastUses({ capacity: 2_500 });
    for (const { hash } of rows) uses.add({ userId: id, hash, key: hash.toString('hex') });
    await uses.write(database, 90);
    const [noted] = await database.sql`
      select count(*)::int as count from tokens where user_id = ${id} and last_used_at is not null`;
    expect(noted!.count).toBe(2_500);
  });

  test('is recorded at the next look-up if Postgres refused it', async () => {
    const user = await service.user();
    await use(user);
    const failing = { write: () => Promise.reject(new Error('away')) };
    await expect(service.context.lastUses.write(failing as never, 90)).rejects.toThrow('away');
    await write();
    expect((await rowOf(user)).last_used_at).toBeNull();
    await use(user);
    await write();
    expect((await rowOf(user)).last_used_at).not.toBeNull();
  });

  test('is recorded by each process, at the latest when the process ends', async () => {
    await using replica = await startReplica('api', { DATABASE_URL: service.database.url });
    const user = await service.user();
    await replica.post('/user/profile', {}, user.token);
    expect(await replica.stop()).toBe(0);
    expect((await rowOf(user)).last_used_at).not.toBeNull();
  });
});

describe('using a session', () => {
  /** Uses a session that began `ageDays` days ago and that expires in `leftDays` days. */
  async function useOld(
    leftDays: number,
    ageDays: number,
    at = service,
  ): Promise<{ before: Row; after: Row }> {
    const session = await service.session();
    await set(session, 'created_at', -ageDays * DAY);
    await set(session, 'expires_at', leftDays * DAY);
    await set(session, 'last_used_at', -60);
    const before = await rowOf(session);
    expect(await use(session, at)).toBe(200);
    await write(at);
    return { before, after: await rowOf(session) };
  }

  test.each([
    ['extends it to 90 days from now in its last 30 days', 29.9, 60, 90],
    ['extends it to 90 days from now on its last day', 0.01, 90, 90],
    ['does not extend it before its last 30 days', 30.1, 60, 30.1],
    ['extends it to at most a year from its start', 10, 300, 65],
    ['does not extend it beyond a year from its start', 0.5, 364.9, 0.5],
    ['never shortens it', 20, 400, 20],
  ])('%s', async (_, leftDays, ageDays, expected) => {
    const { after } = await useOld(leftDays, ageDays);
    expect(days(new Date(), after.expires_at)).toBeCloseTo(expected, 1);
  });

  test('extends it to SESSION_DAYS from now', async () => {
    await using short = await startService({ sessionDays: 7 }, { database: service.database });
    expect(days(new Date(), (await useOld(1, 6, short)).after.expires_at)).toBeCloseTo(7, 1);
    expect(days(new Date(), (await useOld(20, 6, short)).after.expires_at)).toBeCloseTo(20, 1);
  });

  test('an unused session is not extended and expires', async () => {
    const session = await service.session();
    const end = await set(session, 'expires_at', 5);
    await write();
    expect((await rowOf(session)).expires_at).toEqual(end);
  });

  test('using an API token does not extend it', async () => {
    const user = await service.user();
    const end = await set(user, 'expires_at', 5);
    await use(user);
    await write();
    expect((await rowOf(user)).expires_at).toEqual(end);
  });
});

test('/tokens/list and /sessions/list show the time of the last use', async () => {
  const session = await service.session();
  const { body } = await session.post('/tokens/create', { name: 'used' });
  const shown = async () => (await session.post('/tokens/list')).body.tokens[0].last_used_at;
  expect(await shown()).toBeNull();
  await use({ token: body.token });
  await write();
  expect(Date.parse(await shown())).toBeGreaterThan(Date.now() - 60_000);
  const { last_used_at } = await rowOf(session);
  const [own] = (await session.post('/sessions/list')).body.sessions;
  expect(own.last_used_at).toBe(last_used_at!.toISOString());
});
