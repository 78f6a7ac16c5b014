import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openCoordination } from '../src/coordination/open.ts';
import type { Coordination, CoordinationOptions } from '../src/coordination/port.ts';
import type { WakeChannels } from '../src/coordination/redis-address.ts';
import { openAdmin, openPair, openReplica, start, WAIT_MS, wait, waitHeard } from './support/coordination.ts';
import { ManualClock } from './support/manual-clock.ts';
import { useRedis } from './support/redis.ts';
import { accessTo } from './support/redis-access.ts';
import { silentLog } from './support/silent-log.ts';

// Wakes by a channel for each user (`WAKE_CHANNELS=sharded`), on one Redis. What holds for every way of wakes is tested with
// the others; clusters have their own file.

const server = useRedis();

/** Replicas of one deployment, each with its way of wakes. */
const openAll = async (...ways: WakeChannels[]) => {
  const prefix = `test-${randomUUID()}`;
  const replicas = [];
  for (const wakeChannels of ways) replicas.push(await openReplica(server.url, prefix, { wakeChannels }));
  for (const { state } of replicas) expect(state).toBe('shared');
  const channel = (subject: string) => `${prefix}:wakes:of:${subject}`;
  return { replicas, channel };
};

/** The coordination of a replica with sharded channels, which the caller closes. */
const openSharded = (more: Partial<CoordinationOptions> = {}, url = server.url) =>
  openCoordination(
    {
      ...{ redis: accessTo(url, 'test', { wakeChannels: 'sharded' }), windowMs: 60_000 },
      ...{ maxHeld: 100, maxHeldPerHolder: 16, ...more },
    },
    { log: silentLog, runImport: async () => {} },
  );

/** Publishes the first wake of a replica; resolves once Redis has it. */
const publishFirst = async ({ wakes, counters }: Coordination, topic: string) => {
  wakes.wake(topic);
  await expect.poll(() => counters.wakesPublished).toBe(1);
};

/** What ends a wait that nothing should end, some hundred ms later. */
const waitShortly = ({ wakes, clock }: Coordination, topic: string) => {
  const waiter = wakes.register(topic, 'token');
  return waiter.next(clock.now() + 300).finally(() => waiter.release());
};

describe('a channel', () => {
  test('is subscribed to by those replicas alone whose waiters need it', async () => {
    const { replicas, channel } = await openAll('sharded', 'sharded', 'sharded');
    const [one, two, three] = replicas;
    const waiting = await waitHeard(two!, 'user:1');
    expect(await server.client.call('PUBSUB', 'SHARDNUMSUB', channel('1'))).toEqual([channel('1'), 1]);
    one!.wakes.wake('user:1');
    expect(await waiting.woken).toBe('woken');
    expect(replicas.map(({ wakes }) => wakes.channels)).toEqual([0, 1, 0]);
    expect(three!.counters.wakesReceived).toBe(0);
  });

  test('is not subscribed to for a poll that finds something at once', async () => {
    const { replicas, channel } = await openAll('sharded');
    const waiter = replicas[0]!.wakes.register('user:1', 'token');
    expect(waiter.hold()).toBeUndefined();
    await new Promise(setImmediate);
    waiter.release();
    await waitHeard(replicas[0]!, 'user:2');
    expect(await server.client.call('PUBSUB', 'SHARDCHANNELS', channel('*'))).toEqual([channel('2')]);
  });

  test('is that of the user: topics of the same user share it, and wakes are still for one topic', async () => {
    const { replicas } = await openAll('sharded', 'sharded');
    const [one, two] = replicas;
    const [additions, changes] = [await waitHeard(two!, 'user:1'), wait(two!, 'changes:1')];
    expect(two!.wakes.channels).toBe(1);
    let ended = false;
    void additions.woken.then(() => {
      ended = true;
    });
    one!.wakes.wake('changes:1');
    expect(await changes).toBe('woken');
    expect(ended).toBe(false);
    one!.wakes.wake('user:1');
    expect(await additions.woken).toBe('woken');
  });

  test('stays for the next poll of the client, which begins without a command and without a check', async () => {
    const { replicas } = await openAll('sharded');
    const [one] = replicas;
    expect(await waitShortly(one!, 'user:1')).toBe('check');
    expect(await waitShortly(one!, 'user:1')).toBe('timeout');
    expect(await waitShortly(one!, 'user:1')).toBe('timeout');
    expect(one!.counters.wakeChannelsLost).toBe(0);
  });

  test('is left ten seconds after its last waiter, and nothing of it stays behind', async () => {
    const clock = new ManualClock();
    const redis = accessTo(server.url, `test-${randomUUID()}`, { wakeChannels: 'sharded' });
    const coordination = await openSharded({ redis, clock });
    onTestFinished(() => coordination.close());
    const register = (subject: string) => coordination.wakes.register(`user:${subject}`, 'token');
    const listen = async (subject: string) => {
      const waiter = register(subject);
      let end = '';
      void waiter.next(clock.now() + WAIT_MS).then((how) => {
        end = how;
      });
      const advance = () => {
        clock.advance(100);
        return end;
      };
      await expect.poll(advance, { interval: 5 }).toBe('check');
      return waiter;
    };
    const count = async (subject: string) =>
      (
        (await server.client.call('PUBSUB', 'SHARDNUMSUB', `${redis.prefix}:wakes:of:${subject}`)) as [
          string,
          number,
        ]
      )[1];
    const [first, second] = [await listen('1'), await listen('2')];
    first.release();
    clock.advance(9_000);
    expect(await count('1')).toBe(1);
    second.release();
    clock.advance(2_500);
    await expect.poll(() => count('1')).toBe(0);
    expect(await count('2')).toBe(1);
    const third = register('2');
    clock.advance(12_000);
    expect(coordination.wakes.channels).toBe(1);
    expect(await count('2')).toBe(1);
    third.release();
    clock.advance(9_000);
    expect(await count('2')).toBe(1);
    clock.advance(3_000);
    await expect.poll(() => count('2')).toBe(0);
    expect(coordination.wakes.channels).toBe(0);
    expect(clock.timers).toBe(0);
    // After all that it is subscribed to as at first.
    (await listen('2')).release();
  });
});

