import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { parseRedisAddress } from '../src/coordination/redis/address.ts';
import { parseToken } from '../src/domain/tokens.ts';
import type { ChangesStart } from '../src/store/changes.ts';
import { findPrincipal } from '../src/store/tokens.ts';
import { findFreePort } from './support/ports.ts';
import { openRedis } from './support/redis.ts';
import { startService, type TestService, type TestUser, useService } from './support/service.ts';

// Tests what polls cost while nothing happens, and what they query when a notification may have been lost.

const URL = 'https://example.org/';
const SYNC = '/bookmarks/sync';

const service = useService();

const principalOf = async ({ token }: TestUser) =>
  (await findPrincipal(service.context.database, parseToken(token)!))!;

/** Starts counting the statements that a service runs for requests. Returns a function that reads the count. */
const countStatements = ({ context: { database } }: TestService) => {
  const spies = [vi.spyOn(database, 'read'), vi.spyOn(database, 'readShort'), vi.spyOn(database, 'write')];
  onTestFinished(() => {
    for (const spy of spies) spy.mockRestore();
  });
  return () => spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0);
};

/**
 * Makes a read until it succeeds at once. A short read whose response is late is sent again over another connection, and
 * the first statement of a kind on a connection may be late.
 */
const warmUp = async ({ context: { database } }: TestService, read: () => Promise<unknown>) => {
  const reads = vi.spyOn(database, 'read');
  const countRepeats = async () => {
    reads.mockClear();
    await read();
    return reads.mock.calls.length;
  };
  await expect.poll(countRepeats).toBe(0);
  reads.mockRestore();
};

const startShared = async (syncWaitSeconds: number) => {
  const redis = await openRedis();
  onTestFinished(() => redis.stop());
  const own = await startService({ redisAddress: parseRedisAddress(redis.url), syncWaitSeconds });
  onTestFinished(() => own[Symbol.asyncDispose]());
  expect(own.context.coordination.state).toBe('shared');
  return own;
};

describe('a poll that times out', () => {
  test.each([SYNC, '/bookmarks/changes'])('costs one statement, for %s', async (path) => {
    const own = await startShared(1);
    const user = await own.user();
    const { body: now } = await user.post('/bookmarks/changes', { from: 'now' });
    const cursor = path === SYNC ? 0 : now.cursor;
    await warmUp(own, () => user.post(path, { cursor }));
    const statements = countStatements(own);
    const { body } = await user.post(path, { cursor, wait: true });
    expect(body).toMatchObject({ bookmarks: [], cursor, has_more: false, waited: true });
    expect(statements()).toBe(1);
  });

  test('gets 401 if its token has expired by then', async () => {
    const own = await startShared(2);
    const user = await own.user();
    await own.context.database.sql`
      update tokens set expires_at = now() + interval '1.5 seconds' where user_id = ${user.id}`;
    expect((await user.post(SYNC, { wait: true })).body.code).toBe('INVALID_TOKEN');
  });

  test('misses nothing: the next poll finds what no notification reported', async () => {
    const own = await startShared(1);
    await using other = await startService({}, { database: own.database });
    const user = await own.user();
    const waiting = user.post(SYNC, { wait: true });
    await expect.poll(() => own.context.coordination.notifier.held).toBe(1);
    // The other replica shares only the database with this one. So it does not notify this replica of the bookmark
    // that it adds.
    const added = await other.post('/bookmarks/add', { url: URL }, { token: user.token });
    const { body } = await waiting;
    expect(body).toEqual({ bookmarks: [], cursor: 0, has_more: false, waited: true });
    const next = await user.post(SYNC, { cursor: body.cursor, wait: true });
    expect(next.body).toMatchObject({ bookmarks: [added.body], waited: false });
  });
});

