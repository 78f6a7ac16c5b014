import postgres from 'postgres';
import { messageOf } from '../../domain/thrown.ts';
import type { Database, Sql } from './database.ts';
import { type DatabaseUnavailable, sqlStateOf, translateError } from './errors.ts';
import { Pool } from './pool.ts';
import { SharedConnection } from './shared-connection.ts';
import { parseDatabaseUrl } from './url.ts';

/** A log with the interface of pino. */
export interface DatabaseLog {
  warn(facts: object, message: string): void;
}

/** The options of a pool. A time of 0 means no limit. */
export interface DatabaseOptions {
  url: string;
  /** The name of the connections in `pg_stat_activity`. Default: `bookmark-service`. */
  application?: string;
  /** Tries the hosts in the order of the url, even if the url asks for a random order. Default: false. */
  inOrder?: boolean;
  /** The number of connections. Default: 8. */
  max?: number;
  /**
   * How many of the connections are shared by short reads. Default: 0. The number counts as 0 if statements are not
   * prepared, because unprepared statements take two round trips. It also counts as 0 behind an old pooler that refuses
   * timeouts.
   */
  shared?: number;
  /** Whether statements are prepared. Default: true. Use false for PgBouncer before 1.21. */
  prepare?: boolean;
  /** The time from the call to the response, including the wait for a connection. Default: 10 s. */
  deadlineMs?: number;
  /**
   * The longest wait for a connection. Default: 4 s. This wait and `statement_timeout` (6 s) together do not exceed the
   * deadline.
   */
  waitMs?: number;
  /**
   * How many statements may wait for a connection. Default: 20,000, because all polls of a replica may read at the same
   * time.
   */
  maxWaiting?: number;
  /** Default: 6 s. */
  statementTimeoutMs?: number;
  /**
   * Default: 3 s. The value is less than `waitMs`. So statements that wait for the lock of one user end before
   * statements of other users have waited too long for a connection.
   */
  lockTimeoutMs?: number;
  /** Default: 10 s. */
  idleInTransactionTimeoutMs?: number;
  log?: DatabaseLog;
  /** Called with the seconds of each wait that ended with a connection. */
  onWaited?: (seconds: number) => void;
  /** Called with the SQLSTATE of each unexpected error. */
  onDefect?: (sqlState: string) => void;
  /** Called with each error that means that the database cannot serve now. */
  onUnavailable?: (failure: DatabaseUnavailable) => void;
  /** Called with the text of every notice from Postgres. */
  onNotice?: (message: string) => void;
}

type Optional = 'log' | 'onWaited' | 'onDefect' | 'onUnavailable' | 'onNotice';

type Settings = Required<Omit<DatabaseOptions, Optional>> & Pick<DatabaseOptions, Exclude<Optional, 'log'>>;

const DEFAULTS: Omit<Settings, 'url'> = {
  application: 'bookmark-service',
  inOrder: false,
  max: 8,
  shared: 0,
  prepare: true,
  deadlineMs: 10_000,
  waitMs: 4_000,
  maxWaiting: 20_000,
  statementTimeoutMs: 6_000,
  lockTimeoutMs: 3_000,
  idleInTransactionTimeoutMs: 10_000,
};

/**
 * Opens a pool and makes its first connection. Rejects with `DatabaseUnavailable` if it cannot connect. Some poolers
 * refuse timeouts as startup parameters. The pool then works without timeouts, and logs a warning unless the role has a
 * timeout of its own.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { log, ...chosen } = options;
  const settings: Settings = { ...DEFAULTS, ...chosen };
  const sql = connect(withoutShared(settings), { withTimeouts: true });
  try {
    await sql`select 1`;
    return new Pool(sql, settings, openShared(settings, log));
  } catch (error) {
    await sql.end({ timeout: 0 });
    if (!isParameterRefused(error)) throw translateError(error, false);
  }
  return openWithoutTimeouts(settings, log);
}

/**
 * Returns whether a pooler refused the timeouts. PgBouncer before 1.20 and others respond "unsupported startup
 * parameter: statement_timeout".
 */
function isParameterRefused(error: unknown): boolean {
  return sqlStateOf(error) === '08P01' && /startup parameter/.test(messageOf(error));
}

