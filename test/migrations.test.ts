import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { DatabaseUnavailable } from '../src/store/driver/errors.ts';
import { openDatabase } from '../src/store/driver/open.ts';
import { checkSchema, migrate, SchemaMismatch } from '../src/store/schema/migrations.ts';
import { readSchemaFiles } from '../src/store/schema/schema-files.ts';
import { createDatabase, runOn, withDatabase } from './support/database.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { startPgBouncer } from './support/pgbouncer.ts';
import { startProxy } from './support/proxy.ts';
import { silentLog } from './support/silent-log.ts';

const first = 'create table firsts (n integer);\ncreate index firsts_n on firsts (n); -- no line ends here';
const second = `create function doubled(n integer) returns integer language sql begin atomic select n * 2; end;
insert into firsts values (doubled(1));`;

/**
 * Writes a folder of migrations: `0001-a.sql` and so on. By default, each migration declares that no older version of
 * the code works with the schema.
 */
function writeMigrations(...texts: string[]): string {
  const folder = makeFolder('migrations');
  onTestFinished(() => removeFolder(folder));
  texts.forEach((text, index) => {
    const whole = text.startsWith('-- works-with') ? text : `-- works-with: ${index + 1}\n${text}`;
    writeFileSync(join(folder, `000${index + 1}-${'abcdef'[index]}.sql`), whole);
  });
  return folder;
}

/** Writes a folder of migrations and functions. The functions are given by name. */
function writeSchema(migrations: string[], functions: Record<string, string>): string {
  const folder = writeMigrations(...migrations);
  mkdirSync(join(folder, 'functions'));
  for (const [name, text] of Object.entries(functions))
    writeFileSync(join(folder, 'functions', `${name.replaceAll('_', '-')}.sql`), text);
  return folder;
}

const numberFunction = (name: string, body: string, result = 'integer') =>
  `create or replace function ${name}() returns ${result} language sql as $$ select ${body} $$`;

/** Creates a database without a schema. (`createDatabase` creates one with the schema.) */
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

