import { invalidToken } from '../../domain/errors.ts';
import { systemCodeOf } from '../../domain/thrown.ts';

/**
 * Translates the error codes of the driver, of the system and of Postgres (SQLSTATE) into one small error, which says
 * why the database did not serve a statement.
 */

/**
 * Why the database did not serve a statement:
 * - `connect`: no connection could be made.
 * - `lost`: the connection ended before the response.
 * - `deadline`: no response arrived in time.
 * - `cancelled`: Postgres ended the statement, because of `statement_timeout`, `lock_timeout` or an operator.
 * - `conflict`: a deadlock or a serialization failure.
 * - `resources`: Postgres has too many connections or too little memory, is read-only, or cannot read or write a file.
 * - `disk-full`: the disk of Postgres is full.
 * - `missing-code`: Postgres cannot load a file of its own, for example that of an extension.
 * - `pool`: no connection became free in time, or too many statements wait.
 * - `closed`: this process has closed the pool.
 */
export const UNAVAILABLE_REASONS = [
  'connect',
  'lost',
  'deadline',
  'cancelled',
  'conflict',
  'resources',
  'disk-full',
  'missing-code',
  'pool',
  'closed',
] as const;
export type UnavailableReason = (typeof UNAVAILABLE_REASONS)[number];

/**
 * The database did not serve a statement. If the statement is sent again later, it may succeed. The message holds only
 * codes, never values.
 */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable';
  readonly reason: UnavailableReason;
  /** The code of the driver, the system or Postgres, if there is one. */
  readonly code: string | undefined;
  /** Whether the statement may have taken effect. This is true only if the response did not arrive. */
  readonly mayHaveRun: boolean;

  constructor(reason: UnavailableReason, mayHaveRun: boolean, code?: string, cause?: unknown) {
    super(`database unavailable: ${reason}${code ? ` (${code})` : ''}`, cause === undefined ? {} : { cause });
    this.reason = reason;
    this.code = code;
    this.mayHaveRun = mayHaveRun;
  }
}

const REASON_BY_CODE: Readonly<Record<string, UnavailableReason>> = {
  CONNECT_TIMEOUT: 'connect',
  ECONNREFUSED: 'connect',
  EHOSTUNREACH: 'connect',
  ENETUNREACH: 'connect',
  ENOTFOUND: 'connect',
  EAI_AGAIN: 'connect',
  ENOENT: 'connect',
  EACCES: 'connect',
  SASL_SIGNATURE_MISMATCH: 'connect',
  TARGET_SESSION_ATTRS: 'connect', // the server is a standby but a primary is wanted, or the reverse
  CONNECTION_CLOSED: 'lost',
  ECONNRESET: 'lost',
  ECONNABORTED: 'lost',
  EPIPE: 'lost',
  ETIMEDOUT: 'lost',
  ANSWER_TIMEOUT: 'deadline',
  CONNECTION_ENDED: 'closed',
  CONNECTION_DESTROYED: 'closed',
};

/**
 * Reasons by SQLSTATE, or by its first two characters, which are its class. Any other SQLSTATE is unexpected and counts
 * as a defect of the service.
 */
const REASON_BY_STATE: Readonly<Record<string, UnavailableReason>> = {
  '08': 'lost', // connection exception, including PgBouncer's own errors
  '25006': 'resources', // read_only_sql_transaction: this server is no longer the primary
  '25P03': 'lost', // idle_in_transaction_session_timeout
  '25P04': 'lost', // transaction_timeout
  '26000': 'conflict', // the prepared statement does not exist: a pooler now uses another connection to the server
  '28': 'connect', // wrong user or password
  '3D000': 'connect', // the database does not exist
  '40': 'conflict', // deadlock, serialization failure
  '40003': 'lost', // statement_completion_unknown
  '42P05': 'conflict', // the prepared statement exists already: a pooler now uses another connection
  '53': 'resources', // too many connections, out of memory
  '53100': 'disk-full',
  '55000': 'resources', // object_not_in_prerequisite_state: this server is a standby and cannot write
  '55006': 'conflict', // object_in_use
  '55P03': 'cancelled', // lock_not_available: lock_timeout
  '57': 'cancelled', // operator_intervention
  '57014': 'cancelled', // query_canceled: statement_timeout
  '57P01': 'lost', // admin_shutdown: pg_terminate_backend, or a fast shutdown
  '57P02': 'lost', // crash_shutdown
  '57P03': 'connect', // cannot_connect_now: starting up, or in recovery
  '57P04': 'lost', // database_dropped
  '57P05': 'lost', // idle_session_timeout
  '58': 'resources', // system error: a file cannot be read or written
  '58P01': 'missing-code', // undefined_file
  '72': 'conflict', // snapshot too old
  F0: 'connect', // configuration file error
};

