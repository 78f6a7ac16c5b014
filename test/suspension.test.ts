import { beforeEach, describe, expect, inject, test } from 'vitest';
import { parseRedisAddress } from '../src/coordination/redis/address.ts';
import { deleteUser, suspendUser } from '../src/store/admin.ts';
import { deleteExpiredTokens } from '../src/store/sweep.ts';
import { newBrowser } from './support/browser-session.ts';
import { runHere } from './support/command.ts';
import { openRedis } from './support/redis.ts';
import { startService, type TestUser, useService } from './support/service.ts';
import { holdLock, untilBlocked } from './support/sessions.ts';

// All requests of a suspended account are refused, but the account keeps everything that it has.

const service = useService({ compatLinkding: true, importInlineBytes: 0 });

const SUSPENDED = {
  status: 401,
  body: { code: 'ACCOUNT_SUSPENDED', error: expect.stringMatching(/suspended/) },
};
const URL = 'https://example.org/';

async function admin(args: string, env: Record<string, string> = {}) {
  const run = await runHere(['admin', ...args.split(' ')], { DATABASE_URL: service.database.url, ...env });
  expect(run).toMatchObject({ code: 0, errors: expect.stringMatching(/^Database: \S+\n$/) });
  return JSON.parse(run.output);
}

let user: TestUser;
beforeEach(async () => {
  user = await service.session();
});

const suspend = () => admin(`user suspend --email ${user.email}`);
const resume = () => admin(`user resume --email ${user.email}`);
const profile = (token = user.token) => service.post('/account/get', {}, { token });

