import { Semaphore, type SemaphoreGauges } from '../../flow/semaphore.ts';
import type { Database, Sql, Statement } from './database.ts';
import { DatabaseUnavailable, sqlStateOf, translateError } from './errors.ts';
import type { SharedConnection } from './shared-connection.ts';
import { wasSent } from './was-sent.ts';

/** The limits of a pool. A time of 0 means no limit. */
interface PoolLimits {
  /** The number of all connections, including the shared ones. */
  max: number;
  maxWaiting: number;
  waitMs: number;
  deadlineMs: number;
  /** Called with the seconds of each wait that ended with a connection. */
  onWaited?: ((seconds: number) => void) | undefined;
  /** Called with the SQLSTATE of each unexpected error. */
  onDefect?: ((sqlState: string) => void) | undefined;
  /** Called with each error that means that the database cannot serve now. */
  onUnavailable?: ((failure: DatabaseUnavailable) => void) | undefined;
}

/**
 * One call of `read` or `write`, until its response. It is in one of these states:
 *
 * - **waiting**: the call waits for a permit, and has no `statement` yet.
 * - **running**: the driver has the `statement`, and the call holds a permit until the driver is done.
 * - **settled**: the caller has the rows or an error. If the deadline passed first (`expired`), the statement may still
 *   run, and then the call still holds its permit.
 */
interface Call<T extends readonly unknown[]> {
  run: (sql: Sql) => Statement<T>;
  /** Whether the statement may be sent a second time. */
  mayRepeat: boolean;
  resolve: (rows: T) => void;
  reject: (error: unknown) => void;
  statement: Statement<T> | undefined;
  timer: NodeJS.Timeout | undefined;
  expired: boolean;
}

/** The only key of the semaphore of a pool. */
const POOL = 'pool';

/**
 * Puts a semaphore in front of the driver, with one permit for each connection that is not shared. Also adds the
 * connections that short reads share, adds deadlines, and checks that each response is complete. Whatever makes the
 * database unavailable, the caller gets the same kind of error.
 *
 * The queue of the driver stays empty. So a statement that is refused while it waits for a permit never reaches the
 * driver, and cannot run later.
 */
export class Pool implements Database {
  readonly sql: Sql;
  readonly #shared: readonly SharedConnection[];
  readonly #permits: Semaphore<typeof POOL>;
  readonly #deadlineMs: number;
  readonly #onDefect: PoolLimits['onDefect'];
  readonly #onUnavailable: PoolLimits['onUnavailable'];
  /** The number of responses from Postgres, errors included. Each response shows that Postgres can be reached. */
  #responses = 0;

