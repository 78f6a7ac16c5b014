import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openCoordination, startCounters } from '../src/coordination/open.ts';
import type { Quota, RateLimiter } from '../src/coordination/port.ts';
import { ProcessRateLimiter } from '../src/coordination/process-limiter.ts';
import { ManualClock } from './support/manual-clock.ts';
import { useRedis } from './support/redis.ts';
import { accessTo } from './support/redis-access.ts';
import { silentLog } from './support/silent-log.ts';

const LIMIT = 5;
const WINDOW_MS = 1_000;

const server = useRedis();

/** A model of the limiter. Decision 26 promises at most `limit` admissions in any `windowMs`. */
class ExactWindow {
  readonly #windowMs: number;
  #admitted: number[] = [];

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  hasRoom(now: number, limit: number): boolean {
    return this.#admitted.filter((time) => time > now - this.#windowMs).length < limit;
  }

  call(now: number, limit: number): Quota {
    const counted = this.#admitted.filter((time) => time > now - this.#windowMs);
    const admitted = counted.length < limit;
    if (admitted) counted.push(now);
    this.#admitted = counted;
    // A slot becomes free when the oldest entry leaves the window. After the limit was lowered, a slot becomes free
    // only when fewer entries than the limit remain in the window.
    const leaver = counted[Math.max(counted.length - limit, 0)]!;
    const remaining = Math.max(limit - counted.length, 0);
    return { admitted, limit, remaining, resetMs: leaver + this.#windowMs - now };
  }
}

/**
 * Generates pauses between calls. Most are zero or a few milliseconds. Some are near the length of a window or far
 * beyond it.
 */
const pauses = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.constant(0) },
    { weight: 6, arbitrary: fc.integer({ min: 0, max: 40 }) },
    { weight: 1, arbitrary: fc.integer({ min: WINDOW_MS - 2, max: WINDOW_MS + 2 }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 3 * WINDOW_MS }) },
  ),
  { maxLength: 120 },
);
const limits = fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 8 }), fc.constant(300));
/** Generates limits, which apply one after another. */
const changes = fc.array(limits, { minLength: 1, maxLength: 4 });
const limitAt = (list: readonly number[], call: number): number => list[Math.floor(call / 6) % list.length]!;

