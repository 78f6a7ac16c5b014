import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openCoordination } from '../src/coordination/open.ts';
import { PENDING_KINDS, type PendingKind } from '../src/coordination/pending-kinds.ts';
import type { Coordination } from '../src/coordination/port.ts';
import { ProcessPendingValues } from '../src/coordination/process/pending.ts';
import { ManualClock } from './support/manual-clock.ts';
import { openRedis, startRedis } from './support/redis.ts';
import { accessTo } from './support/redis-access.ts';
import { silentLog } from './support/silent-log.ts';

// Tests values that are kept for minutes and used once: logins in progress, and codes for apps.

const open = async (redisUrl?: string, redisPrefix = 'test'): Promise<Coordination> => {
  const coordination = await openCoordination(
    {
      redis: redisUrl === undefined ? undefined : accessTo(redisUrl, redisPrefix),
      windowSeconds: 60,
      maxHeld: 1,
      maxHeldPerHolder: 1,
    },
    { log: silentLog, runImport: async () => {} },
  );
  onTestFinished(() => coordination.close());
  return coordination;
};

const openPair = async () => {
  const redis = await openRedis();
  onTestFinished(() => redis.stop());
  const prefix = `test-${randomUUID()}`;
  const client = new Redis(redis.url);
  onTestFinished(() => client.disconnect());
  return { a: await open(redis.url, prefix), b: await open(redis.url, prefix), client, prefix };
};

describe('with Redis', () => {
  test('a value that one replica stores can be taken by another one, once', async () => {
    const { a, b } = await openPair();
    await a.pending.keep('logins', 'key', 'value');
    expect(await b.pending.take('codes', 'key')).toBeUndefined();
    expect(await b.pending.take('logins', 'key')).toBe('value');
    expect(await a.pending.take('logins', 'key')).toBeUndefined();
  });

  test('only one of many simultaneous requests takes the value', async () => {
    const { a, b } = await openPair();
    await a.pending.keep('codes', 'key', 'value');
    const taken = await Promise.all(
      Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? a : b).pending.take('codes', 'key')),
    );
    expect(taken.filter((value) => value !== undefined)).toEqual(['value']);
  });

  test.each(Object.keys(PENDING_KINDS) as PendingKind[])(
    '%s expire by themselves, and leave nothing behind',
    async (kind) => {
      const { a, client, prefix } = await openPair();
      await a.pending.keep(kind, 'key', 'value');
      const names = await client.keys(`*${prefix}*${kind}*`);
      expect(names).toHaveLength(2);
      for (const name of names) {
        const left = await client.pttl(name);
        expect(left).toBeGreaterThan(PENDING_KINDS[kind].lifeMs - 30_000);
        expect(left).toBeLessThanOrEqual(PENDING_KINDS[kind].lifeMs);
      }
    },
  );

  test('the oldest values are deleted at the limit, so that many of them do not fill Redis', async () => {
    const { a, client, prefix } = await openPair();
    await a.pending.keep('codes', 'first', '1');
    await a.pending.keep('codes', 'second', '2');
    // Adds entries until the limit is reached. All are newer than the two values above.
    const index = `{${prefix}:pending}:codes`;
    const later = Date.now() + PENDING_KINDS.codes.lifeMs + 60_000;
    const rest = Array.from({ length: PENDING_KINDS.codes.capacity - 2 }, (_, at) => [
      later,
      `${index}:x${at}`,
    ]);
    await client.zadd(index, ...(rest.flat() as [number, string]));
    await a.pending.keep('codes', 'last', '3');
    expect(await client.zcard(index)).toBe(PENDING_KINDS.codes.capacity);
    expect(await a.pending.take('codes', 'first')).toBeUndefined();
    expect(await a.pending.take('codes', 'second')).toBe('2');
    expect(await a.pending.take('codes', 'last')).toBe('3');
  });

  test('a value that was taken no longer counts towards the limit', async () => {
    const { a, client, prefix } = await openPair();
    await a.pending.keep('logins', 'key', 'value');
    await a.pending.take('logins', 'key');
    await expect.poll(() => client.zcard(`{${prefix}:pending}:logins`)).toBe(0);
  });

  test('a value is taken by comparison only if it is equal, by one replica, and no longer counts', async () => {
    const { a, b, client, prefix } = await openPair();
    await a.pending.keep('deviceSessions', 'key', 'newer');
    expect(await b.pending.takeIfEqual('deviceSessions', 'key', 'older')).toBe(false);
    expect(await b.pending.takeIfEqual('deviceSessions', 'absent', 'newer')).toBe(false);
    const taken = await Promise.all(
      Array.from({ length: 10 }, (_, at) =>
        (at % 2 === 0 ? a : b).pending.takeIfEqual('deviceSessions', 'key', 'newer'),
      ),
    );
    expect(taken.filter(Boolean)).toEqual([true]);
    expect(await client.keys(`*${prefix}*deviceSessions*`)).toEqual([]);
  });

  test('without Redis, storing and taking fail at once, and both work again afterwards', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const { pending } = await open(redis.url);
    await pending.keep('logins', 'before', 'value');
    await redis.kill();
    await expect(pending.keep('logins', 'key', 'value')).rejects.toThrow(
      expect.objectContaining({ name: 'PendingUnavailable' }),
    );
    await expect(pending.take('logins', 'before')).rejects.toThrow(
      expect.objectContaining({ name: 'PendingUnavailable' }),
    );
    await expect(pending.takeIfEqual('logins', 'before', 'value')).rejects.toThrow(
      expect.objectContaining({ name: 'PendingUnavailable' }),
    );
    await redis.restart();
    await expect
      .poll(() =>
        pending.keep('logins', 'key', 'value').then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    expect(await pending.take('logins', 'key')).toBe('value');
  });
});

