import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { expect, onTestFinished } from 'vitest';
import { openCoordination } from '../../src/coordination/open.ts';
import type { Coordination, RedisAccess } from '../../src/coordination/port.ts';
import { type RedisOptions, type RedisServer, startRedis } from './redis.ts';
import { accessTo } from './redis-access.ts';

/**
 * The coordination of several replicas in this process, for tests in which Redis fails. Everything is closed at the end
 * of the test.
 */

export const LIMIT = 5;
export const WAIT_MS = 29_000;
export const SHARED = 'Redis serves';
export const DEGRADED = 'Redis is away';

/** How long a request may wait for Redis. */
export const MAX_WAIT_MS = 300;

/** How long a replica may take to use Redis again after Redis is back. */
export const MAX_RETURN_MS = 2_000;

interface LogLine {
  level: number;
  msg: string;
}

/**
 * A replica with its log. A replica writes a line to its log when it loses Redis and when Redis is back. Tests wait for
 * these lines.
 */
export interface Replica extends Coordination {
  lines: LogLine[];
  imported: string[];
  /** Resolves when the latest line about Redis begins with this text. */
  untilSays(text: string): Promise<void>;
}

export const openReplica = async (
  url: string,
  prefix: string,
  more: Partial<RedisAccess> = {},
): Promise<Replica> => {
  const lines: LogLine[] = [];
  const imported: string[] = [];
  let told = Promise.withResolvers<void>();
  const write = (line: string) => {
    lines.push(JSON.parse(line));
    told.resolve();
    told = Promise.withResolvers();
  };
  const changes = () => lines.filter(({ msg }) => msg.startsWith(SHARED) || msg.startsWith(DEGRADED));
  const coordination = await openCoordination(
    {
      redis: accessTo(url, prefix, more),
      ...{ windowSeconds: 60, maxHeld: 100, maxHeldPerHolder: 16 },
    },
    { log: pino({ level: 'info' }, { write }), runImport: async (id) => void imported.push(id) },
  );
  onTestFinished(() => coordination.close());
  const untilSays = async (text: string) => {
    while (!changes().at(-1)?.msg.startsWith(text)) await told.promise;
  };
  return Object.assign(Object.create(coordination), { lines, imported, untilSays });
};

export const start = async (options?: RedisOptions): Promise<RedisServer> => {
  const server = await startRedis(options);
  onTestFinished(() => server.stop());
  return server;
};

export const openPair = async (url: string) => {
  const prefix = `test-${randomUUID()}`;
  const open = () => openReplica(url, prefix);
  const pair = [await open(), await open()] as const;
  for (const { state } of pair) expect(state).toBe('shared');
  return pair;
};

export const openAdmin = (url: string): Redis => {
  const admin = new Redis(url);
  admin.on('error', () => {});
  onTestFinished(() => admin.disconnect());
  return admin;
};

/**
 * Returns the promise's value, and fails if the promise takes longer than `waitMs`. The timer runs on the same event
 * loop as the promise, so a busy machine delays both. A value is still in time if it arrives in the turn of the loop in
 * which the timer fires.
 */
export const within = async <T>(waitMs: number, work: Promise<T>): Promise<T> => {
  const expire = async () => {
    await sleep(waitMs, undefined, { ref: false });
    await new Promise(setImmediate);
    throw new Error(`not within ${waitMs} ms`);
  };
  return Promise.race([work, expire()]);
};

export const wait = ({ notifier, clock }: Coordination, channel: string) =>
  notifier.register(channel, 'token').next(clock.now() + WAIT_MS);

/** Checks that two replicas share their limits and their notifications. */
export const expectShared = async (one: Replica, two: Replica) => {
  const key = randomUUID();
  const replicas = [one, two];
  for (let i = 0; i < LIMIT; i += 1) {
    expect(await replicas[i % 2]!.limiters.tokens.consume(key, LIMIT)).toMatchObject({
      admitted: true,
      remaining: LIMIT - 1 - i,
    });
  }
  expect(await two.limiters.tokens.consume(key, LIMIT)).toMatchObject({ admitted: false });
  expect(await one.limiters.addresses.consume(key, LIMIT)).toMatchObject({
    admitted: true,
    remaining: LIMIT - 1,
  });
  expect(await two.limiters.addresses.consume(key, LIMIT)).toMatchObject({
    admitted: true,
    remaining: LIMIT - 2,
  });
  for (const { limiters } of replicas) {
    expect(await limiters.addresses.peek(key, LIMIT)).toMatchObject({ admitted: true, remaining: LIMIT - 2 });
    expect(await limiters.tokens.peek(key, LIMIT)).toMatchObject({ admitted: false });
  }
  const end = wait(two, key);
  one.notifier.notify(key);
  expect(await end).toBe('woken');
};

/** Checks decision 27: without Redis, a replica enforces the exact limit on its own, and no request waits for Redis. */
export const expectAlone = async (replica: Replica) => {
  const key = randomUUID();
  for (let i = 0; i < LIMIT; i += 1) {
    const quota = await within(MAX_WAIT_MS, replica.limiters.tokens.consume(key, LIMIT));
    expect(quota).toMatchObject({ admitted: true, remaining: LIMIT - 1 - i });
  }
  expect(await within(MAX_WAIT_MS, replica.limiters.tokens.consume(key, LIMIT))).toMatchObject({
    admitted: false,
  });
  expect(await within(MAX_WAIT_MS, replica.limiters.tokens.consume(key, LIMIT + 1))).toMatchObject({
    ...{ admitted: true, limit: LIMIT + 1, remaining: 0 },
  });
  for (const admitted of [true, false]) {
    expect(await within(MAX_WAIT_MS, replica.limiters.addresses.consume(key, 1))).toMatchObject({ admitted });
  }
};
