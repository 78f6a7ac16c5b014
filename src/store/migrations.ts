import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Sql } from './database.ts';
import { sqlStateOf, translateError } from './errors.ts';
import { type DatabaseLog, openDatabase } from './open-database.ts';

const sqlFolder = fileURLToPath(new URL('../../sql/', import.meta.url));

/** "bookmarks" in bytes; any number would do that nobody else locks. */
const lockKey = '7093575361963549555';

/** Ours, raised by the migration itself: another process has applied it while this one waited for the lock. */
const alreadyApplied = 'BK001';

/** One file of `sql/`. */
export interface Migration {
  version: number;
  name: string;
  text: string;
}

/** The database's schema is not the one that this code works with. The message says what to run. */
export class SchemaMismatch extends Error {
  override readonly name = 'SchemaMismatch';
}

/** Reads `NNNN-name.sql` files in order; throws where a number is missing or doubled. */
export function readMigrations(folder: string = sqlFolder): Migration[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql'));
  return files.sort().map((file, index) => {
    const [, digits, name] = /^(\d{4})-([a-z0-9-]+)\.sql$/.exec(file) ?? [];
    if (Number(digits) !== index + 1)
      throw new Error(`sql/${file}: expected number ${index + 1} as NNNN-name.sql`);
    return { version: index + 1, name: name!, text: readFileSync(`${folder}/${file}`, 'utf8') };
  });
}

/** What `migrate` works on. */
export interface MigrateOptions {
  url: string;
  /** Default: `sql/` of this project. */
  folder?: string;
  log?: DatabaseLog & { info(facts: object, message: string): void };
}

/**
 * Brings the database to the newest schema and gives the versions it applied. Any number of processes may do so at
 * once. Each migration is one transaction, whole or not at all; rejects with `SchemaMismatch` where the database is
 * newer than the code.
 */
export async function migrate({ url, folder, log }: MigrateOptions): Promise<number[]> {
  const migrations = readMigrations(folder);
  // Prepared statements are of no use here, and no limit fits all migrations.
  const limits = { deadlineMs: 0, statementTimeoutMs: 0, lockTimeoutMs: 0, idleInTransactionTimeoutMs: 0 };
  const database = await openDatabase({ url, application: 'migrate', max: 1, prepare: false, ...limits });
  try {
    return await applyAll(database.sql, migrations, log);
  } finally {
    await database.close();
  }
}

async function applyAll(sql: Sql, migrations: Migration[], log: MigrateOptions['log']): Promise<number[]> {
  const current = await readVersion(sql);
  refuseNewer(current, migrations.length);
  const applied: number[] = [];
  for (const migration of migrations.slice(current)) {
    if (!(await apply(sql, migration))) continue;
    log?.info({ version: migration.version, name: migration.name }, 'migration applied');
    applied.push(migration.version);
  }
  // Another process of a newer version may have run meanwhile.
  refuseNewer(await readVersion(sql), migrations.length);
  return applied;
}

/**
 * Applies one migration; false where another process has. All of it travels as one simple query, which Postgres runs
 * as one transaction: no connection or pooler can lose it halfway.
 */
async function apply(sql: Sql, migration: Migration): Promise<boolean> {
  try {
    await sql.unsafe(transactionOf(migration)).simple();
    return true;
  } catch (error) {
    if (sqlStateOf(error) === alreadyApplied) return false;
    const { version, name } = migration;
    throw new Error(`migration ${version} (${name}) failed: ${(error as Error).message}`, { cause: error });
  }
}

/** The lock is waited for without limit; a lock on a table in use only for 30 s, as others queue up behind it. */
function transactionOf({ version, name, text }: Migration): string {
  return `
set local statement_timeout = 0;
set local lock_timeout = 0;
select pg_advisory_xact_lock(${lockKey});
create table if not exists schema_migrations (
  version integer constraint schema_migrations_pkey primary key,
  name text not null,
  applied_at timestamptz not null default now()
);
do $guard$
begin
  if exists (select from schema_migrations where version = ${version}) then
    raise exception 'already applied' using errcode = '${alreadyApplied}';
  end if;
end
$guard$;
set local lock_timeout = '30s';
${text}
;
insert into schema_migrations (version, name) values (${version}, '${name}');`;
}

/** The version of the database's schema; 0 where nothing was ever applied. Rejects with `DatabaseUnavailable` where it is. */
async function readVersion(sql: Sql): Promise<number> {
  try {
    const [table] = await sql<{ exists: boolean }[]>`
      select to_regclass('schema_migrations') is not null as exists`;
    if (!table?.exists) return 0;
    const [row] = await sql<{ version: number }[]>`
      select coalesce(max(version), 0)::integer as version from schema_migrations`;
    return row?.version ?? 0;
  } catch (error) {
    throw translateError(error, false);
  }
}

/** Rejects with `SchemaMismatch` unless the database's schema is exactly the one of this code. */
export async function checkSchema(sql: Sql, folder?: string): Promise<void> {
  const needed = readMigrations(folder).length;
  const current = await readVersion(sql);
  refuseNewer(current, needed);
  if (current === needed) return;
  throw new SchemaMismatch(
    `the database's schema has version ${current}, this version of the service needs ${needed}: ` +
      'run `npm run migrate` first',
  );
}

function refuseNewer(current: number, needed: number): void {
  if (current <= needed) return;
  throw new SchemaMismatch(
    `the database's schema has version ${current}, this version of the service knows ${needed}: ` +
      'run a version of the service that is as new as the database',
  );
}
