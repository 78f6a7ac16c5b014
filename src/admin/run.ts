import { type Config, readConfig } from '../config.ts';
import { redisTarget } from '../context.ts';
import { openCoordination } from '../coordination/open.ts';
import { attachEmbeddedPostgres } from '../embedded/postgres.ts';
import { openLog } from '../observability/log.ts';
import type { Database } from '../store/database.ts';
import { checkSchema, migrate } from '../store/migrations.ts';
import { openDatabase } from '../store/open-database.ts';

/** A command that cannot do what it was asked to; its message is for the operator. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** What a command works with. */
export interface AdminContext {
  database: Database;
  /** Wakes the waits of a topic on every replica. */
  wake(topic: string): void;
}

export interface CommandOptions {
  /** Runs on any schema: what revokes or deletes must not wait for the right version of the service. */
  onAnySchema?: boolean;
}

/** Runs a command against the configured or the embedded database and prints its answer as one JSON object. */
export async function runCommand(
  command: (context: AdminContext) => Promise<object>,
  { onAnySchema = false }: CommandOptions = {},
): Promise<void> {
  const config = readConfig();
  // Standard output is for the answer alone.
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
  const topics = new Set<string>();
  const answer = await command({ database, wake: (topic) => topics.add(topic) });
  if (config.redisUrls && topics.size > 0) await wakeAll(config, topics);
  console.log(JSON.stringify(answer));
}

/** Tells the replicas. Where Redis is away they notice by themselves. */
async function wakeAll(config: Config, topics: Iterable<string>): Promise<void> {
  const coordination = await openCoordination(
    { ...redisTarget(config), windowMs: 1_000, maxHeld: 1, maxHeldPerHolder: 1 },
    { log: openLog('silent'), runImport: async () => {} },
  );
  for (const topic of topics) coordination.wakes.wake(topic);
  await coordination.close();
}
