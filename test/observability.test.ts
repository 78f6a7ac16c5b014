import { pino } from 'pino';
import postgres from 'postgres';
import { describe, expect, test } from 'vitest';
import { describeError } from '../src/observability/log.ts';
import { METRIC_NAMES } from '../src/observability/metrics.ts';
import { migrate } from '../src/store/schema/migrations.ts';
import { createDatabase, runOn, type TestDatabase } from './support/database.ts';
import { findFreePort } from './support/ports.ts';
import { startPostgres } from './support/postgres.ts';
import { scrape } from './support/replica.ts';
import { startService } from './support/service.ts';
import { until } from './support/until.ts';

test('every documented metric exists after traffic, and no label names a user', async () => {
  const metricsPort = await findFreePort();
  await using service = await startService({ metricsPort, importInlineBytes: 0, syncWaitSeconds: 1 });
  const user = await service.user();
  const wait = user.post('/bookmarks/sync', { wait: true });
  await user.post('/bookmarks/add', { url: 'http://a/' });
  await wait;
  await user.post('/import', { bookmarks: [{ url: 'http://b/' }] });
  await user.post('/bookmarks/add', { url: 'nonsense' });
  await Promise.all(Array.from({ length: 50 }, () => user.post('/bookmarks/search', { query: 'x' })));
  // The limiter does not count a request with an invalid token.
  await service.post('/tags/list', {}, { token: `bka_1_${'A'.repeat(43)}` });

  const samples = await scrape(metricsPort);
  const names = [...samples.keys()];
  const own = names.filter((name) => name.startsWith('bookmarks_'));
  const series = own.map((name) => name.replace(/\{.*/, '').replace(/_(bucket|sum|count)$/, ''));
  expect([...new Set(series)].sort()).toEqual([...METRIC_NAMES]);
  expect(
    samples.get('bookmarks_http_requests_total{route="/api/v1/bookmarks/add",class="write",status="400"}'),
  ).toBe(1);
  expect(samples.get('bookmarks_http_request_duration_seconds_count{route="/api/v1/bookmarks/add"}')).toBe(2);
  expect(samples.get('bookmarks_import_jobs_total{state="done"}')).toBe(1);
  expect(samples.get('bookmarks_limiter_decisions_total{decision="admitted"}')).toBe(54);
  expect(samples.get('bookmarks_waiters')).toBe(0);
  expect(samples.get('bookmarks_database_reachable')).toBe(1);
  expect(names.join('\n')).not.toContain(user.token.slice(-43));
  expect(own.filter((name) => /user|token|email/.test(name))).toEqual([]);
});

test('requests are counted by class, and probes are not counted', async () => {
  const metricsPort = await findFreePort();
  await using service = await startService({ metricsPort });
  const user = await service.user();
  await user.post('/bookmarks/list');
  await user.post('/bookmarks/sync');
  await user.post('/tags/create', { name: 'a' });
  await user.post('/import', { bookmarks: [] });
  await service.post('/auth/invite', { code: 'ABCDEFGH' });
  await service.post('/nothing', {});
  for (const path of ['/livez', '/readyz']) await fetch(service.origin + path);
  const samples = [...(await scrape(metricsPort))].filter(([name]) =>
    name.startsWith('bookmarks_http_requests'),
  );
  const classes = samples.map(([name, count]) => [/class="(\w+)"/.exec(name)![1], count]);
  expect(classes.sort()).toEqual([
    ['import', 1],
    ['other', 1],
    ['poll', 1],
    ['read', 1],
    ['write', 1],
    ['write', 1],
  ]);
});

test('metrics are served while the database is unavailable, except those that come from the database', async () => {
  await using server = await startPostgres();
  await migrate({ url: server.url });
  const metricsPort = await findFreePort();
  const database = {
    url: server.url,
    name: 'bookmarks',
    drop: async () => {},
    [Symbol.asyncDispose]: async () => {},
  };
  await using _service = await startService({ metricsPort }, { database });
  expect((await scrape(metricsPort)).get('bookmarks_imports_staged{state="queued"}')).toBe(0);
  await server.kill();
  // The loss takes a moment to show: a backend may outlive the Postgres server, and a replica keeps the result of a
  // health check for a second.
  const samples = await until(async () => {
    const scraped = await scrape(metricsPort);
    return scraped.get('bookmarks_database_reachable') === 0 && scraped;
  });
  expect(samples.get('bookmarks_waiters')).toBe(0);
  expect(samples.has('bookmarks_imports_staged{state="queued"}')).toBe(false);
});

/** Takes a lock, so that a statement of the service waits for it. */
async function lockOn(url: string) {
  const sql = postgres(url, { max: 1 });
  await sql`select pg_advisory_lock(1)`;
  const release = () => sql.end();
  return { release, [Symbol.asyncDispose]: release };
}

test('an overloaded replica refuses early with 503, and stays healthy', async () => {
  await using service = await startService({ overloadPoolWaitMs: 1, databasePoolSize: 1 });
  const user = await service.user();
  const { database } = service.context;
  await using holder = await lockOn(service.database.url);
  const slow = database.read((sql) => sql`select pg_advisory_xact_lock(1)`);
  const queued = database.read((sql) => sql`select 1`);
  await until(() => database.gauges.oldestWaitMs > 1);
  const refused = await user.post('/bookmarks/search');
  expect(refused.status).toBe(503);
  expect(refused.body.code).toBe('UNAVAILABLE');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  expect((await fetch(`${service.origin}/livez`)).status).toBe(200);
  await holder.release();
  await Promise.all([slow, queued]);
  expect((await user.post('/bookmarks/search')).status).toBe(200);
  expect((await fetch(`${service.origin}/readyz`)).status).toBe(200);
});

test('an unexpected error of the database is counted, and logged with its code', async () => {
  const metricsPort = await findFreePort();
  await using database = await createDatabase();
  const lines: string[] = [];
  const log = pino(
    { serializers: { err: describeError } },
    { write: (line: string) => void lines.push(line) },
  );
  await using broken = await startService({ metricsPort }, { database, log });
  const user = await broken.user();
  await runOn(database.url, 'alter table bookmarks rename column url_key to url_key_gone');
  expect(await user.post('/bookmarks/get', { url: 'http://a/' })).toMatchObject({
    status: 500,
    body: { code: 'INTERNAL_ERROR' },
  });
  const samples = await scrape(metricsPort);
  expect(samples.get('bookmarks_database_defects_total{sqlstate="42703"}')).toBe(1);
  expect(lines.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ msg: 'request failed', sqlState: '42703' }),
  );
});