async function openWithoutTimeouts(settings: Settings, log: DatabaseLog | undefined): Promise<Database> {
  const sql = connect(settings, { withTimeouts: false });
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

/**
 * Options of a connection with several statements in flight. `max_pipeline` is above `DEPTH` in shared-connection.ts,
 * so the driver never delays a statement. `replan` is off: even if the plan of a statement has changed, the driver must
 * not send the statement again, because responses arrive in the order of the statements.
 */
const PIPELINED = { max_pipeline: 100, replan: false };

function openShared(settings: Settings, log?: DatabaseLog): SharedConnection[] {
  const { shared, prepare } = settings;
  const open = () => connect({ ...settings, max: 1 }, { withTimeouts: true, pipelining: PIPELINED });
  const warn = (reason: string) => log?.warn({ reason }, 'replacing a connection for short reads');
  return Array.from({ length: prepare ? shared : 0 }, () => new SharedConnection(open, warn));
}

/**
 * Returns the settings of the connections that short reads do not share. Such a connection has one statement in flight.
 */
const withoutShared = (settings: Settings): Settings => ({
  ...settings,
  max: settings.max - (settings.prepare ? settings.shared : 0),
});

/** Returns SQL that sets the timeouts for the role. An operator can run it if the pooler refuses the timeouts. */
function alterRole(settings: Settings, user: string): string {
  const alter = `alter role "${user.replaceAll('"', '""')}"`;
  return Object.entries(timeouts(settings))
    .map(([name, ms]) => `${alter} set ${name} = ${ms};`)
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
 * Settings that the statements of the service need, whatever the settings of the role or the database are. With `read
 * committed`, each statement sees everything that was committed before the statement began. With another isolation
 * level, an account could exceed its maximum number of bookmarks or tags. The driver expects bytes as hex, and writes
 * null into arrays. `jit` is off, because in a large table Postgres overestimates the number of a user's rows. Postgres
 * would then compile statements, which takes longer than running them.
 */
export const NEEDED_SETTINGS = {
  default_transaction_isolation: 'read committed',
  bytea_output: 'hex',
  array_nulls: 'on',
  jit: 'off',
} as const;

/** The number of the patch in `patches/`. Raise it whenever the patch changes. */
const PATCH_VERSION = 5;

interface ConnectionOptions {
  /** Whether the connections send the timeouts as startup parameters. */
  withTimeouts: boolean;
  /** Default: one statement in flight at a time. */
  pipelining?: { max_pipeline: number };
}

/** Creates a driver. Its connections have one statement in flight at a time, unless `pipelining` permits more. */
function connect(
  settings: Settings,
  { withTimeouts, pipelining = { max_pipeline: 0 } }: ConnectionOptions,
): Sql {
  if (!('patched' in postgres && postgres.patched === PATCH_VERSION)) {
    throw new Error(
      'the postgres driver lacks the patch of src/store/driver/patches: run `npm ci` again, with scripts',
    );
  }
  const { application, inOrder, max, prepare, deadlineMs } = settings;
  const { url, ...target } = parseDatabaseUrl(settings.url, { inOrder });
  const options = {
    ...target,
    max,
    prepare,
    ...pipelining,
    connect_timeout: 3,
    answer_timeout: deadlineMs / 1_000,
    idle_timeout: 0,
    keep_alive: 30,
    backoff: () => 0.1 + Math.random() * 0.1, // the driver's default grows to 20 s
    onnotice: ({ message = '' }: postgres.Notice) => settings.onNotice?.(message),
    transform: { undefined: null },
    types: { int8: { to: 20, from: [20], serialize: String, parse: parseInt8 } },
    connection: {
      application_name: application,
      ...(withTimeouts && { ...timeouts(settings), ...NEEDED_SETTINGS }),
    },
  };
  return postgres(url, options);
}

/**
 * Parses an `int8`. Throws if the value is not below 2^53, because a JavaScript number cannot represent such a value
 * exactly. Ids stay below 2^53 (docs/contract.md, decision 6).
 */
function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError('an int8 of the database is no safe integer');
  return value;
}
