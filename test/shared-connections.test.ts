import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Database } from '../src/store/driver/database.ts';
import { type DatabaseOptions, openDatabase } from '../src/store/driver/open.ts';
import { createDatabase, runOn, type TestDatabase } from './support/database.ts';
import { startPgBouncer } from './support/pgbouncer.ts';
import { catchUnavailable, openPool, throughPort } from './support/pool.ts';
import { startProxy } from './support/proxy.ts';
import { holdLock, untilBlocked } from './support/sessions.ts';

/**
 * Tests the connections that short reads share. Sharing makes reads faster, and a failed read does not affect the
 * others.
 */

let server: TestDatabase;

beforeAll(async () => {
  server = await createDatabase();
  await runOn(server.url, 'create table notes (id integer primary key, note text)');
  await runOn(server.url, "insert into notes select n, 'note ' || n from generate_series(1, 200) n");
});

afterAll(() => server.drop());

const pidOf = async (database: Database): Promise<number> => {
  const rows = await database.readShort((sql) => sql<{ pid: number }[]>`select pg_backend_pid() as pid`);
  return rows[0]!.pid;
};

/**
 * Returns the process id of the shared connection's backend. Waits until two concurrent reads have the same backend.
 */
async function untilServing(database: Database): Promise<number> {
  let pids: number[] = [];
  await expect
    .poll(async () => {
      pids = await Promise.all([pidOf(database), pidOf(database)]);
      return pids[0] === pids[1];
    })
    .toBe(true);
  return pids[0]!;
}

/** Opens a pool of four connections. Short reads share one of them. */
async function openShared(options: Partial<DatabaseOptions> = {}): Promise<Database> {
  const database = await openPool({ url: server.url, max: 4, shared: 1, ...options });
  await untilServing(database);
  return database;
}

const note = async (database: Database, id: number, deadlineMs?: number): Promise<string> => {
  const rows = await database.readShort(
    (sql) => sql<{ note: string }[]>`select note from notes where id = ${id}`,
    deadlineMs,
  );
  return rows[0]!.note;
};

const selectShort = (database: Database, value: number) =>
  database.readShort((sql) => sql`select ${value}::int as value`);

test('many reads share one connection, each gets its own rows, and no other statement uses the connection', async () => {
  const database = await openShared();
  const shared = await pidOf(database);
  const pids = Array.from({ length: 16 }, () => pidOf(database));
  expect(new Set(await Promise.all(pids))).toEqual(new Set([shared]));
  const notes = await Promise.all(Array.from({ length: 200 }, (_, n) => note(database, n + 1)));
  expect(notes).toEqual(Array.from({ length: 200 }, (_, n) => `note ${n + 1}`));
  for (const kind of ['read', 'write'] as const) {
    const rows = await database[kind]((sql) => sql<{ pid: number }[]>`select pg_backend_pid() as pid`);
    expect(rows[0]!.pid).not.toBe(shared);
  }
});

test('a read that waits for a lock does not delay the others, and gets its rows later', async () => {
  const warnings: unknown[] = [];
  const database = await openShared({ log: { warn: (facts) => warnings.push(facts) } });
  await using lock = await holdLock(server.url, 'lock table notes');
  const stalled = note(database, 7);
  await untilBlocked(server.url, 'from notes');
  const others = Array.from({ length: 15 }, (_, n) => selectShort(database, n));
  // The lock on the table is released only after the other reads have their rows.
  expect(await Promise.all(others)).toEqual(Array.from({ length: 15 }, (_, n) => [{ value: n }]));
  expect(warnings).toEqual([{ reason: 'stalled' }]);
  expect(await selectShort(database, 1)).toEqual([{ value: 1 }]);
  await lock.release();
  expect(await stalled).toBe('note 7');
});

test('a stalled connection is replaced by one new connection, and is used again once it recovers', async () => {
  const database = await openShared({ application: 'one at a time' });
  const before = await pidOf(database);
  const lock = await holdLock(server.url, 'lock table notes');
  const stalled = note(database, 7);
  await untilBlocked(server.url, 'from notes');
  await selectShort(database, 1);
  await lock.release();
  await stalled;
  expect(await untilServing(database)).not.toBe(before);
  const [row] = await runOn<{ n: number }>(
    server.url,
    "select count(*)::int as n from pg_stat_activity where application_name = 'one at a time'",
  );
  expect(row!.n).toBeLessThanOrEqual(4);
});

