import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Context } from '../src/context.ts';
import { openCoordination } from '../src/coordination/open.ts';
import type { Coordination, Waiter } from '../src/coordination/port.ts';
import { WaiterRegistry } from '../src/coordination/waiters.ts';
import type { Principal } from '../src/domain/tokens.ts';
import { readOrWait } from '../src/routes/long-poll.ts';
import { notifyAfter } from '../src/routes/notify-after.ts';
import { DatabaseUnavailable } from '../src/store/driver/errors.ts';
import { wait } from './support/coordination.ts';
import { ManualClock } from './support/manual-clock.ts';
import { useRedis } from './support/redis.ts';
import { accessTo } from './support/redis-access.ts';
import { startService } from './support/service.ts';
import { silentLog } from './support/silent-log.ts';

const WAIT_MS = 29_000;
const NOTHING_LEFT = { channels: 0, holders: 0 };

const openRegistry = (places = { maxHeld: 10_000, maxHeldPerHolder: 16 }, options = {}) => {
  const clock = new ManualClock();
  return { clock, registry: new WaiterRegistry(clock, places, options), deadline: clock.now() + WAIT_MS };
};

describe('a waiter', () => {
  test('is woken by a notification on its channel, and by no other', async () => {
    const { registry, deadline, clock } = openRegistry();
    const waiter = registry.register('user:1', 'token');
    const end = waiter.next(deadline);
    registry.notify('user:2');
    registry.notify('user:11');
    clock.advance(WAIT_MS - 200);
    registry.notify('user:1');
    expect(await end).toBe('woken');
  });

  test('does not lose a notification that arrives while it queries', async () => {
    const { registry, deadline } = openRegistry();
    const waiter = registry.register('user:1', 'token');
    registry.notify('user:1');
    registry.notify('user:1');
    expect(await waiter.next(deadline)).toBe('woken');
    const end = waiter.next(deadline);
    registry.notify('user:1');
    expect(await end).toBe('woken');
  });

  test('ends with a timeout at its deadline and not earlier', async () => {
    const { registry, clock, deadline } = openRegistry();
    const waiter = registry.register('user:1', 'token');
    let ended = false;
    const end = waiter.next(deadline).finally(() => {
      ended = true;
    });
    clock.advance(WAIT_MS - 1);
    await Promise.resolve();
    expect(ended).toBe(false);
    clock.advance(1);
    expect(await end).toBe('timeout');
    expect(await waiter.next(deadline)).toBe('timeout');
  });

  test('ends with a check at its deadline if notifications of other processes cannot arrive', async () => {
    const { registry, clock, deadline } = openRegistry(undefined, { hearsOthers: false });
    const waiter = registry.register('user:1', 'token');
    const end = waiter.next(deadline);
    clock.advance(WAIT_MS);
    expect(await end).toBe('check');
    expect(await waiter.next(deadline)).toBe('timeout');
  });

  test('ends at once when its client disconnects, and stays ended', async () => {
    const { registry, deadline } = openRegistry();
    const waiter = registry.register('user:1', 'token');
    const end = waiter.next(deadline);
    waiter.cancel();
    expect(await end).toBe('gone');
    registry.notify('user:1');
    expect(await waiter.next(deadline)).toBe('gone');
  });

  test('leaves no entry and no timer after its release, even if it is released several times', async () => {
    const { registry, clock, deadline } = openRegistry();
    const waiter = registry.register('user:1', 'token');
    expect(waiter.hold()).toBeUndefined();
    const end = waiter.next(deadline);
    waiter.release();
    waiter.release();
    expect(await end).toBe('gone');
    expect(registry.held).toBe(0);
    expect(registry.leftovers).toEqual(NOTHING_LEFT);
    expect(clock.timers).toBe(0);
  });

  test('counts as one held wait even if it is held several times', () => {
    const { registry } = openRegistry();
    const waiter = registry.register('user:1', 'token');
    waiter.hold();
    waiter.hold();
    expect(registry.held).toBe(1);
  });
});

test('the waiters of a channel are woken in batches of at most 250 per turn of the event loop', async () => {
  const { registry, deadline } = openRegistry();
  let woken = 0;
  const waits = Array.from({ length: 600 }, async () => {
    await registry.register('user:1', 'token').next(deadline);
    woken += 1;
  });
  registry.notify('user:1');
  const seen: number[] = [];
  while (woken < waits.length) {
    await new Promise(process.nextTick);
    seen.push(woken);
    await new Promise(setImmediate);
  }
  expect([...new Set(seen)]).toEqual([250, 500]);
});

