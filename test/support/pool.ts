import { expect, onTestFinished } from 'vitest';
import type { Database } from '../../src/store/driver/database.ts';
import { DatabaseUnavailable } from '../../src/store/driver/errors.ts';
import { type DatabaseOptions, openDatabase } from '../../src/store/driver/open.ts';

/** Opens a pool that closes at the end of the test. It has two connections unless the options say otherwise. */
export async function openPool(options: DatabaseOptions): Promise<Database> {
  const database = await openDatabase({ max: 2, ...options });
  onTestFinished(() => database.close(0));
  return database;
}

/** Returns the url of the same database through another port of this machine. */
export function throughPort(url: string, port: number): string {
  const changed = new URL(url);
  changed.host = `127.0.0.1:${port}`;
  return changed.href;
}

/** Runs the smallest statement. */
export const selectOne = (database: Database) => database.read((sql) => sql`select 1 as one`);

/** The rows that `selectOne` returns. */
export const one = [{ one: 1 }];

/**
 * Returns the error of a call that finds the database unavailable. Fails the test if the call succeeds or fails in
 * another way.
 */
export async function catchUnavailable(promise: Promise<unknown>): Promise<DatabaseUnavailable> {
  const error = await promise.then(
    () => 'no error',
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(DatabaseUnavailable);
  return error as DatabaseUnavailable;
}
