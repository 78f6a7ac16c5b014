import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openCoordination } from '../src/coordination/open.ts';
import type { Coordination, CoordinationOptions } from '../src/coordination/port.ts';
import { findFreePort } from './support/ports.ts';
import { type RedisOptions, type RedisServer, startRedis } from './support/redis.ts';

const LIMIT = 5;
const WAIT_MS = 29_000;
const SHARED = 'Redis serves';
const DEGRADED = 'Redis is away';

/** No request waits longer on Redis; it returns within the other. */
const MAX_WAIT_MS = 300;
const MAX_RETURN_MS = 2_000;

interface Line {
  level: number;
  msg: string;
}

/** A replica with its log, whose lines can be awaited: they are how it tells of a change. */
interface Replica extends Coordination {
  lines: Line[];
  imported: string[];
  /** Resolves when the last line about Redis says this; at once if it does. */
  untilSays(text: string): Promise<void>;
}

const openReplica = async (
  redisUrls: string[],
  redisPrefix: string,
  more: Partial<CoordinationOptions> = {},
): Promise<Replica> => {
  const lines: Line[] = [];
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
      ...{ redisUrls, redisPrefix, windowMs: 60_000, maxHeld: 100, maxHeldPerHolder: 16 },
      ...more,
    },
    { log: pino({ level: 'info' }, { write }), runImport: async (id) => void imported.push(id) },
  );
  onTestFinished(() => coordination.close());
  const untilSays = async (text: string) => {
    while (!changes().at(-1)?.msg.startsWith(text)) await told.promise;
  };
  return Object.assign(Object.create(coordination), { lines, imported, untilSays });
};

const start = async (options?: RedisOptions): Promise<RedisServer> => {
  const server = await startRedis(options);
  onTestFinished(() => server.stop());
  return server;
};

const openPair = async (url: string) => {
  const prefix = `test-${randomUUID()}`;
  const pair = [await openReplica([url], prefix), await openReplica([url], prefix)] as const;
  for (const { state } of pair) expect(state).toBe('shared');
  return pair;
};

const openAdmin = (url: string): Redis => {
  const admin = new Redis(url);
  onTestFinished(() => admin.disconnect());
  return admin;
};

/**
 * The promise's value; fails if it takes longer. The timer shares the event loop, so a busy machine delays both; what
 * became due in the same turn of the loop was in time.
 */
const within = async <T>(waitMs: number, work: Promise<T>): Promise<T> => {
  const expire = async () => {
    await sleep(waitMs, undefined, { ref: false });
    await new Promise(setImmediate);
    throw new Error(`not within ${waitMs} ms`);
  };
  return Promise.race([work, expire()]);
};

const wait = ({ wakes, clock }: Coordination, topic: string) =>
  wakes.register(topic, 'token').next(clock.now() + WAIT_MS);

const expectShared = async (one: Replica, two: Replica) => {
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
  const end = wait(two, key);
  one.wakes.wake(key);
  expect(await end).toBe('woken');
};

/** Decision 27: each replica limits by itself, exactly, and nobody waits for Redis. */
const expectAlone = async (replica: Replica) => {
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
};