describe('a database that responds with errors is distinguished from an unavailable one', () => {
  const openBroken = async (database: TestDatabase) => {
    const lines: string[] = [];
    const metricsPort = await findFreePort();
    const log = pino({}, { write: (line: string) => void lines.push(line) });
    const broken = await startService({ metricsPort }, { database, log });
    const readiness = async () => (await fetch(`${broken.origin}/readyz`)).json();
    const warnings = () => lines.map((line) => JSON.parse(line)).filter(({ reason }) => reason !== undefined);
    return { broken, metricsPort, readiness, warnings };
  };

  test("if a function's library does not exist", async () => {
    await using database = await createDatabase();
    const { broken, metricsPort, readiness, warnings } = await openBroken(database);
    await using _broken = broken;
    const user = await broken.user();
    await runOn(
      database.url,
      `update pg_proc set prolang = (select oid from pg_language where lanname = 'c'),
         prosrc = 'gone', probin = '$libdir/gone' where proname = 'read_page'`,
    );
    expect(await user.post('/bookmarks/sync', {})).toMatchObject({ status: 503 });
    expect(await readiness()).toMatchObject({ status: 'ready', database: 'missing-code' });
    const samples = await scrape(metricsPort);
    expect(samples.get('bookmarks_database_unavailable_total{reason="missing-code"}')).toBe(1);
    expect(samples.get('bookmarks_database_reachable')).toBe(0);
    expect(warnings()).toContainEqual(
      expect.objectContaining({
        reason: 'missing-code',
        sqlState: '58P01',
        says: expect.stringContaining('gone'),
      }),
    );
  });

  test('if the disk is full, which affects only writes', async () => {
    await using database = await createDatabase();
    const { broken, metricsPort, readiness, warnings } = await openBroken(database);
    await using _broken = broken;
    const user = await broken.user();
    await runOn(
      database.url,
      `create function fill() returns trigger language plpgsql as $$
         begin raise exception 'could not extend file' using errcode = '53100'; end $$;
       create trigger fill before insert on bookmarks for each row execute function fill()`,
    );
    expect(await readiness()).toMatchObject({ database: 'reachable' });
    for (let i = 0; i < 3; i += 1) {
      expect((await user.post('/bookmarks/add', { url: 'http://a/' })).status).toBe(503);
    }
    expect(await readiness()).toMatchObject({ database: 'disk-full' });
    const samples = await scrape(metricsPort);
    expect(samples.get('bookmarks_database_unavailable_total{reason="disk-full"}')).toBe(3);
    expect(warnings().filter(({ reason }) => reason === 'disk-full')).toHaveLength(1);
  });
});

test('a full pool is not reported as a lost database, because readiness and metrics have their own connection', async () => {
  const metricsPort = await findFreePort();
  await using service = await startService({ metricsPort, databasePoolSize: 1 });
  const holder = postgres(service.database.url, { max: 1, onnotice: () => {} });
  await holder`select pg_advisory_lock(1)`;
  const { database } = service.context;
  // Each statement ends when its lock_timeout has passed. The next statement in the queue then takes the connection, so
  // no connection is ever free.
  let isReleased = false;
  const fill = async () => {
    while (!isReleased)
      await database.read((sql) => sql`select pg_advisory_xact_lock_shared(1)`).catch(() => {});
  };
  const filled = Promise.all([fill(), fill(), fill()]);
  await until(
    async () => (await runOn(service.database.url, 'select from pg_locks where not granted')).length > 0,
  );
  const ready = await fetch(`${service.origin}/readyz`);
  expect([ready.status, await ready.json()]).toEqual([
    200,
    { status: 'ready', database: 'reachable', redis: 'none' },
  ]);
  const samples = await scrape(metricsPort);
  expect(samples.get('bookmarks_database_reachable')).toBe(1);
  expect(samples.get('bookmarks_database_pool_in_use{pool="api"}')).toBe(1);
  isReleased = true;
  await holder.end();
  await filled;
});

test('a worker logs for each finished import its id, user, entries or error, and duration', async () => {
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  await using service = await startService({ importInlineBytes: 0, freeBookmarkLimit: 2 }, { log });
  const user = await service.user();
  const entries = ['a', 'b', 'c'].map((name) => ({ url: `http://${name}/`, title: 'nobody logs this' }));
  await user.post('/import', { bookmarks: entries.slice(0, 2) });
  const refused = await user.post('/import', { bookmarks: entries });
  const ends = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'import ended');
  const common = { level: 30, importId: expect.anything(), user: user.id, ms: expect.any(Number) };
  expect(refused.body.code).toBe('LIMIT_EXCEEDED');
  expect(ends).toMatchObject([
    { ...common, state: 'done', entries: 2 },
    { ...common, state: 'failed', error: 'LIMIT_EXCEEDED' },
  ]);
  expect(ends[0].importId).not.toEqual(ends[1].importId);
  expect(lines.join('')).not.toContain('nobody logs this');
});
