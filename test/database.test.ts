import { readdirSync, readFileSync } from 'node:fs';
import { setImmediate as yieldToLoop } from 'node:timers/promises';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { BOUNDS } from '../src/domain/bounds.ts';
import { PAGE_BYTES } from '../src/store/bookmarks.ts';
import { type DatabaseOptions, openDatabase } from '../src/store/driver/open.ts';
import { createDatabase, runOn, type TestDatabase } from './support/database.ts';
import { catchUnavailable, one, openPool, selectOne, throughPort } from './support/pool.ts';
import { type FaultyProxy, startProxy } from './support/proxy.ts';
import { holdLock, killSessions, untilBlocked, untilRunning } from './support/sessions.ts';

let server: TestDatabase;

beforeAll(async () => {
  server = await createDatabase();
  await runOn(server.url, 'create table facts (id integer primary key, fact text)');
  await runOn(server.url, "insert into facts values (1, 'one'), (2, 'two')");
});

afterAll(() => server.drop());

const open = (options: Partial<DatabaseOptions> = {}) => openPool({ url: server.url, ...options });

async function openProxy(): Promise<FaultyProxy> {
  const proxy = await startProxy(server.url);
  onTestFinished(() => proxy.close());
  return proxy;
}
test('an unpatched driver is refused', async () => {
  const driver = postgres as { patched?: number };
  const { patched } = driver;
  onTestFinished(() => void Object.assign(driver, { patched }));
  delete driver.patched;
  await expect(openDatabase({ url: server.url })).rejects.toThrow(/lacks the patch/);
});

test('int8 values are numbers, and one beyond 2^53 is an error instead of a wrong number', async () => {
  const database = await open();
  const [row] = await database.read(
    (sql) => sql`select ${2 ** 53 - 1}::bigint as id, ${[1, 2]}::bigint[] as ids`,
  );
  expect(row).toEqual({ id: 2 ** 53 - 1, ids: [1, 2] });
  await expect(database.read((sql) => sql`select 9007199254740993 as id`)).rejects.toThrow(/no safe integer/);
  expect(await selectOne(database)).toEqual(one);
});

test('the functions and the service have the same limits, and each limit is written once', async () => {
  const folder = new URL('../sql/functions/', import.meta.url);
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql') && file !== 'limit-of.sql');
  const code = files.map((file) => readFileSync(new URL(file, folder), 'utf8')).join('\n');
  const names = new Set([...code.matchAll(/limit_of\('(\w*)'\)/g)].map(([, name]) => name!));
  const database = await open();
  const rows = await database.read(
    (sql) => sql<{ name: string; value: number | null }[]>`
      select name, limit_of(name) as value from unnest(${[...names]}::text[]) as name`,
  );
  const limits = Object.fromEntries(rows.map(({ name, value }) => [name, value]));
  expect(limits).toEqual({
    page_bytes: PAGE_BYTES,
    tag_name: BOUNDS.tagName,
    premium_trash: 100_000,
    block_bookmarks: 64,
    kept_bytes: 16_777_216,
    response_room: 524_288,
    ids_per_tick: 200_000,
  });
  const numbers = Object.values(limits).join('|');
  expect(code.match(new RegExp(`^(?!\\s*--).*\\b(${numbers})\\b`, 'gm'))).toBeNull();
});

test('an absent value is null', async () => {
  const database = await open();
  const [row] = await database.read((sql) => sql`select ${undefined as unknown as null}::text as nothing`);
  expect(row).toEqual({ nothing: null });
});

test('a session has an application name and timeouts', async () => {
  const database = await open({
    application: 'database test',
    statementTimeoutMs: 1_234,
    lockTimeoutMs: 567,
  });
  const [row] = await database.read(
    (sql) => sql`
      select current_setting('application_name') as name, current_setting('statement_timeout') as statement,
        current_setting('lock_timeout') as lock, current_setting('idle_in_transaction_session_timeout') as idle`,
  );
  expect(row).toEqual({ name: 'database test', statement: '1234ms', lock: '567ms', idle: '10s' });
});

test('a statement that Postgres cancels by its timeout has no effect', async () => {
  const database = await open({ statementTimeoutMs: 1_000 });
  const error = await catchUnavailable(
    database.write((sql) => sql`insert into facts select 10, 'slow' from pg_sleep(20)`),
  );
  expect(error).toMatchObject({ reason: 'cancelled', code: '57014', mayHaveRun: false });
  expect(await database.read((sql) => sql`select from facts where id = 10`)).toHaveLength(0);
});

test('a lock that is not granted in time is reported as an unavailable database', async () => {
  const database = await open({ lockTimeoutMs: 50 });
  const holder = await open();
  const holding = catchUnavailable(
    holder.write((sql) => sql`update facts set fact = 'held' where id = 1 returning pg_sleep(20)`),
  );
  await untilRunning(server.url, 'held');
  const error = await catchUnavailable(
    database.write((sql) => sql`update facts set fact = 'x' where id = 1`),
  );
  expect(error).toMatchObject({ reason: 'cancelled', code: '55P03', mayHaveRun: false });
  await killSessions(server.url, 'held');
  await holding;
});