describe('no wake is missed', () => {
  test('that comes between the first query of a poll and its subscription: the poll checks', async () => {
    const { replicas } = await openAll('sharded', 'sharded');
    const [one, two] = replicas;
    const waiter = two!.wakes.register('user:1', 'token');
    await publishFirst(one!, 'user:1');
    const ended = waiter.next(two!.clock.now() + WAIT_MS);
    expect(await ended).toBe('check');
    expect(two!.counters.wakesReceived).toBe(0);
  });

  test('by a poll that is at its query while another one subscribes', async () => {
    const { replicas } = await openAll('sharded', 'sharded');
    const [one, two] = replicas;
    const late = two!.wakes.register('user:1', 'token');
    await publishFirst(one!, 'user:1');
    await waitHeard(two!, 'user:1');
    expect(await late.next(two!.clock.now() + WAIT_MS)).toBe('check');
    const end = late.next(two!.clock.now() + WAIT_MS);
    one!.wakes.wake('user:1');
    expect(await end).toBe('woken');
  });

  test('by 10,000 clients that come at once: each checks, and is woken by its wake', async () => {
    const users = 10_000;
    const redis = accessTo(server.url, `test-${randomUUID()}`, { wakeChannels: 'sharded' });
    const open = () => openSharded({ redis, maxHeld: users });
    const [one, two] = [await open(), await open()];
    onTestFinished(() => one.close());
    onTestFinished(() => two.close());
    let checks = 0;
    const follow = async (user: number) => {
      const waiter = two.wakes.register(`user:${user}`, `token ${user}`);
      for (;;) {
        const end = await waiter.next(two.clock.now() + WAIT_MS);
        if (end !== 'check') return end;
        checks += 1;
      }
    };
    const ends = Array.from({ length: users }, (_, user) => follow(user));
    // Subscribed to last, so that all others are by then.
    await expect.poll(() => two.wakes.channels).toBe(users);
    await waitHeard(two, 'user:last');
    await expect.poll(() => checks, { timeout: 10_000 }).toBeGreaterThanOrEqual(users);
    for (let user = 0; user < users; user += 1) one.wakes.wake(`user:${user}`);
    expect(new Set(await Promise.all(ends))).toEqual(new Set(['woken']));
    expect(two.counters.degradations).toBe(0);
  });

  test('by those who wait as their connection is lost: they check at once, and are woken afterwards', async () => {
    const own = await start();
    const [one, two] = await openPair(own.url, 'sharded');
    const held = await Promise.all(Array.from({ length: 50 }, (_, user) => waitHeard(two, `user:${user}`)));
    await openAdmin(own.url).call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    const ends = await Promise.all(held.map(({ woken }) => woken));
    expect(new Set(ends)).toEqual(new Set(['check']));
    await two.untilSays('Redis serves');
    // The waiters are still registered, so their channels come back without a new poll.
    await expect.poll(() => two.wakes.channels).toBe(50);
    expect(two.counters.wakeChannelsLost).toBe(50);
    const again = two.wakes.register('user:7', 'token');
    const end = again.next(two.clock.now() + WAIT_MS);
    one.wakes.wake('user:7');
    expect(await end).toMatch(/woken|check/);
  });

  test('by a replica that is closed while its subscriptions are on the way', async () => {
    const prefix = `test-${randomUUID()}`;
    const redis = accessTo(server.url, prefix, { wakeChannels: 'sharded' });
    const coordination = await openSharded({ redis });
    const ends = Array.from({ length: 9 }, (_, user) => wait(coordination, `user:${user}`));
    await new Promise(setImmediate);
    await coordination.close();
    expect(new Set(await Promise.all(ends))).toEqual(new Set(['drain']));
    await expect.poll(() => server.client.call('PUBSUB', 'SHARDCHANNELS', `${prefix}:*`)).toEqual([]);
  });
});

