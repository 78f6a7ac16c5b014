import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, onTestFinished, test } from 'vitest';
import { DatabaseUnavailable } from '../src/store/errors.ts';
import { checkSchema, migrate, readMigrations, SchemaMismatch } from '../src/store/migrations.ts';
import { openDatabase } from '../src/store/open-database.ts';
import { createDatabase, runOn, withDatabase } from './support/database.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { startPgBouncer } from './support/pgbouncer.ts';
import { startProxy } from './support/proxy.ts';
import { silentLog } from './support/silent-log.ts';

const first = 'create table firsts (n integer);\ncreate index firsts_n on firsts (n); -- no line ends here';
const second = `create function doubled(n integer) returns integer language sql begin atomic select n * 2; end;
insert into firsts values (doubled(1));`;

/** A folder of migrations, `0001-a.sql` and so on. */
function writeMigrations(...texts: string[]): string {
  const folder = makeFolder('migrations');
  onTestFinished(() => removeFolder(folder));
  texts.forEach((text, index) => {
    writeFileSync(join(folder, `000${index + 1}-${'abcdef'[index]}.sql`), text);
  });
  return folder;
}

/** An empty database: no schema, unlike `createDatabase`'s. */
async function createEmpty(): Promise<string> {
  const url = inject('postgresUrl');
  const { name, drop } = await createDatabase();
  onTestFinished(drop);
  await runOn(url, `drop database ${name}`);
  await runOn(url, `create database ${name}`);
  return withDatabase(url, name);
}

const check = async (url: string, folder: string) => {
  const database = await openDatabase({ url, max: 1 });
  try {
    await checkSchema(database.sql, folder);
  } finally {
    await database.close();
  }
};

const recorded = (url: string) => runOn(url, 'select version, name from schema_migrations order by version');

test('migrations are applied in order, recorded, and never again', async () => {
  const url = await createEmpty();
  const folder = writeMigrations(first, second);
  expect(await migrate({ url, folder, log: silentLog })).toEqual([1, 2]);
  expect(await runOn(url, 'select n from firsts')).toEqual([{ n: 2 }]);
  expect(await recorded(url)).toEqual([
    { version: 1, name: 'a' },
    { version: 2, name: 'b' },
  ]);
  expect(await migrate({ url, folder })).toEqual([]);
  const more = writeMigrations(first, second, 'insert into firsts values (3)');
  expect(await migrate({ url, folder: more })).toEqual([3]);
});

test('the migrations of the service itself are numbered and applied', async () => {
  const { url, drop } = await createDatabase();
  onTestFinished(drop);
  expect(await recorded(url)).toEqual(readMigrations().map(({ version, name }) => ({ version, name })));
});

test('several processes that migrate at once apply each migration once', async () => {
  const url = await createEmpty();
  const slow = 'select pg_sleep(0.05); insert into firsts values (1)';
  const folder = writeMigrations(first, slow, slow, slow);
  const applied = await Promise.all(Array.from({ length: 6 }, () => migrate({ url, folder })));
  expect(applied.flat().sort()).toEqual([1, 2, 3, 4]);
  expect(await runOn(url, 'select count(*)::int as n from firsts')).toEqual([{ n: 3 }]);
});

test('a migration that fails leaves nothing of itself, and is named', async () => {
  const url = await createEmpty();
  const folder = writeMigrations(first, 'create table halves (); select 1 / 0;', 'create table never ()');
  await expect(migrate({ url, folder })).rejects.toThrow('migration 2 (b) failed: division by zero');
  expect(await recorded(url)).toEqual([{ version: 1, name: 'a' }]);
  expect(await runOn(url, "select to_regclass('halves') as halves, to_regclass('never') as never")).toEqual([
    { halves: null, never: null },
  ]);
});

test('a migration whose connection is lost is whole or not there, and can be run again', async () => {
  const url = await createEmpty();
  const folder = writeMigrations(first, 'create table halves (); select pg_sleep(0.5);');
  const running = migrate({ url, folder });
  const end = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and wait_event = 'PgSleep'`;
  const outcome = running.catch((error: Error) => error.message);
  while ((await runOn(url, end)).length === 0) await sleep(5);
  expect(await outcome).toMatch(/^migration 2 \(b\) failed: terminating connection/);
  expect(await runOn(url, "select to_regclass('halves') as halves")).toEqual([{ halves: null }]);
  expect(await migrate({ url, folder })).toEqual([2]);
});

test("a migration may take longer than the role's statement_timeout", async () => {
  const url = await createEmpty();
  const { pathname } = new URL(url);
  await runOn(url, `alter database ${pathname.slice(1)} set statement_timeout = '100ms'`);
  const folder = writeMigrations('select pg_sleep(0.3); create table slow ();');
  expect(await migrate({ url, folder })).toEqual([1]);
});

test('migrations work through a pooler in transaction mode, by several processes at once', async () => {
  const url = await startPgBouncer(await createEmpty());
  const folder = writeMigrations(first, second);
  const applied = await Promise.all(Array.from({ length: 6 }, () => migrate({ url, folder })));
  expect(applied.flat().sort()).toEqual([1, 2]);
});

test('a database newer than the code is refused, by roles and by migrate', async () => {
  const url = await createEmpty();
  await migrate({ url, folder: writeMigrations(first, second) });
  const older = writeMigrations(first);
  const refusal = new SchemaMismatch(
    "the database's schema has version 2, this version of the service knows 1: " +
      'run a version of the service that is as new as the database',
  );
  await expect(migrate({ url, folder: older })).rejects.toEqual(refusal);
  await expect(check(url, older)).rejects.toEqual(refusal);
});

test('a database older than the code is refused by roles, which say what to run', async () => {
  const url = await createEmpty();
  const folder = writeMigrations(first, second);
  const refusal = (version: number) =>
    new SchemaMismatch(
      `the database's schema has version ${version}, this version of the service needs 2: ` +
        'run `npm run migrate` first',
    );
  await expect(check(url, folder)).rejects.toEqual(refusal(0));
  await migrate({ url, folder: writeMigrations(first) });
  await expect(check(url, folder)).rejects.toEqual(refusal(1));
  await migrate({ url, folder });
  await check(url, folder);
});

test('a migration that is missing or misnamed is refused before anything runs', () => {
  const folder = writeMigrations(first);
  writeFileSync(join(folder, '0003-late.sql'), second);
  expect(() => readMigrations(folder)).toThrow('0003-late.sql: expected number 2 as NNNN-name.sql');
});

test('a database that is lost while its schema is read is unavailable, which is told in one line', async () => {
  const { url, drop } = await createDatabase();
  onTestFinished(drop);
  const proxy = await startProxy(url);
  const database = await openDatabase({
    url: url.replace(new URL(url).host, `127.0.0.1:${proxy.port}`),
    max: 1,
  });
  onTestFinished(() => database.close());
  await proxy.close();
  await expect(checkSchema(database.sql)).rejects.toThrow(DatabaseUnavailable);
});