test('a deadlock is reported to its victim as an unavailable database', async () => {
  const database = await open();
  const update = (first: number, second: number) =>
    database.write(
      (sql) => sql`
        with a as (update facts set fact = 'a' where id = ${first} returning id, pg_advisory_xact_lock_shared(1)),
          b as (select from a),
          c as (update facts set fact = 'b' from b where id = ${second} returning id)
        select count(*) from c`,
    );
  await using gate = await holdLock(server.url, 'select pg_advisory_xact_lock(1)');
  const updates = Promise.allSettled([update(1, 2), update(2, 1)]);
  await untilBlocked(server.url, 'update facts', 2);
  await gate.release();
  const outcomes = await updates;
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
  expect(refused.map(({ reason }) => reason)).toMatchObject([
    { name: 'DatabaseUnavailable', reason: 'conflict', code: '40P01', mayHaveRun: false },
  ]);
});

test('other errors are passed on unchanged', async () => {
  const database = await open();
  const insert = () => database.write((sql) => sql`insert into facts values (1, 'a secret')`);
  await expect(insert()).rejects.toMatchObject({ name: 'PostgresError', code: '23505' });
  const broken = () => {
    throw new Error('a fault in making it');
  };
  await expect(database.read(broken)).rejects.toThrow('a fault in making it');
  expect(database.gauges).toMatchObject({ size: 2, inUse: 0, waiting: 0 });
});

test('a read is sent once more if its connection is lost before the response', async () => {
  const database = await open({ max: 1 });
  await runOn(server.url, 'create sequence tries');
  // Only the first attempt is slow enough to lose its connection.
  const reading = database.read(
    (sql) => sql`select 'again' as again from pg_sleep(case nextval('tries') when 1 then 20 else 0 end)`,
  );
  await untilRunning(server.url, 'again');
  await killSessions(server.url, 'again');
  expect(await reading).toEqual([{ again: 'again' }]);
});

test('a read whose connection is lost twice fails', async () => {
  const proxy = await openProxy();
  const database = await open({ max: 1, url: throughPort(server.url, proxy.port) });
  proxy.onRequest = (chunk, client) => {
    if (chunk.includes('twice')) client.resetAndDestroy();
  };
  const error = await catchUnavailable(database.read((sql) => sql`select 'twice'`));
  expect(error).toMatchObject({ reason: 'lost', mayHaveRun: true });
  expect(proxy.accepted).toBe(2);
});

test('a write is never sent twice', async () => {
  const database = await open({ max: 1 });
  await runOn(server.url, 'create sequence attempts');
  const writing = catchUnavailable(
    database.write(
      (sql) => sql`insert into facts select nextval('attempts') + 100, 'once' from pg_sleep(20)`,
    ),
  );
  await untilRunning(server.url, 'once');
  await killSessions(server.url, 'once');
  expect(await writing).toMatchObject({ reason: 'lost', code: '57P01', mayHaveRun: true });
  expect(await database.read((sql) => sql`select from facts where fact = 'once'`)).toHaveLength(0);
});

test('the message about an unavailable database contains only codes, and the error keeps its cause', async () => {
  const database = await open({ statementTimeoutMs: 1_000 });
  const error = await catchUnavailable(
    database.read((sql) => sql`select ${'a secret'}::text from pg_sleep(20)`),
  );
  expect(error.message).toBe('database unavailable: cancelled (57014)');
  expect(error.cause).toMatchObject({ name: 'PostgresError', code: '57014' });
});

test('a write that waits too long for a connection is refused and never runs', async () => {
  const database = await open({ max: 1, waitMs: 100 });
  await using gate = await holdLock(server.url, 'select pg_advisory_xact_lock(1)');
  const slow = database.read((sql) => sql`select 1 as one from pg_advisory_xact_lock(1)`);
  const late = database.write((sql) => sql`insert into facts values (20, 'late')`);
  expect(database.gauges).toMatchObject({ size: 1, inUse: 1, waiting: 1 });
  expect(await catchUnavailable(late)).toMatchObject({ reason: 'pool', mayHaveRun: false });
  expect(database.gauges).toMatchObject({ size: 1, inUse: 1, waiting: 0 });
  await gate.release();
  expect(await slow).toEqual(one);
  expect(await database.read((sql) => sql`select from facts where id = 20`)).toHaveLength(0);
  expect(database.gauges).toMatchObject({ size: 1, inUse: 0, waiting: 0 });
});

test('a read whose own deadline passes while it waits for a connection never runs', async () => {
  const database = await open({ max: 1 });
  await runOn(server.url, 'create sequence late_reads');
  await using gate = await holdLock(server.url, 'select pg_advisory_xact_lock(1)');
  const slow = database.read((sql) => sql`select 1 as one from pg_advisory_xact_lock(1)`);
  const late = database.read((sql) => sql`select nextval('late_reads')`, 50);
  expect(await catchUnavailable(late)).toMatchObject({ reason: 'deadline', mayHaveRun: false });
  await gate.release();
  expect(await slow).toEqual(one);
  expect(await selectOne(database)).toEqual(one);
  expect(await runOn(server.url, 'select is_called from late_reads')).toEqual([{ is_called: false }]);
});