describe('the limiter of one process', () => {
  test('admits, refuses and counts exactly like the model, with any times and limits', async () => {
    await fc.assert(
      fc.asyncProperty(changes, pauses, async (list, steps) => {
        const clock = new ManualClock();
        const limiter = new ProcessRateLimiter(WINDOW_MS, clock, startCounters());
        const model = new ExactWindow(WINDOW_MS);
        for (const [call, step] of steps.entries()) {
          clock.advance(step);
          const limit = limitAt(list, call);
          const quota = await limiter.consume('key', limit);
          expect(quota).toEqual(model.call(clock.now(), limit));
          if (quota.admitted) expect(limiter.refusal('key', limit) !== undefined).toBe(quota.remaining === 0);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('removes a key from memory when it is no longer used', async () => {
    const clock = new ManualClock();
    const limiter = new ProcessRateLimiter(WINDOW_MS, clock, startCounters());
    for (let i = 0; i < 1_000; i += 1) await limiter.consume(`key ${i}`, LIMIT);
    expect(limiter.size).toBe(1_000);
    clock.advance(WINDOW_MS);
    await limiter.consume('another', LIMIT);
    expect(limiter.size).toBe(1);
  });

  test('uses limited memory with any number of keys', () => {
    const limiter = new ProcessRateLimiter(WINDOW_MS, new ManualClock(), startCounters());
    for (let i = 0; i < 260_000; i += 1) limiter.admit(`key ${i}`, LIMIT);
    expect(limiter.size).toBe(250_000);
  });

  test('uses limited memory with any number of requests: of keys with 100,000 requests each, it keeps the last 40', () => {
    const limiter = new ProcessRateLimiter(WINDOW_MS, new ManualClock(), startCounters());
    for (let key = 0; key < 45; key += 1) {
      for (let n = 0; n < 100_000; n += 1) limiter.record(`key ${key}`, 100_000, 0);
    }
    expect(limiter.size).toBe(40);
  });
});

describe('the Redis script', () => {
  const source = readFileSync(new URL('../src/coordination/sliding-window.lua', import.meta.url), 'utf8');
  const asksTime = "redis.call('TIME')";

  /** Calls the script for one key. The script gets the time `now` instead of calling `TIME`. */
  const callAt = async (key: string, limit: number, windowMs: number, now: number): Promise<Quota> => {
    return (await callAllAt([{ key, limit }], windowMs, now))[0]!;
  };

  /** Calls the script for a request with several keys, and returns the result for each key. */
  const callAllAt = async (keys: { key: string; limit: number }[], windowMs: number, now: number) => {
    const script = source.replace(asksTime, 'cjson.decode(ARGV[#ARGV])');
    const time = JSON.stringify([String(Math.floor(now / 1_000)), String((now % 1_000) * 1_000)]);
    const names = keys.map(({ key }) => key);
    const limitsOfKeys = keys.map(({ limit }) => limit);
    const reply = await server.client.eval(script, keys.length, ...names, windowMs, ...limitsOfKeys, time);
    return keys.map(({ limit }, i): Quota => {
      const [used, resetMs] = (reply as number[]).slice(2 * i) as [number, number];
      return { admitted: used <= limit, limit, remaining: Math.max(limit - used, 0), resetMs };
    });
  };
  const newKey = () => `test:${randomUUID()}`;
  const START = 1_800_000_000_000;

  test('admits, refuses and counts exactly like the model, with any times and limits', async () => {
    await fc.assert(
      fc.asyncProperty(changes, pauses, async (list, steps) => {
        const key = newKey();
        // Redis removes keys by its real clock. With a window of a minute, it removes none during the test.
        const windowMs = 60_000;
        const model = new ExactWindow(windowMs);
        let now = START;
        for (const [call, step] of steps.entries()) {
          now += Math.round(step * (windowMs / WINDOW_MS));
          const limit = limitAt(list, call);
          expect(await callAt(key, limit, windowMs, now)).toEqual(model.call(now, limit));
        }
        await server.client.del(key);
      }),
      { numRuns: 60 },
    );
  });

  test('counts a request with two keys under both, or under neither if one of them is full', async () => {
    const run = async (steps: number[], limitOfEach: number, limitOfBoth: number, times: number) => {
      const [group, ...members] = [newKey(), newKey(), newKey()];
      const windowMs = 60_000;
      const models = new Map([group, ...members].map((key) => [key!, new ExactWindow(windowMs)]));
      let now = START;
      for (const [call, step] of steps.entries()) {
        now += step * times;
        const key = members[call % 2]!;
        const limits = [
          { key, limit: limitOfEach },
          { key: group!, limit: limitOfBoth },
        ];
        const quotas = await callAllAt(limits, windowMs, now);
        const hasRoom = limits.every((counted) => models.get(counted.key)!.hasRoom(now, counted.limit));
        expect(quotas.every(({ admitted }) => admitted)).toBe(hasRoom);
        for (const [i, counted] of limits.entries()) {
          const model = models.get(counted.key)!;
          if (hasRoom) expect(quotas[i]).toEqual(model.call(now, counted.limit));
          else expect(quotas[i]!.admitted).toBe(model.hasRoom(now, counted.limit));
          if (!hasRoom && !quotas[i]!.admitted) expect(quotas[i]).toEqual(model.call(now, counted.limit));
        }
      }
    };
    const some = fc.integer({ min: 1, max: 8 });
    // In this example, a request that one key refuses must not count for the other key.
    const examples: [number[], number, number, number][] = [[[1, 1, 1, 1, 1, 1], 1, 3, 60]];
    await fc.assert(fc.asyncProperty(pauses, some, some, fc.constant(60), run), { numRuns: 40, examples });
  });

  test('is equally exact for a log that is longer than its first read', async () => {
    const key = newKey();
    const model = new ExactWindow(60_000);
    for (let i = 0; i < 3_000; i += 1) {
      const now = START + i * 53 + (i % 7);
      expect(await callAt(key, 900, 60_000, now)).toEqual(model.call(now, 900));
    }
  });

  test('admits nothing early after the clock was set back, and the key is free again after one window', async () => {
    const key = newKey();
    const call = (now: number) => callAt(key, 3, 60_000, now);
    for (const now of [START, START + 10, START + 20]) expect((await call(now)).admitted).toBe(true);
    const hourBack = START - 3_600_000;
    expect(await call(hourBack)).toMatchObject({ admitted: false, resetMs: 60_000 - 20 });
    expect((await call(hourBack + 59_979)).admitted).toBe(false);
    expect(await call(hourBack + 59_980)).toMatchObject({ admitted: true, remaining: 0 });
    expect((await call(hourBack + 59_981)).admitted).toBe(false);
  });

  test('never admits more than the limit in a window of true time, even if the clock is set back at random', async () => {
    const steps = fc.array(
      fc.record({ pause: fc.integer({ min: 0, max: 20_000 }), back: fc.integer({ min: 0, max: 90_000 }) }),
      { maxLength: 60 },
    );
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const key = newKey();
        const admitted: number[] = [];
        let truth = START;
        let shown = START;
        for (const { pause, back } of list) {
          truth += pause;
          shown += pause - back;
          if ((await callAt(key, 3, 60_000, shown)).admitted) admitted.push(truth);
        }
        admitted.forEach((time, i) => {
          if (i >= 3) expect(time - admitted[i - 3]!).toBeGreaterThanOrEqual(60_000);
        });
      }),
      { numRuns: 40 },
    );
  });

  test('is exact for a log that began weeks ago', async () => {
    const key = newKey();
    const weeksAgo = START - 40 * 86_400_000;
    const log = Buffer.alloc(12 + 4 * 4);
    log.writeDoubleBE(weeksAgo, 0);
    log.writeUInt32BE(3, 8);
    log.writeUInt32BE(START - 100 - weeksAgo, 12 + 3 * 4);
    await server.client.set(key, log, 'PX', 60_000);
    expect(await callAt(key, 2, 60_000, START)).toMatchObject({
      admitted: true,
      remaining: 0,
      resetMs: 59_900,
    });
    expect(await callAt(key, 2, 60_000, START + 59_899)).toMatchObject({ admitted: false, resetMs: 1 });
    expect(await callAt(key, 2, 60_000, START + 59_900)).toMatchObject({ admitted: true, resetMs: 100 });
    expect((await server.client.getBuffer(key))?.readDoubleBE(0)).toBeGreaterThan(weeksAgo);
  });

  test('lets a key expire one window after its last admitted request; refused requests do not extend it', async () => {
    const key = newKey();
    for (let i = 0; i < LIMIT; i += 1) await callAt(key, LIMIT, 60_000, START);
    const before = await server.client.pttl(key);
    await callAt(key, LIMIT, 60_000, START + 1);
    expect(before).toBeGreaterThan(50_000);
    expect(await server.client.pttl(key)).toBeLessThanOrEqual(before);
  });

  test('keeps a log of 100,000 entries small, and does not rewrite it when it reads it', async () => {
    const key = newKey();
    const calls = Array.from({ length: 30_000 }, (_, i) => callAt(key, 100_000, 60_000, START + i));
    await Promise.all(calls);
    expect(await server.client.strlen(key)).toBe(12 + 4 * 30_000);
    expect(await callAt(key, 100_000, 60_000, START + 70_000)).toMatchObject({
      remaining: 100_000 - 20_000,
      resetMs: 1,
    });
    expect(await server.client.strlen(key)).toBe(12 + 4 * 30_001);
  });
});

describe('limiters of several replicas on one Redis', () => {
  const openReplicas = async (count: number, windowMs: number) => {
    const redisPrefix = `test-${randomUUID()}`;
    const options = { redis: accessTo(server.url, redisPrefix), windowMs, maxHeld: 1, maxHeldPerHolder: 1 };
    const parts = { log: silentLog, runImport: async () => {} };
    const replicas = await Promise.all(Array.from({ length: count }, () => openCoordination(options, parts)));
    onTestFinished(async () => {
      for (const replica of replicas) await replica.close();
    });
    for (const replica of replicas) expect(replica.state).toBe('shared');
    return { replicas, limiters: replicas.map(({ limiters }) => limiters), redisPrefix };
  };
  const openTokens = async (windowMs: number): Promise<[RateLimiter, RateLimiter]> => {
    const { limiters } = await openReplicas(2, windowMs);
    return [limiters[0]!.tokens, limiters[1]!.tokens];
  };
  const clockNow = () => performance.timeOrigin + performance.now();

  test('admit no more than the limit in any window, and refuse nothing while there is room', async () => {
    const { replicas } = await openReplicas(3, WINDOW_MS);
    const schedule = fc.array(
      fc.record({
        replica: fc.integer({ min: 0, max: 2 }),
        pauseMs: fc.oneof(
          fc.constant(0),
          fc.integer({ min: 0, max: 60 }),
          fc.integer({ min: 100, max: 400 }),
        ),
      }),
      { minLength: 20, maxLength: 60 },
    );
    const run = async (calls: { replica: number; pauseMs: number }[]) => {
      const key = randomUUID();
      const admitted: { sent: number; received: number }[] = [];
      for (const { replica, pauseMs } of calls) {
        if (pauseMs > 0) await sleep(pauseMs);
        const sent = clockNow();
        const quota = await replicas[replica]!.limiters.tokens.consume(key, LIMIT);
        const received = clockNow();
        // Redis reads its clock, in whole milliseconds, at some time between the call and the response. So the test
        // cannot tell for some earlier calls whether they are in the window.
        const surely = admitted.filter((call) => call.sent - 1 > received - WINDOW_MS).length;
        const maybe = admitted.filter((call) => call.received + 1 > sent - WINDOW_MS).length;
        if (quota.admitted) expect(surely).toBeLessThan(LIMIT);
        else expect(maybe).toBeGreaterThanOrEqual(LIMIT);
        if (quota.admitted) admitted.push({ sent, received });
        if (quota.admitted) expect(quota.remaining).toBeLessThanOrEqual(LIMIT - 1 - surely);
        if (quota.admitted) expect(quota.remaining).toBeGreaterThanOrEqual(LIMIT - 1 - maybe);
      }
    };
    // The schedules run at the same time with different keys, so that their waits overlap.
    await Promise.all(fc.sample(schedule, 40).map(run));
    for (const replica of replicas) expect(replica.counters.fallback).toBe(0);
    const admitted = replicas.reduce((sum, { counters }) => sum + counters.admitted, 0);
    const refused = replicas.reduce((sum, { counters }) => sum + counters.refused, 0);
    expect(admitted).toBeGreaterThan(0);
    expect(refused).toBeGreaterThan(0);
  });

  test('admit exactly 100 of 800 simultaneous calls over 8 connections', async () => {
    const { replicas } = await openReplicas(8, 60_000);
    const calls = Array.from({ length: 800 }, (_, i) =>
      replicas[i % 8]!.limiters.tokens.consume('one token', 100),
    );
    const quotas = await Promise.all(calls);
    expect(quotas.filter((quota) => quota.admitted)).toHaveLength(100);
    const left = quotas.filter((quota) => quota.admitted).map((quota) => quota.remaining);
    expect(new Set(left)).toEqual(new Set(Array.from({ length: 100 }, (_, i) => i)));
  });

  test("admit exactly a group's limit for 50 members that call two replicas at once", async () => {
    const { limiters } = await openReplicas(2, 60_000);
    const group = { key: '{u1}', limit: 20 };
    const call = (n: number) => limiters[n % 2]!.tokens.consume(`{u1}:${n}`, 10, group);
    const quotas = await Promise.all(Array.from({ length: 50 }, (_, n) => call(n)));
    expect(quotas.filter(({ admitted }) => admitted)).toHaveLength(20);
    for (const quota of quotas.filter(({ admitted }) => !admitted)) {
      expect(quota).toMatchObject({ ofGroup: true, limit: 20, remaining: 0 });
    }
    // The limiter remembers that the group is full. Without asking Redis, it refuses calls of every member, even of one
    // that has never called. It does not refuse calls of other groups.
    expect(limiters[0]!.tokens.refusal('{u1}:new', 10, group)).toMatchObject({ ofGroup: true });
    const other = { key: '{u2}', limit: 20 };
    expect(await limiters[0]!.tokens.consume('{u2}:1', 10, other)).toMatchObject({
      admitted: true,
      limit: 10,
    });
  });

  test.each(['Redis', 'one process'])(
    'do not count a request that one of two limits refuses, in %s',
    async (where) => {
      const limiter =
        where === 'Redis'
          ? (await openTokens(60_000))[0]
          : new ProcessRateLimiter(60_000, new ManualClock(), startCounters());
      const ask = (key: string, limitOfGroup = 4) =>
        limiter.consume(`{u1}:${key}`, 2, { key: '{u1}', limit: limitOfGroup });
      // The response describes the limit with fewer requests left: the token's or the group's. If both have the same
      // number left, it describes the token's limit.
      expect(await ask('a')).toMatchObject({ admitted: true, limit: 2, remaining: 1 });
      expect(await ask('a')).toMatchObject({ admitted: true, limit: 2, remaining: 0 });
      for (let i = 0; i < 5; i += 1) {
        const refused = await ask('a');
        expect(refused).toMatchObject({ admitted: false, limit: 2, remaining: 0 });
        expect(refused.ofGroup).toBeUndefined();
      }
      // The group did not count the five refused requests, so it can still admit two.
      expect(await ask('b')).toMatchObject({ admitted: true, limit: 2, remaining: 1 });
      expect(await ask('c')).toMatchObject({ admitted: true, limit: 4, remaining: 0, ofGroup: true });
      for (let i = 0; i < 5; i += 1) {
        expect(await ask('b')).toMatchObject({ admitted: false, limit: 4, ofGroup: true });
      }
      // Key b did not count its refused requests either. With a higher limit for the group, key b has exactly one
      // request left.
      expect(await ask('b', 9)).toMatchObject({ admitted: true, limit: 2, remaining: 0 });
      expect(await ask('b', 9)).toMatchObject({ admitted: false, limit: 2 });
    },
  );

  test('refuse a refused key from memory, without a call to Redis, until its slot is free', async () => {
    const { limiters, redisPrefix } = await openReplicas(2, WINDOW_MS);
    const [one, other] = [limiters[0]!.tokens, limiters[1]!.tokens];
    await one.consume('key', 2);
    await one.consume('key', 2);
    expect(other.refusal('key', 2)).toBeUndefined();
    expect(await other.consume('key', 2)).toMatchObject({ admitted: false, remaining: 0 });
    await server.client.del(`${redisPrefix}:limit:token:key`);
    const refusal = other.refusal('key', 2)!;
    expect(refusal).toMatchObject({ admitted: false, limit: 2, remaining: 0 });
    expect((await other.consume('key', 2)).admitted).toBe(false);
    expect(await server.client.exists(`${redisPrefix}:limit:token:key`)).toBe(0);
    await sleep(refusal.resetMs);
    expect(other.refusal('key', 2)).toBeUndefined();
    expect((await other.consume('key', 2)).admitted).toBe(true);
  });

  test('admit a caller that waits as long as the refusal says', async () => {
    const tokens = await openTokens(WINDOW_MS);
    for (let i = 0; i < 9; i += 1) {
      const quota = await tokens[i % 2]!.consume('key', 3);
      if (quota.admitted) continue;
      expect(quota.resetMs).toBeGreaterThan(0);
      expect(quota.resetMs).toBeLessThanOrEqual(WINDOW_MS);
      await sleep(quota.resetMs + 1);
      expect(await tokens[i % 2]!.consume('key', 3)).toMatchObject({ admitted: true });
    }
  });

  test('report a remaining quota that decreases by one per call, and the reset of the oldest request', async () => {
    const [tokens] = await openTokens(60_000);
    const first = await tokens.consume('key', 3);
    expect(first).toEqual({ admitted: true, limit: 3, remaining: 2, resetMs: 60_000 });
    await sleep(20);
    const second = await tokens.consume('key', 3);
    expect(second.remaining).toBe(1);
    expect(second.resetMs).toBeLessThanOrEqual(60_000 - 19);
    const third = await tokens.consume('key', 3);
    expect(third.remaining).toBe(0);
    expect(third.resetMs).toBeLessThanOrEqual(second.resetMs);
    const refused = await tokens.consume('key', 3);
    expect(refused).toMatchObject({ admitted: false, limit: 3, remaining: 0 });
    expect(refused.resetMs).toBeLessThanOrEqual(third.resetMs);
  });

  test('apply a raised limit at once, even if the key was refused a moment before', async () => {
    const [one, other] = await openTokens(60_000);
    for (let i = 0; i < 2; i += 1) await one.consume('key', 2);
    expect((await other.consume('key', 2)).admitted).toBe(false);
    expect(other.refusal('key', 3)).toBeUndefined();
    expect(await other.consume('key', 3)).toMatchObject({ admitted: true, limit: 3, remaining: 0 });
    expect(await one.consume('key', 3)).toMatchObject({ admitted: false, limit: 3, remaining: 0 });
  });

  /**
   * Returns when a slot becomes free according to the quota, in milliseconds of `performance.now()`. With `before`, the
   * time counts from the call, which gives the earliest possible time. With `after`, it counts from the response.
   */
  const freeAt = async (call: Promise<Quota>, from: 'before' | 'after'): Promise<number> => {
    const before = performance.now();
    const { resetMs } = await call;
    return (from === 'before' ? before : performance.now()) + resetMs;
  };

  test('report after a lowered limit when a slot is really free, on every replica', async () => {
    const [one, other] = await openTokens(3_000);
    await one.consume('key', 4);
    await sleep(300);
    await other.consume('key', 4);
    await sleep(300);
    await one.consume('key', 4);
    const oldestLeavesAt = await freeAt(other.consume('key', 4), 'before');
    for (const tokens of [one, other]) {
      const refused = tokens.consume('key', 2);
      expect(await freeAt(refused, 'after')).toBeGreaterThan(oldestLeavesAt + 500);
      expect(await refused).toMatchObject({ admitted: false, limit: 2, remaining: 0 });
      const fromMemory = Promise.resolve(tokens.refusal('key', 2)!);
      expect(await freeAt(fromMemory, 'after')).toBeGreaterThan(oldestLeavesAt + 500);
    }
    // Redis counts in whole milliseconds, and a timer may fire a millisecond too early.
    await sleep(other.refusal('key', 2)!.resetMs + 3);
    expect(await one.consume('key', 2)).toMatchObject({ admitted: true });
  });

  test('ask Redis about a lowered limit that only this process has reached', async () => {
    const [one, other] = await openTokens(10_000);
    await one.consume('key', 9);
    const oldestLeavesAt = await freeAt(one.consume('key', 9), 'before');
    await sleep(300);
    for (let i = 0; i < 2; i += 1) await other.consume('key', 9);
    // From its own memory alone, the first process would conclude that a slot is free when its own oldest entry leaves
    // the window. That is too early.
    expect(await freeAt(one.consume('key', 2), 'after')).toBeGreaterThan(oldestLeavesAt + 250);
  });

  test('count the same requests for several limits with one key', async () => {
    const [one, other] = await openTokens(60_000);
    for (let limit = 1; limit <= 40; limit += 1) {
      const limiter = limit % 2 === 0 ? one : other;
      expect(await limiter.consume('key', limit)).toMatchObject({ admitted: true, limit, remaining: 0 });
    }
    expect(await one.consume('key', 50)).toMatchObject({ admitted: true, remaining: 9 });
  });

  test('count tokens and addresses separately', async () => {
    const { limiters } = await openReplicas(1, 60_000);
    const { tokens, addresses } = limiters[0]!;
    expect((await tokens.consume('same', 1)).admitted).toBe(true);
    expect((await addresses.consume('same', 1)).admitted).toBe(true);
    expect((await tokens.consume('same', 1)).admitted).toBe(false);
    expect((await addresses.consume('same', 1)).admitted).toBe(false);
  });

  test('let every key expire', async () => {
    const { replicas, redisPrefix } = await openReplicas(1, WINDOW_MS);
    for (let i = 0; i < 20; i += 1) await replicas[0]!.limiters.tokens.consume(`key ${i}`, LIMIT);
    const keys = await server.client.keys(`${redisPrefix}:*`);
    expect(keys.length).toBeGreaterThanOrEqual(20);
    for (const key of keys) {
      const ttlMs = await server.client.pttl(key);
      expect(ttlMs).toBeGreaterThan(-1);
      expect(ttlMs).toBeLessThanOrEqual(WINDOW_MS);
    }
  });
});
