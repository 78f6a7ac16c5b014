import { beforeEach, describe, expect, test } from 'vitest';
import { parseToken } from '../src/domain/tokens.ts';
import { openAppSession } from '../src/store/identities.ts';
import { revokeOtherSessions } from '../src/store/own-tokens.ts';
import { noteUses } from '../src/store/tokens.ts';
import { type TestUser, useService } from './support/service.ts';
import { holdAccount, holdLock, untilBlocked } from './support/sessions.ts';

// Section 4.1 of docs/contract.md: a user has at most 100 sessions.

const service = useService();
const other = useService({}, { beside: service });
let user: TestUser;

const database = () => service.context.database;
const keyOf = (token: string) => {
  const { userId, hash } = parseToken(token)!;
  return { userId, hash };
};

/** Opens a session by an invite code at one of the two replicas. */
async function exchange(n: number): Promise<boolean> {
  const code = await service.invite(user.email);
  const { status } = await [service, other][n % 2]!.post('/auth/invite', { code });
  return status === 200;
}

/** Opens a session for an app, as a signed-in browser allows it. */
const approve = async (n: number) =>
  (await openAppSession([service, other][n % 2]!.context.database, keyOf(user.token), 'App', 90)) !==
  undefined;

async function countSessions(): Promise<number> {
  const [row] = await database().sql<{ count: number }[]>`
    select count(*)::integer from tokens where user_id = ${user.id} and kind = 'session'`;
  return row!.count;
}

/** Opens sessions that nobody used since `last_used_at`, so that they end first. */
const fillSessions = (count: number) => database().sql`
  insert into tokens (user_id, token_hash, id, last_four, kind, scope, last_used_at, expires_at)
  select ${user.id}, sha256(n::text::bytea || ${String(user.id)}::bytea), n, 'abcd', 'session',
    'write', now() - interval '1 day' - n * interval '1 minute', now() + interval '1 day'
  from generate_series(1, ${count}) n`;

beforeEach(async () => {
  user = await service.session();
  // So this session is not one of the least recently used.
  await database().sql`update tokens set last_used_at = now() + interval '1 hour' where user_id = ${user.id}`;
});

describe('a user has exactly 100 sessions at most', () => {
  test.each([
    ['with an invite', exchange],
    ['of an app', approve],
  ])('after a sign-in %s at the same time as another one', async (_, signIn) => {
    await fillSessions(99);
    // Another sign-in has opened a session, and its transaction has not ended yet.
    await using first = await holdLock(
      service.database.url,
      `select from open_session(${user.id}, sha256('first'), 'abcd', null, now(), 90)`,
    );
    const second = signIn(1);
    await Promise.race([untilBlocked(service.database.url), second]);
    await first.commit();
    expect(await second).toBe(true);
    expect(await countSessions()).toBe(100);
    expect((await user.post('/user/profile')).status).toBe(200);
  });

  test('while other requests record uses and revoke sessions, and no request fails', async () => {
    for (let round = 0; round < 5; round += 1) {
      await fillSessions(99);
      const hashes = await database().sql<{ hash: Buffer }[]>`
        select token_hash as hash from tokens where user_id = ${user.id} and app_name is null and last_four = 'abcd'`;
      const principals = hashes.map(({ hash }) => ({ userId: user.id, hash }));
      await Promise.all([
        ...Array.from({ length: 6 }, (_, n) => approve(n)),
        ...[1, 2, 3].map(() => noteUses(database(), principals, 90)),
        revokeOtherSessions(other.context.database, keyOf(user.token)),
      ]);
      expect(await countSessions()).toBeLessThanOrEqual(100);
      await revokeOtherSessions(database(), keyOf(user.token));
    }
  });
});

test('sign-ins and a revocation of all other sessions, which began during another sign-in, all succeed', async () => {
  const { url } = service.database;
  await fillSessions(50);
  const [{ last } = { last: '' }] = await database().sql<{ last: string }[]>`
    select encode(token_hash, 'hex') as last from tokens where user_id = ${user.id} order by token_hash desc limit 1`;
  // The hash of the new session sorts before all others, and the hash of the locked one after all others.
  const open = await holdLock(
    url,
    `select from open_session(${user.id}, decode(repeat('00', 32), 'hex'), 'abcd', null, now(), 90)`,
  );
  const lockLast = `select from tokens where user_id = ${user.id} and token_hash = decode('${last}', 'hex') for key share`;
  const holding = holdLock(url, lockLast);
  await untilBlocked(url);
  const revocation = revokeOtherSessions(other.context.database, keyOf(user.token));
  await untilBlocked(url, '', 2);
  const signIn = approve(0);
  await untilBlocked(url, '', 3);
  await open.commit();
  // The revocation holds the locks of the sessions that it saw before the sign-in, except for the last one.
  await using held = await holding;
  await Promise.race([untilBlocked(url), revocation]);
  await held.release();
  await Promise.all([revocation, signIn]);
  expect(await countSessions()).toBeLessThanOrEqual(2);
});

test('a sign-in does not wait for a write of the same user, such as an import', async () => {
  await using _writer = await holdAccount(service.database.url, user);
  expect(await exchange(0)).toBe(true);
  expect(await approve(1)).toBe(true);
});