test('if an idle connection is lost and reopens slowly, no second connection stays open', async () => {
  const proxy = await startProxy(server.url);
  onTestFinished(() => proxy.close());
  const stalled = Promise.withResolvers<void>();
  const database = await openShared({
    url: throughPort(server.url, proxy.port),
    application: 'none left behind',
    log: { warn: () => stalled.resolve() },
  });
  proxy.reception = 'hold';
  proxy.cut('reset');
  await expect.poll(() => proxy.open).toBe(0);
  // The first read makes the driver reconnect. Meanwhile, the others wait in the driver's queue.
  const reads = Array.from({ length: 4 }, (_, n) => selectShort(database, n));
  await stalled.promise;
  proxy.release();
  expect(await Promise.all(reads)).toEqual(Array.from({ length: 4 }, (_, n) => [{ value: n }]));
  await untilServing(database);
  const [row] = await runOn<{ n: number }>(
    server.url,
    "select count(*)::int as n from pg_stat_activity where application_name = 'none left behind'",
  );
  expect(row!.n).toBeLessThanOrEqual(4);
});

test('a read of a lock that is never granted ends at its deadline, after one more attempt', async () => {
  const database = await openShared({ lockTimeoutMs: 500 });
  await using _ = await holdLock(server.url, 'lock table notes');
  expect(await catchUnavailable(note(database, 7))).toMatchObject({ reason: 'cancelled', code: '55P03' });
});

test('the deadline counts from the call, even for a read that was moved to another connection', async () => {
  const database = await openShared();
  await using _ = await holdLock(server.url, 'lock table notes');
  expect(await catchUnavailable(note(database, 7, 400))).toMatchObject({ reason: 'deadline' });
});

test('a lost connection does not fail any read in flight', async () => {
  const proxy = await startProxy(server.url);
  onTestFinished(() => proxy.close());
  const database = await openShared({ url: throughPort(server.url, proxy.port) });
  let lost = 0;
  proxy.onRequest = (chunk, client) => {
    if (lost > 0 || !chunk.includes('doomed')) return;
    lost += 1;
    client.resetAndDestroy();
  };
  const slow = database.readShort((sql) => sql`select 'doomed' as slow from pg_sleep(0.05)`);
  const others = Array.from({ length: 15 }, (_, n) => selectShort(database, n));
  expect(await slow).toEqual([{ slow: 'doomed' }]);
  expect(await Promise.all(others)).toEqual(Array.from({ length: 15 }, (_, n) => [{ value: n }]));
  expect(lost).toBe(1);
  await untilServing(database);
});

test('a read that loses a second connection is sent on a third one, and fails if it loses that one too', async () => {
  const proxy = await startProxy(server.url);
  onTestFinished(() => proxy.close());
  const database = await openShared({ url: throughPort(server.url, proxy.port) });
  let seen = 0;
  proxy.onRequest = (chunk, client) => {
    if (!chunk.includes('ill-fated')) return;
    seen += 1;
    client.resetAndDestroy();
  };
  const doomed = database.readShort((sql) => sql`select 'ill-fated'`);
  expect(await catchUnavailable(doomed)).toMatchObject({ reason: 'lost' });
  expect(seen).toBe(3);
});

test('an error of Postgres is reported to the caller of its statement', async () => {
  const defects: string[] = [];
  const database = await openShared({ onDefect: (sqlState) => defects.push(sqlState) });
  const wrong = database.readShort((sql) => sql`select 1 / ${0}::int`);
  const others = Array.from({ length: 8 }, (_, n) => selectShort(database, n));
  await expect(wrong).rejects.toMatchObject({ name: 'PostgresError', code: '22012' });
  expect(await Promise.all(others)).toEqual(Array.from({ length: 8 }, (_, n) => [{ value: n }]));
  expect(defects).toEqual(['22012']);
});

