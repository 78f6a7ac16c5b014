import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep, setImmediate as yieldToLoop } from 'node:timers/promises';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createDatabase, runOn, type TestDatabase } from './support/database.ts';
import { type FaultyProxy, startProxy } from './support/proxy.ts';
import { killSessions, untilRunning } from './support/sessions.ts';

/**
 * Tests for faults of the driver that would affect the service. postgres 3.4.9 as published has each of these faults,
 * and the patch in src/store/driver/patches fixes them.
 */

let database: TestDatabase;

beforeAll(async () => {
  database = await createDatabase();
});

afterAll(() => database.drop());

interface Options {
  max?: number;
  port?: number;
  hosts?: string;
  answerSeconds?: number;
  lifetimeSeconds?: number;
  connectSeconds?: number;
  backoffSeconds?: number;
  attributes?: 'read-write';
}

function openDriver(options: Options = {}) {
  const url = new URL(database.url);
  const hosts = options.hosts ?? (options.port ? `127.0.0.1:${options.port}` : url.host);
  const sql = postgres(database.url.replace(url.host, hosts), {
    max: options.max ?? 1,
    max_pipeline: 0,
    connect_timeout: options.connectSeconds ?? 5,
    max_lifetime: options.lifetimeSeconds ?? null,
    answer_timeout: options.answerSeconds ?? null,
    backoff: () => options.backoffSeconds ?? 0.02,
    onnotice: () => {},
    connection: { application_name: 'driver test' },
    ...(options.attributes && { target_session_attrs: options.attributes }),
  } as postgres.Options<Record<string, never>>);
  onTestFinished(() => sql.end({ timeout: 0 }));
  return sql;
}

async function openProxy(): Promise<FaultyProxy> {
  const proxy = await startProxy(database.url);
  onTestFinished(() => proxy.close());
  return proxy;
}

const settle = (query: PromiseLike<readonly unknown[]>): Promise<unknown> =>
  Promise.resolve(query).then(
    (rows) => [...rows],
    (error: Error & { code?: string }) => error.code ?? error.message,
  );

/**
 * Closes a pool. The pool closes when its statements have ended. Returns `closed`, or `still open` if that takes too
 * long.
 */
const closes = (sql: postgres.Sql): Promise<string> =>
  Promise.race([sql.end().then(() => 'closed'), sleep(60_000, 'still open', { ref: false })]);

const one = [{ one: 1 }];

test('an error in the middle of rows does not affect the next response', async () => {
  const sql = openDriver();
  expect(await settle(sql`select 1 / (3000 - n) from generate_series(1, 5000) n`)).toBe('22012');
  const rows = await sql`select n from generate_series(1, 3) n`;
  expect(rows).toHaveLength(3);
  expect([...rows]).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
});

test("an error that ends a session reaches the session's statement and not the next session", async () => {
  const sql = openDriver();
  const killed = settle(sql`select 'told', pg_sleep(20)`);
  await untilRunning(database.url, 'told');
  await killSessions(database.url, 'told');
  expect(await killed).toBe('57P01');
  expect(await settle(sql`select 1 as one`)).toEqual(one);
});

test('a connection that ends with unsent bytes is usable again', async () => {
  const proxy = await openProxy();
  const sql = openDriver({ port: proxy.port });
  for (const turns of [0, 1, 2, 3, 4, 5]) {
    for (const how of ['end', 'reset'] as const) {
      await sql`select 1`;
      proxy.cut(how);
      for (let turn = 0; turn < turns; turn++) await yieldToLoop();
      await settle(sql`select 1 as one`);
      expect(await settle(sql`select 1 as one`), `${how} after ${turns} turns`).toEqual(one);
    }
  }
});

test('a server that closes each connection at once fails the statement after one attempt', async () => {
  const proxy = await openProxy();
  proxy.reception = 'close';
  const sql = openDriver({ port: proxy.port });
  expect(await settle(sql`select 1`)).toBe('CONNECTION_CLOSED');
  expect(proxy.accepted).toBe(1);
  proxy.reception = 'pass';
  expect(await settle(sql`select 1 as one`)).toEqual(one);
});

test('a connection that is lost while the driver fetches types rejects only the statement', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  const proxy = await openProxy();
  proxy.onRequest = (chunk, client) => {
    if (chunk.includes('pg_type')) client.resetAndDestroy();
  };
  const sql = openDriver({ port: proxy.port });
  expect(await settle(sql`select 1`)).toBe('ECONNRESET');
  proxy.onRequest = undefined;
  expect(await settle(sql`select 1 as one`)).toEqual(one);
  expect(unhandled).toEqual([]);
});

