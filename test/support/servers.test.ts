import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { createDatabase, runOn } from './database.ts';
import { startPostgres } from './postgres.ts';
import { openRedis, startRedis } from './redis.ts';

function connectToRedis(url: string): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: 250,
    retryStrategy: () => 20,
  });
  redis.on('error', () => {});
  onTestFinished(() => redis.disconnect());
  return redis;
}

test('a test database is migrated, empty, belongs to one test file, and can be dropped while it is in use', async () => {
  const [one, other] = await Promise.all([createDatabase(), createDatabase()]);
  onTestFinished(() => other.drop());
  expect(await runOn(one.url, 'select count(*)::int as count from bookmarks')).toEqual([{ count: 0 }]);
  await runOn(one.url, 'create table only_here ()');
  expect(await runOn(other.url, "select to_regclass('only_here') as name")).toEqual([{ name: null }]);
  const inUse = postgres(one.url, { max: 1 });
  onTestFinished(() => inUse.end({ timeout: 0 }));
  await inUse`select 1`;
  await one.drop();
  expect(await runOn(other.url, `select 1 from pg_database where datname = '${one.name}'`)).toEqual([]);
});

test('a private Postgres can be killed, restarted on the same port, and frozen', async () => {
  await using server = await startPostgres({ max_connections: 20 });
  const ask = () => runOn(server.url, "select fact, current_setting('max_connections') as max from facts");
  const response = [{ fact: 1, max: '20' }];
  await runOn(server.url, 'create table facts as select 1 as fact');
  await server.kill();
  await expect(ask()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  await server.restart();
  expect(await ask()).toEqual(response);
  await server.freeze();
  const late = ask();
  expect(await Promise.race([late, sleep(200, 'no response')])).toBe('no response');
  await server.thaw();
  expect(await late).toEqual(response);
  await server.shutDown();
  await server.restart();
  expect(await ask()).toEqual(response);
});

test('a private Redis can be killed, restarted empty on the same port, and frozen', async () => {
  await using server = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] });
  const redis = connectToRedis(server.url);
  await new Promise((resolve) => redis.once('ready', resolve));
  await redis.set('key', 'value');
  await server.freeze();
  await expect(redis.get('key')).rejects.toThrow(/timed out/);
  await server.thaw();
  expect(await redis.get('key')).toBe('value');
  await server.kill();
  await expect(redis.get('key')).rejects.toThrow();
  const readyAgain = new Promise((resolve) => redis.once('ready', resolve));
  await server.restart();
  await readyAgain;
  expect(await redis.get('key')).toBeNull();
});

test('a Redis for tests that leave it running responds', async () => {
  const server = await openRedis();
  onTestFinished(() => server.stop());
  const redis = connectToRedis(server.url);
  await new Promise((resolve) => redis.once('ready', resolve));
  expect(await redis.ping()).toBe('PONG');
});
