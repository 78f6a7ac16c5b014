import { Command, Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { RedisShard, type WakeChannel } from '../../src/coordination/redis-shard.ts';
import { openReplica, type Replica, SHARED, WAIT_MS } from '../support/coordination.ts';
import { type ClusterNode, failOver, startCluster, type TestCluster } from '../support/redis-cluster.ts';
import { findOwner, moveSlot } from '../support/redis-slots.ts';

// Wakes by sharded channels while the slots of a cluster move under them: every poll is woken, or checks.

const USERS = 60;

const nameOf = (user: number) => `test:wakes:of:${user}`;
const slotOf = (user: number) => new Command('ssubscribe', [nameOf(user)]).getSlot();

/** A client of each user that polls again and again: how its waits ended, and the one that waits now. */
class Follower {
  readonly topic: string;
  readonly ends: string[] = [];
  #changed = Promise.withResolvers<void>();

  constructor(replica: Replica, user: number) {
    this.topic = `user:${user}`;
    void this.#follow(replica);
  }

  /** Resolves with the ends of waits since `from` once there is one of this kind among them. */
  async untilEnds(kind: RegExp, from: number): Promise<string[]> {
    while (!this.ends.slice(from).some((end) => kind.test(end))) await this.#changed.promise;
    return this.ends.slice(from);
  }

  async #follow({ wakes, clock }: Replica): Promise<void> {
    for (let end = ''; end !== 'drain'; ) {
      const waiter = wakes.register(this.topic, this.topic);
      do {
        end = await waiter.next(clock.now() + WAIT_MS);
        this.ends.push(end);
        this.#changed.resolve();
        this.#changed = Promise.withResolvers();
      } while (end === 'check');
      waiter.release();
    }
  }
}

/** A cluster, a replica that writes, and one at which every user waits. */
const open = async (options: { withReplicas?: boolean; tls?: boolean } = {}) => {
  const cluster = await startCluster(options);
  onTestFinished(() => cluster[Symbol.asyncDispose]());
  const urls = cluster.nodes.map(({ url }) => url).join(',');
  const start = () => openReplica(urls, 'test', { wakeChannels: 'sharded', ca: cluster.ca });
  const [one, two] = [await start(), await start()];
  expect([one.state, two.state]).toEqual(['shared', 'shared']);
  const followers = Array.from({ length: USERS }, (_, user) => new Follower(two, user));
  await Promise.all(followers.map((follower) => follower.untilEnds(/check/, 0)));
  return { cluster, one, two, followers };
};

/** A wake of every user ends the wait of each, by itself: nobody has to check. */
const expectAllWoken = async (one: Replica, followers: readonly Follower[]) => {
  const waits = followers.map((follower) => ({ follower, from: follower.ends.length }));
  for (const { topic } of followers) one.wakes.wake(topic);
  const ends = await Promise.all(waits.map(({ follower, from }) => follower.untilEnds(/woken/, from)));
  expect(new Set(ends.flat())).toEqual(new Set(['woken']));
};

/** Wakes every user again and again, each time with an end of each wait, until none of them is a check. */
const untilAllWoken = async (one: Replica, followers: readonly Follower[]) => {
  for (let ends: string[] = ['check']; ends.includes('check'); ) {
    const waits = followers.map((follower) => ({ follower, from: follower.ends.length }));
    for (const { topic } of followers) one.wakes.wake(topic);
    ends = (
      await Promise.all(waits.map(({ follower, from }) => follower.untilEnds(/woken|check/, from)))
    ).flat();
  }
};

const userAt = (node: readonly [number, number]) => {
  for (let user = 0; ; user += 1) if (slotOf(user) >= node[0] && slotOf(user) < node[1]) return user;
};
const MASTERS = [0, 1, 2].map(
  (n) => [Math.floor((n * 16_384) / 3), Math.floor(((n + 1) * 16_384) / 3)] as const,
);

/** Another master than the slot's own. */
const otherMaster = async (cluster: TestCluster, slot: number): Promise<ClusterNode> => {
  const owner = await findOwner(cluster, slot);
  return cluster.nodes.slice(0, 3).find((node) => node !== owner)!;
};

test('channels lie on all masters, and each user is woken at theirs', async () => {
  const { cluster, one, two, followers } = await open();
  await expectAllWoken(one, followers);
  expect(two.wakes.channels).toBe(USERS);
  for (const node of cluster.nodes) {
    const admin = cluster.connect(node);
    expect(
      ((await admin.call('PUBSUB', 'SHARDCHANNELS', 'test:wakes:of:*')) as string[]).length,
    ).toBeGreaterThan(5);
    admin.disconnect();
  }
});

test('a slot that moves under held polls: theirs check, the others wait on, and all are woken at the new place', async () => {
  const { cluster, one, two, followers } = await open();
  const user = userAt(MASTERS[1]!);
  const before = followers.map(({ ends }) => ends.length);
  await moveSlot(cluster, slotOf(user), await otherMaster(cluster, slotOf(user)));
  await followers[user]!.untilEnds(/check/, before[user]!);
  const others = followers.filter((_, n) => slotOf(n) !== slotOf(user));
  expect(others.flatMap(({ ends }, n) => ends.slice(before[followers.indexOf(others[n]!)]))).toEqual([]);
  await expectAllWoken(one, followers);
  expect([one.counters.degradations, two.counters.degradations]).toEqual([0, 0]);
  expect(two.counters.wakeChannelsLost).toBe(1);
});

