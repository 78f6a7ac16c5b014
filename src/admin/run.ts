import type { Config } from '../config.ts';
import { redisAccess } from '../context.ts';
import { openCoordination } from '../coordination/open.ts';
import { attachEmbeddedPostgres } from '../embedded/postgres.ts';
import { openLog } from '../observability/log.ts';
import type { Database } from '../store/database.ts';
import { checkSchema, migrate } from '../store/migrations.ts';
import { openDatabase } from '../store/open-database.ts';

/** The command cannot do what it was asked to. The message is for the operator. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** What a command is given. */
export interface AdminContext {
  database: Database;
  /** Wakes the waiters of a channel on every replica. */
  notify(channel: string): void;
}

export interface CommandOptions {
  /**
   * Runs whatever the version of the schema: to revoke or delete must not wait for the right version of the service.
   */
  onAnySchema?: boolean;
}

/** What a command line runs in: its configuration, standard output and standard error. */
export interface CommandHost {
  readConfig(): Config;
  out(text: string): void;
  err(text: string): void;
}

/** Runs a command on the configured or the embedded database and prints its result as one JSON object. */
export type RunCommand = (
  command: (context: AdminContext) => Promise<object>,
  options?: CommandOptions,
) => Promise<void>;

/** Runs the commands of a host. */
export const commandRunner =
  (host: CommandHost): RunCommand =>
  async (command, options) => {
    const result = await runOnDatabase(host.readConfig(), command, options);
    host.out(`${JSON.stringify(result)}\n`);
  };

async function runOnDatabase(
  config: Config,
  command: (context: AdminContext) => Promise<object>,
  { onAnySchema = false }: CommandOptions = {},
): Promise<object> {
  // Standard output is for the result alone.
  const log = openLog('silent');
  await using stack = new AsyncDisposableStack();
  let url = config.databaseUrl;
  if (url === undefined) {
    const embedded = await attachEmbeddedPostgres({ dataDir: config.dataDir, log });
    stack.defer(() => embedded.stop());
    url = embedded.url;
    if (!onAnySchema) await migrate({ url, log });
  }
  const database = await openDatabase({ url, prepare: config.databasePrepare, max: 1, application: 'admin' });
  stack.defer(() => database.close());
  if (!onAnySchema) await checkSchema(database.sql);
  const channels = new Set<string>();
  const result = await command({ database, notify: (channel) => channels.add(channel) });
  if (config.redisAddress && channels.size > 0) await wakeAll(config, channels);
  return result;
}

/** Wakes the waiters on all replicas. While Redis is away each replica checks by itself. */
async function wakeAll(config: Config, channels: Iterable<string>): Promise<void> {
  const coordination = await openCoordination(
    { redis: redisAccess(config), windowMs: 1_000, maxHeld: 1, maxHeldPerHolder: 1 },
    { log: openLog('silent'), runImport: async () => {} },
  );
  for (const channel of channels) coordination.notifier.notify(channel);
  await coordination.close();
}
