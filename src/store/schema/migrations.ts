import { messageOf } from '../../domain/thrown.ts';
import type { Sql } from '../driver/database.ts';
import { sqlStateOf, translateError } from '../driver/errors.ts';
import { type DatabaseLog, openDatabase } from '../driver/open.ts';
import { type Migration, readSchemaFiles, type SchemaFiles } from './schema-files.ts';
import {
  CHANGE_IN_ORDER,
  checkCluster,
  DISTRIBUTE_TABLES,
  distributeFunctions,
  type PlanCacheMode,
  prepareNodes,
  readPlanCacheMode,
  readSharding,
  refuseUnfinished,
  refuseUnfinishedNodes,
} from './sharding.ts';

/**
 * The key of the advisory lock that every migration takes. It is a random number, so that no other program uses the
 * same key.
 */
const LOCK_KEY = '7093575361963549555';

/** The SQLSTATE that the transaction raises if another process has migrated while this one waited for the lock. */
const STATE_CHANGED = 'BK001';

/** This code does not work with the schema of the database. The message says what to run. */
export class SchemaMismatch extends Error {
  override readonly name = 'SchemaMismatch';
}

/** The options of `migrate`. */
interface MigrateOptions {
  url: string;
  /** Default: `sql/` of this project. */
  folder?: string;
  /**
   * Distributes the tables over the nodes of a Citus cluster. Without this option, tables that are already distributed
   * stay distributed.
   */
  sharding?: 'citus' | undefined;
  /** How long the migration waits for a table in use, from 1 to 30 s. Default: 30 s. */
  lockWaitMs?: number;
  /**
   * Does not replace the functions if the schema has the version of this code. In that case, `migrate` needs only the
   * right to read.
   */
  onlyIfBehind?: boolean;
  log?: DatabaseLog & { info(facts: object, message: string): void };
}

/** The state of a database's schema. */
interface SchemaState {
  /** 0 if no migration was ever applied. */
  version: number;
  /** The oldest schema version whose code works with this schema. */
  worksWith: number;
  /** The names of the applied migrations, by their numbers. */
  names: ReadonlyMap<number, string>;
}

/**
 * Brings the database to the newest schema: applies the missing migrations and replaces every function, in one
 * transaction under one lock. Any number of processes may migrate at the same time. Returns the versions that
 * this call applied.
 *
 * If the schema is newer and works with this code, this function changes nothing, because an older release must not
 * replace newer functions. If the schema does not work with this code, this function rejects with `SchemaMismatch`.
 */
export async function migrate(options: MigrateOptions): Promise<number[]> {
  const { url, folder } = options;
  const files = readSchemaFiles(folder);
  /** The step that runs now, for the error message. */
  let step = 'nothing';
  // A migration of a large table may take long, so the statements have no time limit.
  const noLimits = { deadlineMs: 0, statementTimeoutMs: 0, lockTimeoutMs: 0, idleInTransactionTimeoutMs: 0 };
  const onNotice = (message: string) => {
    if (message.startsWith(STEP)) step = message.slice(STEP.length);
  };
  const database = await openDatabase({
    url,
    application: 'migrate',
    // On a Citus cluster, the first host of the url is the coordinator, which must run the migration.
    inOrder: true,
    max: 1,
    prepare: false,
    onNotice,
    ...noLimits,
  });
  try {
    return await applyAll(database.sql, files, options);
  } catch (error) {
    if (sqlStateOf(error) === undefined) throw error;
    throw new Error(`${step} failed: ${messageOf(error)}`, { cause: error });
  } finally {
    await database.close();
  }
}