describe('from one channel to many, in two roll-outs', () => {
  test.each([
    ['one', 'both'],
    ['both', 'sharded'],
    ['both', 'both'],
  ] as const)('replicas with %s and with %s wake each other', async (first, second) => {
    const { replicas } = await openAll(first, second);
    const [one, two] = replicas;
    for (const [from, to] of [
      [one!, two!],
      [two!, one!],
    ] as const) {
      const topic = `user:${randomUUID()}`;
      const waiting = await waitHeard(to, topic);
      from.wakes.wake(topic);
      expect(await waiting.woken).toBe('woken');
    }
  });

  test('in one roll-out replicas with one do not hear those with sharded, which hear them', async () => {
    const { replicas } = await openAll('one', 'sharded');
    const [one, sharded] = replicas;
    const unheard = waitShortly(one!, 'user:1');
    sharded!.wakes.wake('user:1');
    expect(await unheard).toBe('timeout');
    const heard = await waitHeard(sharded!, 'user:2');
    one!.wakes.wake('user:2');
    expect(await heard.woken).toBe('woken');
  });
});

describe('a server that refuses sharded channels', () => {
  test('for it does not know them, ends the start', async () => {
    const old = await start({ args: ['--rename-command', 'SSUBSCRIBE', '""'] });
    await expect(openSharded({}, old.url)).rejects.toThrow(
      'the server of REDIS_URL does not know sharded channels, which need Redis 7',
    );
    const admin = openAdmin(old.url);
    await expect
      .poll(async () =>
        String(await admin.call('CLIENT', 'LIST'))
          .trim()
          .split('\n'),
      )
      .toHaveLength(1);
  });

  test.each(['ssubscribe', 'sunsubscribe', 'spublish'])(
    'for the user may not %s, ends the start',
    async (right) => {
      const own = await start();
      const admin = openAdmin(own.url);
      await admin.call('ACL', 'SETUSER', 'service', 'on', '>secret', '~*', '&*', '+@all', `-${right}`);
      await expect(openSharded({}, `redis://service:secret@127.0.0.1:${own.port}`)).rejects.toThrow(
        '+ssubscribe',
      );
    },
  );

  test('later leaves the replica degraded, with the variable in the log', async () => {
    const own = await start();
    const admin = openAdmin(own.url);
    await admin.call('ACL', 'SETUSER', 'service', 'on', '>secret', '~*', '&*', '+@all');
    const url = `redis://service:secret@127.0.0.1:${own.port}`;
    const replica = await openReplica(url, 'test', { wakeChannels: 'sharded' });
    await admin.call('ACL', 'SETUSER', 'service', '-ssubscribe');
    await expect.poll(() => replica.away, { timeout: 5_000 }).toEqual(['wakes']);
    expect(replica.lines.at(-1)).toMatchObject({ reason: expect.stringContaining('+ssubscribe') });
    await admin.call('ACL', 'SETUSER', 'service', '+ssubscribe');
    await replica.untilSays('Redis serves');
  });
});

test('whatever others publish on its channels, a replica goes on', async () => {
  const { replicas, channel } = await openAll('sharded', 'sharded');
  const [one, two] = replicas;
  const waiting = await waitHeard(two!, 'user:1');
  for (const rubbish of ['', '\n', 'x', 'x\n', 'x\nuser:2', '\n\n\n', '\u0000', 'x'.repeat(100_000)]) {
    await server.client.spublish(channel('1'), rubbish);
  }
  one!.wakes.wake('user:1');
  expect(await waiting.woken).toBe('woken');
  expect(two!.state).toBe('shared');
});
