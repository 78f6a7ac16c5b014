import type postgres from 'postgres';
import type { SemaphoreGauges } from '../concurrency/semaphore.ts';

/** The tag for SQL. `int8` becomes a number; select a JSON text as `...::text`. */
export type Sql = postgres.Sql<{ int8: number }>;

/** A statement that was made and not awaited yet. A function that returns one must not be `async`. */
export interface Statement<T> extends PromiseLike<T> {
  cancel(): void;
}

/** A pool of connections, with a queue of statements in front. */
export interface Database {
  /** For fragments and for tests. Statements of the service go through `read` and `write`. */
  readonly sql: Sql;
  /** Connections, open or not; statements that run; statements that wait for a connection. Cheap to read. */
  readonly gauges: SemaphoreGauges;
  /**
   * Runs one statement; sends it once more where the connection was lost before the response. `deadlineMs` may
   * shorten the pool's.
   */
  read<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>, deadlineMs?: number): Promise<T>;
  /**
   * `read` for a statement of well under a millisecond that waits for no lock: sent beside others on a connection that several
   * share.
   */
  readShort<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>, deadlineMs?: number): Promise<T>;
  /**
   * Runs one statement, and never sends it twice. If it is refused while it waits for a connection, it never runs.
   */
  write<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>): Promise<T>;
  /**
   * Refuses waiting statements, lets running ones end for up to `graceMs` (default 5 s), and closes all connections.
   */
  close(graceMs?: number): Promise<void>;
}