describe('Redis is away', () => {
  test('a start does not wait for it long, and takes part when it comes', async () => {
    const port = await findFreePort();
    const url = `redis://127.0.0.1:${port}`;
    const replica = await openReplica([url], 'test');
    expect(replica.state).toBe('degraded');
    expect(replica.lines.filter(({ msg }) => msg.startsWith(DEGRADED))).toHaveLength(1);
    await expectAlone(replica);
    await start({ port });
    await within(MAX_RETURN_MS, replica.untilSays(SHARED));
    await expectShared(replica, await openReplica([url], 'test'));
  });

  test('killed: each replica limits by itself; within 2 s of its return all is shared', async () => {
    const server = await start();
    const [one, two] = await openPair(server.url);
    await server.kill();
    await Promise.all([one.untilSays(DEGRADED), two.untilSays(DEGRADED)]);
    await expectAlone(one);
    await expectAlone(two);
    expect(one.counters.fallback).toBeGreaterThanOrEqual(LIMIT);
    await server.restart();
    await within(MAX_RETURN_MS, Promise.all([one.untilSays(SHARED), two.untilSays(SHARED)]));
    await expectShared(one, two);
  });

  test('requests at the moment of its death are answered', async () => {
    const server = await start();
    const [one] = await openPair(server.url);
    const calls = Array.from({ length: 200 }, (_, i) => one.limiters.tokens.consume(`key ${i}`, LIMIT));
    const [quotas] = await Promise.all([Promise.all(calls), server.kill()]);
    expect(quotas.every((quota) => quota.admitted)).toBe(true);
  });

  test('restarted empty: what a replica has admitted still counts there', async () => {
    const server = await start();
    const [one, two] = await openPair(server.url);
    for (let i = 0; i < LIMIT - 1; i += 1) await one.limiters.tokens.consume('key', LIMIT);
    await server.restart();
    await Promise.all([one.untilSays(DEGRADED), two.untilSays(DEGRADED)]);
    await Promise.all([one.untilSays(SHARED), two.untilSays(SHARED)]);
    expect(await one.limiters.tokens.consume('key', LIMIT)).toMatchObject({ admitted: true, remaining: 0 });
    expect(await one.limiters.tokens.consume('key', LIMIT)).toMatchObject({ admitted: false });
    await expectShared(one, two);
  });

  test('emptied under requests in flight: a replica still admits no more than the limit', async () => {
    const server = await start();
    const [one] = await openPair(server.url);
    for (let i = 0; i < LIMIT - 1; i += 1) await one.limiters.tokens.consume('key', LIMIT);
    await openAdmin(server.url).flushall();
    const quotas = await Promise.all(
      Array.from({ length: LIMIT }, () => one.limiters.tokens.consume('key', LIMIT)),
    );
    expect(quotas.filter(({ admitted }) => admitted)).toHaveLength(1);
    for (const quota of quotas.slice(1)) expect(quota).toMatchObject({ admitted: false, remaining: 0 });
  });

  test('it is told once per change, whatever the number of requests', async () => {
    const server = await start();
    const [one] = await openPair(server.url);
    await server.kill();
    await one.untilSays(DEGRADED);
    for (let i = 0; i < 100; i += 1) await one.limiters.tokens.consume(`key ${i}`, LIMIT);
    await server.restart();
    await one.untilSays(SHARED);
    expect(one.lines.map(({ level }) => level)).toEqual([30, 40, 30]);
    expect(one.counters.degradations).toBe(1);
  });

  test('a wake that could not be sent, or got no response, goes out when it is back', async () => {
    const server = await start();
    const [one] = await openPair(server.url);
    await server.freeze();
    one.wakes.wake('user:1');
    await new Promise(setImmediate);
    await server.kill();
    await one.untilSays(DEGRADED);
    one.wakes.wake('user:2');
    await server.restart();
    await one.untilSays(SHARED);
    await expect.poll(() => one.counters.wakesPublished).toBe(2);
  });
});

describe('while Redis is away, of more wakes than are kept', () => {
  test('one is left, for everybody', async () => {
    const server = await start();
    const [one, two] = await openPair(server.url);
    await server.kill();
    await one.untilSays(DEGRADED);
    for (let n = 0; n < 20_000; n += 1) one.wakes.wake(`user:${n}`);
    await server.restart();
    await Promise.all([one.untilSays(SHARED), two.untilSays(SHARED)]);
    await expect.poll(() => two.counters.wakesReceived).toBe(1);
    expect(one.counters.wakesPublished).toBe(1);
  });
});

describe('Redis is frozen', () => {
  test('the first request waits less than 300 ms, the next ones not at all', async () => {
    const server = await start();
    const [one] = await openPair(server.url);
    await server.freeze();
    const first = within(MAX_WAIT_MS, one.limiters.tokens.consume('key', LIMIT));
    expect(await first).toMatchObject({ admitted: true, remaining: LIMIT - 1 });
    expect(one.state).toBe('degraded');
    let turned = false;
    setImmediate(() => {
      turned = true;
    });
    await one.limiters.tokens.consume('key', LIMIT);
    expect(turned).toBe(false);
    await server.thaw();
    await within(MAX_RETURN_MS, one.untilSays(SHARED));
  });

  test('a silent subscription is noticed within 2 s, and waiters look meanwhile', async () => {
    const server = await start();
    const [one, two] = await openPair(server.url);
    const end = wait(two, 'user:1');
    await server.freeze();
    await within(2_000, two.untilSays(DEGRADED));
    expect(two.wakes.connected).toBe(false);
    expect(await within(2_500, end)).toBe('woken');
    await server.thaw();
    await within(MAX_RETURN_MS, two.untilSays(SHARED));
    await one.untilSays(SHARED);
    await expectShared(one, two);
  });

  test('an import that cannot be queued runs in the process', async () => {
    const server = await start();
    const [one] = await openPair(server.url);
    await server.freeze();
    await within(MAX_WAIT_MS, one.imports.add('a'));
    while (one.imported.length === 0) await sleep(1);
    expect(one.imported).toEqual(['a']);
  });
});

