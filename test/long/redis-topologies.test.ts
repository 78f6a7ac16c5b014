import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  DEGRADED,
  expectAlone,
  expectShared,
  LIMIT,
  MAX_WAIT_MS,
  openAdmin,
  openReplica,
  type Replica,
  SHARED,
  start,
  wait,
  within,
} from '../support/coordination.ts';
import { type ClusterOptions, failOver, startCluster as openCluster } from '../support/redis-cluster.ts';
import { startSentinels as openSentinels, type SentinelOptions } from '../support/redis-sentinel.ts';

// A failover pair, Sentinel and Cluster give the same guarantees as a single Redis (decision 27).

/** Within this time, a replica notices a fault that closes no connection. */
const MAX_NOTICE_MS = 3_000;

const PASSWORD = 'p@ss:w/rd%';

const untilAllSay = (text: string, replicas: readonly Replica[]) =>
  Promise.all(replicas.map((replica) => replica.untilSays(text)));

/**
 * Resolves when every replica has lost Redis and has found it again. Each of these two steps may take up to
 * `MAX_NOTICE_MS`.
 */
const untilMoved = async (replicas: readonly Replica[]) => {
  const losses = () => replicas.map(({ counters }) => counters.degradations);
  await expect.poll(losses, { interval: 5, timeout: MAX_NOTICE_MS }).toEqual(replicas.map(() => 1));
  await within(MAX_NOTICE_MS, untilAllSay(SHARED, replicas));
};

/** Checks that an import that was added at one replica runs exactly once at the other replica, which has a worker. */
const expectImports = async (one: Replica, two: Replica) => {
  await two.imports.startWorker(1);
  await one.imports.add('a');
  while (two.imported.length === 0) await sleep(5);
  expect([one.imported, two.imported]).toEqual([[], ['a']]);
};

describe('a failover pair', () => {
  /** Starts a Redis master, the master's replica, and two replicas of the service that know both nodes. */
  const startPair = async () => {
    const master = await start();
    const replica = await start({ args: ['--replicaof', '127.0.0.1', String(master.port)] });
    const admins = [openAdmin(master.url), openAdmin(replica.url)] as const;
    while (!String(await admins[1].info('replication')).includes('master_link_status:up')) await sleep(10);
    const urls = `${replica.url},${master.url}`;
    const open = () => openReplica(urls, 'test');
    const [one, two] = [await open(), await open()];
    return { master, replica, admins, one, two };
  };
  /** Swaps the roles of the two nodes. No connection closes, and both nodes still accept PUBLISH. */
  const swap = async ({ admins: [master, replica], ...pair }: Awaited<ReturnType<typeof startPair>>) => {
    await replica.replicaof('NO', 'ONE');
    await master.replicaof('127.0.0.1', pair.replica.port);
  };

  test('uses its master, whichever node the url names first', async () => {
    const { one, two } = await startPair();
    expect([one.state, two.state]).toEqual(['shared', 'shared']);
    await expectShared(one, two);
    await expectImports(one, two);
  });

  test('that swaps roles without closing connections moves every client within 3 s, even an idle one', async () => {
    const pair = await startPair();
    const { one, two } = pair;
    const waiting = wait(two, 'user:1');
    await swap(pair);
    // The old master accepts this message, but no subscriber receives it.
    one.notifier.notify('user:1');
    await untilMoved([one, two]);
    expect(await within(MAX_NOTICE_MS, waiting)).toMatch(/woken|check/);
    await expectShared(one, two);
    const info = String(await pair.admins[1].call('CLIENT', 'LIST', 'TYPE', 'pubsub'));
    expect(info.trim().split('\n')).toHaveLength(2);
  });

  test('whose url names only a former master is ignored until there is a master', async () => {
    const [old, master] = [await start(), await start()];
    const [one, two] = [await openReplica(old.url, 'test'), await openReplica(old.url, 'test')];
    await two.imports.startWorker(1);
    const admin = openAdmin(old.url);
    await admin.replicaof('127.0.0.1', master.port);
    await within(MAX_NOTICE_MS, untilAllSay(DEGRADED, [one, two]));
    expect([one.away, two.away]).toEqual([
      ['limits', 'wakes'],
      ['limits', 'wakes'],
    ]);
    expect(one.lines.find(({ msg }) => msg.startsWith(DEGRADED))).toMatchObject({ reason: 'READONLY' });
    await expectAlone(one);
    await admin.replicaof('NO', 'ONE');
    await within(MAX_NOTICE_MS, untilAllSay(SHARED, [one, two]));
    await expectShared(one, two);
    await one.imports.add('a');
    while (two.imported.length === 0) await sleep(5);
  });

  test('whose master dies continues with the other node once that is the master', async () => {
    const { master, admins, one, two } = await startPair();
    await master.kill();
    await untilAllSay(DEGRADED, [one, two]);
    await admins[1].replicaof('NO', 'ONE');
    await within(MAX_NOTICE_MS, untilAllSay(SHARED, [one, two]));
    await expectShared(one, two);
  });
});