describe('the limits of held waits', () => {
  test('allow 16 for each token, independent of other tokens', () => {
    const { registry } = openRegistry();
    const hold = (holder: string) => {
      const waiter = registry.register('user:1', holder);
      return { waiter, refusal: waiter.hold() };
    };
    const held = Array.from({ length: 16 }, () => hold('token'));
    for (const { refusal } of held) expect(refusal).toBeUndefined();
    expect(hold('token').refusal).toBe('holder-full');
    expect(hold('another').refusal).toBeUndefined();
    held[0]!.waiter.release();
    expect(hold('token').refusal).toBeUndefined();
  });

  test('include one for the whole replica', () => {
    const { registry } = openRegistry({ maxHeld: 3, maxHeldPerHolder: 2 });
    const hold = (holder: string) => registry.register('user:1', holder).hold();
    expect([hold('a'), hold('a'), hold('b')]).toEqual([undefined, undefined, undefined]);
    expect(hold('b')).toBe('replica-full');
    expect(hold('a')).toBe('holder-full');
  });

  test('do not count waits that are not held', () => {
    const { registry } = openRegistry({ maxHeld: 1, maxHeldPerHolder: 1 });
    for (let i = 0; i < 5; i += 1) registry.register('user:1', 'token');
    expect(registry.held).toBe(0);
    expect(registry.register('user:1', 'token').hold()).toBeUndefined();
  });
});

describe('draining', () => {
  test('ends all waits, spread over the given time', async () => {
    const { registry, clock, deadline } = openRegistry();
    const ends: number[] = [];
    const waits = Array.from({ length: 200 }, async (_, i) => {
      const end = await registry.register(`user:${i}`, 'token').next(deadline);
      ends.push(clock.now());
      return end;
    });
    registry.drain(3_000);
    for (let i = 0; i < 32; i += 1) {
      clock.advance(100);
      await new Promise(setImmediate);
    }
    expect(new Set(await Promise.all(waits))).toEqual(new Set(['drain']));
    expect(new Set(ends).size).toBeGreaterThan(20);
    expect(clock.timers).toBe(0);
  });

  test.each([
    [3, 1_000],
    [4_000, 4_000],
    [12_000, 10_000],
  ])(
    'spreads the return of the clients of %i waits over %i ms, about one per millisecond',
    (held, spreadMs) => {
      const { registry } = openRegistry({ maxHeld: 12_000, maxHeldPerHolder: 12_000 });
      for (let i = 0; i < held; i += 1) registry.register(`user:${i}`, 'token').hold();
      expect(registry.returnSpreadMs).toBe(0);
      registry.drain(3_000);
      expect(registry.returnSpreadMs).toBe(spreadMs);
    },
  );

  test('ends all current and later waits at once if there is no time to spread them', async () => {
    const { registry, deadline } = openRegistry();
    const waiter = registry.register('user:1', 'token');
    const end = waiter.next(deadline);
    registry.drain(0);
    expect(await end).toBe('drain');
    expect(await registry.register('user:2', 'token').next(deadline)).toBe('drain');
  });
});

