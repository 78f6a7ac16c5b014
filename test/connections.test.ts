import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as yieldToLoop } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { chooseServerAccount, giveFolder } from '../src/embedded/server-account.ts';
import { DatabaseUnavailable } from '../src/store/driver/errors.ts';
import { type DatabaseOptions, openDatabase } from '../src/store/driver/open.ts';
import { createDatabase, runOn, type TestDatabase } from './support/database.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { startPgBouncer } from './support/pgbouncer.ts';
import { catchUnavailable, one, openPool, selectOne, throughPort } from './support/pool.ts';
import { findFreePort } from './support/ports.ts';
import { startPostgres } from './support/postgres.ts';
import { certificate, privateKey } from './support/tls/localhost.ts';
import { until } from './support/until.ts';

let server: TestDatabase;

beforeAll(async () => {
  server = await createDatabase();
});

afterAll(() => server.drop());

const open = (options: Partial<DatabaseOptions> = {}) => openPool({ url: server.url, ...options });

test('calls to a silent server fail within the deadline, and return the right rows when it responds again', async () => {
  await using frozen = await startPostgres();
  const database = await open({ url: frozen.url, max: 2, deadlineMs: 2_000 });
  await selectOne(database);
  await frozen.freeze();
  const errors = await Promise.all(
    Array.from({ length: 6 }, (_, n) => catchUnavailable(database.read((sql) => sql`select ${n}::int as n`))),
  );
  expect(new Set(errors.map(({ reason }) => reason))).toEqual(new Set(['deadline']));
  await frozen.thaw();
  await expect.poll(() => selectOne(database).catch(() => undefined)).toEqual(one);
  expect(await database.read((sql) => sql`select 7 as n`)).toEqual([{ n: 7 }]);
});

test('no call stays pending when a server is killed and restarted under load, and the pool works afterwards', async () => {
  await using victim = await startPostgres();
  const database = await open({ url: victim.url, max: 4 });
  let over = false;
  let settled = 0;
  const wrong = new Set<unknown>();
  const ask = async (worker: number) => {
    for (let n = worker; !over; n += 10) {
      const rows = await database
        .read((sql) => sql<{ n: number }[]>`select ${n}::int as n from generate_series(1, 200)`)
        .catch((error: unknown) => error);
      if (rows instanceof DatabaseUnavailable) await yieldToLoop();
      else if (!Array.isArray(rows) || rows.length !== 200 || rows.some((row) => row.n !== n))
        wrong.add(rows);
      settled += 1;
    }
  };
  const underLoad = async () => {
    const enough = settled + 100;
    await until(() => settled > enough);
  };
  const load = Array.from({ length: 10 }, (_, worker) => ask(worker));
  await underLoad();
  await victim.kill();
  await underLoad();
  await victim.restart();
  await underLoad();
  await victim.shutDown();
  await victim.restart();
  over = true;
  await Promise.all(load);
  expect([...wrong]).toEqual([]);
  expect(await Promise.all(Array.from({ length: 8 }, () => selectOne(database)))).toEqual(Array(8).fill(one));
  expect(database.gauges).toMatchObject({ size: 4, inUse: 0, waiting: 0 });
});

test('opening rejects if no server responds', async () => {
  const port = await findFreePort();
  expect(await catchUnavailable(openDatabase({ url: throughPort(server.url, port) }))).toMatchObject({
    reason: 'connect',
    mayHaveRun: false,
  });
});

test('parameters of a url that only libpq knows are not sent to the server', async () => {
  const database = await open({
    url: `${server.url}?channel_binding=disable&sslmode=prefer&keepalives=1&application_name=named`,
  });
  const [row] = await database.read((sql) => sql`select current_setting('application_name') as name`);
  expect(row).toEqual({ name: 'named' });
});

test('a Unix socket can be used', async () => {
  const folder = makeFolder('socket');
  onTestFinished(() => removeFolder(folder));
  giveFolder(chooseServerAccount(folder), folder);
  await using local = await startPostgres({ unix_socket_directories: folder });
  const { username, password, pathname } = new URL(local.url);
  const database = await open({
    url: `postgres://${username}:${password}@${pathname}?host=${folder}&port=${local.port}`,
  });
  const [row] = await database.read((sql) => sql`select inet_server_addr() is null as is_local`);
  expect(row).toEqual({ is_local: true });
});

