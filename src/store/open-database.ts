import postgres from 'postgres';
import type { Database, Sql } from './database.ts';
import { parseDatabaseUrl } from './database-url.ts';
import { sqlStateOf, translateError } from './errors.ts';
import { Pool } from './pool.ts';

/** Takes a line of the log; pino's shape. */
export interface DatabaseLog {
  warn(facts: object, message: string): void;
}

/** How a pool is opened. A time of 0 means no limit. */
export interface DatabaseOptions {
  url: string;
  /** Shown in pg_stat_activity; default `bookmark-service`. */
  application?: string;
  /** Connections; default 8. */
  max?: number;
  /** Prepared statements; default true. False for PgBouncer before 1.21. */
  prepare?: boolean;
  /** From call to answer, the wait for a connection included; default 10 s. */
  deadlineMs?: number;
  /** Wait for a free connection; default 4 s, so that statement_timeout (6 s) still ends before the deadline. */
  waitMs?: number;
  /** Statements that may wait for a connection; default 20,000: all held polls of a replica may look at once. */
  maxWaiting?: number;
  /** Default 6 s. */
  statementTimeoutMs?: number;
  /** Default 3 s: below `waitMs`, so that one user's locked row does not starve the others. */
  lockTimeoutMs?: number;
  /** Default 10 s. */
  idleInTransactionTimeoutMs?: number;
  log?: DatabaseLog;
  /** Hears of every wait for a connection that ended with one, in seconds. */
  onWaited?: (seconds: number) => void;
  /** Is given the text of every notice that Postgres sends. */
  onNotice?: (message: string) => void;
}

type Optional = 'log' | 'onWaited' | 'onNotice';

type Settings = Required<Omit<DatabaseOptions, Optional>> & Pick<DatabaseOptions, Exclude<Optional, 'log'>>;

const defaults: Omit<Settings, 'url'> = {
  application: 'bookmark-service',
  max: 8,
  prepare: true,
  deadlineMs: 10_000,
  waitMs: 4_000,
  maxWaiting: 20_000,
  statementTimeoutMs: 6_000,
  lockTimeoutMs: 3_000,
  idleInTransactionTimeoutMs: 10_000,
};

/**
 * Opens a pool and makes its first connection; rejects with `DatabaseUnavailable` where none can be made. A pooler
 * that refuses timeouts as startup parameters is spoken to without them, with a warning unless the role has its own.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { log, ...given } = options;
  const settings: Settings = { ...defaults, ...given };
  const sql = connect(settings, true);
  try {
    await sql`select 1`;
    return new Pool(sql, settings);
  } catch (error) {
    await sql.end({ timeout: 0 });
    if (!isParameterRefused(error)) throw translateError(error, false);
  }
  return openWithoutTimeouts(settings, log);
}

/** PgBouncer before 1.20 and others: "unsupported startup parameter: statement_timeout". */
function isParameterRefused(error: unknown): boolean {
  return sqlStateOf(error) === '08P01' && /startup parameter/.test((error as Error).message);
}

async function openWithoutTimeouts(settings: Settings, log: DatabaseLog | undefined): Promise<Database> {
  const sql = connect(settings, false);
  try {
    const [role] = await sql<{ statement_timeout: string; user: string }[]>`
      select current_setting('statement_timeout') as statement_timeout, current_user as user`;
    if (role?.statement_timeout === '0' && settings.statementTimeoutMs > 0) {
      log?.warn({ role: role.user }, `the pooler refuses timeouts; run: ${alterRole(settings, role.user)}`);
    }
    return new Pool(sql, settings);
  } catch (error) {
    await sql.end({ timeout: 0 });
    throw translateError(error, false);
  }
}

function alterRole(settings: Settings, user: string): string {
  const role = `alter role "${user.replaceAll('"', '""')}"`;
  return Object.entries(timeouts(settings))
    .map(([name, ms]) => `${role} set ${name} = ${ms};`)
    .join(' ');
}

function timeouts(settings: Settings): Record<string, number> {
  return {
    statement_timeout: settings.statementTimeoutMs,
    lock_timeout: settings.lockTimeoutMs,
    idle_in_transaction_session_timeout: settings.idleInTransactionTimeoutMs,
  };
}

/**
 * What the service's statements rely on, whatever the role or the database was given: exact caps rest on statements that
 * see what committed before them; the driver reads bytes as hex and writes null into arrays.
 */
const reliedOn = { default_transaction_isolation: 'read committed', bytea_output: 'hex', array_nulls: 'on' };

/** The number in `patches/`: raised with each change of the patch. */
const patchNeeded = 2;

function connect(settings: Settings, withTimeouts: boolean): Sql {
  if ((postgres as { patched?: number }).patched !== patchNeeded) {
    throw new Error(
      'the postgres driver lacks the patch of src/store/patches: run `npm ci` again, with scripts',
    );
  }
  const { application, max, prepare, deadlineMs } = settings;
  const { url, ...target } = parseDatabaseUrl(settings.url);
  return postgres(url, {
    ...target,
    max,
    prepare,
    max_pipeline: 0, // one statement in flight per connection: none waits behind a slow one
    connect_timeout: 3,
    answer_timeout: deadlineMs / 1_000,
    idle_timeout: 0,
    keep_alive: 30,
    backoff: () => 0.1 + Math.random() * 0.1, // the driver's own grows to 20 s
    onnotice: ({ message }) => settings.onNotice?.(message ?? ''),
    transform: { undefined: null },
    types: { int8: { to: 20, from: [20], serialize: String, parse: parseInt8 } },
    connection: {
      application_name: application,
      ...(withTimeouts && { ...timeouts(settings), ...reliedOn }),
    },
  } as postgres.Options<{ int8: postgres.PostgresType<number> }>) as Sql;
}

/** Ids stay below 2^53 (decision 6); a value beyond would silently become another one. */
function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError('an int8 of the database is no safe integer');
  return value;
}