describe('Redis loses things', () => {
  test('every connection killed: waiters look once more, and all is shared again', async () => {
    const server = await start();
    const [one, two] = await openPair(server.url);
    const admin = openAdmin(server.url);
    await two.imports.startWorker(1);
    for (let round = 0; round < 3; round += 1) {
      const end = wait(two, 'user:1');
      await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      expect(await end).toBe('woken');
      await within(MAX_RETURN_MS, Promise.all([one.untilSays(DEGRADED), two.untilSays(DEGRADED)]));
      await within(MAX_RETURN_MS, Promise.all([one.untilSays(SHARED), two.untilSays(SHARED)]));
      await expectShared(one, two);
    }
    await one.imports.add('a');
    while (two.imported.length + one.imported.length === 0) await sleep(5);
  });

  test('a wake during the reconnect of a subscriber is not missed', async () => {
    const server = await start();
    const [one, two] = await openPair(server.url);
    const admin = openAdmin(server.url);
    const waiter = two.wakes.register('user:1', 'token');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await two.untilSays(DEGRADED);
    one.wakes.wake('user:1');
    expect(await within(MAX_RETURN_MS, waiter.next(two.clock.now() + WAIT_MS))).toBe('woken');
    await two.untilSays(SHARED);
  });

  test('this process busy for longer than a response may take: Redis is not blamed', async () => {
    const server = await start();
    const [one] = await openPair(server.url);
    for (let n = 0; n < LIMIT; n += 1) {
      const response = one.limiters.tokens.consume('key', LIMIT);
      for (const until = performance.now() + 250; performance.now() < until; );
      expect(await response).toMatchObject({ admitted: true, remaining: LIMIT - 1 - n });
    }
    expect(one.counters.fallback).toBe(0);
    expect(one.state).toBe('shared');
  });

  test('its scripts flushed: nobody notices', async () => {
    const server = await start();
    const [one, two] = await openPair(server.url);
    const admin = openAdmin(server.url);
    await one.limiters.tokens.consume('key', LIMIT);
    await admin.script('FLUSH');
    await expectShared(one, two);
    expect(one.counters.fallback + two.counters.fallback).toBe(0);
    expect(one.state).toBe('shared');
  });

  test('read-only after a failover: alone until there is a master again', async () => {
    const server = await start();
    const master = await start();
    const [one, two] = await openPair(server.url);
    const admin = openAdmin(server.url);
    await admin.replicaof('127.0.0.1', master.port);
    await expectAlone(one);
    await one.untilSays(DEGRADED);
    await admin.replicaof('NO', 'ONE');
    await within(MAX_RETURN_MS, one.untilSays(SHARED));
    await expectShared(one, two);
  });

  test('full: alone until there is room again', async () => {
    const server = await start();
    const [one, two] = await openPair(server.url);
    const admin = openAdmin(server.url);
    await admin.config('SET', 'maxmemory', '1');
    await expectAlone(one);
    await admin.config('SET', 'maxmemory', '0');
    await within(MAX_RETURN_MS, one.untilSays(SHARED));
    await expectShared(one, two);
  });
});

describe('Redis Cluster', () => {
  const CLUSTER_PASSWORD = 'p@ss:w/rd%';

  const startCluster = async () => {
    const servers = await Promise.all(
      Array.from({ length: 3 }, async () => {
        const busPort = await findFreePort();
        const args = ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'];
        args.push('--requirepass', CLUSTER_PASSWORD, '--masterauth', CLUSTER_PASSWORD);
        args.push('--cluster-port', String(busPort), '--cluster-node-timeout', '2000');
        const server = await start({ args });
        const url = `redis://:${encodeURIComponent(CLUSTER_PASSWORD)}@127.0.0.1:${server.port}`;
        return { ...server, busPort, url };
      }),
    );
    const admins = servers.map(({ url }) => openAdmin(url));
    const slots = [0, 5461, 10923, 16384];
    for (const [i, admin] of admins.entries()) {
      await admin.cluster('ADDSLOTSRANGE', slots[i]!, slots[i + 1]! - 1);
      await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1));
      const { port, busPort } = servers[0]!;
      if (i > 0) await admin.call('CLUSTER', 'MEET', '127.0.0.1', String(port), String(busPort));
    }
    const isWhole = async (admin: Redis) => {
      const facts = String(await admin.cluster('INFO'));
      return facts.includes('cluster_state:ok') && facts.includes('cluster_known_nodes:3');
    };
    for (const admin of admins) while (!(await isWhole(admin))) await sleep(20);
    return { servers, admins };
  };

  test('three masters serve limits, wakes and imports as one Redis does', async () => {
    const { servers, admins } = await startCluster();
    // The third is found by asking the two that are named.
    const urls = servers.slice(0, 2).map(({ url }) => url);
    const one = await openReplica(urls, 'test');
    const two = await openReplica(urls.toReversed(), 'test');
    expect([one.state, two.state]).toEqual(['shared', 'shared']);
    for (let i = 0; i < 20; i += 1) await expectShared(one, two);
    const sizes = await Promise.all(admins.map((admin) => admin.dbsize()));
    for (const size of sizes) expect(size).toBeGreaterThan(0);
    await two.imports.startWorker(1);
    await one.imports.add('a');
    while (two.imported.length === 0) await sleep(5);
    expect(two.imported).toEqual(['a']);
    expect(one.counters).toMatchObject({ fallback: 0, importsQueued: 1, importsInProcess: 0 });
    expect(two.counters.fallback).toBe(0);
  });

  test('with a master frozen no request waits more than 300 ms; when it is back all is shared', async () => {
    const { servers } = await startCluster();
    const urls = servers.map(({ url }) => url);
    const one = await openReplica(urls, 'test');
    const two = await openReplica(urls, 'test');
    await servers[1]!.freeze();
    for (let i = 0; i < 60; i += 1) {
      const quota = await within(MAX_WAIT_MS, one.limiters.tokens.consume(`key ${i}`, LIMIT));
      expect(quota.admitted).toBe(true);
    }
    expect(one.counters.fallback).toBeGreaterThan(0);
    // Nothing is tried again before the very master that failed serves: each try would cost a request its wait.
    expect(one.counters.degradations).toBe(1);
    await servers[1]!.thaw();
    await Promise.all([one.untilSays(SHARED), two.untilSays(SHARED)]);
    await expect.poll(() => expectShared(one, two).then(() => 'shared')).toBe('shared');
  });
});

