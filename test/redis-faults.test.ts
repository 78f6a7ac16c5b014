import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { describeError } from '../src/observability/log.ts';
import {
  DEGRADED,
  expectAlone,
  expectShared,
  LIMIT,
  MAX_RETURN_MS,
  MAX_WAIT_MS,
  openAdmin,
  openPair,
  openReplica,
  SHARED,
  start,
  WAIT_MS,
  wait,
  within,
} from './support/coordination.ts';
import { findFreePort } from './support/ports.ts';
import { startProxy } from './support/proxy.ts';
import type { RedisServer } from './support/redis.ts';

// Tests faults of a single Redis. long/redis-topologies.test.ts tests failover pairs, Sentinel and Cluster.

describe('while Redis is unavailable', () => {
  test('a process starts after a short wait, and uses Redis once it is available', async () => {
    const port = await findFreePort();
    const url = `redis://127.0.0.1:${port}`;
    const replica = await openReplica(url, 'test');
    expect(replica.state).toBe('degraded');
    expect(replica.lines.filter(({ msg }) => msg.startsWith(DEGRADED))).toHaveLength(1);
    await expectAlone(replica);
    await start({ port });
    await within(MAX_RETURN_MS, replica.untilSays(SHARED));
    await expectShared(replica, await openReplica(url, 'test'));
  });

  test('a process that only waits for Redis does not exit', async () => {
    const url = `redis://127.0.0.1:${await findFreePort()}`;
    const child = fork(new URL('./support/coordination-child.ts', import.meta.url), [url, 'test']);
    onTestFinished(() => void child.kill('SIGKILL'));
    const ended = once(child, 'exit').then(([code]) => `ended with ${code}`);
    expect(await Promise.race([once(child, 'message'), ended])).toEqual(['ready', undefined]);
  });

  test('each replica limits on its own after Redis was killed, and shares all state within 2 s of its restart', async () => {
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

  test('requests at the moment when Redis dies get a response', async () => {
    const server = await start();
    const [one] = await openPair(server.url);
    const calls = Array.from({ length: 200 }, (_, i) => one.limiters.tokens.consume(`key ${i}`, LIMIT));
    const [quotas] = await Promise.all([Promise.all(calls), server.kill()]);
    expect(quotas.every((quota) => quota.admitted)).toBe(true);
  });

  test('a token gets at most one further window after Redis was emptied', async () => {
    const server = await start();
    const [one, two] = await openPair(server.url);
    const ask = (i: number) => [one, two][i % 2]!.limiters.tokens.consume('key', LIMIT);
    for (let i = 0; i < LIMIT - 1; i += 1) await ask(i);
    await openAdmin(server.url).flushall();
    const quotas = await Promise.all(Array.from({ length: 3 * LIMIT }, (_, i) => ask(i)));
    expect(quotas.filter(({ admitted }) => admitted)).toHaveLength(LIMIT);
  });

  test('a refusal is remembered after Redis was emptied', async () => {
    const server = await start();
    const [one] = await openPair(server.url);
    for (let i = 0; i < LIMIT; i += 1) await one.limiters.tokens.consume('key', LIMIT);
    await openAdmin(server.url).flushall();
    expect((await one.limiters.tokens.consume('key', LIMIT)).admitted).toBe(false);
  });

  test('each change of state is logged once, with any number of requests', async () => {
    const server = await start();
    const [one] = await openPair(server.url);
    await server.kill();
    await one.untilSays(DEGRADED);
    for (let i = 0; i < 100; i += 1) await one.limiters.tokens.consume(`key ${i}`, LIMIT);
    await server.restart();
    await one.untilSays(SHARED);
    // On a busy machine, Redis may respond so late that the state changes more often.
    const { degradations } = one.counters;
    expect(degradations).toBeGreaterThanOrEqual(1);
    expect(one.lines.filter(({ level }) => level === 30)).toHaveLength(degradations + 1);
    // Limits and waits may fail one after the other. Each failure is then a line that differs from the one before.
    const said = one.lines.map(({ msg }) => msg);
    expect(said.filter((msg, i) => msg === said[i - 1])).toEqual([]);
    expect(said.length).toBeLessThanOrEqual(1 + 3 * degradations);
  });

  test('a notification that was not sent or got no response is sent when Redis is back', async () => {
    const server = await start();
    const [one] = await openPair(server.url);
    await server.freeze();
    one.notifier.notify('user:1');
    await new Promise(setImmediate);
    await server.kill();
    await one.untilSays(DEGRADED);
    one.notifier.notify('user:2');
    await server.restart();
    await one.untilSays(SHARED);
    // If the heartbeat after a notification is not heard in time, the notification is sent again.
    await expect.poll(() => one.counters.wakesPublished).toBeGreaterThanOrEqual(2);
  });
});

describe('notifications while Redis is unavailable', () => {
  test('are replaced by one notification for everybody if too many are pending', async () => {
    const server = await start();
    const [one, two] = await openPair(server.url);
    await server.kill();
    await one.untilSays(DEGRADED);
    const waiting = wait(two, 'user:1');
    for (let n = 0; n < 20_000; n += 1) one.notifier.notify(`user:${n}`);
    await server.restart();
    await Promise.all([one.untilSays(SHARED), two.untilSays(SHARED)]);
    await expect.poll(() => one.counters.wakesPublished).toBe(1);
    expect(await waiting).toBe('check');
    // If the other replica subscribed too late, it got no message. In that case, its wait ended only because it
    // knew that it might have missed a message.
    expect(two.counters.wakesReceived).toBeLessThanOrEqual(1);
  });
});

describe('while Redis is frozen', () => {
  test('the first request waits less than 300 ms, and the next ones do not wait', async () => {
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

  test('a silent subscription is noticed within 2 s, and waiters check the database until it is replaced', async () => {
    const server = await start();
    const [one, two] = await openPair(server.url);
    const end = wait(two, 'user:1');
    await server.freeze();
    await within(2_000, two.untilSays(DEGRADED));
    expect(two.notifier.connected).toBe(false);
    expect(await within(2_500, end)).toBe('check');
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

describe('when Redis loses data or connections', () => {
  test('waiters check the database once after every connection was killed, and state is shared again', async () => {
    const server = await start();
    const [one, two] = await openPair(server.url);
    const admin = openAdmin(server.url);
    await two.imports.startWorker(1);
    for (let round = 0; round < 3; round += 1) {
      const end = wait(two, 'user:1');
      await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      expect(await end).toBe('check');
      for (const { counters } of [one, two]) {
        await expect.poll(() => counters.degradations, { interval: 5 }).toBeGreaterThan(round);
      }
      await within(MAX_RETURN_MS, Promise.all([one.untilSays(SHARED), two.untilSays(SHARED)]));
      await expectShared(one, two);
    }
    await one.imports.add('a');
    while (two.imported.length + one.imported.length === 0) await sleep(5);
  });

  test('a connection that ends right after it opens is replaced', async () => {
    const server = await start();
    await using proxy = await startProxy(server.url);
    let ended = 0;
    // The proxy closes the first two connections before the server responds to them.
    proxy.onRequest = (chunk, client) => {
      if (ended < 2 && /^\*1\r\n\$5\r\nhello\r\n/i.test(chunk.toString())) {
        ended += 1;
        client.resetAndDestroy();
      }
    };
    const replica = await openReplica(`redis://127.0.0.1:${proxy.port}`, 'test');
    await within(MAX_RETURN_MS, replica.untilSays(SHARED));
    expect(ended).toBe(2);
    await expectShared(replica, await openReplica(server.url, 'test'));
  });

  test.each([0, 1])('both clients for commands are replaced if client %i of them is lost', async (lost) => {
    const server = await start();
    const replica = await openReplica(server.url, 'test');
    const admin = openAdmin(server.url);
    const list = async () => {
      const clients = String(await admin.call('CLIENT', 'LIST', 'TYPE', 'normal'));
      const ids = [...clients.matchAll(/^id=(\d+)/gm)].map(([, id]) => Number(id));
      const ofAdmin = await admin.client('ID');
      return ids.filter((id) => id !== ofAdmin);
    };
    const ids = await list();
    expect(ids).toHaveLength(2);
    await admin.call('CLIENT', 'KILL', 'ID', String(ids[lost]));
    await replica.untilSays(DEGRADED);
    await within(MAX_RETURN_MS, replica.untilSays(SHARED));
    const later = await list();
    expect(later.filter((id) => !ids.includes(id))).toHaveLength(2);
    await expectShared(replica, await openReplica(server.url, 'test'));
  });

  test("a notification during a subscriber's reconnect is not missed", async () => {
    const server = await start();
    const [one, two] = await openPair(server.url);
    const admin = openAdmin(server.url);
    const waiter = two.notifier.register('user:1', 'token');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await two.untilSays(DEGRADED);
    one.notifier.notify('user:1');
    expect(await within(MAX_RETURN_MS, waiter.next(two.clock.now() + WAIT_MS))).toMatch(/check|woken/);
    await two.untilSays(SHARED);
  });

  test('a notification that only an abandoned server received is published again on the next one', async () => {
    const [abandoned, next] = [await start(), await start()];
    await using proxy = await startProxy(abandoned.url);
    const one = await openReplica(`redis://127.0.0.1:${proxy.port}`, 'test');
    const two = await openReplica(next.url, 'test');
    const end = wait(two, 'user:1');
    // The connections end before the heartbeat after the notification is answered.
    proxy.onRequest = (chunk) => {
      const isHeartbeat = /publish\r\n\$\d+\r\n\S+:wakes:/i.test(chunk.toString());
      if (!isHeartbeat || one.counters.wakesPublished === 0) return;
      proxy.onRequest = undefined;
      proxy.retarget(next.url);
      proxy.cut('reset');
    };
    one.notifier.notify('user:1');
    expect(await within(2 * MAX_RETURN_MS, end)).toBe('woken');
  });

  test('Redis does not count as lost if only this process is busy for longer than a response may take', async () => {
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

  test('no request fails after the scripts of Redis were flushed', async () => {
    const server = await start();
    const [one, two] = await openPair(server.url);
    const admin = openAdmin(server.url);
    await one.limiters.tokens.consume('key', LIMIT);
    await admin.script('FLUSH');
    await expectShared(one, two);
    expect(one.counters.fallback + two.counters.fallback).toBe(0);
    expect(one.state).toBe('shared');
  });

  test('replicas work alone while Redis is read-only after a failover, until there is a master again', async () => {
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

  test('a worker asks a full Redis for jobs a few times a second, and takes jobs when there is room again', async () => {
    const server = await start();
    const [one] = await openPair(server.url);
    const admin = openAdmin(server.url);
    await admin.config('SET', 'maxmemory', '1');
    const refused = async () =>
      Number(/errorstat_OOM:count=(\d+)/.exec(String(await admin.info('errorstats')))?.[1] ?? 0);
    const before = await refused();
    const seconds = 2;
    await one.imports.startWorker(2);
    await sleep(1_000 * seconds);
    // The limits' checks are refused too, at most five times a second.
    expect((await refused()) - before).toBeLessThan(30 * seconds);
    await admin.config('SET', 'maxmemory', '0');
    await within(MAX_RETURN_MS, one.untilSays(SHARED));
    await one.imports.add('a');
    await expect.poll(() => one.imported).toEqual(['a']);
  });

  test('replicas work alone while Redis is full, until there is room again', async () => {
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

describe('the connection to Redis', () => {
  const pem = (name: string) => readFileSync(new URL(`./support/tls/${name}.pem`, import.meta.url), 'utf8');

  const startTls = async (): Promise<{ server: RedisServer; url: string }> => {
    const tlsPort = await findFreePort();
    const files = { 'certificate.pem': pem('certificate'), 'key.pem': pem('key') };
    const args = ['--tls-port', String(tlsPort), '--tls-auth-clients', 'no'];
    args.push('--tls-cert-file', 'certificate.pem', '--tls-key-file', 'key.pem');
    args.push('--tls-ca-cert-file', 'certificate.pem');
    return { server: await start({ port: 0, args, files }), url: `rediss://127.0.0.1:${tlsPort}` };
  };

  test('takes three sockets, and two more in a worker', async () => {
    const server = await start();
    const admin = openAdmin(server.url);
    const replica = await openReplica(server.url, 'test');
    const count = async () =>
      String(await admin.call('CLIENT', 'LIST'))
        .trim()
        .split('\n').length - 1;
    const connections = 3;
    expect(await count()).toBe(connections);
    await replica.imports.startWorker(1);
    await expect.poll(count).toBe(connections + 2);
    await replica.imports.add('a');
    await expect.poll(() => replica.imported).toEqual(['a']);
    expect(await count()).toBe(connections + 2);
    await replica.imports.stopWorker(0);
    await expect.poll(count).toBe(connections);
  });

  test('can use TLS with a private certificate authority', async () => {
    const { url } = await startTls();
    const ca = pem('certificate');
    const one = await openReplica(url, 'test', { ca });
    const two = await openReplica(url, 'test', { ca });
    expect([one.state, two.state]).toEqual(['shared', 'shared']);
    await expectShared(one, two);
    await two.imports.startWorker(1);
    await one.imports.add('a');
    while (two.imported.length === 0) await sleep(5);
  });

  test('is refused if no known authority has signed the certificate', async () => {
    const { url } = await startTls();
    const replica = await openReplica(url, 'test');
    expect(replica.state).toBe('degraded');
  });

  test('logs an error of Redis without its message, because that can contain arguments of the command', async () => {
    const admin = openAdmin((await start()).url);
    const error = await admin.call('NONSENSE', 'secret').catch((reason: Error) => reason);
    expect(error).toMatchObject({ message: expect.stringContaining('secret') });
    const logged = describeError(error);
    expect(logged).toMatchObject({ name: 'ReplyError' });
    expect(JSON.stringify(logged)).not.toContain('secret');
  });

  test('with a wrong password leaves the replica alone, and neither the log nor the reason contains the password', async () => {
    const server = await start({ args: ['--requirepass', 'right'] });
    const replica = await openReplica(`redis://:topsecret@127.0.0.1:${server.port}`, 'test');
    expect(replica.state).toBe('degraded');
    await expectAlone(replica);
    expect(JSON.stringify(replica.lines)).not.toContain('topsecret');
    expect(JSON.stringify(replica.lines)).toContain('WRONGPASS');
  });

  test('without the right to run scripts leaves the replica alone, which is logged once', async () => {
    const rights = '~test:* ~{test}:* &test:* +@all -@dangerous -evalsha -eval +info';
    const users = `user default off\nuser service on >secret ${rights}\n`;
    const server = await start({ args: ['--aclfile', 'users.acl'], files: { 'users.acl': users } });
    const replica = await openReplica(`redis://service:secret@127.0.0.1:${server.port}`, 'test');
    expect(replica.state).toBe('degraded');
    await expectAlone(replica);
    await expectAlone(replica);
    expect(replica.lines.filter(({ msg }) => msg.startsWith(DEGRADED))).toHaveLength(1);
  });
});