describe('a suspended account', () => {
  test('is refused with ACCOUNT_SUSPENDED for any of its tokens, and works as before after it is resumed', async () => {
    const { id } = (await profile()).body;
    const reader = await service.token(id, 'read');
    await user.post('/bookmarks/add', { url: URL });
    const suspended = await suspend();
    expect(suspended).toMatchObject({ id, email: user.email, cancelled_imports: 0 });
    const { suspended_at: suspendedAt } = suspended;
    expect(await admin(`user show --id ${id}`)).toMatchObject({
      suspended_at: suspendedAt,
      bookmark_count: 1,
    });
    // A second suspension changes nothing.
    expect(await suspend()).toEqual(suspended);

    const linkding = () =>
      fetch(`${service.origin}/compat/linkding/api/tags/`, { headers: { authorization: `Token ${reader}` } });
    const mcp = () =>
      fetch(`${service.origin}/mcp`, {
        method: 'POST',
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
        headers: {
          authorization: `Bearer ${reader}`,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
        },
      });
    expect(await profile(reader)).toMatchObject(SUSPENDED);
    for (const path of ['/bookmarks/list', '/bookmarks/add', '/export', '/logout', '/bookmarks/sync'])
      expect(await user.post(path)).toMatchObject(SUSPENDED);
    expect([(await linkding()).status, (await mcp()).status]).toEqual([401, 401]);
    // The response to a token that was never valid does not reveal the suspension.
    expect((await profile(`bka_${id}_${'x'.repeat(43)}`)).body.code).toBe('INVALID_TOKEN');

    // A token that the operator creates during the suspension works after the suspension. A token that is revoked
    // during the suspension does not.
    const made = await admin(`token create --email ${user.email} --scope read`);
    expect(made.expires_at).toBeNull();
    expect(await profile(made.token)).toMatchObject(SUSPENDED);
    const revoked = await admin(`token create --email ${user.email} --scope read`);
    await admin(`token revoke --id ${revoked.id}`);

    expect(await resume()).toEqual({ id, email: user.email, suspended_at: null });
    await resume();
    for (const token of [user.token, reader, made.token]) expect((await profile(token)).status).toBe(200);
    expect((await profile(revoked.token)).body.code).toBe('INVALID_TOKEN');
    expect((await linkding()).status).toBe(200);
    expect((await user.post('/bookmarks/list')).body.bookmarks).toMatchObject([{ url: URL }]);
  });

  test('keeps the expiry of its tokens, and its browser keeps the session cookie', async () => {
    const browser = newBrowser(service.origin);
    await browser.post('/web/login/invite', { code: await service.invite(user.email) });
    const before = (await profile()).body.token_expires_at;
    await suspend();
    expect(await browser.post('/web/api/v1/user/profile', {})).toMatchObject(SUSPENDED);
    expect(browser.cookie).toBeDefined();
    await resume();
    expect((await browser.post('/web/api/v1/user/profile', {})).status).toBe(200);
    expect((await profile()).body.token_expires_at).toBe(before);
  });

  test('keeps an invite that was refused during the suspension', async () => {
    const code = await service.invite(user.email);
    await suspend();
    expect(await service.post('/auth/invite', { code })).toMatchObject(SUSPENDED);
    await resume();
    const { status, body } = await service.post('/auth/invite', { code });
    expect([status, body.user]).toEqual([200, { id: user.id, email: user.email }]);
    expect((await service.post('/auth/invite', { code })).status).toBe(404);
  });

  test('keeps its tokens when a sweep deletes expired ones', async () => {
    await suspend();
    await deleteExpiredTokens(service.context.database);
    await resume();
    expect((await profile()).status).toBe(200);
  });

  // Locks can be observed only on a single server.
  test.skipIf(inject('citusUrl') !== undefined)(
    'opens no session, not even for a sign-in that began earlier',
    async () => {
      const codes = [await service.invite(user.email), await service.invite(user.email)];
      // One sign-in runs at the same time as the suspension, and the other begins after the suspension. Neither leads
      // to a valid session.
      const lock = await holdLock(
        service.database.url,
        `select from accounts where user_id = ${user.id} for update`,
      );
      const suspension = suspendUser(service.context.database, user.email);
      await untilBlocked(service.database.url, 'suspend_user');
      const exchange = service.post('/auth/invite', { code: codes[0] });
      await untilBlocked(service.database.url, '', 2);
      await lock[Symbol.asyncDispose]();
      await suspension;
      const { status, body } = await exchange;
      if (status === 200) expect(await profile(body.token)).toMatchObject(SUSPENDED);
      else expect({ status, body }).toMatchObject(SUSPENDED);
      expect(await service.post('/auth/invite', { code: codes[1] })).toMatchObject(SUSPENDED);
    },
  );

  test('has its running large import cancelled, and nothing of it is imported', async () => {
    const rest = Promise.withResolvers<void>();
    const body = JSON.stringify({ bookmarks: [{ url: URL }], mode: 'merge' });
    const response = fetch(`${service.origin}/api/v1/import`, {
      method: 'POST',
      headers: { authorization: `Bearer ${user.token}`, 'content-type': 'application/json' },
      duplex: 'half',
      body: new ReadableStream({
        async start(controller) {
          controller.enqueue(Buffer.from(body.slice(0, 20)));
          await rest.promise;
          controller.enqueue(Buffer.from(body.slice(20)));
          controller.close();
        },
      }),
    } as RequestInit);
    const { id } = (await profile()).body;
    const states = () =>
      service.context.database.sql`select state from imports where user_id = ${id}`.then((rows) => [...rows]);
    await expect.poll(states).toEqual([{ state: 'receiving' }]);
    expect(await suspend()).toMatchObject({ cancelled_imports: 1 });
    rest.resolve();
    expect((await response).status).not.toBe(200);
    await resume();
    expect((await user.post('/bookmarks/list')).body.bookmarks).toEqual([]);
  });

  test('can be deleted at the same time as it is suspended, and is gone in either order', async () => {
    const [suspended, deleted] = await Promise.all([
      suspendUser(service.context.database, user.email),
      deleteUser(service.context.database, user.email),
    ]);
    expect(deleted).toBe(true);
    if (suspended !== undefined) expect(suspended.email).toBe(user.email);
    expect((await profile()).body.code).toBe('INVALID_TOKEN');
    expect(await suspendUser(service.context.database, user.email)).toBeUndefined();
  });
});

test("a suspension ends the account's held polls at once with ACCOUNT_SUSPENDED on every replica", async () => {
  const redis = await openRedis();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => redis.stop());
  const config = { redisAddress: parseRedisAddress(redis.url) };
  const one = stack.use(await startService(config, { database: service.database }));
  const two = stack.use(await startService(config, { database: service.database }));
  const replicas = [one, two];
  const polls = replicas.flatMap((replica) =>
    ['/bookmarks/sync', '/bookmarks/changes'].map((path) =>
      replica.post(path, { wait: true }, { token: user.token }),
    ),
  );
  for (const replica of replicas) {
    // One of the replica's two polls may already have ended, because `changes` without a cursor responds immediately.
    await expect.poll(() => replica.context.coordination.notifier.held).toBeGreaterThanOrEqual(1);
  }
  await admin(`user suspend --email ${user.email}`, { REDIS_URL: redis.url });
  for (const [i, poll] of polls.entries()) if (i % 2 === 0) expect(await poll).toMatchObject(SUSPENDED);
});
