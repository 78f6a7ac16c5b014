import type postgres from 'postgres';
import type { SemaphoreGauges } from '../concurrency/semaphore.ts';

/** The template tag for SQL. It returns `int8` as a number. To get JSON as text, select it as `...::text`. */
export type Sql = postgres.Sql<{ int8: number }>;

/** A statement that runs once it is awaited. A function that returns one must not be `async`, which would await it. */
export interface Statement<T> extends PromiseLike<T> {
  cancel(): void;
}

/** A pool of connections, with a queue of statements in front. */
export interface Database {
  /** For fragments and tests. The service runs its statements through `read` and `write`. */
  readonly sql: Sql;
  /** The numbers of connections (open or not), of running statements, and of statements that wait for a connection. */
  readonly gauges: SemaphoreGauges;
  /**
   * Runs one statement. Sends it once more if the connection was lost before the response. `deadlineMs` may shorten the
   * pool's deadline.
   */
  read<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>, deadlineMs?: number): Promise<T>;
  /**
   * `read` for a statement that takes well under a millisecond and waits for no lock. Several such statements share a
   * connection.
   */
  readShort<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>, deadlineMs?: number): Promise<T>;
  /** Runs one statement, and never sends it twice. If it is refused while it waits for a connection, it never runs. */
  write<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>): Promise<T>;
  /** The pool that reaches a user's rows fastest. Every other pool returns the same rows. */
  at(userId: number): Database;
  /**
   * Refuses waiting statements, lets running ones finish for up to `graceMs` (default 5 s), and closes all connections.
   */
  close(graceMs?: number): Promise<void>;
}