describe('in the process', () => {
  test('a value can be taken once', async () => {
    const { pending } = await open();
    await pending.keep('logins', 'key', 'value');
    expect(await pending.take('codes', 'key')).toBeUndefined();
    expect(await pending.take('logins', 'key')).toBe('value');
    expect(await pending.take('logins', 'key')).toBeUndefined();
  });

  test('a value is taken by comparison only if it is equal and has not expired', async () => {
    const clock = new ManualClock();
    const pending = new ProcessPendingValues(clock);
    await pending.keep('deviceSessions', 'key', 'newer');
    expect(await pending.takeIfEqual('deviceSessions', 'key', 'older')).toBe(false);
    expect(await pending.takeIfEqual('deviceSessions', 'key', 'newer')).toBe(true);
    expect(await pending.takeIfEqual('deviceSessions', 'key', 'newer')).toBe(false);
    await pending.keep('deviceSessions', 'key', 'late');
    clock.advance(PENDING_KINDS.deviceSessions.lifeMs);
    expect(await pending.takeIfEqual('deviceSessions', 'key', 'late')).toBe(false);
  });

  test('a login is kept for ten minutes, and a code for one minute', async () => {
    const clock = new ManualClock();
    const pending = new ProcessPendingValues(clock);
    for (const [kind, lifeMs] of [
      ['logins', 600_000],
      ['codes', 60_000],
    ] as const) {
      await pending.keep(kind, 'early', 'value');
      await pending.keep(kind, 'late', 'value');
      clock.advance(lifeMs - 1);
      expect(await pending.take(kind, 'early')).toBe('value');
      clock.advance(1);
      expect(await pending.take(kind, 'late')).toBeUndefined();
    }
  });

  test('the oldest values are deleted at the limit', async () => {
    const pending = new ProcessPendingValues(new ManualClock());
    const { capacity } = PENDING_KINDS.codes;
    for (let at = 0; at <= capacity; at += 1) await pending.keep('codes', String(at), 'value');
    expect(await pending.take('codes', '0')).toBeUndefined();
    expect(await pending.take('codes', '1')).toBe('value');
    expect(await pending.take('codes', String(capacity))).toBe('value');
  });
});