test('a slot that moves away and back at once: its polls check, and are woken where they were', async () => {
  const { cluster, one, followers } = await open();
  const user = userAt(MASTERS[0]!);
  const [from, owner] = [followers[user]!.ends.length, await findOwner(cluster, slotOf(user))];
  await moveSlot(cluster, slotOf(user), await otherMaster(cluster, slotOf(user)));
  await moveSlot(cluster, slotOf(user), owner);
  await followers[user]!.untilEnds(/check/, from);
  await expectAllWoken(one, followers);
});

test('many slots that move one after another: every wake meanwhile ends its poll, woken or to check', async () => {
  const { cluster, one, followers } = await open();
  for (let user = 0; user < 30; user += 1) {
    const from = followers[user]!.ends.length;
    const moving = moveSlot(cluster, slotOf(user), await otherMaster(cluster, slotOf(user)));
    one.wakes.wake(`user:${user}`);
    await moving;
    await followers[user]!.untilEnds(/woken|check/, from);
  }
  await untilAllWoken(one, followers);
});

test.each([false, true])(
  'a master that a replica takes the place of, in order and dead (TLS: %s)',
  async (tls) => {
    const { cluster, one, two, followers } = await open({ withReplicas: true, tls });
    const froms = () => followers.map(({ ends }) => ends.length);
    let from = froms();
    await failOver(cluster, cluster.nodes[3]!);
    const moved = followers.filter((_, user) => slotOf(user) < MASTERS[0]![1]);
    await Promise.all(moved.map((each) => each.untilEnds(/check/, from[followers.indexOf(each)]!)));
    await expect.poll(() => [one.state, two.state], { timeout: 10_000 }).toEqual(['shared', 'shared']);
    await untilAllWoken(one, followers);
    from = froms();
    await cluster.nodes[1]!.kill();
    await Promise.all(followers.map((each, user) => each.untilEnds(/check/, from[user]!)));
    one.wakes.wake(followers[0]!.topic);
    await Promise.all([one.untilSays(SHARED), two.untilSays(SHARED)]);
    await untilAllWoken(one, followers);
  },
);

test('a master without a slot is left, and one that gets its first is connected to', async () => {
  const { cluster, one, followers } = await open();
  const [, , third] = cluster.nodes;
  const admin = cluster.connect(third!);
  const [first, second] = cluster.nodes.slice(0, 2).map(cluster.connect);
  onTestFinished(() => [admin, first!, second!].forEach((each) => void each.disconnect()));
  const count = async () =>
    String(await admin.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
      .split('\n')
      .filter(Boolean).length;
  expect(await count()).toBeGreaterThanOrEqual(2);
  // Else it would become a Redis replica of the one that takes its last slot.
  await admin.config('SET', 'cluster-allow-replica-migration', 'no');
  const user = userAt(MASTERS[2]!);
  // All its slots at once, as one that is taken out of service.
  const target = String(await first!.call('CLUSTER', 'MYID'));
  for (let slot = MASTERS[2]![0]; slot < MASTERS[2]![1]; slot += 1) {
    for (const node of [first!, admin, second!])
      void node.call('CLUSTER', 'SETSLOT', slot, 'NODE', target).catch(() => {});
  }
  await expect.poll(() => followers[user]!.ends.length, { timeout: 15_000 }).toBeGreaterThan(1);
  await untilAllWoken(one, followers);
  await moveSlot(cluster, slotOf(user), third!);
  await untilAllWoken(one, followers);
  const channels = await admin.call('PUBSUB', 'SHARDCHANNELS', `test:wakes:of:${user}`);
  expect(channels).toEqual([`test:wakes:of:${user}`]);
});

test('a slot that moves as one of its channels is left: the connection, whose replies match no more, is given up', async () => {
  const cluster = await startCluster();
  onTestFinished(() => cluster[Symbol.asyncDispose]());
  const [node, other] = cluster.nodes;
  const admins = [node!, other!].map(cluster.connect);
  const redis = new Redis(node!.url, {
    replyMapping: 'legacy',
    retryStrategy: () => null,
    autoResubscribe: false,
  });
  onTestFinished(() => [redis, ...admins].forEach((each) => void each.disconnect()));
  const users = Array.from({ length: 200 }, (_, user) => user).filter(
    (user) => slotOf(user) < MASTERS[0]![1],
  );
  const [beat, left, ...later] = users as [number, number, ...number[]];
  const open = (user: number): WakeChannel => ({
    ...{ subject: `${user}`, name: nameOf(user), slot: slotOf(user), topics: new Set() },
    ...{ isWanted: true, shard: undefined, isHeld: false },
  });
  const [ready, lost] = [Promise.withResolvers<void>(), Promise.withResolvers<unknown>()];
  const shard = new RedisShard('', redis, nameOf(beat), {
    onReady: () => ready.resolve(),
    onLost: (_, error) => lost.resolve(error),
    ...{ onMessage: () => {}, onMoved: () => {} },
  });
  await ready.promise;
  const channel = open(left);
  await shard.subscribe([channel]);
  const [, id] = await Promise.all(admins.map((admin) => admin.call('CLUSTER', 'MYID')));
  await node!.freeze();
  // In this order the server finds them when it goes on.
  const moved = admins[0]!.call('CLUSTER', 'SETSLOT', channel.slot, 'NODE', String(id));
  shard.unsubscribe([channel]);
  const subscribed = later.slice(0, 2).map((user) => shard.subscribe([open(user)]));
  await new Promise(setImmediate);
  await node!.thaw();
  await moved;
  // The first got the error of the one that was left, the second what was the first one's.
  expect((await Promise.allSettled(subscribed)).map(({ status }) => status)).toEqual([
    'rejected',
    'fulfilled',
  ]);
  expect(await lost.promise).toEqual(new Error('replies to other commands'));
});
