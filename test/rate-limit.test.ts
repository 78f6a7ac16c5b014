import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openCoordination, startCounters } from '../src/coordination/open.ts';
import type { Quota, RateLimiter } from '../src/coordination/port.ts';
import { ProcessWindow } from '../src/coordination/process/window.ts';
import { RememberingLimiter } from '../src/coordination/remembering-limiter.ts';
import { ManualClock } from './support/manual-clock.ts';
import { useRedis } from './support/redis.ts';
import { accessTo } from './support/redis-access.ts';
import { silentLog } from './support/silent-log.ts';

const LIMIT = 5;
const WINDOW_SECONDS = 1;
const WINDOW_MS = 1_000 * WINDOW_SECONDS;
const ONE_SECOND = { keyPart: 'test', windowSeconds: WINDOW_SECONDS };

const server = useRedis();

/** A model of the limiter. Decision 26 promises at most `limit` admissions in any `windowMs`. */
class ExactWindow {
  readonly #windowMs: number;
  #admitted: number[] = [];

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
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

describe('the window of one process', () => {
  test('admits, refuses and counts exactly like the model, with any times and limits', async () => {
    await fc.assert(
      fc.asyncProperty(changes, pauses, async (list, steps) => {
        const clock = new ManualClock();
        const window = new ProcessWindow(WINDOW_SECONDS, clock);
        const limiter = new RememberingLimiter(window, ONE_SECOND, clock, startCounters());
        const model = new ExactWindow(WINDOW_MS);
        for (const [call, step] of steps.entries()) {
          clock.advance(step);
          const limit = limitAt(list, call);
          const peeked = await window.peek('key', limit);
          const { isRepeated: _, ...quota } = await limiter.consume('key', limit);
          expect(quota).toEqual(model.call(clock.now(), limit));
          expect(peeked.admitted).toBe(quota.admitted);
          if (quota.admitted) expect(peeked.remaining).toBe(quota.remaining + 1);
          expect(limiter.refusal('key', limit) !== undefined).toBe(quota.remaining === 0);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('removes a key from memory when it is no longer used', async () => {
    const clock = new ManualClock();
    const window = new ProcessWindow(WINDOW_SECONDS, clock);
    for (let i = 0; i < 1_000; i += 1) await window.consume(`key ${i}`, LIMIT);
    expect(window.size).toBe(1_000);
    clock.advance(WINDOW_MS);
    await window.consume('another', LIMIT);
    expect(window.size).toBe(1);
  });

  test('keeps at most a number of keys, those that were used last', async () => {
    const window = new ProcessWindow(WINDOW_SECONDS, new ManualClock(), { maxKeys: 10 });
    for (let i = 0; i < 12; i += 1) await window.consume(`key ${i}`, 1);
    expect(window.size).toBe(10);
    expect(await window.peek('key 1', 1)).toMatchObject({ admitted: true });
    expect(await window.peek('key 2', 1)).toMatchObject({ admitted: false });
  });

  test('keeps at most a number of requests of all keys together', async () => {
    const window = new ProcessWindow(WINDOW_SECONDS, new ManualClock(), { maxTimes: 100 });
    for (let i = 0; i < 13 * 9; i += 1) await window.consume(`key ${Math.floor(i / 9)}`, 9);
    expect(window.size).toBe(11);
  });
});

describe('the memory of refusals', () => {
  const open = (clock: ManualClock, counters = startCounters()) =>
    new RememberingLimiter(new ProcessWindow(WINDOW_SECONDS, clock), ONE_SECOND, clock, counters);

  test('marks all refusals of a key and window but the first, however often a slot becomes free', async () => {
    const clock = new ManualClock();
    const counters = startCounters();
    const limiter = open(clock, counters);
    const refusals: Quota[] = [];
    for (let n = 0; n < LIMIT; n += 1, clock.advance(WINDOW_MS / LIMIT)) await limiter.consume('key', LIMIT);
    // From here on, a slot becomes free every 200 ms. The key asks five times as often.
    for (let n = 0; n < 75; n += 1, clock.advance(40)) {
      const quota = await limiter.consume('key', LIMIT);
      if (!quota.admitted) refusals.push(quota);
    }
    expect(refusals.filter(({ isRepeated }) => !isRepeated)).toHaveLength(3);
    expect(counters.refused).toBe(refusals.length);
    for (let i = 0; i < LIMIT; i += 1) await limiter.consume('other', LIMIT);
    expect((await limiter.consume('other', LIMIT)).isRepeated).toBeUndefined();
    expect(limiter.refusal('other', LIMIT)).toMatchObject({ isRepeated: true });
  });

  test('forgets a key after its window, and keeps at most 100,000 keys', async () => {
    const clock = new ManualClock();
    const limiter = open(clock);
    for (let i = 0; i < 100_100; i += 1) await limiter.consume(`key ${i}`, 1);
    expect(limiter.size).toBe(100_000);
    expect(limiter.refusal('key 99', 1)).toBeUndefined();
    expect(limiter.refusal('key 100', 1)).toMatchObject({ admitted: false });
    clock.advance(2 * WINDOW_MS);
    await limiter.consume('another', 1);
    expect(limiter.size).toBe(1);
  });

  test('does not count failures as requests', async () => {
    const counters = startCounters();
    const clock = new ManualClock();
    const options = { ...ONE_SECOND, countsFailures: true };
    const limiter = new RememberingLimiter(
      new ProcessWindow(WINDOW_SECONDS, clock),
      options,
      clock,
      counters,
    );
    for (let i = 0; i < 3; i += 1) await limiter.consume('key', 1);
    expect(counters).toMatchObject({ admitted: 0, refused: 0 });
  });
});

describe('the Redis script', () => {
  const source = readFileSync(
    new URL('../src/coordination/redis/sliding-window.lua', import.meta.url),
    'utf8',
  );
  const asksTime = "redis.call('TIME')";

  /**
   * Calls the script as the library does. The script gets the time `now`, in milliseconds, instead of calling `TIME`.
   * With `points` 0, it records nothing.
   */
  const callAt = async (key: string, limit: number, now: number, points = 1): Promise<Quota> => {
    const script = source.replace(asksTime, 'cjson.decode(ARGV[#ARGV])');
    const time = JSON.stringify([String(Math.floor(now / 1_000)), String(Math.round((now % 1_000) * 1_000))]);
    const reply = await server.client.eval(script, 1, key, points, MINUTE_MS / 1_000, limit, 60, time);
    const [used, resetMs] = reply as [number, number];
    return { admitted: used <= limit, limit, remaining: Math.max(limit - used, 0), resetMs };
  };
  const newKey = () => `test:${randomUUID()}`;
  const START = 1_800_000_000_000;
  // Redis removes keys by its real clock. With a window of a minute, it removes none during a test.
  const MINUTE_MS = 60_000;

  test('admits, refuses and counts exactly like the model, with any times and limits', async () => {
    await fc.assert(
      fc.asyncProperty(changes, pauses, async (list, steps) => {
        const key = newKey();
        const model = new ExactWindow(MINUTE_MS);
        let now = START;
        for (const [call, step] of steps.entries()) {
          now += Math.round(step * (MINUTE_MS / WINDOW_MS));
          const limit = limitAt(list, call);
          const peeked = await callAt(key, limit, now, 0);
          const quota = await callAt(key, limit, now);
          expect(quota).toEqual(model.call(now, limit));
          expect(peeked.admitted).toBe(quota.admitted);
          if (quota.admitted) expect(peeked.remaining).toBe(quota.remaining + 1);
        }
        await server.client.del(key);
      }),
      { numRuns: 60 },
    );
  });

  test('counts requests of the same microsecond separately', async () => {
    const key = newKey();
    for (let i = 0; i < 20; i += 1) expect(await callAt(key, 20, START)).toMatchObject({ remaining: 19 - i });
    expect((await callAt(key, 20, START)).admitted).toBe(false);
    expect(await callAt(key, 20, START + 60_000)).toMatchObject({ admitted: true, remaining: 19 });
  });

  test('a window has its whole length, to the microsecond', async () => {
    const key = newKey();
    expect((await callAt(key, 1, START + 0.999)).admitted).toBe(true);
    expect(await callAt(key, 1, START + 60_000.998)).toMatchObject({ admitted: false, resetMs: 1 });
    expect((await callAt(key, 1, START + 60_000.999)).admitted).toBe(true);
  });

  test('admits nothing early after the clock was set back, and the key is free again after one window', async () => {
    const key = newKey();
    const call = (now: number) => callAt(key, 3, now);
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
          if ((await callAt(key, 3, shown)).admitted) admitted.push(truth);
        }
        admitted.forEach((time, i) => {
          if (i >= 3) expect(time - admitted[i - 3]!).toBeGreaterThanOrEqual(60_000);
        });
      }),
      { numRuns: 40 },
    );
  });

  test('lets a key expire one window after its last admitted request; refused requests do not extend it', async () => {
    const key = newKey();
    for (let i = 0; i < LIMIT; i += 1) await callAt(key, LIMIT, START);
    const before = await server.client.pttl(key);
    await callAt(key, LIMIT, START + 1);
    expect(before).toBeGreaterThan(50_000);
    expect(await server.client.pttl(key)).toBeLessThanOrEqual(before);
  });

  test('is exact for a log of 2,000 requests', async () => {
    const key = newKey();
    await Promise.all(Array.from({ length: 2_000 }, (_, i) => callAt(key, 100_000, START + 30 * i)));
    const quota = await callAt(key, 100_000, START + 90_000);
    expect(quota).toMatchObject({ remaining: 100_000 - 1_000, resetMs: 30 });
    expect(await server.client.zcard(key)).toBe(1_000);
  });
});

describe('limiters of several replicas on one Redis', () => {
  const openReplicas = async (count: number, windowSeconds: number) => {
    const redisPrefix = `test-${randomUUID()}`;
    const options = {
      redis: accessTo(server.url, redisPrefix),
      windowSeconds,
      maxHeld: 1,
      maxHeldPerHolder: 1,
    };
    const parts = { log: silentLog, runImport: async () => undefined };
    const replicas = await Promise.all(Array.from({ length: count }, () => openCoordination(options, parts)));
    onTestFinished(async () => {
      for (const replica of replicas) await replica.close();
    });
    for (const replica of replicas) expect(replica.state).toBe('shared');
    return { replicas, limiters: replicas.map(({ limiters }) => limiters), redisPrefix };
  };
  const openTokens = async (windowSeconds: number): Promise<[RateLimiter, RateLimiter]> => {
    const { limiters } = await openReplicas(2, windowSeconds);
    return [limiters[0]!.tokens, limiters[1]!.tokens];
  };
  /** Sleeps as long as a refusal says. Timers and the clocks of two processes may differ by some milliseconds. */
  const sleepUntilReset = ({ resetMs }: Quota) => sleep(resetMs + 20);
  const clockNow = () => performance.timeOrigin + performance.now();

  test('admit no more than the limit in any window, and refuse nothing while there is room', async () => {
    const { replicas } = await openReplicas(3, WINDOW_SECONDS);
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
    const { replicas } = await openReplicas(8, 60);
    const calls = Array.from({ length: 800 }, (_, i) =>
      replicas[i % 8]!.limiters.tokens.consume('one token', 100),
    );
    const quotas = await Promise.all(calls);
    expect(quotas.filter((quota) => quota.admitted)).toHaveLength(100);
    const left = quotas.filter((quota) => quota.admitted).map((quota) => quota.remaining);
    expect(new Set(left)).toEqual(new Set(Array.from({ length: 100 }, (_, i) => i)));
  });

  test('peek without counting, in windows of both kinds', async () => {
    const { limiters } = await openReplicas(2, 60);
    for (const name of ['tokens', 'addresses'] as const) {
      const [one, other] = [limiters[0]![name], limiters[1]![name]];
      expect(await other.peek('key', 2)).toEqual({ admitted: true, limit: 2, remaining: 2, resetMs: 0 });
      await one.consume('key', 2);
      for (let i = 0; i < 3; i += 1) {
        expect(await other.peek('key', 2)).toMatchObject({ admitted: true, limit: 2, remaining: 1 });
      }
      await one.consume('key', 2);
      expect(other.refusal('key', 2)).toBeUndefined();
      const full = await other.peek('key', 2);
      expect(full).toMatchObject({ admitted: false, remaining: 0 });
      expect(full.resetMs).toBeGreaterThan(50_000);
      expect(full.resetMs).toBeLessThanOrEqual(60_000);
      expect(other.refusal('key', 2)).toMatchObject({ admitted: false });
    }
  });

  test('whose windows do not slide admit exactly the limit in each window, which begins with the first request', async () => {
    const { limiters } = await openReplicas(2, WINDOW_SECONDS);
    const consume = (i: number) => limiters[i % 2]!.addresses.consume('key', LIMIT);
    const quotas = await Promise.all(Array.from({ length: 20 }, (_, i) => consume(i)));
    expect(quotas.filter(({ admitted }) => admitted)).toHaveLength(LIMIT);
    const refusal = limiters[0]!.addresses.refusal('key', LIMIT)!;
    expect(refusal.resetMs).toBeLessThanOrEqual(WINDOW_MS);
    await sleepUntilReset(refusal);
    expect(await consume(0)).toMatchObject({ admitted: true, remaining: LIMIT - 1 });
  });

  test('refuse a refused key from memory, without a call to Redis, until its slot is free', async () => {
    const { limiters, redisPrefix } = await openReplicas(2, WINDOW_SECONDS);
    const [one, other] = [limiters[0]!.tokens, limiters[1]!.tokens];
    await one.consume('key', 2);
    await one.consume('key', 2);
    expect(other.refusal('key', 2)).toBeUndefined();
    expect(await other.consume('key', 2)).toMatchObject({ admitted: false, remaining: 0 });
    await server.client.del(`${redisPrefix}:window:token:key`);
    const refusal = other.refusal('key', 2)!;
    expect(refusal).toMatchObject({ admitted: false, limit: 2, remaining: 0 });
    expect((await other.consume('key', 2)).admitted).toBe(false);
    expect(await server.client.exists(`${redisPrefix}:window:token:key`)).toBe(0);
    await sleepUntilReset(refusal);
    expect(other.refusal('key', 2)).toBeUndefined();
    expect((await other.consume('key', 2)).admitted).toBe(true);
  });

  test('admit a caller that waits as long as the refusal says', async () => {
    const tokens = await openTokens(WINDOW_SECONDS);
    for (let i = 0; i < 9; i += 1) {
      const quota = await tokens[i % 2]!.consume('key', 3);
      if (quota.admitted) continue;
      expect(quota.resetMs).toBeGreaterThan(0);
      expect(quota.resetMs).toBeLessThanOrEqual(WINDOW_MS);
      await sleepUntilReset(quota);
      expect(await tokens[i % 2]!.consume('key', 3)).toMatchObject({ admitted: true });
    }
  });

  test('report a remaining quota that decreases by one per call, and the reset of the oldest request', async () => {
    const [tokens] = await openTokens(60);
    const first = await tokens.consume('key', 3);
    expect(first).toEqual({ admitted: true, limit: 3, remaining: 2, resetMs: 60_000 });
    await sleep(20);
    const second = await tokens.consume('key', 3);
    expect(second.remaining).toBe(1);
    expect(second.resetMs).toBeLessThanOrEqual(60_000 - 15);
    const third = await tokens.consume('key', 3);
    expect(third.remaining).toBe(0);
    expect(third.resetMs).toBeLessThanOrEqual(second.resetMs);
    const refused = await tokens.consume('key', 3);
    expect(refused).toMatchObject({ admitted: false, limit: 3, remaining: 0 });
    expect(refused.resetMs).toBeLessThanOrEqual(third.resetMs);
  });

  test('apply a raised limit at once, even if the key was refused a moment before', async () => {
    const [one, other] = await openTokens(60);
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
    const [one, other] = await openTokens(3);
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
    await sleepUntilReset(other.refusal('key', 2)!);
    expect(await one.consume('key', 2)).toMatchObject({ admitted: true });
  });

  test('ask Redis about a lowered limit that only this process has reached', async () => {
    const [one, other] = await openTokens(10);
    await one.consume('key', 9);
    const oldestLeavesAt = await freeAt(one.consume('key', 9), 'before');
    await sleep(300);
    for (let i = 0; i < 2; i += 1) await other.consume('key', 9);
    // From its own memory alone, the first process would conclude that a slot is free when its own oldest entry leaves
    // the window. That is too early.
    expect(await freeAt(one.consume('key', 2), 'after')).toBeGreaterThan(oldestLeavesAt + 250);
  });

  test('count the same requests for several limits with one key', async () => {
    const [one, other] = await openTokens(60);
    for (let limit = 1; limit <= 40; limit += 1) {
      const limiter = limit % 2 === 0 ? one : other;
      expect(await limiter.consume('key', limit)).toMatchObject({ admitted: true, limit, remaining: 0 });
    }
    expect(await one.consume('key', 50)).toMatchObject({ admitted: true, remaining: 9 });
  });

  test('count tokens and addresses separately', async () => {
    const { limiters } = await openReplicas(1, 60);
    const { tokens, addresses } = limiters[0]!;
    expect((await tokens.consume('same', 1)).admitted).toBe(true);
    expect((await addresses.consume('same', 1)).admitted).toBe(true);
    expect((await tokens.consume('same', 1)).admitted).toBe(false);
    expect((await addresses.consume('same', 1)).admitted).toBe(false);
  });

  test('let every key expire', async () => {
    const { replicas, redisPrefix } = await openReplicas(1, WINDOW_SECONDS);
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