/** Does the work of `migrate` on one connection. */
async function applyAll(
  sql: Sql,
  files: SchemaFiles,
  { log, sharding: wanted, lockWaitMs = LONGEST_LOCK_WAIT_MS, onlyIfBehind = false }: MigrateOptions,
): Promise<number[]> {
  const lockLimitMs = Math.min(Math.max(Math.round(lockWaitMs), SHORTEST_LOCK_WAIT_MS), LONGEST_LOCK_WAIT_MS);
  for (;;) {
    const state = await readState(sql);
    const known = files.migrations.length;
    refuseOtherMigrations(state, files.migrations);
    refuseNewer(state, known);
    const isNewer = state.version > known;
    if (isNewer) {
      log?.info({ version: state.version, known }, 'the schema is newer than this release and works with it');
      return [];
    }
    const sharding = await readSharding(sql, wanted);
    if (sharding === 'citus') await refuseUnfinishedNodes(sql);
    const isFirstDistribution = wanted === 'citus' && sharding === 'none';
    const isDistributed = isFirstDistribution || sharding === 'citus';
    const planCacheMode = isDistributed ? await readPlanCacheMode(sql, log) : undefined;
    const migrations = files.migrations.slice(state.version);
    if (migrations.length > 0 || isFirstDistribution || !onlyIfBehind) {
      if (isDistributed) await checkCluster(sql);
      const text = transactionOf({ ...files, migrations }, state.version, planCacheMode, lockLimitMs);
      const isApplied = await apply(sql, text);
      // Another process has migrated meanwhile, so begin again with the new state.
      if (!isApplied) continue;
    }
    if (planCacheMode) await prepareNodes(sql, planCacheMode, log);
    for (const { version, name } of migrations) log?.info({ version, name }, 'migration applied');
    if (isFirstDistribution) log?.info({}, 'tables distributed by user');
    return migrations.map(({ version }) => version);
  }
}

/**
 * Runs the transaction. Returns false if another process has migrated since the version of the schema was read. `text`
 * is one simple query, which Postgres runs as one transaction. So neither a lost connection nor a pooler can split it.
 */
async function apply(sql: Sql, text: string): Promise<boolean> {
  try {
    await sql.unsafe(text).simple();
    return true;
  } catch (error) {
    if (sqlStateOf(error) === STATE_CHANGED) return false;
    throw error;
  }
}

const STEP = 'step: ';

/**
 * Returns a statement that sends the name of the next step as a notice, so that an error message can name the step.
 * Postgres sends notices of the level `info` whatever `client_min_messages` says.
 */
const announce = (step: string) => `do $step$ begin raise info '${STEP}${step}'; end $step$;`;

/** Wait at least one second, so that a brief lock does not make the migration fail. */
const SHORTEST_LOCK_WAIT_MS = 1_000;

/** Wait at most this long for a table in use, because other statements queue up behind the migration. */
const LONGEST_LOCK_WAIT_MS = 30_000;

/**
 * Returns the SQL of the whole migration, which is one transaction:
 *
 * 1. Wait without limit for other migrations. Stop if the version of the schema has changed since it was read.
 * 2. Apply the missing migrations. From here on, wait up to `lockWaitMs` for a table in use.
 * 3. Distribute the tables that are not distributed yet.
 * 4. Replace all functions, and distribute them.
 *
 * If `planCacheMode` is undefined, neither tables nor functions are distributed.
 */
const transactionOf = (
  { migrations, functions }: SchemaFiles,
  version: number,
  planCacheMode: PlanCacheMode | undefined,
  lockWaitMs: number,
): string => {
  const names = functions.map(({ name }) => name);
  return [
    lockSchema(version),
    `set local lock_timeout = ${lockWaitMs};`,
    planCacheMode && CHANGE_IN_ORDER,
    ...migrations.map(applyMigration),
    planCacheMode && `${announce('distribution of tables')}${DISTRIBUTE_TABLES}`,
    applyFunctions(functions),
    planCacheMode && distributeFunctions(names, planCacheMode),
  ]
    .filter((part) => part !== undefined)
    .join('\n');
};

/**
 * Returns SQL that takes the lock of all migrations. The SQL raises `STATE_CHANGED` if the schema no longer has this
 * version.
 */
const lockSchema = (version: number): string => `
set local statement_timeout = 0;
set local lock_timeout = 0;
select pg_advisory_xact_lock(${LOCK_KEY});
create table if not exists schema_migrations (
  version integer constraint schema_migrations_pkey primary key,
  name text not null,
  -- the oldest schema version whose code works with this version
  works_with integer not null,
  applied_at timestamptz not null default now()
);
do $guard$
begin
  if coalesce((select max(version) from schema_migrations), 0) <> ${version} then
    raise exception 'the schema has changed' using errcode = '${STATE_CHANGED}';
  end if;
end
$guard$;`;

