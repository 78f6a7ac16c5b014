import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  expectAlone,
  expectShared,
  openAdmin,
  openReplica,
  type Replica,
  SHARED,
  start,
  wait,
} from './support/coordination.ts';
import { startCluster } from './support/redis-cluster.ts';

// Tests the rights in Redis that the service needs (docs/operation.md, "Redis"), and what happens if one is missing.

const PREFIX = 'bookmarks';
const PASSWORD = 'p@ss:w/rd%';

/** Returns the words that follow `ACL` in the documented command, with the password of these tests. */
const documentedUser = (): string[] => {
  const text = readFileSync(new URL('../docs/operation.md', import.meta.url), 'utf8');
  const [line] = /^ACL SETUSER bookmarks .*$/m.exec(text)!;
  return line
    .split(' ')
    .slice(1)
    .map((word) => (word === '>PASSWORD' ? `>${PASSWORD}` : word));
};

const setUser = (admin: Redis, ...more: string[]) => admin.call('ACL', ...documentedUser(), ...more);

/** Returns the commands that the server refused since its start. If the rights suffice, there are none. */
const refusals = async (admin: Redis): Promise<string[]> => {
  const entries = (await admin.call('ACL', 'LOG')) as unknown[][];
  return entries.map((entry) => `${entry[entry.indexOf('object') + 1]}`);
};

const urlFor = (port: number): string =>
  `redis://bookmarks:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}`;

const startOwn = async () => {
  const server = await start();
  const admin = openAdmin(server.url);
  await setUser(admin);
  const url = urlFor(server.port);
  const [one, two] = [await openReplica(url, PREFIX), await openReplica(url, PREFIX)];
  return { admin, one, two };
};

const warningsOf = ({ lines }: Replica) => lines.filter(({ level }) => level >= 40);

test('everything works with exactly the documented rights', async () => {
  const { admin, one, two } = await startOwn();
  expect([one.state, two.state]).toEqual(['shared', 'shared']);
  for (let i = 0; i < 10; i += 1) await expectShared(one, two);
  await one.pending.keep('logins', 'key', 'value');
  expect(await two.pending.take('logins', 'key')).toBe('value');
  await two.imports.startWorker(2);
  for (const id of ['a', 'b', 'c']) await one.imports.add(id);
  await expect.poll(() => two.imported.toSorted()).toEqual(['a', 'b', 'c']);
  // Waits for longer than the interval between checks for stalled jobs, so that a check runs too.
  await sleep(5_000);
  await two.imports.stopWorker(0);
  expect(await refusals(admin)).toEqual([]);
  expect([...warningsOf(one), ...warningsOf(two)]).toEqual([]);
});

test('everything works in a cluster with the rights for a cluster', async () => {
  const cluster = await startCluster({});
  onTestFinished(() => cluster[Symbol.asyncDispose]());
  const admins = cluster.nodes.map((node) => cluster.connect(node));
  for (const admin of admins) await setUser(admin, '+cluster|slots', '+cluster|info', '+asking');
  const url = urlFor(cluster.nodes[0]!.port);
  const [one, two] = [await openReplica(url, PREFIX), await openReplica(url, PREFIX)];
  expect([one.state, two.state]).toEqual(['shared', 'shared']);
  for (let i = 0; i < 10; i += 1) await expectShared(one, two);
  await one.pending.keep('codes', 'key', 'value');
  expect(await two.pending.take('codes', 'key')).toBe('value');
  await two.imports.startWorker(1);
  await one.imports.add('a');
  await expect.poll(() => two.imported).toEqual(['a']);
  for (const admin of admins) {
    expect(await refusals(admin)).toEqual([]);
    admin.disconnect();
  }
});

describe('a missing right', () => {
  /** Returns how many calls of this command the server refused. */
  const countRefused = async (admin: Redis, command: string): Promise<number> => {
    const stats = String(await admin.info('commandstats'));
    return Number(new RegExp(`cmdstat_${command}:.*rejected_calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  };

  test('to publish degrades notifications with one warning; retries do not multiply, and no notification is lost', async () => {
    const { admin, one, two } = await startOwn();
    const waiting = wait(two, 'user:7');
    await setUser(admin, '-publish');
    const seconds = 2;
    for (let i = 0; i < 100 * seconds; i += 1) {
      one.notifier.notify(`user:${i}`);
      one.notifier.notify(`user:${1_000 + i}`);
      await sleep(10);
    }
    expect(one.away).toEqual(['wakes']);
    expect(one.notifier.connected).toBe(false);
    expect(warningsOf(one)).toEqual([expect.objectContaining({ away: ['wakes'], reason: 'NOPERM' })]);
    // Each of the two replicas tries to publish at most five times a second, even with 200 notifications a second.
    expect(await countRefused(admin, 'publish')).toBeLessThanOrEqual(2 * (5 * (seconds + 1) + 2));
    expect(await one.limiters.tokens.consume('key', 5)).toMatchObject({ admitted: true, remaining: 4 });
    expect(await two.limiters.tokens.consume('key', 5)).toMatchObject({ admitted: true, remaining: 3 });
    expect(one.counters.fallback + two.counters.fallback).toBe(0);
    const before = two.counters.wakesReceived;
    await setUser(admin);
    await Promise.all([one.untilSays(SHARED), two.untilSays(SHARED)]);
    expect(await waiting).toMatch(/woken|check/);
    await expect.poll(() => two.counters.wakesReceived - before).toBeGreaterThanOrEqual(200 * seconds);
  });

  test('to subscribe degrades notifications, and limits are still shared', async () => {
    const server = await start();
    const admin = openAdmin(server.url);
    await setUser(admin, '-subscribe');
    const one = await openReplica(urlFor(server.port), PREFIX);
    expect(one.away).toEqual(['wakes']);
    expect(warningsOf(one)).toHaveLength(1);
    expect((await one.limiters.tokens.consume('key', 5)).admitted).toBe(true);
    expect(one.counters.fallback).toBe(0);
  });

  test('to run scripts makes each replica limit on its own, and notifications continue', async () => {
    const { admin, one, two } = await startOwn();
    await setUser(admin, '-eval', '-evalsha');
    await expect.poll(() => [one.away, two.away]).toEqual([['limits'], ['limits']]);
    await expectAlone(one);
    const woken = wait(two, 'user:1');
    one.notifier.notify('user:1');
    expect(await woken).toBe('woken');
  });

  test('to run imports makes a worker warn once a minute, and not at each attempt', async () => {
    const { admin, one } = await startOwn();
    await setUser(admin, '-bzpopmin');
    await one.imports.startWorker(1);
    await expect.poll(() => countRefused(admin, 'bzpopmin')).toBeGreaterThan(3);
    expect(warningsOf(one)).toEqual([
      expect.objectContaining({ msg: 'import queue failed', reason: 'NOPERM' }),
    ]);
  });
});
