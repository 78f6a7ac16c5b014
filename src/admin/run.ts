import { resolve } from 'node:path';
import type { Config } from '../config.ts';
import { redisAccess } from '../context.ts';
import { openCoordination } from '../coordination/open.ts';
import { attachEmbeddedPostgres } from '../embedded/postgres.ts';
import { openLog } from '../observability/log.ts';
import { type AuditedCommand, beginAudit, endAudit } from '../store/audit.ts';
import type { Database } from '../store/driver/database.ts';
import { openDatabase } from '../store/driver/open.ts';
import { checkSchema, migrate } from '../store/schema/migrations.ts';

/** Thrown when a command fails. The message tells the operator why. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** The dependencies of a command. */
export interface AdminContext {
  database: Database;
  /** Once the command has succeeded, the long polls of this channel are woken on every replica. */
  notify(channel: string): void;
}

interface CommandOptions {
  /**
   * Whether the command runs with any version of the database's schema. An operator must be able to revoke and delete
   * immediately, even without the version of the service that matches the schema.
   */
  onAnySchema?: boolean;
}

/** What a command gets from its process: the configuration, standard output and standard error. */
export interface CommandHost {
  readConfig(): Config;
  /** Writes to standard output. Returns a promise if the caller must wait before it writes more. */
  out(text: string): Promise<unknown> | undefined;
  err(text: string): void;
}

/** What a command prints: one JSON object, or its text in chunks. */
type Result = object | AsyncIterable<string>;

/** Runs a command on the configured or the embedded database, and prints its result. */
export type RunCommand = (
  command: (context: AdminContext) => Promise<Result>,
  options?: CommandOptions,
) => Promise<void>;

/**
 * Returns a function that runs commands. `describe` returns the audit record, or undefined if the command is not
 * recorded.
 */
export const commandRunner =
  (host: CommandHost, describe: (config: Config) => AuditedCommand | undefined): RunCommand =>
  async (command, { onAnySchema = false } = {}) => {
    const config = host.readConfig();
    const auditRecord = describe(config);
    await using stack = new AsyncDisposableStack();
    host.err(`Database: ${nameDatabase(config)}\n`);
    const database = await openCommandDatabase(config, stack, onAnySchema);
    const auditId = auditRecord && (await beginAudit(database, auditRecord));
    if (auditRecord && auditId === undefined)
      host.err('this command is not recorded in the audit: the schema is too old\n');
    let outcome: 'done' | 'failed' = 'failed';
    try {
      await print(host, await runAndNotify(config, database, command));
      outcome = 'done';
    } finally {
      // An error here is ignored, because the command itself has already succeeded or failed.
      if (auditId !== undefined) await endAudit(database, auditId, outcome).catch(() => {});
    }
  };

async function print(host: CommandHost, result: Result): Promise<void> {
  if (!(Symbol.asyncIterator in result)) {
    await host.out(`${JSON.stringify(result)}\n`);
    return;
  }
  for await (const chunk of result) await host.out(chunk);
  await host.out('\n');
}

/** Returns the name of the database for the operator, without its user and its password. */
function nameDatabase({ databaseUrl, dataDir }: Config): string {
  if (databaseUrl === undefined) return resolve(dataDir);
  // A url of Postgres may name several hosts, so `URL` cannot parse it.
  return databaseUrl.replace(/^(\w+:\/\/)([^/?]*@)?([^?]*).*$/s, '$3');
}

/** Opens the configured or the embedded database. `stack` closes it. */
async function openCommandDatabase(
  config: Config,
  stack: AsyncDisposableStack,
  onAnySchema: boolean,
): Promise<Database> {
  // Standard output must contain only the result, so nothing is logged.
  const log = openLog('silent');
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
  return database;
}

/** Runs a command. If it succeeds, notifies each of the command's channels once. */
async function runAndNotify(
  config: Config,
  database: Database,
  command: (context: AdminContext) => Promise<Result>,
): Promise<Result> {
  const channels = new Set<string>();
  const result = await command({ database, notify: (channel) => channels.add(channel) });
  if (config.redisAddress && channels.size > 0) await notifyAll(config, channels);
  return result;
}

/**
 * Wakes the long polls of these channels on all replicas. Without Redis, the polls find changes by querying Postgres.
 */
async function notifyAll(config: Config, channels: Iterable<string>): Promise<void> {
  const coordination = await openCoordination(
    { redis: redisAccess(config), windowSeconds: 1, maxHeld: 1, maxHeldPerHolder: 1 },
    { log: openLog('silent'), runImport: async () => {} },
  );
  for (const channel of channels) coordination.notifier.notify(channel);
  await coordination.close();
}