test('a server that stops responding fails the statement in time, and the connection is replaced', async () => {
  const proxy = await openProxy();
  const sql = openDriver({ port: proxy.port, answerSeconds: 2 });
  await sql`select 1`;
  proxy.stall();
  expect(await settle(sql`select 1`)).toBe('ANSWER_TIMEOUT');
  expect(await settle(sql`select 1 as one`)).toEqual(one);
});

test('an idle connection is kept, however long no bytes arrive', async () => {
  const sql = openDriver({ answerSeconds: 1 });
  const readPid = () => sql`select pg_backend_pid() as pid`;
  const before = await readPid();
  await sleep(1_500);
  expect(await readPid()).toEqual(before);
});

test('a connection past its lifetime is replaced even if its server does not respond', async () => {
  const proxy = await openProxy();
  const sql = openDriver({ port: proxy.port, lifetimeSeconds: 0.2 });
  await sql`select 1`;
  proxy.stall();
  await sleep(400);
  expect(await settle(sql`select 1 as one`)).toEqual(one);
});

test('a value that cannot be sent rejects its own statement only', async () => {
  const sql = openDriver();
  const send = (time: Date) => settle(sql`select ${time}::timestamptz is not null as sent`);
  await send(new Date());
  const invalid = new Date(Number.NaN);
  expect(await Promise.all([send(invalid), send(invalid)])).toEqual([
    'Invalid time value',
    'Invalid time value',
  ]);
  expect(await send(new Date())).toEqual([{ sent: true }]);
});

test('a statement that is sent again because its plan changed has the same values', async () => {
  const sql = openDriver();
  await runOn(database.url, 'create table facts (flag boolean, document jsonb, words text[])');
  const insert = () => sql`
    insert into facts values (${true}, ${sql.json({ a: 1 })}, ${['x', 'y"']}) returning *`;
  await insert();
  await insert();
  await runOn(database.url, 'alter table facts add column more integer');
  const [row] = await insert();
  expect(row).toEqual({ flag: true, document: { a: 1 }, words: ['x', 'y"'], more: null });
});

test('a statement that is cancelled while its connection is being made never runs, and the connection serves the next one', async () => {
  const proxy = await openProxy();
  proxy.reception = 'hold';
  const sql = openDriver({ port: proxy.port });
  await runOn(database.url, 'create table ghosts (n integer)');
  const query = sql`insert into ghosts values (1)`;
  const outcome = settle(query);
  while (proxy.accepted === 0) await yieldToLoop();
  query.cancel();
  expect(await outcome).toBe('57014');
  proxy.release();
  expect(await settle(sql`select count(*)::int as one from ghosts`)).toEqual([{ one: 0 }]);
});

test('with several hosts a statement fails when none of them can be reached', async () => {
  const sql = openDriver({ hosts: '127.0.0.1:1,127.0.0.1:2' });
  expect(await settle(sql`select 1`)).toBe('ECONNREFUSED');
});

test('after none of several hosts could be reached, all of them are tried again', async () => {
  const proxy = await openProxy();
  proxy.reception = 'close';
  const sql = openDriver({ hosts: `127.0.0.1:1,127.0.0.1:${proxy.port}` });
  expect(await settle(sql`select 1 as one`)).toBe('CONNECTION_CLOSED');
  proxy.reception = 'pass';
  expect(await settle(sql`select 1 as one`)).toEqual(one);
});

test('with several hosts the next one is tried if the first refuses, closes or stays silent', async () => {
  const { host } = new URL(database.url);
  const proxy = await openProxy();
  for (const reception of ['close', 'silence'] as const) {
    proxy.reception = reception;
    const sql = openDriver({ hosts: `127.0.0.1:${proxy.port},${host}`, connectSeconds: 2 });
    expect(await settle(sql`select 1 as one`)).toEqual(one);
  }
  const sql = openDriver({ hosts: `127.0.0.1:1,${host}` });
  expect(await settle(sql`select 1 as one`)).toEqual(one);
});

test('target_session_attrs skips a host that has another role, and fails if all have', async () => {
  await using standby = await createDatabase();
  await runOn(database.url, `alter database ${standby.name} set default_transaction_read_only = on`);
  const proxy = await openProxy();
  // Through this proxy, the driver connects to the other database: the proxy replaces the database's name in the
  // driver's message. Both names have the same length.
  proxy.onRequest = (chunk) => {
    const at = chunk.indexOf(database.name);
    if (at >= 0) chunk.write(standby.name, at);
  };
  const { host } = new URL(database.url);
  const openFor = (hosts: string) => openDriver({ hosts, attributes: 'read-write' });
  const sql = openFor(`127.0.0.1:${proxy.port},${host}`);
  expect(await settle(sql`select current_database() as name`)).toEqual([{ name: database.name }]);
  expect(proxy.accepted).toBe(1);
  const none = openFor(`127.0.0.1:${proxy.port},127.0.0.1:${proxy.port}`);
  expect(await settle(none`select 1`)).toBe('TARGET_SESSION_ATTRS');
});