describe('while notifications may be lost', () => {
  test('waiters query every one to two seconds, not all at once', async () => {
    const { registry, clock, deadline } = openRegistry();
    const began = clock.now();
    const looks: number[] = [];
    const early = registry.register('user:0', 'token').next(deadline);
    registry.setConnected(false);
    const waits = Array.from({ length: 100 }, async (_, i) => {
      expect(await registry.register(`user:${i}`, 'token').next(deadline)).toBe('check');
      looks.push(clock.now() - began);
    });
    for (let i = 0; i < 22; i += 1) {
      clock.advance(100);
      await new Promise(setImmediate);
    }
    await Promise.all(waits);
    expect(await early).toBe('check');
    expect(Math.min(...looks)).toBeGreaterThanOrEqual(1_000);
    expect(Math.max(...looks)).toBeLessThanOrEqual(2_100);
    expect(new Set(looks).size).toBeGreaterThan(5);
  });

  test('a waiter whose deadline comes before its next query checks once, and then times out', async () => {
    const { registry, clock } = openRegistry();
    registry.setConnected(false);
    const [waiter, deadline] = [registry.register('user:1', 'token'), clock.now() + 500];
    const end = waiter.next(deadline);
    clock.advance(700);
    expect(await end).toBe('check');
    expect(await waiter.next(deadline)).toBe('timeout');
  });

  test('a waiter that is connected from its query to its deadline times out without a check', async () => {
    const { registry, clock, deadline } = openRegistry();
    const waiter = registry.register('user:1', 'token');
    registry.setConnected(false);
    registry.setConnected(true);
    expect(await waiter.next(deadline)).toBe('check');
    const end = waiter.next(deadline);
    clock.advance(WAIT_MS + 100);
    expect(await end).toBe('timeout');
  });

  test("a lost connection during a waiter's query causes one check", async () => {
    const { registry, clock, deadline } = openRegistry();
    const waiter = registry.register('user:1', 'token');
    const first = waiter.next(deadline);
    registry.notify('user:1');
    expect(await first).toBe('woken');
    registry.setConnected(false);
    registry.setConnected(true);
    expect(await waiter.next(deadline)).toBe('check');
    const end = waiter.next(deadline);
    clock.advance(WAIT_MS + 100);
    expect(await end).toBe('timeout');
  });

  test('a notification replaces the check', async () => {
    const { registry, clock, deadline } = openRegistry();
    const waiter = registry.register('user:1', 'token');
    registry.setConnected(false);
    const end = waiter.next(deadline);
    registry.setConnected(true);
    registry.notify('user:1');
    expect(await end).toBe('woken');
    const later = waiter.next(deadline);
    clock.advance(WAIT_MS + 100);
    expect(await later).toBe('timeout');
  });

  test('all waiters query once more when the connection is back, spread over about a second', async () => {
    const { registry, clock, deadline } = openRegistry();
    registry.setConnected(false);
    const idle = registry.register('user:idle', 'token');
    let looked = 0;
    const waits = Array.from({ length: 5_000 }, async (_, i) => {
      expect(await registry.register(`user:${i}`, 'token').next(deadline)).toBe('check');
      looked += 1;
    });
    registry.setConnected(true);
    await new Promise(setImmediate);
    expect(looked).toBeLessThan(100);
    clock.advance(600);
    await Promise.all(waits);
    expect(await idle.next(deadline)).toBe('check');
  });
});

test('10,000 clients that disconnect leave no waiter, timer or entry behind', async () => {
  const { registry, clock, deadline } = openRegistry();
  const waiters: Waiter[] = [];
  const ends: Promise<string>[] = [];
  for (let i = 0; i < 10_000; i += 1) {
    const waiter = registry.register(`user:${i % 3_000}`, `token:${i % 2_000}`);
    expect(waiter.hold()).toBeUndefined();
    ends.push(waiter.next(deadline));
    waiters.push(waiter);
  }
  expect(registry.held).toBe(10_000);
  expect(clock.timers).toBe(10_000);
  for (const waiter of waiters) {
    waiter.cancel();
    waiter.release();
  }
  expect(new Set(await Promise.all(ends))).toEqual(new Set(['gone']));
  expect(registry.held).toBe(0);
  expect(registry.leftovers).toEqual(NOTHING_LEFT);
  expect(clock.timers).toBe(0);
});