test('migrations are applied once, in order, and recorded', async () => {
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

test("the service's own migrations and functions are applied", async () => {
  const { url, drop } = await createDatabase();
  onTestFinished(drop);
  const { migrations, functions } = readSchemaFiles();
  expect(await recorded(url)).toEqual(migrations.map(({ version, name }) => ({ version, name })));
  const made = `select proname::text as name from pg_proc
    where pronamespace = 'public'::regnamespace
      and not exists (select from pg_depend where objid = pg_proc.oid and deptype = 'e')
    order by proname::text collate "C"`;
  expect(await runOn(url, made)).toEqual(functions.map(({ name }) => ({ name })));
});

test('several processes that migrate at once apply each migration once', async () => {
  const url = await createEmpty();
  const slow = 'select pg_sleep(0.05); insert into firsts values (1)';
  const folder = writeMigrations(first, slow, slow, slow);
  const applied = await Promise.all(Array.from({ length: 6 }, () => migrate({ url, folder })));
  expect(applied.flat().sort()).toEqual([1, 2, 3, 4]);
  expect(await runOn(url, 'select count(*)::int as n from firsts')).toEqual([{ n: 3 }]);
});

test('a failed migration is named in the error, and is rolled back with all others of the same run', async () => {
  const url = await createEmpty();
  await migrate({ url, folder: writeMigrations(first) });
  const texts = [
    first,
    'create table wholes ()',
    'create table halves (); select 1 / 0;',
    'create table never ()',
  ];
  const folder = writeMigrations(...texts);
  await expect(migrate({ url, folder })).rejects.toThrow('migration 3 (c) failed: division by zero');
  expect(await recorded(url)).toEqual([{ version: 1, name: 'a' }]);
  const left = `select count(*)::int as n from pg_tables where tablename in ('wholes', 'halves', 'never')`;
  expect(await runOn(url, left)).toEqual([{ n: 0 }]);
});

test('a migration that loses its connection is applied completely or not at all, and migrate can run again', async () => {
  const url = await createEmpty();
  const folder = writeMigrations(first, 'create table halves (); select pg_sleep(60);');
  const running = migrate({ url, folder });
  const end = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and wait_event = 'PgSleep'`;
  const outcome = running.catch((error: Error) => error.message);
  while ((await runOn(url, end)).length === 0) await sleep(5);
  expect(await outcome).toMatch(/^migration 2 \(b\) failed: terminating connection/);
  expect(await runOn(url, "select to_regclass('halves') as halves")).toEqual([{ halves: null }]);
  expect(await migrate({ url, folder: writeMigrations(first, 'create table halves ()') })).toEqual([1, 2]);
});

test("a migration may take longer than the role's statement_timeout", async () => {
  const url = await createEmpty();
  const { pathname } = new URL(url);
  await runOn(url, `alter database ${pathname.slice(1)} set statement_timeout = '1s'`);
  const folder = writeMigrations('select pg_sleep(1.1); create table slow ();');
  expect(await migrate({ url, folder })).toEqual([1]);
});

test('migrations work through a pooler in transaction mode, even from several processes at once', async () => {
  const url = await startPgBouncer(await createEmpty());
  const folder = writeMigrations(first, second);
  const applied = await Promise.all(Array.from({ length: 6 }, () => migrate({ url, folder })));
  expect(applied.flat().sort()).toEqual([1, 2]);
});

test('roles and migrate refuse a newer schema that does not work with the code', async () => {
  const url = await createEmpty();
  await migrate({ url, folder: writeMigrations(first, second, '-- works-with: 2\nselect 1') });
  const older = writeMigrations(first);
  const refusal = new SchemaMismatch(
    "the database's schema has version 3 and works with versions of the service that know 2 or more; " +
      'this one knows 1: run a version of the service that is as new as the database',
  );
  await expect(migrate({ url, folder: older })).rejects.toEqual(refusal);
  await expect(check(url, older)).rejects.toEqual(refusal);
  await check(url, writeMigrations(first, second));
});

test('an older release starts on a newer schema that works with it, and its migrate changes nothing', async () => {
  const url = await createEmpty();
  const newer = writeSchema([first, '-- works-with: 1\nselect 1'], {
    one: numberFunction('one', '11'),
    two: numberFunction('two', '22'),
  });
  const older = writeSchema([first], { one: numberFunction('one', '1') });
  await migrate({ url, folder: older });
  expect(await migrate({ url, folder: newer })).toEqual([2]);
  expect(await migrate({ url, folder: older, log: silentLog })).toEqual([]);
  await check(url, older);
  expect(await runOn(url, 'select one(), two()')).toEqual([{ one: 11, two: 22 }]);
  // The older release also changes nothing if the newer release runs `migrate` at the same time.
  await Promise.all([older, newer, older, newer].map((folder) => migrate({ url, folder })));
  expect(await runOn(url, 'select one(), two()')).toEqual([{ one: 11, two: 22 }]);
});

test('roles and migrate refuse a database that applied other migrations than those of the code', async () => {
  const url = await createEmpty();
  const other = writeMigrations(first, second, 'select 1', 'select 1');
  renameSync(join(other, '0001-a.sql'), join(other, '0001-other.sql'));
  await migrate({ url, folder: other });
  const refusal = new SchemaMismatch(
    'no release of the service made this database: its migration 1 is `other`, not `a`. ' +
      "Export each user's bookmarks with the version of the service that made the database " +
      '(`node src/main.ts admin user export`), and import them into a new database',
  );
  // Whether the database has more migrations than the code or fewer, its schema has another form.
  for (const folder of [
    writeMigrations(first, second),
    writeMigrations(first, ...Array(4).fill('select 1')),
  ]) {
    await expect(migrate({ url, folder })).rejects.toEqual(refusal);
    await expect(check(url, folder)).rejects.toEqual(refusal);
  }
  expect(await recorded(url)).toMatchObject([{ name: 'other' }, { name: 'b' }, { name: 'c' }, { name: 'd' }]);
});

test('roles refuse a database that is older than the code, and print the command to run', async () => {
  const url = await createEmpty();
  const folder = writeMigrations(first, second);
  const refusal = (version: number) =>
    new SchemaMismatch(
      `the database's schema has version ${version}, this version of the service needs 2: ` +
        'run the role `migrate` first (`node src/main.ts migrate`)',
    );
  await expect(check(url, folder)).rejects.toEqual(refusal(0));
  await migrate({ url, folder: writeMigrations(first) });
  await expect(check(url, folder)).rejects.toEqual(refusal(1));
  await migrate({ url, folder });
  await check(url, folder);
});

describe('functions in the database', () => {
  test('are replaced by every migrate, even if the schema already has the newest version', async () => {
    const url = await createEmpty();
    const make = (two: string) =>
      writeSchema([first], { one: numberFunction('one', '1'), two: numberFunction('two', two) });
    await migrate({ url, folder: make('2') });
    expect(await migrate({ url, folder: make('3') })).toEqual([]);
    expect(await runOn(url, 'select one(), two()')).toEqual([{ one: 1, two: 3 }]);
  });

  test('can call each other, whatever the order of their files', async () => {
    const url = await createEmpty();
    const folder = writeSchema([first], {
      one: numberFunction('one', 'two() - 1'),
      two: numberFunction('two', '2'),
    });
    await migrate({ url, folder });
    expect(await runOn(url, 'select one()')).toEqual([{ one: 1 }]);
  });

  test.each([
    [
      'a function with a fault',
      { one: numberFunction('one', 'missing()') },
      /^function one failed: function missing\(\)/,
    ],
    [
      'a function whose result type changed',
      { one: numberFunction('one', "'text'", 'text') },
      /^function one failed: cannot change return type/,
    ],
  ])('%s is named in the error, and nothing changes', async (_, functions, message) => {
    const url = await createEmpty();
    await migrate({ url, folder: writeSchema([first], { one: numberFunction('one', '1') }) });
    const folder = writeSchema([first, 'create table more ()'], functions);
    await expect(migrate({ url, folder })).rejects.toThrow(message);
    expect(await recorded(url)).toEqual([{ version: 1, name: 'a' }]);
    expect(await runOn(url, 'select one()')).toEqual([{ one: 1 }]);
  });

  test('a function that no longer matches a changed table is found, even though its text is unchanged', async () => {
    const url = await createEmpty();
    const functions = { top: numberFunction('top', 'max(n) from firsts') };
    await migrate({ url, folder: writeSchema([first], functions) });
    const folder = writeSchema([first, 'alter table firsts rename n to m'], functions);
    await expect(migrate({ url, folder })).rejects.toThrow(/^function top failed: column "n" does not exist/);
  });

  test('a function whose file was removed is kept for the previous release, until a numbered migration drops it', async () => {
    const url = await createEmpty();
    const [one, two] = [numberFunction('one', '1'), numberFunction('two', '2')];
    await migrate({ url, folder: writeSchema([first], { one, two }) });
    await migrate({ url, folder: writeSchema([first, 'select 1'], { two }) });
    expect(await runOn(url, 'select one()')).toEqual([{ one: 1 }]);
    await migrate({ url, folder: writeSchema([first, 'select 1', 'drop function one'], { two }) });
    await expect(runOn(url, 'select one()')).rejects.toThrow('does not exist');
  });

  test('are created together with their tables when several processes migrate at once', async () => {
    const url = await createEmpty();
    const folder = writeSchema([first, second], { top: numberFunction('top', 'max(n) from firsts') });
    const applied = await Promise.all(Array.from({ length: 6 }, () => migrate({ url, folder })));
    expect(applied.flat()).toEqual([1, 2]);
    expect(await runOn(url, 'select top()')).toEqual([{ top: 2 }]);
  });

  test.each([
    [
      'another name than its file',
      'create or replace function other() returns integer language sql as $$ select 1 $$',
    ],
    ['no "or replace"', 'create function one() returns integer language sql as $$ select 1 $$'],
    ['two functions', `${numberFunction('one', '1')};\n${numberFunction('two', '1')}`],
  ])('a file with %s is refused before anything runs', (_, text) => {
    const folder = writeSchema([first], { one: text });
    expect(() => readSchemaFiles(folder)).toThrow(
      'sql/functions/one.sql: expected one `create or replace function one`',
    );
  });
});

test.each([
  ['nothing', 'select 1'],
  ['a version newer than itself', '-- works-with: 2\nselect 1'],
  ['no number', '-- works-with: all\nselect 1'],
])('a migration whose works-with line declares %s is refused', (_, text) => {
  const folder = writeMigrations(first);
  writeFileSync(join(folder, '0001-a.sql'), text);
  expect(() => readSchemaFiles(folder)).toThrow('sql/0001-a.sql: expected a first line `-- works-with: N`');
});

test('a missing or misnamed migration is refused before anything runs', () => {
  const folder = writeMigrations(first);
  writeFileSync(join(folder, '0003-late.sql'), second);
  expect(() => readSchemaFiles(folder)).toThrow('0003-late.sql: expected number 2 as NNNN-name.sql');
});

test('a lost connection while migrate reads the schema is reported in one line as an unavailable database', async () => {
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

test('a database without Citus cannot be distributed: the error says what to do, and nothing is created', async () => {
  const url = await createEmpty();
  const refusal =
    'DATABASE_SHARDING=citus: the database has no extension `citus`: run `create extension citus`';
  await expect(migrate({ url, sharding: 'citus' })).rejects.toThrow(refusal);
  expect(await runOn(url, `select to_regclass('schema_migrations') as made`)).toEqual([{ made: null }]);
});
