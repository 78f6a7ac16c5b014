import type postgres from 'postgres';
import type { SemaphoreGauges } from '../../flow/semaphore.ts';

/** The template tag for SQL. It returns `int8` as a number. To get JSON as text, select it as `...::text`. */
export type Sql = postgres.Sql<{ int8: number }>;

/**
 * A statement that starts when it is awaited. A function that returns a statement must not be `async`, because `async`
 * would await the statement and so start it.
 */
export interface Statement<T> extends PromiseLike<T> {
  cancel(): void;
}

/** A pool of connections, and a queue of statements that wait for a connection. */
export interface Database {
  /** Only for fragments of SQL and for tests. The service runs its statements with the methods below. */
  readonly sql: Sql;
  /** The numbers of connections (open or not), of running statements, and of statements that wait for a connection. */
  readonly gauges: SemaphoreGauges;
  /**
   * Runs one statement. If the connection is lost before the response, sends the statement once more. `deadlineMs` may
   * shorten the deadline of the pool.
   */
  read<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>, deadlineMs?: number): Promise<T>;
  /**
   * Does the same as `read`, for a statement that takes well under a millisecond and waits for no lock. Several such
   * statements share a connection.
   */
  readShort<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>, deadlineMs?: number): Promise<T>;
  /**
   * Runs one statement, and never sends it twice. If the statement is refused while it waits for a connection, it never
   * runs.
   */
  write<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>): Promise<T>;
  /** Returns the pool that reaches a user's rows fastest. Every other pool returns the same rows. */
  at(userId: number): Database;
  /**
   * Refuses waiting statements, lets running ones finish for up to `graceMs` (default 5 s), and closes all connections.
   */
  close(graceMs?: number): Promise<void>;
}
