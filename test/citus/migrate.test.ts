import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { openDatabase } from '../../src/store/driver/open.ts';
import { checkSchema, migrate } from '../../src/store/schema/migrations.ts';
import { readSchemaFiles } from '../../src/store/schema/schema-files.ts';
import { createEmptyShardedDatabase, createShardedDatabase } from '../support/citus.ts';
import { runOn } from '../support/database.ts';
import { makeFolder, removeFolder } from '../support/folders.ts';
import { startService } from '../support/service.ts';
import { silentLog } from '../support/silent-log.ts';

const coordinator = () => inject('citusUrl')!;
const sharding = 'citus';

async function openEmpty() {
  const database = await createEmptyShardedDatabase(coordinator());
  onTestFinished(database.drop);
  return database;
}

/** Returns how each table is stored. The tables are in the order of their names. */
const tablesOf = (url: string) =>
  runOn<{ name: string; kind: string; column: string; group: number }>(
    url,
    `select table_name::text as name, citus_table_type as kind, distribution_column as column, colocation_id as group
    from citus_tables order by 1`,
  );

const { migrations } = readSchemaFiles();
const newest = migrations.length;

/** Creates a folder with the schema of this release and one more migration. */
function releaseWith(text: string): string {
  const folder = makeFolder('release');
  onTestFinished(() => removeFolder(folder));
  cpSync(new URL('../../sql/', import.meta.url), folder, { recursive: true });
  writeFileSync(join(folder, `${String(newest + 1).padStart(4, '0')}-more.sql`), text);
  return folder;
}

test('each table is distributed by user or replicated on every node, and migrating again changes nothing', async () => {
  const { url, nodes } = await openEmpty();
  expect(await migrate({ url, sharding })).toHaveLength(newest);
  const tables = await tablesOf(url);
  const distributed = tables.filter(({ kind }) => kind === 'distributed');
  expect(distributed.map(({ name }) => name)).toContain('bookmarks');
  expect(new Set(distributed.map(({ column, group }) => `${column} ${group}`)).size).toBe(1);
  const whole = tables.filter(({ kind }) => kind === 'reference').map(({ name }) => name);
  expect(whole).toEqual(['audit', 'epoch', 'identities', 'invites', 'schema_migrations', 'users']);
  expect(await migrate({ url, sharding })).toEqual([]);
  expect(await migrate({ url })).toEqual([]);
  // A worker node may be the database of a replica with the role `all`. If no migration is missing, the replica can
  // start with this node.
  expect(await migrate({ url: nodes[1]!.url, sharding, onlyIfBehind: true })).toEqual([]);
});

test('each node has the settings and sequences that it needs, including a node that was added later', async () => {
  await using database = await createShardedDatabase(coordinator());
  const state = async () =>
    Promise.all(
      ['show jit', 'show plan_cache_mode', "select to_regclass('users_id_seq') is not null"].map(
        async (ask) =>
          (
            await runOn<{ result: string }>(
              database.url,
              `select result from run_command_on_all_nodes($$${ask}$$)`,
            )
          ).map(({ result }) => result),
      ),
    );
  const [citus] = await runOn<{ leaks: boolean }>(
    database.url,
    "select citus_version() ~ '^Citus (13[.]2[.][12]|14[.])' as leaks",
  );
  const mode = citus!.leaks ? 'force_custom_plan' : 'auto';
  const ready = [
    ['off', 'off', 'off'],
    [mode, mode, mode],
    ['t', 't', 't'],
  ];
  expect(await state()).toEqual(ready);
  await runOn(
    database.nodes[1]!.url,
    `set citus.enable_ddl_propagation = off;
    alter database ${database.name} reset jit;
    drop sequence users_id_seq`,
  );
  expect(await state()).not.toEqual(ready);
  expect(await migrate({ url: database.nodes[2]!.url, onlyIfBehind: true })).toEqual([]);
  expect(await state()).not.toEqual(ready);
  expect(await migrate({ url: database.url })).toEqual([]);
  expect(await state()).toEqual(ready);
});

test('a release of Citus that never reuses cached plans causes a warning', async () => {
  await using database = await createShardedDatabase(coordinator());
  const [{ version }] = (await runOn<{ version: string }>(
    database.url,
    'select citus_version() as version',
  )) as [{ version: string }];
  const isBad = /^Citus (13\.2\.[12]|14\.(0\.[01]|1\.0)) /.test(version);
  const warn = vi.fn();
  await migrate({ url: database.url, log: { ...silentLog, warn } });
  expect(warn.mock.calls.map(([{ release }]) => release)).toEqual(
    isBad ? database.nodes.map(() => expect.stringMatching(/^1[34]\./)) : [],
  );
});

