import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { migrate } from '../../src/store/schema/migrations.ts';
import { copyShardedDatabase } from './citus.ts';
import { runOn, type TestDatabase, withDatabase } from './run-on.ts';
import { silentLog } from './silent-log.ts';

export { openSnapshot, runOn, type TestDatabase, withDatabase } from './run-on.ts';

/**
 * Creates a database for a test file in tens of milliseconds, by copying the run's empty, migrated template.
 * `template` may also name a database that `createDatabase` has made, if nobody is connected to it.
 */
export async function createDatabase(template = inject('templateDatabase')): Promise<TestDatabase> {
  const citusUrl = inject('citusUrl');
  if (citusUrl !== undefined) return copyShardedDatabase(citusUrl, inject('citusTemplate')!);
  const serverUrl = inject('postgresUrl');
  const name = `${inject('templateDatabase')}_${randomBytes(6).toString('hex')}`;
  await runOn(serverUrl, `create database ${name} template ${template}`);
  const drop = async () => {
    await runOn(serverUrl, `drop database if exists ${name} with (force)`);
  };
  return { url: withDatabase(serverUrl, name), name, drop, [Symbol.asyncDispose]: drop };
}

/** Creates an empty, migrated database with an ICU locale such as `en-US`. */
export async function createDatabaseOfLocale(locale: string): Promise<TestDatabase> {
  const serverUrl = inject('postgresUrl');
  const name = `${inject('templateDatabase')}_${randomBytes(6).toString('hex')}`;
  await runOn(
    serverUrl,
    `create database ${name} template template0 locale_provider icu icu_locale '${locale}'`,
  );
  const url = withDatabase(serverUrl, name);
  await migrate({ url, log: silentLog });
  const drop = async () => {
    await runOn(serverUrl, `drop database if exists ${name} with (force)`);
  };
  return { url, name, drop, [Symbol.asyncDispose]: drop };
}

/** Drops the run's template, and all of its copies that remain. */
export async function dropDatabasesOf(template: string, serverUrl: string): Promise<void> {
  const list = `select datname as name from pg_database where starts_with(datname, '${template}')`;
  for (const { name } of await runOn<{ name: string }>(serverUrl, list)) {
    await runOn(serverUrl, `drop database if exists ${name} with (force)`);
  }
}
