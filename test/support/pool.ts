import { expect, onTestFinished } from 'vitest';
import type { Database } from '../../src/store/database.ts';
import { DatabaseUnavailable } from '../../src/store/errors.ts';
import { type DatabaseOptions, openDatabase } from '../../src/store/open-database.ts';

/** Opens a pool of two connections, unless told otherwise, that ends with the test. */
export async function openPool(options: DatabaseOptions): Promise<Database> {
  const database = await openDatabase({ max: 2, ...options });
  onTestFinished(() => database.close(0));
  return database;
}

/** The same database, reached through another port of this machine. */
export function throughPort(url: string, port: number): string {
  const changed = new URL(url);
  changed.host = `127.0.0.1:${port}`;
  return changed.href;
}

/** The least that a database can be asked. */
export const selectOne = (database: Database) => database.read((sql) => sql`select 1 as one`);

/** What `selectOne` gives. */
export const one = [{ one: 1 }];

/** The error with which a call says that the database is unavailable; fails the test where it does not. */
export async function catchUnavailable(promise: Promise<unknown>): Promise<DatabaseUnavailable> {
  const error = await promise.then(
    () => 'no error',
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(DatabaseUnavailable);
  return error as DatabaseUnavailable;
}