describe('Sentinel', () => {
  const startSentinels = async (options: SentinelOptions = {}) => {
    const sentinels = await openSentinels(options);
    onTestFinished(() => sentinels[Symbol.asyncDispose]());
    return sentinels;
  };
  const openPairOf = async ({ url }: { url: string }) => {
    const open = () => openReplica(url, 'test');
    const pair = [await open(), await open()] as const;
    expect(pair.map(({ state }) => state)).toEqual(['shared', 'shared']);
    return pair;
  };

  test('reports the master, and the new one after a failover', async () => {
    const sentinels = await startSentinels();
    const [one, two] = await openPairOf(sentinels);
    await expectShared(one, two);
    await expectImports(one, two);
    const waiting = wait(two, 'user:1');
    await sentinels.failOver();
    await untilMoved([one, two]);
    one.notifier.notify('user:1');
    expect(await waiting).toMatch(/woken|check/);
    await expectShared(one, two);
  });

  test('replaces a master that dies; meanwhile each replica limits on its own', async () => {
    const sentinels = await startSentinels();
    const [one, two] = await openPairOf(sentinels);
    const master = await sentinels.findMaster();
    await master.kill();
    await untilAllSay(DEGRADED, [one, two]);
    await expectAlone(one);
    await untilAllSay(SHARED, [one, two]);
    expect(await sentinels.findMaster()).not.toBe(master);
    await expectShared(one, two);
  });

  test('works if the Sentinel that is asked first is frozen or dead', async () => {
    const sentinels = await startSentinels();
    const [first, second] = sentinels.sentinels;
    await first!.freeze();
    await second!.kill();
    const replica = await openReplica(sentinels.url, 'test');
    await within(MAX_NOTICE_MS, replica.untilSays(SHARED));
    await first!.thaw();
  });

  test("uses the url's password for the data nodes, and a separate one for the Sentinels", async () => {
    const sentinels = await startSentinels({ password: PASSWORD, sentinelPassword: 'of-the-sentinels' });
    const { url } = sentinels;
    const access = { sentinelPassword: 'of-the-sentinels' };
    const [one, two] = [await openReplica(url, 'test', access), await openReplica(url, 'test', access)];
    expect([one.state, two.state]).toEqual(['shared', 'shared']);
    await expectShared(one, two);
    const stranger = await openReplica(url, 'test', { sentinelPassword: 'wrong' });
    expect(stranger.state).toBe('degraded');
    expect(JSON.stringify(stranger.lines)).not.toMatch(/wrong"|of-the-sentinels|p@ss/);
  });

  test('works over TLS with host names', async () => {
    const sentinels = await startSentinels({ tls: true });
    const { url, ca } = sentinels;
    const open = () => openReplica(url, 'test', { ca });
    const [one, two] = [await open(), await open()];
    expect([one.state, two.state]).toEqual(['shared', 'shared']);
    await expectShared(one, two);
    await sentinels.failOver();
    await untilMoved([one, two]);
    await expectShared(one, two);
  });
});

describe('Redis Cluster', () => {
  const startCluster = async (options: ClusterOptions = {}) => {
    const cluster = await openCluster(options);
    onTestFinished(() => cluster[Symbol.asyncDispose]());
    return cluster;
  };

  test('three masters share limits, notifications and imports like a single Redis', async () => {
    const cluster = await startCluster({ password: PASSWORD });
    // The url names only two nodes. The client learns from them that there is a third.
    const urls = cluster.nodes.slice(0, 2).map(({ url }) => url);
    const one = await openReplica(urls.join(','), 'test');
    const two = await openReplica(urls.toReversed().join(','), 'test');
    expect([one.state, two.state]).toEqual(['shared', 'shared']);
    for (let i = 0; i < 20; i += 1) await expectShared(one, two);
    for (const node of cluster.nodes) {
      const admin = cluster.connect(node);
      expect(await admin.dbsize()).toBeGreaterThan(0);
      admin.disconnect();
    }
    await expectImports(one, two);
    expect(one.counters).toMatchObject({ fallback: 0, importsQueued: 1, importsInProcess: 0 });
    expect(two.counters.fallback).toBe(0);
  });

  test('discovers its nodes, so one url is enough', async () => {
    const cluster = await startCluster();
    const one = await openReplica(cluster.nodes[0]!.url, 'test');
    const two = await openReplica(cluster.nodes[1]!.url, 'test');
    expect([one.state, two.state]).toEqual(['shared', 'shared']);
    for (let i = 0; i < 20; i += 1) await expectShared(one, two);
    expect(one.counters.fallback + two.counters.fallback).toBe(0);
  });

  test('has a connection of each client to every master before it limits requests', async () => {
    const cluster = await startCluster();
    const one = await openReplica(cluster.nodes[0]!.url, 'test');
    expect(one.state).toBe('shared');
    for (const node of cluster.nodes) {
      const admin = cluster.connect(node);
      const clients = String(await admin.call('CLIENT', 'LIST', 'TYPE', 'normal'));
      // One more is the connection of this test.
      expect(clients.trim().split('\n').length).toBeGreaterThanOrEqual(3);
      admin.disconnect();
    }
  });

  test.each(['one url', 'all urls'])('works over TLS with host names, from %s', async (which) => {
    const cluster = await startCluster({ tls: true, password: PASSWORD });
    const urls = cluster.nodes.map(({ url }) => url);
    const url = which === 'one url' ? urls[0]! : urls.join(',');
    const { ca } = cluster;
    const open = () => openReplica(url, 'test', { ca });
    const [one, two] = [await open(), await open()];
    expect([one.state, two.state]).toEqual(['shared', 'shared']);
    for (let i = 0; i < 10; i += 1) await expectShared(one, two);
    await expectImports(one, two);
    expect(one.counters.fallback + two.counters.fallback).toBe(0);
  });

  test('with a frozen master no request waits more than 300 ms, and state is shared again when it is back', async () => {
    const cluster = await startCluster();
    const urls = cluster.nodes.map(({ url }) => url).join(',');
    const open = () => openReplica(urls, 'test');
    const [one, two] = [await open(), await open()];
    await cluster.nodes[1]!.freeze();
    for (let i = 0; i < 60; i += 1) {
      const quota = await within(MAX_WAIT_MS, one.limiters.tokens.consume(`key ${i}`, LIMIT));
      expect(quota.admitted).toBe(true);
    }
    expect(one.counters.fallback).toBeGreaterThan(0);
    await cluster.nodes[1]!.thaw();
    await untilAllSay(SHARED, [one, two]);
    await expect.poll(() => expectShared(one, two).then(() => 'shared'), { timeout: 10_000 }).toBe('shared');
  });

  test('shares state again after planned failovers and the death of a master', async () => {
    const cluster = await startCluster({ withReplicas: true });
    const urls = cluster.nodes.map(({ url }) => url).join(',');
    const open = () => openReplica(urls, 'test');
    const [one, two] = [await open(), await open()];
    const waiting = wait(two, 'user:1');
    for (const replica of cluster.nodes.slice(3, 5)) await failOver(cluster, replica);
    await cluster.nodes[2]!.kill();
    await expect.poll(() => expectShared(one, two).then(() => 'shared'), { timeout: 20_000 }).toBe('shared');
    one.notifier.notify('user:1');
    expect(await waiting).toMatch(/woken|check/);
    await expect.poll(() => [one.state, two.state], { timeout: 5_000 }).toEqual(['shared', 'shared']);
  });
});