test('a statement that the driver cannot build fails only its own caller', async () => {
  const database = await openShared();
  const broken = () => {
    throw new Error('a fault in making it');
  };
  const other = selectShort(database, 1);
  await expect(database.readShort(broken)).rejects.toThrow('a fault in making it');
  expect(await other).toEqual([{ value: 1 }]);
  expect(await untilServing(database)).toBeGreaterThan(0);
});

test('responses reach the right callers even if the table of a prepared statement changed', async () => {
  const database = await openShared();
  await runOn(server.url, 'create table moving (id integer primary key)');
  await runOn(server.url, 'insert into moving values (7)');
  const readMoving = () => database.readShort((sql) => sql`select moving.* from moving where id = ${7}`);
  const readPair = (n: number) =>
    database.readShort((sql) => sql`select ${n}::int as one, ${n}::text as two`);
  await readMoving();
  await readPair(0);
  await runOn(server.url, 'alter table moving add column name text');
  // With its default settings, the driver would prepare the first statement again after the response to the second one.
  // Between the preparation and the second run it would send the other statements, and their responses could reach the
  // wrong callers.
  const moving = readMoving();
  expect(await readPair(100)).toEqual([{ one: 100, two: '100' }]);
  const others = await Promise.all([1, 2, 3].map(readPair));
  expect(others).toEqual([1, 2, 3].map((n) => [{ one: n, two: String(n) }]));
  expect(await moving).toEqual([{ id: 7, name: null }]);
  await untilServing(database);
  expect(await readMoving()).toEqual([{ id: 7, name: null }]);
});

test('reads beyond the capacity of one connection get their own connections', async () => {
  const database = await openShared();
  await using lock = await holdLock(server.url, 'select pg_advisory_xact_lock(5)');
  const held = Array.from({ length: 16 }, () =>
    database.readShort((sql) => sql`select pg_advisory_xact_lock_shared(5)`),
  );
  const shared = database.readShort((sql) => sql<{ pid: number }[]>`select pg_backend_pid() as pid`);
  expect((await shared)[0]!.pid).toBeGreaterThan(0);
  await lock.release();
  await Promise.all(held);
});

test('a pool reports how many connections are open and in use, including the shared one', async () => {
  const database = await openShared();
  expect(database.gauges).toMatchObject({ size: 4, inUse: 0, waiting: 0 });
  const reading = [selectShort(database, 1), selectShort(database, 2)];
  expect(database.gauges).toMatchObject({ size: 4, inUse: 1 });
  await Promise.all(reading);
});

test('closing lets reads in flight finish, and refuses new ones', async () => {
  const database = await openDatabase({ url: server.url, max: 4, shared: 1 });
  await untilServing(database);
  const reading = database.readShort((sql) => sql`select 'last' as word from pg_sleep(0.02)`);
  const closing = database.close();
  expect(await catchUnavailable(selectShort(database, 1))).toMatchObject({ reason: 'closed' });
  expect(await reading).toEqual([{ word: 'last' }]);
  await closing;
});

test('while the server is down, reads fail like all statements; afterwards they share a connection again', async () => {
  const proxy = await startProxy(server.url);
  onTestFinished(() => proxy.close());
  const database = await openShared({ url: throughPort(server.url, proxy.port), deadlineMs: 3_000 });
  proxy.reception = 'close';
  proxy.cut('reset');
  await catchUnavailable(selectShort(database, 1));
  await catchUnavailable(selectShort(database, 2));
  proxy.reception = 'pass';
  await untilServing(database);
});

test('behind a pooler that does not support prepared statements, no connection is shared', async () => {
  const url = await startPgBouncer(server.url);
  const database = await openPool({ url, max: 4, shared: 1, prepare: false });
  await using lock = await holdLock(server.url, 'select pg_advisory_xact_lock(6)');
  const held = Array.from({ length: 3 }, () =>
    database.readShort((sql) => sql`select pg_advisory_xact_lock_shared(6)`),
  );
  expect(database.gauges).toMatchObject({ size: 4, inUse: 3 });
  expect(await selectShort(database, 4)).toEqual([{ value: 4 }]);
  await lock.release();
  await Promise.all(held);
});
