import type postgres from 'postgres';
import type { SemaphoreGauges } from '../concurrency/semaphore.ts';

/** The tag that makes statements. `int8` travels as a number; a JSON text is selected as `...::text`. */
export type Sql = postgres.Sql<{ int8: number }>;

/** A statement that the tag made and nobody has awaited yet. A function that returns one must not be `async`. */
export interface Statement<T> extends PromiseLike<T> {
  cancel(): void;
}

/** A pool of connections, with a queue of statements in front. */
export interface Database {
  /** For fragments and helpers, and for tests; statements of the service go through `read` and `write`. */
  readonly sql: Sql;
  /** Connections, open or not; statements that run; statements that wait for a connection. Cheap to read. */
  readonly gauges: SemaphoreGauges;
  /** Runs one statement; again once where the connection was lost before the answer. A shorter deadline may be given. */
  read<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>, deadlineMs?: number): Promise<T>;
  /** Runs one statement, never twice. Refused while it waited for a connection, it never runs. */
  write<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>): Promise<T>;
  /** Refuses what waits, lets statements in flight end for up to `graceMs` (default 5 s), closes all connections. */
  close(graceMs?: number): Promise<void>;
}