  constructor(
    sql: Sql,
    { max, maxWaiting, waitMs, deadlineMs, onWaited, onDefect, onUnavailable }: PoolLimits,
    shared: readonly SharedConnection[] = [],
  ) {
    this.sql = sql;
    this.#shared = shared;
    // 0 means no limit, here and for the semaphore.
    const longestWaitMs = Math.min(waitMs || Infinity, deadlineMs || Infinity);
    this.#permits = new Semaphore({
      permits: max - shared.length,
      maxWaiting,
      waitMs: longestWaitMs === Infinity ? 0 : longestWaitMs,
      refusalError: (refusal) => new DatabaseUnavailable(refusal === 'closed' ? 'closed' : 'pool', false),
      onWaited,
    });
    this.#deadlineMs = deadlineMs;
    this.#onDefect = onDefect;
    this.#onUnavailable = onUnavailable;
  }

  get gauges(): SemaphoreGauges {
    const gauges = this.#permits.gauges(POOL);
    const sharedInUse = this.#shared.filter(({ inFlight }) => inFlight > 0).length;
    return {
      ...gauges,
      size: gauges.size + this.#shared.length,
      inUse: gauges.inUse + sharedInUse,
    };
  }

  read<T extends readonly unknown[]>(
    run: (sql: Sql) => Statement<T>,
    deadlineMs = this.#deadlineMs,
  ): Promise<T> {
    return this.#call(run, true, deadlineMs);
  }

  async readShort<T extends readonly unknown[]>(
    run: (sql: Sql) => Statement<T>,
    deadlineMs = this.#deadlineMs,
  ): Promise<T> {
    const connection = this.#findShared();
    if (connection === undefined) return this.read(run, deadlineMs);
    const sentAt = performance.now();
    const rows = await connection.send(run);
    if (rows !== undefined && hasAllRows(rows)) {
      this.#responses++;
      return rows;
    }
    // The shared connection returned no complete result. So a normal read sends the statement again. That read may wait
    // for a permit, and reports errors.
    const leftMs = deadlineMs - (performance.now() - sentAt);
    return this.read(run, deadlineMs === 0 ? 0 : Math.max(1, leftMs));
  }

  /** Returns the shared connection with the fewest reads in flight; undefined if none has room. */
  #findShared(): SharedConnection | undefined {
    let leastBusy: SharedConnection | undefined;
    for (const each of this.#shared) {
      if (!each.hasRoom) continue;
      if (leastBusy === undefined || each.inFlight < leastBusy.inFlight) leastBusy = each;
    }
    return leastBusy;
  }

  write<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>): Promise<T> {
    return this.#call(run, false, this.#deadlineMs);
  }

  at(): Database {
    return this;
  }

  async close(graceMs = 5_000): Promise<void> {
    this.#permits.close();
    const drivers = [
      this.sql.end({ timeout: graceMs / 1_000 }),
      ...this.#shared.map((each) => each.close(graceMs)),
    ];
    await Promise.all(drivers);
  }

  #call<T extends readonly unknown[]>(
    run: (sql: Sql) => Statement<T>,
    mayRepeat: boolean,
    deadlineMs: number,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const call: Call<T> = {
        run,
        mayRepeat,
        resolve,
        reject,
        statement: undefined,
        timer: undefined,
        expired: false,
      };
      if (deadlineMs > 0) call.timer = setTimeout(expire, deadlineMs, call);
      this.#permits.enter(
        POOL,
        () => this.#send(call),
        (error) => finish(call, () => reject(error)),
      );
    });
  }

  /**
   * Passes the statement of a call to the driver. The call keeps its permit until the driver is done. Returns false if
   * the call has expired or if `run` throws. The caller must then give the permit back.
   */
  #send<T extends readonly unknown[]>(call: Call<T>): boolean {
    // The caller of an expired call has already received an error, so a write must not run now.
    if (call.expired) return false;
    const responsesBefore = this.#responses;
    try {
      call.statement = call.run(this.sql);
    } catch (error) {
      finish(call, () => call.reject(error));
      return false;
    }
    call.statement.then(
      (rows) => this.#succeed(call, rows),
      (error: unknown) => this.#fail(call, error, responsesBefore),
    );
    return true;
  }

  #succeed<T extends readonly unknown[]>(call: Call<T>, rows: T): void {
    this.#responses++;
    const isComplete = hasAllRows(rows);
    this.#finishAndRelease(call, () =>
      isComplete ? call.resolve(rows) : call.reject(new Error('a response lacks rows')),
    );
  }

  #fail<T extends readonly unknown[]>(call: Call<T>, error: unknown, responsesBefore: number): void {
    const failure = translateError(error, wasSent(call.statement));
    if (!(failure instanceof DatabaseUnavailable)) {
      this.#responses++;
      const sqlState = sqlStateOf(failure);
      if (sqlState !== undefined) this.#onDefect?.(sqlState);
      this.#finishAndRelease(call, () => call.reject(failure));
      return;
    }
    this.#onUnavailable?.(failure);
    if (failure.reason === 'lost' && call.mayRepeat) {
      call.mayRepeat = false;
      const isSentAgain = this.#send(call);
      if (isSentAgain) return;
    } else if (failure.reason === 'connect' && responsesBefore === this.#responses) {
      // No connection can be made, and no open connection has responded since this statement was sent. The statements
      // that wait would only fail later.
      this.#permits.refuseWaiters(POOL, failure);
    }
    this.#finishAndRelease(call, () => call.reject(failure));
  }

  #finishAndRelease(call: Timed, settle: () => void): void {
    finish(call, settle);
    this.#permits.release(POOL);
  }
}

type Timed = Pick<Call<never>, 'timer'>;

/** Stops the timer of a call's deadline, and settles the call. */
function finish({ timer }: Timed, settle: () => void): void {
  clearTimeout(timer);
  settle();
}

/**
 * Rejects a call whose deadline has passed. If its statement was not sent yet, cancels the statement, so that it never
 * runs. If the statement was sent, the call keeps its permit until Postgres or the driver ends the statement.
 */
function expire<T extends readonly unknown[]>(call: Call<T>): void {
  call.expired = true;
  const isSent = wasSent(call.statement);
  call.reject(new DatabaseUnavailable('deadline', isSent));
  if (!isSent) call.statement?.cancel();
}

/**
 * Returns whether the response has as many rows as Postgres counted. Returns true if the result has no columns,
 * because such a response has a count but no rows.
 */
function hasAllRows(rows: readonly unknown[]): boolean {
  if (!('columns' in rows && Array.isArray(rows.columns) && rows.columns.length > 0)) return true;
  return 'count' in rows && rows.count === rows.length;
}
