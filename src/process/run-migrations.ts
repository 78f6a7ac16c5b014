import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, readConfig } from '../config.ts';
import { openEmbeddedPostgres } from '../embedded/postgres.ts';
import { type Logger, openLog } from '../observability/log.ts';
import { DatabaseUnavailable, translateError } from '../store/driver/errors.ts';
import { migrate } from '../store/schema/migrations.ts';

/** The pause before the next try. A shorter pause gains nothing, because a failover of Postgres takes about 10 s. */
const PAUSE_MS = 1_000;

/**
 * Whether another try may succeed. It may succeed if Postgres could not be reached, or if a migration waited too long
 * for a table in use. It cannot succeed if Postgres refused the user, or if the database does not exist.
 */
function isTransient(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  const translated = translateError(cause ?? error, true);
  if (!(translated instanceof DatabaseUnavailable)) return false;
  // SQLSTATEs of class 28 mean that Postgres refused the user. 3D000 means that the database does not exist.
  const isRefused = /^28/.test(translated.code ?? '') || translated.code === '3D000';
  return !isRefused;
}

/**
 * Migrates the database. After a transient error, tries again until `MIGRATE_WAIT_SECONDS` have passed, and then
 * rejects with the last error.
 */
export async function migrateWithRetries(
  url: string,
  { migrateWaitSeconds, databaseSharding }: Pick<Config, 'migrateWaitSeconds' | 'databaseSharding'>,
  log: Logger,
): Promise<void> {
  const giveUpAt = performance.now() + migrateWaitSeconds * 1_000;
  for (;;) {
    try {
      const lockWaitMs = giveUpAt - performance.now();
      return void (await migrate({ url, log, sharding: databaseSharding, lockWaitMs }));
    } catch (error) {
      if (!isTransient(error) || performance.now() + PAUSE_MS > giveUpAt) throw error;
      log.warn({ err: error }, 'migration failed; retrying');
    }
    await sleep(PAUSE_MS);
  }
}

/** Runs the command `migrate`, which brings the configured or the embedded database to the newest schema. */
export async function runMigrations(): Promise<void> {
  const config = readConfig();
  const log = openLog(config.logLevel);
  if (config.databaseUrl !== undefined) return migrateWithRetries(config.databaseUrl, config, log);
  const embedded = await openEmbeddedPostgres({ dataDir: config.dataDir, log });
  try {
    await migrate({ url: embedded.url, log });
  } finally {
    await embedded.stop();
  }
}