test('with several hosts the loss of a connection during its first statement is reported', async () => {
  const { host } = new URL(database.url);
  const sql = openDriver({ hosts: `${host},127.0.0.1:1` });
  const first = settle(sql`select 'first of all', pg_sleep(20)`);
  await untilRunning(database.url, 'first of all');
  await killSessions(database.url, 'first of all');
  expect(await first).toBe('57P01');
});

test.for([1, 2])('a pool of %i hosts that is closed makes no connection afterwards', async (count) => {
  const proxy = await openProxy();
  const hosts = Array(count).fill(`127.0.0.1:${proxy.port}`).join(',');
  const sql = openDriver({ hosts, backoffSeconds: 0.2 });
  await sql`select 1`;
  proxy.cut('end');
  while (proxy.open > 0) await yieldToLoop();
  const waiting = settle(sql`select 1`);
  await yieldToLoop();
  await sql.end({ timeout: 0 });
  expect(await waiting).toBe('CONNECTION_DESTROYED');
  await sleep(300);
  expect(proxy.accepted).toBe(1);
});

test('a pool whose connection was lost during a statement closes at once, and its process can end', async () => {
  const script = `
    import postgres from 'postgres';
    const sql = postgres(process.argv[1], { max: 1, answer_timeout: 600 });
    await sql\`select 'lost before', pg_sleep(200)\`.catch(() => {});
    await sql.end();`;
  const args = ['--input-type=module', '--eval', script, database.url];
  const child = spawn(process.execPath, args, { cwd: import.meta.dirname, timeout: 100_000 });
  const ended = once(child, 'exit');
  await untilRunning(database.url, 'lost before');
  await killSessions(database.url, 'lost before');
  expect(await ended).toEqual([0, null]);
});

test('closing a pool completes even if its last connection is lost meanwhile', async () => {
  const sql = openDriver();
  const lost = settle(sql`select 'lost while closing', pg_sleep(20)`);
  await untilRunning(database.url, 'lost while closing');
  const closing = closes(sql);
  await killSessions(database.url, 'lost while closing');
  expect(await lost).toBe('57P01');
  expect(await closing).toBe('closed');
});

test('a closed pool refuses the statements in its queue, and makes no connection for them', async () => {
  const proxy = await openProxy();
  proxy.reception = 'hold';
  const sql = openDriver({ port: proxy.port });
  const [first, second] = [settle(sql`select 1 as n`), settle(sql`select 2 as n`)];
  await expect.poll(() => proxy.accepted).toBe(1);
  const closing = sql.end();
  proxy.release();
  expect(await first).toEqual([{ n: 1 }]);
  expect(await second).toBe('CONNECTION_ENDED');
  await closing;
  expect(proxy.accepted).toBe(1);
});

test('no statement waits behind a slow one while another connection is free', async () => {
  const sql = openDriver({ max: 2 });
  await Promise.all([sql`select 1`, sql`select 2`]);
  const slow = settle(sql`select 'slow', pg_sleep(20)`);
  await untilRunning(database.url, 'slow');
  for (let n = 0; n < 20; n++) expect(await settle(sql`select 1 as one`)).toEqual(one);
  await killSessions(database.url, 'slow');
  expect(await slow).toBe('57P01');
});

test('while sessions are killed under load, no statement stays pending, every response is complete, and no connection is lost', async () => {
  const sql = openDriver({ max: 4 });
  let rounds = 0;
  const codes = new Set<unknown>();
  const ask = async (worker: number) => {
    for (let n = 0; rounds < 20; n++) {
      const id = worker * 1e6 + n;
      const outcome = await settle(sql`select ${id}::int as id, 'load' as load from generate_series(1, 300)`);
      if (!Array.isArray(outcome)) codes.add(outcome);
      else if (outcome.length !== 300 || outcome.some((row) => row.id !== id)) codes.add('another response');
    }
  };
  const workers = [1, 2, 3, 4].map(ask);
  for (; rounds < 20; rounds++) await killSessions(database.url, 'load');
  await Promise.all(workers);
  codes.delete('EPIPE');
  codes.delete('ECONNRESET');
  expect([...codes].sort()).toEqual(expect.arrayContaining(['57P01']));
  expect([...codes].filter((code) => code !== '57P01' && code !== 'CONNECTION_CLOSED')).toEqual([]);
  expect(
    await Promise.all([1, 2, 3, 4].map(() => settle(sql`select 1 as one, pg_sleep(0.05)::text as s`))),
  ).toEqual(Array.from({ length: 4 }, () => [{ one: 1, s: '' }]));
});