const applyMigration = ({ version, name, worksWith, text }: Migration): string => `
${announce(`migration ${version} (${name})`)}
${text}
;
insert into schema_migrations (version, name, works_with) values (${version}, '${name}', ${worksWith});`;

/**
 * Returns SQL that first creates all functions and then checks their bodies. So the order of the functions does not
 * matter.
 */
const applyFunctions = (functions: SchemaFiles['functions']): string => `
set local check_function_bodies = off;
${functions.map(({ name, text }) => `${announce(`function ${name}`)}\n${text}\n;`).join('\n')}
set local check_function_bodies = on;
do $check$
declare
  v_function record;
begin
  for v_function in
    select p.oid, p.proname, l.lanvalidator::regproc as validator
    from pg_proc p
    join pg_language l on l.oid = p.prolang
    where p.pronamespace = current_schema()::regnamespace and p.proname = any ('{${functions.map(({ name }) => name).join(',')}}')
  loop
    raise info '${STEP}function %', v_function.proname;
    execute format('select %s(%s)', v_function.validator, v_function.oid);
  end loop;
end
$check$;`;

const EMPTY: SchemaState = { version: 0, worksWith: 0, names: new Map() };

/**
 * Reads the state of the schema. Rejects with `DatabaseUnavailable` if the database does not respond. Rejects with
 * `ShardingRefused` if an upgrade by pg_upgrade is not finished, because distributed tables then look empty.
 */
async function readState(sql: Sql): Promise<SchemaState> {
  try {
    const [table] = await sql<{ exists: boolean }[]>`
      select to_regclass('schema_migrations') is not null as exists`;
    if (!table?.exists) return EMPTY;
    await refuseUnfinished(sql);
    const rows = await sql<{ version: number; worksWith: number; name: string }[]>`
      select version, works_with as "worksWith", name from schema_migrations`;
    return {
      version: Math.max(0, ...rows.map(({ version }) => version)),
      worksWith: Math.max(0, ...rows.map(({ worksWith }) => worksWith)),
      names: new Map(rows.map(({ version, name }) => [version, name])),
    };
  } catch (error) {
    throw translateError(error, false);
  }
}

/**
 * Rejects with `SchemaMismatch` unless this code works with the schema of the database. The code works with its own
 * schema version. It also works with newer versions whose migrations say so (`works-with`).
 */
export async function checkSchema(sql: Sql, folder?: string): Promise<void> {
  const { migrations } = readSchemaFiles(folder);
  const needed = migrations.length;
  const state = await readState(sql);
  refuseOtherMigrations(state, migrations);
  refuseNewer(state, needed);
  if (state.version >= needed) return;
  throw new SchemaMismatch(
    `the database's schema has version ${state.version}, this version of the service needs ${needed}: ` +
      'run the role `migrate` first (`node src/main.ts migrate`)',
  );
}

/**
 * Throws `SchemaMismatch` if the database applied a migration that has another name in this code. Before the first
 * release, the migrations could still be replaced by others.
 */
function refuseOtherMigrations({ names }: SchemaState, migrations: readonly Migration[]): void {
  const other = migrations.find(({ version, name }) => (names.get(version) ?? name) !== name);
  if (other === undefined) return;
  throw new SchemaMismatch(
    `no release of the service made this database: its migration ${other.version} is ` +
      `\`${names.get(other.version)}\`, not \`${other.name}\`. Export each user's bookmarks with the version of the ` +
      'service that made the database (`node src/main.ts admin user export`), and import them into a new database',
  );
}

/**
 * Throws `SchemaMismatch` if the schema is too new for this code. `worksWith` never decreases from one migration to the
 * next, so only that of the newest migration counts.
 */
function refuseNewer({ version, worksWith }: SchemaState, known: number): void {
  if (version <= known || worksWith <= known) return;
  throw new SchemaMismatch(
    `the database's schema has version ${version} and works with versions of the service that know ${worksWith} or ` +
      `more; this one knows ${known}: run a version of the service that is as new as the database`,
  );
}
