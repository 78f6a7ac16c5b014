import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { inject } from 'vitest';

/** A migrated, empty database that nobody else uses. */
export interface TestDatabase extends AsyncDisposable {
  readonly url: string;
  readonly name: string;
  /** Drops it and ends its connections. The end of the run drops those that are left. */
  drop(): Promise<void>;
}

/**
 * Copies the run's migrated template: an empty database for a test file, in tens of milliseconds. Or copies another one
 * that `createDatabase` made, and that nobody is connected to.
 */
export async function createDatabase(template = inject('templateDatabase')): Promise<TestDatabase> {
  const serverUrl = inject('postgresUrl');
  const name = `${inject('templateDatabase')}_${randomBytes(6).toString('hex')}`;
  await runOn(serverUrl, `create database ${name} template ${template}`);
  const drop = async () => {
    await runOn(serverUrl, `drop database if exists ${name} with (force)`);
  };
  return { url: withDatabase(serverUrl, name), name, drop, [Symbol.asyncDispose]: drop };
}

/** The url of another database of the same server. */
export function withDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

/** Drops the run's template and every copy of it that is left. */
export async function dropDatabasesOf(template: string, serverUrl: string): Promise<void> {
  const list = `select datname as name from pg_database where starts_with(datname, '${template}')`;
  for (const { name } of await runOn<{ name: string }>(serverUrl, list)) {
    await runOn(serverUrl, `drop database if exists ${name} with (force)`);
  }
}

/** Runs SQL without parameters on a connection of its own; returns the rows of the last statement. */
export async function runOn<Row extends object>(url: string, statements: string): Promise<Row[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return [...(await sql.unsafe<Row[]>(statements))];
  } finally {
    await sql.end({ timeout: 0 });
  }
}