/**
 * Errors that Citus reports with the code of internal errors, although the statement may succeed if it is sent again.
 */
const CITUS_REASONS: readonly [beginning: RegExp, reason: UnavailableReason][] = [
  // A node is being upgraded: its library and its extension have different versions, or had different versions when the
  // statement began. The statement had no effect.
  [/^loaded Citus library version differs from/, 'resources'],
  [/^cannot execute a distributed query from a query on a shard/, 'resources'],
  // The connection between the coordinating node and the node with the rows ended.
  [/^failure on connection marked as essential/, 'lost'],
  [/^failed to prepare transaction/, 'lost'],
  [/^execution cannot recover from multiple connection failures/, 'lost'],
  [/^could not commit transaction for shard/, 'lost'],
  // The server that runs the statement is stopping after a crash or an immediate shutdown.
  [/^postmaster was shut down, exiting/, 'lost'],
  // libpq's messages if the connection between two nodes ended without a response.
  [/^(server closed the connection|SSL connection has been closed) unexpectedly/, 'lost'],
  [/^(no connection to the server|connection not open)/, 'lost'],
  [/^could not (receive data from|send data to) server/, 'lost'],
];

/**
 * Foreign keys that a statement violates if the user was deleted after the token was checked. A function that holds the
 * lock on the account's row never violates them.
 */
const USER_CONSTRAINTS: ReadonlySet<string> = new Set([
  'idempotency_keys_account',
  'import_chunks_import',
  'imports_account',
  'tokens_account',
]);

/** Returns the SQLSTATE of an error that Postgres sent; undefined for any other error. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== 'PostgresError') return undefined;
  return systemCodeOf(error);
}

/** An operation of an atomic batch was refused, so Postgres has undone the whole batch. */
export class BatchRefused extends Error {
  override readonly name = 'BatchRefused';
  /** The place of the operation in the batch, counted from 0. */
  readonly place: number;
  readonly outcome: string;

  /** `detail` is that of the error in `write_batch`. */
  constructor(detail: string) {
    super('an operation of an atomic batch was refused');
    const [place, outcome = ''] = detail.split(' ');
    this.place = Number(place);
    this.outcome = outcome;
  }
}

/** Returns whether Postgres refused a row because its user does not exist. */
function isUserMissing(error: Error): boolean {
  if (sqlStateOf(error) !== '23503' || !('constraint_name' in error)) return false;
  return typeof error.constraint_name === 'string' && USER_CONSTRAINTS.has(error.constraint_name);
}

/**
 * Translates an error of the driver. If the database cannot serve now, returns `DatabaseUnavailable`. If the user was
 * deleted, returns `INVALID_TOKEN`. If `write_batch` undid an atomic batch, returns `BatchRefused`. Returns all other errors unchanged. `sent` says whether the statement was written
 * to a connection.
 */
export function translateError(error: unknown, sent: boolean): unknown {
  if (!(error instanceof Error) || error instanceof DatabaseUnavailable) return error;
  const code = systemCodeOf(error);
  const state = sqlStateOf(error);
  if (isUserMissing(error)) return invalidToken();
  if (state === 'BM001' && 'detail' in error) return new BatchRefused(String(error.detail));
  const reason = state === undefined ? reasonOfSystemError(error) : reasonOfSqlState(state, error.message);
  if (reason === undefined) return error;
  // A statement that Postgres refused had no effect. If the connection was lost, the statement may have had an effect.
  if (sent) return new DatabaseUnavailable(reason, MAY_HAVE_RUN.has(reason), code, error);
  return new DatabaseUnavailable(reason === 'lost' ? 'connect' : reason, false, code, error);
}

const MAY_HAVE_RUN: ReadonlySet<UnavailableReason> = new Set(['lost', 'deadline', 'closed']);

function reasonOfSqlState(state: string, message: string): UnavailableReason | undefined {
  if (state === 'XX000') return CITUS_REASONS.find(([beginning]) => beginning.test(message))?.[1];
  return REASON_BY_STATE[state] ?? REASON_BY_STATE[state.slice(0, 2)];
}

/** Matches the error codes for TLS and for certificates. */
const TLS_CODE = /^ERR_(TLS|SSL)|CERT|^UNABLE_TO_/;

function reasonOfSystemError(error: NodeJS.ErrnoException): UnavailableReason | undefined {
  const { code, syscall } = error;
  if (code === undefined) return undefined;
  if (syscall === 'connect' || syscall === 'getaddrinfo' || TLS_CODE.test(code)) {
    return 'connect';
  }
  return REASON_BY_CODE[code] ?? (syscall ? 'lost' : undefined);
}