async function startTlsPostgres() {
  const folder = makeFolder('tls');
  onTestFinished(() => removeFolder(folder));
  const files = { ca: join(folder, 'server.crt'), key: join(folder, 'server.key') };
  writeFileSync(files.ca, certificate);
  writeFileSync(files.key, privateKey, { mode: 0o600 });
  giveFolder(chooseServerAccount(join(folder, 'none')), folder);
  const started = await startPostgres({ ssl: 'on', ssl_cert_file: files.ca, ssl_key_file: files.key });
  onTestFinished(() => started.stop());
  return { server: started, ca: files.ca, byName: started.url.replace('127.0.0.1', 'localhost') };
}

test('over TLS, the certificate is checked as the url requires', async () => {
  const { server: tls, ca, byName } = await startTlsPostgres();
  const encrypted = async (url: string) => {
    const database = await open({ url, max: 1 });
    return database.read((sql) => sql`select ssl from pg_stat_ssl where pid = pg_backend_pid()`);
  };
  expect(await encrypted(`${tls.url}?sslmode=require`)).toEqual([{ ssl: true }]);
  expect(await encrypted(`${tls.url}?sslmode=verify-ca&sslrootcert=${ca}`)).toEqual([{ ssl: true }]);
  expect(await encrypted(`${byName}?sslmode=verify-full&sslrootcert=${ca}`)).toEqual([{ ssl: true }]);
  // The certificate is for the name localhost, but the url contains an IP address.
  for (const query of [`verify-full&sslrootcert=${ca}`, 'verify-full', 'verify-ca']) {
    const error = await catchUnavailable(openDatabase({ url: `${tls.url}?sslmode=${query}` }));
    expect(error).toMatchObject({ reason: 'connect', mayHaveRun: false });
  }
});

test('over TLS, a silent server also fails calls in time, and killed sessions are replaced', async () => {
  const { server: tls, byName } = await startTlsPostgres();
  const database = await open({ url: `${byName}?sslmode=require`, max: 2, deadlineMs: 2_000 });
  await selectOne(database);
  await tls.freeze();
  expect(await catchUnavailable(selectOne(database))).toMatchObject({ reason: 'deadline' });
  await tls.thaw();
  await expect.poll(() => selectOne(database).catch(() => undefined)).toEqual(one);
  await tls.kill();
  expect(await catchUnavailable(selectOne(database))).toMatchObject({
    reason: expect.stringMatching(/connect|lost/),
  });
  await tls.restart();
  expect(await Promise.all([1, 2, 3].map(() => selectOne(database)))).toEqual([one, one, one]);
});

test('a pooler that refuses timeouts is used without them, with a warning until the role has its own timeouts', async () => {
  const url = await startPgBouncer(server.url);
  const warnings: string[] = [];
  const log = { warn: (_facts: object, message: string) => void warnings.push(message) };
  const database = await open({ url, prepare: false, max: 4, log });
  const rows = await Promise.all(
    Array.from({ length: 200 }, (_, n) =>
      database.read((sql) => sql`select ${n}::int as n, ${'x'}::text as x`),
    ),
  );
  expect(rows.map(([row]) => row?.n)).toEqual(Array.from({ length: 200 }, (_, n) => n));
  expect(warnings).toEqual([expect.stringMatching(/alter role "\w+" set statement_timeout = 6000;/)]);
  const { username, pathname } = new URL(server.url);
  await runOn(
    server.url,
    `alter role ${username} in database ${pathname.slice(1)} set statement_timeout = '6s'`,
  );
  // The first PgBouncer would give new clients its existing sessions, which began before the role had timeouts. So the
  // test starts a second PgBouncer.
  const fresh = await startPgBouncer(server.url);
  warnings.length = 0;
  await open({ url: fresh, prepare: false, log });
  expect(warnings).toEqual([]);
});