describe('while Redis is unavailable', () => {
  const startAlone = async (beside: TestService) => {
    const redisAddress = parseRedisAddress(`redis://127.0.0.1:${await findFreePort()}`);
    const own = await startService({ redisAddress, syncWaitSeconds: 20 }, { database: beside.database });
    onTestFinished(() => own[Symbol.asyncDispose]());
    expect(own.context.coordination.state).toBe('degraded');
    return own;
  };

  test('one statement checks all polls, and only polls with news read the database', async () => {
    const users: TestUser[] = [];
    for (let n = 0; n < 300; n += 1) users.push(await service.user());
    const own = await startAlone(service);
    const polls = users.map(({ token }) => own.post(SYNC, { wait: true }, { token }));
    const { notifier } = own.context.coordination;
    await expect.poll(() => notifier.held).toBe(300);
    const statements = countStatements(own);
    const begunAt = performance.now();
    const added = await users[7]!.post('/bookmarks/add', { url: URL });
    const { body } = await polls[7]!;
    expect(body).toMatchObject({ bookmarks: [added.body], waited: true });
    await service.context.database.sql`delete from tokens where user_id = ${users[8]!.id}`;
    expect((await polls[8]!).body.code).toBe('INVALID_TOKEN');
    await sleep(2_000);
    const seconds = (performance.now() - begunAt) / 1_000;
    // The limit is ten statements a second, plus three statements in all for the two polls that ended.
    expect(statements()).toBeLessThanOrEqual(10 * seconds + 3);
    expect(notifier.held).toBe(298);
    notifier.drain(0);
    for (const poll of polls) await poll;
  });
});

describe('a check of polls for news', () => {
  test('finds new bookmarks and invalid tokens for all sync polls with one statement', async () => {
    const users = await Promise.all(Array.from({ length: 40 }, () => service.user()));
    const principals = await Promise.all(users.map(principalOf));
    const { body: added } = await users[3]!.post('/bookmarks/add', { url: URL });
    await service.context.database.sql`
      update tokens set expires_at = now() where user_id = ${users[5]!.id}`;
    const statements = countStatements(service);
    const { pageReader } = service.context;
    const news = await Promise.all([
      ...principals.map((principal) => pageReader.hasNews(principal, 0)),
      pageReader.hasNews(principals[3]!, added.id),
    ]);
    expect(news.flatMap((has, n) => (has ? [n] : []))).toEqual([3, 5]);
    expect(statements()).toBe(1);
  });

  test('finds every kind of change for polls of changes, and nothing if nothing changed', async () => {
    const { changesReader } = service.context;
    const user = await service.user();
    const principal = await principalOf(user);
    const { body: bookmark } = await user.post('/bookmarks/add', { url: URL, tags: ['one'] });
    const tag = bookmark.tags[0];
    const changes: [string, object][] = [
      ['/bookmarks/add', { url: URL }],
      ['/bookmarks/edit', { id: bookmark.id, title: 'new' }],
      ['/tags/create', { name: 'two' }],
      ['/tags/update', { id: tag.id, name: 'three' }],
      ['/tags/delete', { id: tag.id }],
      ['/bookmarks/delete', { id: bookmark.id }],
      ['/import', { bookmarks: [{ url: URL }], mode: 'replace' }],
    ];
    for (const [path, body] of changes) {
      const start: ChangesStart = await changesReader.read(principal, 'now', 100);
      expect(await changesReader.hasNews(principal, start), path).toBe(false);
      expect((await user.post(path, body)).status, path).toBe(200);
      expect(await changesReader.hasNews(principal, start), path).toBe(true);
    }
    const start = await changesReader.read(principal, 'now', 100);
    await service.context.database.sql`update tokens set expires_at = now() where user_id = ${user.id}`;
    expect(await changesReader.hasNews(principal, start), 'an expired token').toBe(true);
  });

  test('gets the result of a statement that began after the check was requested', async () => {
    const user = await service.user();
    const principal = await principalOf(user);
    const { pageReader } = service.context;
    const first = pageReader.hasNews(principal, 0);
    const adding = user.post('/bookmarks/add', { url: URL });
    await Promise.all([first, adding]);
    expect(await pageReader.hasNews(principal, 0)).toBe(true);
  });

  test('fails only for the polls of the statement that failed', async () => {
    const principal = await principalOf(await service.user());
    const { database, pageReader } = service.context;
    const read = vi.spyOn(database, 'read').mockRejectedValueOnce(new Error('lost'));
    onTestFinished(() => read.mockRestore());
    const both = [pageReader.hasNews(principal, 0), pageReader.hasNews(principal, 0)];
    for (const failed of both) await expect(failed).rejects.toThrow('lost');
    expect(await pageReader.hasNews(principal, 0)).toBe(false);
  });
});