test('a failed connection attempt does not fail waiting calls while another connection still gets responses, even errors', async () => {
  const proxy = await openProxy();
  const database = await open({ max: 2, url: throughPort(server.url, proxy.port) });
  const gates = await Promise.all(
    [1, 2].map((key) => holdLock(server.url, `select pg_advisory_xact_lock(${key})`)),
  );
  /** Starts a call that ends in an error of Postgres when the lock is released. */
  const fail = (key: number) =>
    expect(
      database.read((sql) => sql`select 1 / length(pg_advisory_xact_lock(${key})::text)`),
    ).rejects.toMatchObject({ code: '22012' });
  const first = fail(1);
  await untilBlocked(server.url, 'pg_advisory_xact_lock');
  proxy.reception = 'hold';
  const unconnected = catchUnavailable(selectOne(database));
  const [second, third] = [fail(2), fail(2)];
  await gates[0]!.release();
  await first;
  await untilBlocked(server.url, 'pg_advisory_xact_lock');
  proxy.reception = 'pass';
  proxy.closeHeld();
  expect(await unconnected).toMatchObject({ reason: 'connect' });
  await gates[1]!.release();
  await Promise.all([second, third]);
});

test('callers that wait for a connection are served in order, and their number is limited', async () => {
  const database = await open({ max: 2, maxWaiting: 50 });
  const order: number[] = [];
  await using gate = await holdLock(server.url, 'select pg_advisory_xact_lock(1)');
  const ask = async (n: number) => {
    await database.read((sql) => sql`select ${n}::int`);
    order.push(n);
  };
  const slow = database.read((sql) => sql`select from pg_advisory_xact_lock(1)`);
  const asked = Array.from({ length: 51 }, (_, n) => ask(n));
  expect(database.gauges).toMatchObject({ size: 2, inUse: 2, waiting: 50 });
  expect(await catchUnavailable(selectOne(database))).toMatchObject({ reason: 'pool', mayHaveRun: false });
  await Promise.all(asked);
  expect(order).toEqual(Array.from({ length: 51 }, (_, n) => n));
  await gate.release();
  await slow;
});

test('at most as many statements run as the pool has connections', async () => {
  const database = await open({ max: 3 });
  const look = () =>
    database.read(
      (sql) => sql<{ n: number }[]>`
        select count(*)::int as n from pg_stat_activity
        where query like '%crowd%' and pid <> pg_backend_pid() and pg_sleep(0.002) is not null`,
    );
  const counts = await Promise.all(Array.from({ length: 100 }, look));
  expect(Math.max(...counts.map((rows) => rows[0]!.n))).toBeLessThan(3);
});

test('a write whose connection cannot be made in time never runs', async () => {
  const proxy = await openProxy();
  const database = await open({ max: 1, url: throughPort(server.url, proxy.port), deadlineMs: 2_000 });
  proxy.cut('end');
  proxy.reception = 'hold';
  while (proxy.open > 0) await yieldToLoop();
  const late = database.write((sql) => sql`insert into facts values (30, 'late')`);
  expect(await catchUnavailable(late)).toMatchObject({ reason: 'deadline', mayHaveRun: false });
  proxy.release();
  expect(await selectOne(database)).toEqual(one);
  expect(await database.read((sql) => sql`select from facts where id = 30`)).toHaveLength(0);
});

test('a server that accepts and closes connections fails a call and all calls that wait behind it, at once', async () => {
  const proxy = await openProxy();
  const database = await open({ max: 2, url: throughPort(server.url, proxy.port), waitMs: 0 });
  proxy.cut('end');
  proxy.reception = 'close';
  while (proxy.open > 0) await yieldToLoop();
  const errors = await Promise.all(Array.from({ length: 100 }, () => catchUnavailable(selectOne(database))));
  expect(new Set(errors.map(({ reason }) => reason))).toEqual(new Set(['connect']));
  expect(proxy.accepted).toBeLessThan(10);
  proxy.reception = 'pass';
  expect(await selectOne(database)).toEqual(one);
});

test('closing refuses waiting and new calls, and lets calls in flight finish', async () => {
  const database = await open({ max: 1 });
  await using gate = await holdLock(server.url, 'select pg_advisory_xact_lock(1)');
  const inFlight = database.read((sql) => sql`select 1 as one from pg_advisory_xact_lock(1)`);
  const waiting = catchUnavailable(selectOne(database));
  await untilBlocked(server.url, 'as one from pg_advisory');
  const closed = database.close();
  expect(await waiting).toMatchObject({ reason: 'closed', mayHaveRun: false });
  expect(await catchUnavailable(selectOne(database))).toMatchObject({ reason: 'closed' });
  await gate.release();
  expect(await inFlight).toEqual(one);
  await closed;
});