test('a later release brings its tables and functions to all nodes automatically', async () => {
  await using database = await createShardedDatabase(coordinator());
  const folder = releaseWith(`-- works-with: ${migrations.at(-1)!.worksWith}
    alter table bookmarks add column note text;
    create table notes (user_id bigint, id bigint, constraint notes_pkey primary key (user_id, id));`);
  writeFileSync(
    join(folder, 'functions/count-notes.sql'),
    `create or replace function count_notes(p_user_id bigint) returns bigint language plpgsql stable as $$
    begin
      return (select count(*) from notes where user_id = p_user_id);
    end $$;`,
  );
  const worker = database.nodes[1]!.url;
  await expect(migrate({ url: worker, folder })).rejects.toThrow('this is a worker node');
  expect(await migrate({ url: database.url, folder, log: silentLog })).toEqual([newest + 1]);
  expect(await tablesOf(worker)).toContainEqual(
    expect.objectContaining({ name: 'notes', kind: 'distributed', column: 'user_id' }),
  );
  expect(await runOn(worker, 'select count_notes(1) as notes')).toEqual([{ notes: '0' }]);
});

test('a database whose tables are distributed differently is refused', async () => {
  const { url } = await openEmpty();
  await migrate({ url });
  await runOn(url, "alter table accounts add column other bigint; select create_reference_table('accounts')");
  await expect(migrate({ url, sharding })).rejects.toThrow(
    'DATABASE_SHARDING=citus: the table accounts is distributed already',
  );
});

/**
 * Brings a node into the state that it has after pg_upgrade: Citus no longer knows the node's tables, and only a copy
 * of the list of tables is left.
 */
const afterPgUpgrade = (url: string) =>
  runOn(url, 'select citus_prepare_pg_upgrade(); delete from pg_catalog.pg_dist_partition');

test('replicas and migrate refuse a node that does not know its tables after pg_upgrade', async () => {
  await using database = await createShardedDatabase(coordinator());
  const start = async (url: string) => {
    const opened = await openDatabase({ url, max: 1 });
    await checkSchema(opened.sql).finally(() => opened.close(0));
  };
  const [first, second, third] = database.nodes.map(({ url }) => url) as [string, string, string];
  await afterPgUpgrade(second);
  await start(first);
  await start(third);
  await expect(start(second)).rejects.toThrow('this node was upgraded by pg_upgrade');
  const { port } = database.nodes[1]!;
  await expect(migrate({ url: first })).rejects.toThrow(`:${port} the node was upgraded by pg_upgrade`);
  await runOn(second, 'insert into pg_catalog.pg_dist_partition select * from public.pg_dist_partition');
  await start(second);
  expect(await migrate({ url: first })).toEqual([]);
  await afterPgUpgrade(first);
  await expect(start(first)).rejects.toThrow('citus_finish_pg_upgrade()');
  await expect(migrate({ url: first, sharding })).rejects.toThrow('this node was upgraded by pg_upgrade');
});

test('nodes that would generate equal ids are refused', async () => {
  const { url, nodes } = await openEmpty();
  await runOn(url, `update pg_dist_node set groupid = 256 where groupid = ${nodes[2]!.group}`);
  await expect(migrate({ url, sharding })).rejects.toThrow('the groups 0 and 256 would give the same ids');
});

test('a database that is already in use can be distributed, and keeps all its rows', async () => {
  const { url, nodes } = await openEmpty();
  await migrate({ url });
  const database = { url, name: '', drop: async () => {}, [Symbol.asyncDispose]: async () => {} };
  await using before = await startService({}, { database });
  const users = await Promise.all(Array.from({ length: 6 }, () => before.user()));
  const state = async (service: typeof before, { token }: { token: string }) => {
    const ask = async (path: string, body: object = {}) => (await service.post(path, body, { token })).body;
    const { exported_at: _, ...exported } = await ask('/export');
    return { exported, tags: await ask('/tags/list'), profile: await ask('/user/profile') };
  };
  for (const user of users) {
    const { body } = await user.post('/bookmarks/add', { url: 'https://example.org/', tags: ['a', 'b'] });
    await user.post('/bookmarks/edit', { id: body.id, title: 'T' });
  }
  const states = await Promise.all(users.map((user) => state(before, user)));
  const cursors = await Promise.all(
    users.map(async (user) => (await user.post('/bookmarks/changes', {})).body.cursor),
  );

  expect(await migrate({ url, sharding })).toEqual([]);
  const onWorker = { ...database, url: nodes[1]!.url };
  await using after = await startService({}, { database: onWorker });
  expect(await Promise.all(users.map((user) => state(after, user)))).toEqual(states);
  for (const [n, { token }] of users.entries()) {
    const added = await after.post('/bookmarks/add', { url: 'https://example.org/new' }, { token });
    const changes = await after.post('/bookmarks/changes', { cursor: cursors[n] }, { token });
    expect(changes.body).toMatchObject({ reset: false, bookmarks: [{ id: added.body.id }] });
    const highest = Math.max(...states[n]!.exported.bookmarks.map(({ id }: { id: number }) => id));
    expect(added.body.id).toBeGreaterThan(highest);
  }
});