describe('the way to Redis', () => {
  const pem = (name: string) => readFileSync(new URL(`./support/tls/${name}.pem`, import.meta.url), 'utf8');

  const startTls = async (): Promise<{ server: RedisServer; url: string }> => {
    const tlsPort = await findFreePort();
    const files = { 'certificate.pem': pem('certificate'), 'key.pem': pem('key') };
    const args = ['--tls-port', String(tlsPort), '--tls-auth-clients', 'no'];
    args.push('--tls-cert-file', 'certificate.pem', '--tls-key-file', 'key.pem');
    args.push('--tls-ca-cert-file', 'certificate.pem');
    return { server: await start({ port: 0, args, files }), url: `rediss://127.0.0.1:${tlsPort}` };
  };

  test('may be TLS, with an authority of its own', async () => {
    const { url } = await startTls();
    const redisCa = pem('certificate');
    const one = await openReplica([url], 'test', { redisCa });
    const two = await openReplica([url], 'test', { redisCa });
    expect([one.state, two.state]).toEqual(['shared', 'shared']);
    await expectShared(one, two);
    await two.imports.startWorker(1);
    await one.imports.add('a');
    while (two.imported.length === 0) await sleep(5);
  });

  test('is not taken when nobody vouches for the certificate', async () => {
    const { url } = await startTls();
    const replica = await openReplica([url], 'test');
    expect(replica.state).toBe('degraded');
  });

  test('may ask for a user and a password, with rights on our names only', async () => {
    const rights = '~test:* ~{test}:* &test:* +@all -@dangerous +info';
    const users = `user default off\nuser service on >p@ss:w/rd% ${rights}\n`;
    const server = await start({ args: ['--aclfile', 'users.acl'], files: { 'users.acl': users } });
    const url = `redis://service:${encodeURIComponent('p@ss:w/rd%')}@127.0.0.1:${server.port}`;
    const one = await openReplica([url], 'test');
    const two = await openReplica([url], 'test');
    expect([one.state, two.state]).toEqual(['shared', 'shared']);
    await expectShared(one, two);
    await two.imports.startWorker(1);
    await one.imports.add('a');
    while (two.imported.length === 0) await sleep(5);
  });

  test('with a wrong password leaves the replica alone, and neither log nor reason shows the password', async () => {
    const server = await start({ args: ['--requirepass', 'right'] });
    const replica = await openReplica([`redis://:topsecret@127.0.0.1:${server.port}`], 'test');
    expect(replica.state).toBe('degraded');
    await expectAlone(replica);
    expect(JSON.stringify(replica.lines)).not.toContain('topsecret');
    expect(JSON.stringify(replica.lines)).toContain('WRONGPASS');
  });

  test('without the right to run scripts leaves the replica alone, told once', async () => {
    const rights = '~test:* ~{test}:* &test:* +@all -@dangerous -evalsha -eval +info';
    const users = `user default off\nuser service on >secret ${rights}\n`;
    const server = await start({ args: ['--aclfile', 'users.acl'], files: { 'users.acl': users } });
    const replica = await openReplica([`redis://service:secret@127.0.0.1:${server.port}`], 'test');
    expect(replica.state).toBe('degraded');
    await expectAlone(replica);
    await expectAlone(replica);
    expect(replica.lines.filter(({ msg }) => msg.startsWith(DEGRADED))).toHaveLength(1);
  });
});
