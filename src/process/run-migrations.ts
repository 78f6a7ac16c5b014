import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, readConfig } from '../config.ts';
import { openEmbeddedPostgres } from '../embedded/postgres.ts';
import { type Logger, openLog } from '../observability/log.ts';
import { DatabaseUnavailable, translateError } from '../store/errors.ts';
import { migrate } from '../store/migrations.ts';

/** The pause before the next try. A failover takes about ten seconds, so shorter pauses gain nothing. */
const PAUSE_MS = 1_000;

/** Whether another try may succeed: Postgres cannot be reached, or a migration waited too long for a table in use. */
function isTransient(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  const translated = translateError(cause ?? error, true);
  if (!(translated instanceof DatabaseUnavailable)) return false;
  const isRefused = /^28/.test(translated.code ?? '') || translated.code === '3D000';
  return !isRefused;
}

/** Migrates. Retries transient errors for up to `MIGRATE_WAIT_SECONDS`, then rejects with the last one. */
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

/** The role `migrate`: brings the configured or the embedded database to the newest schema. */
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
