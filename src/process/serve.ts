import { setTimeout as sleep } from 'node:timers/promises';
import { type FastifyInstance, fastify } from 'fastify';
import { type Config, ConfigError, readConfig } from '../config.ts';
import { type Context, openContext } from '../context.ts';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../embedded/postgres.ts';
import { buildApp } from '../http/app.ts';
import { healthRoutes } from '../http/health.ts';
import { type Logger, openLog } from '../observability/log.ts';
import { LISTENING } from '../observability/terminal-log.ts';
import { checkSchema, migrate } from '../store/migrations.ts';
import { greet } from './greeting.ts';
import { startSweeper } from './sweeper.ts';

/** The life of a serving process: it opens, listens, waits for a signal, drains, and closes in reverse order. */

export type ServingRole = 'all' | 'api' | 'worker';

/**
 * When the process drains, held polls get their responses spread over this time, so that their clients do not all
 * come back at once.
 */
const DRAIN_SPREAD_MS = 3_000;

/** How long a worker may go on with an import. After that it gives the import back, and another worker takes it. */
const WORKER_GRACE_MS = 15_000;

/**
 * How long closing may take after `DRAIN_SECONDS`: with it a process ends well within the grace period of its pod.
 */
export const CLOSE_LIMIT_MS = 20_000;

/** How long requests in flight may go on after an uncaught fault. Then the process ends with 1. */
const FAULT_LIMIT_MS = 5_000;

/** Serves in a role until a signal comes. Rejects where it cannot start, with everything closed again. */
export async function serve(role: ServingRole): Promise<void> {
  const config = readConfig();
  const log = openLog(config.logLevel, { isStarting: true });
  const stack = new AsyncDisposableStack();
  try {
    const embedded = await openEmbedded(config, log);
    stack.defer(() => embedded?.stop());
    const url = embedded?.url ?? config.databaseUrl!;
    if (role === 'all' || embedded)
      await migrate({ url, log, sharding: config.databaseSharding, onlyIfBehind: !embedded });
    const context = await openContext(config, log, url, role);
    stack.defer(() => context.close());
    await checkSchema(context.database.sql);
    const app = await start(context, role, stack);
    if (embedded) await greet(context, app.listeningOrigin);
  } catch (error) {
    await stack.disposeAsync();
    // The line of the start may be on the screen.
    if (process.stdout.isTTY) process.stdout.write('\n');
    throw error;
  }
}

async function openEmbedded(config: Config, log: Logger): Promise<EmbeddedPostgres | undefined> {
  return config.databaseUrl === undefined
    ? openEmbeddedPostgres({ dataDir: config.dataDir, log })
    : undefined;
}

async function start(
  context: Context,
  role: ServingRole,
  stack: AsyncDisposableStack,
): Promise<FastifyInstance> {
  const { config, coordination, log } = context;
  const stopSweeper = startSweeper(context, role !== 'api');
  stack.defer(stopSweeper);
  const app = role === 'worker' ? buildHealthApp(context) : await buildApp(context);
  // The app and the worker close at the same time: requests may wait for the worker as long as it runs, and no new
  // ones come.
  const closes: (() => Promise<unknown>)[] = [() => app.close()];
  stack.defer(async () => void (await Promise.all(closes.map((close) => close()))));
  if (role !== 'api') {
    await coordination.imports.startWorker(config.importConcurrency);
    closes.push(() => coordination.imports.stopWorker(WORKER_GRACE_MS));
  }
  await listen(app, config);
  // From here on others may know of the process, and a signal must let requests in flight end.
  endOnSignal(context, stack);
  log.info({ role, origin: app.listeningOrigin }, LISTENING);
  log.flush();
  return app;
}

/** Connections that may wait to be accepted, for all clients reconnect at once after a failover. Linux caps it at somaxconn. */
const LISTEN_BACKLOG = 16_384;

/** Listens; rejects with a message that names the variables where the address cannot be used. */
async function listen(app: FastifyInstance, { host, port }: Config): Promise<void> {
  try {
    await app.listen({ host, port, backlog: LISTEN_BACKLOG });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(
      `HOST and PORT: cannot listen on ${host}:${port} (${code}); for example HOST=127.0.0.1 PORT=3001`,
    );
  }
}

function buildHealthApp(context: Context): FastifyInstance {
  const app = fastify();
  healthRoutes(app, context);
  return app;
}

/**
 * Ends the process in order at the first SIGTERM or SIGINT, at once at the second; with exit code 1 after an uncaught
 * fault.
 */
function endOnSignal(context: Context, stack: AsyncDisposableStack): void {
  const { log, lifecycle } = context;
  const end = (code: number, drainMs: number, limitMs: number) => {
    if (lifecycle.draining) process.exit(code === 0 ? 130 : code);
    lifecycle.draining = true;
    void close(context, stack, drainMs, limitMs).then(() => process.exit(code));
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      log.info({ signal }, 'draining');
      end(0, context.config.drainSeconds * 1_000, CLOSE_LIMIT_MS);
    });
  }
  for (const fault of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(fault, (error) => {
      log.fatal({ err: error }, fault);
      end(1, 0, FAULT_LIMIT_MS);
    });
  }
}

async function close(
  { coordination, log }: Context,
  stack: AsyncDisposableStack,
  drainMs: number,
  limitMs: number,
): Promise<void> {
  await sleep(drainMs);
  coordination.notifier.drain(coordination.notifier.held > 0 ? DRAIN_SPREAD_MS : 0);
  const closed = stack.disposeAsync().then(
    () => log.info('closed'),
    (error: unknown) => log.error({ err: error }, 'closing failed'),
  );
  await Promise.race([closed, sleep(limitMs)]);
}