describe('notifications between replicas', () => {
  const server = useRedis();

  const openReplicas = async (count: number) => {
    const redisPrefix = `test-${randomUUID()}`;
    const options = {
      ...{ redis: accessTo(server.url, redisPrefix), windowSeconds: 60 },
      ...{ maxHeld: 100, maxHeldPerHolder: 16 },
    };
    const parts = { log: silentLog, runImport: async () => undefined };
    const replicas = await Promise.all(Array.from({ length: count }, () => openCoordination(options, parts)));
    onTestFinished(async () => {
      for (const replica of replicas) await replica.close();
    });
    return { replicas, channel: `${redisPrefix}:wakes` };
  };
  test('reach the waiters of their channel on every replica, and no others', async () => {
    const { replicas } = await openReplicas(3);
    const [one, two, three] = replicas as [Coordination, Coordination, Coordination];
    const waits = replicas.map((replica) => wait(replica, 'user:1'));
    const other = wait(three, 'user:2');
    one.notifier.notify('user:1');
    expect(await Promise.all(waits)).toEqual(['woken', 'woken', 'woken']);
    two.notifier.notify('user:2');
    expect(await other).toBe('woken');
  });

  test('wake local waiters without a round trip to Redis, and only once', async () => {
    const { replicas } = await openReplicas(2);
    const [one, two] = replicas as [Coordination, Coordination];
    const local = wait(one, 'user:1');
    let ended = false;
    const end = local.finally(() => {
      ended = true;
    });
    const remote = wait(two, 'user:1');
    one.notifier.notify('user:1');
    await Promise.resolve();
    await Promise.resolve();
    await Promise.resolve();
    expect(ended).toBe(true);
    expect(await end).toBe('woken');
    expect(await remote).toBe('woken');
    expect(one.counters.wakesReceived).toBe(0);
  });

  test('notifications of one tick are sent in one message, which contains each channel once', async () => {
    const { replicas, channel } = await openReplicas(1);
    const [one] = replicas as [Coordination];
    const listener = new Redis(server.url);
    onTestFinished(() => listener.disconnect());
    await listener.subscribe(channel);
    const messages: string[] = [];
    const ended = new Promise<void>((resolve) => {
      listener.on('message', (_channel, message: string) => {
        messages.push(message);
        if (message.includes('last')) resolve();
      });
    });
    for (let i = 0; i < 50; i += 1) one.notifier.notify(`user:${i % 5}`);
    await new Promise(setImmediate);
    one.notifier.notify('last');
    await ended;
    const channels = messages.map((message) => message.split('\n').slice(1));
    expect(channels).toEqual([['user:0', 'user:1', 'user:2', 'user:3', 'user:4'], ['last']]);
  });

  test('messages of another deployment on the same Redis are ignored', async () => {
    const { replicas: ours } = await openReplicas(1);
    const { replicas: theirs } = await openReplicas(1);
    const end = wait(ours[0]!, 'user:1');
    theirs[0]!.notifier.notify('user:1');
    const witness = new Redis(server.url);
    onTestFinished(() => witness.disconnect());
    while (theirs[0]!.counters.wakesPublished === 0) await witness.ping();
    await witness.ping();
    ours[0]!.notifier.drain(0);
    expect(await end).toBe('drain');
  });
});

describe('after a write', () => {
  const principal = { userId: 7 };
  const run = async (write: () => Promise<unknown>) => {
    const clock = new ManualClock();
    const { counts, context } = countNotifications(clock);
    const failed = await notifyAfter(context, principal, (notifier) => notifier.notify('user:7'), write).then(
      () => undefined,
      (error: Error) => error.message,
    );
    return { clock, counts, failed };
  };

  test('the polls are notified once if it succeeded, and not if it had no effect', async () => {
    const { clock, counts } = await run(async () => {});
    expect(counts).toEqual(['user:7']);
    expect(clock.timers).toBe(0);
    for (const error of [new Error('refused'), new DatabaseUnavailable('connect', false)]) {
      const refused = await run(() => Promise.reject(error));
      expect([refused.counts, refused.clock.timers, refused.failed]).toEqual([[], 0, error.message]);
    }
  });

  test('whose response was lost, the polls are notified at once, and again when the write may at last have happened', async () => {
    const lost = new DatabaseUnavailable('lost', true);
    const { clock, counts, failed } = await run(() => Promise.reject(lost));
    expect([failed, counts]).toEqual([lost.message, ['user:7']]);
    // Postgres cancels a statement after 6 s.
    clock.advance(6_000);
    expect(counts).toEqual(['user:7']);
    clock.advance(1_000);
    expect(counts).toEqual(['user:7', 'user:7']);
    expect(clock.timers).toBe(0);
  });
});

/** Returns a context whose notifier only lists the notified channels. */
function countNotifications(clock: ManualClock) {
  const counts: string[] = [];
  const notifier = { notify: (channel: string) => counts.push(channel) };
  return { counts, context: { coordination: { clock, notifier } } as unknown as Context };
}

test('a poll is not held if its client left while the service looked up its token', async () => {
  await using service = await startService({ syncWaitSeconds: 3_600 });
  const { coordination } = service.context;
  const { id: userId, token } = await service.user();
  const principal = { userId, key: token } as unknown as Principal;
  const raw = Object.assign(new EventEmitter(), { destroyed: true });
  const page = { bookmarks: [] };
  const end = await readOrWait(service.context, {} as FastifyRequest, { raw } as unknown as FastifyReply, {
    principal,
    waitSeconds: service.context.config.syncWaitSeconds,
    channel: `user:${userId}`,
    read: async () => page,
    check: async () => false,
    hasNews: () => false,
  });
  expect(end.page).toBe(page);
  expect(coordination.notifier.held).toBe(0);
});
