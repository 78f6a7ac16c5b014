import { setTimeout as sleep } from 'node:timers/promises';
import { type FastifyInstance, fastify } from 'fastify';
import { issueInvite } from '../admin/invites.ts';
import { type Config, readConfig } from '../config.ts';
import { type Context, listenError, openContext } from '../context.ts';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../embedded/postgres.ts';
import { healthRoutes } from '../http/health.ts';
import { type Logger, openLog } from '../observability/log.ts';
import { LISTENING } from '../observability/terminal-log.ts';
import { buildApp } from '../routes/app.ts';
import { checkSchema, migrate } from '../store/schema/migrations.ts';
import { startSweeper } from './sweeper.ts';

/** The life of a serving process: open, listen, wait for a signal, drain, and close in reverse order. */

export type ServingRole = 'all' | 'api' | 'worker';

/**
 * A draining process spreads its responses to held polls over this time, so that clients do not all return at the same
 * time.
 */
const DRAIN_SPREAD_MS = 3_000;

/**
 * How long a stopping worker may continue an import. After this time, it returns the import to the queue for another
 * worker.
 */
const WORKER_GRACE_MS = 15_000;

/** How long closing may take after `DRAIN_SECONDS`. Kubernetes waits longer before it kills a pod. */
export const CLOSE_LIMIT_MS = 20_000;

/** How long requests may continue after an uncaught error. After this time, the process exits with code 1. */
const FAULT_LIMIT_MS = 5_000;

/** Starts to serve in a role. Resolves when the process listens. If the start fails, closes everything and rejects. */
export async function serve(role: ServingRole): Promise<void> {
  const config = readConfig();
  const log = openLog(config.logLevel, { isStarting: true });
  const stack = new AsyncDisposableStack();
  try {
    const { url, embedded } = await findDatabase(config, log);
    stack.defer(() => embedded?.stop());
    if (role === 'all' || embedded)
      await migrate({ url, log, sharding: config.databaseSharding, onlyIfBehind: !embedded });
    const context = await openContext(config, log, url, role);
    stack.defer(() => context.close());
    await checkSchema(context.database.sql);
    const app = await start(context, role, stack);
    if (embedded) await greet(context, app.listeningOrigin);
  } catch (error) {
    await stack.disposeAsync();
    // Ends the line in which the log shows the progress of the start, so that the error begins on a new line.
    if (process.stdout.isTTY) process.stdout.write('\n');
    throw error;
  }
}

/** Returns the url of the configured database. If none is configured, starts the embedded Postgres. */
async function findDatabase(
  { databaseUrl, dataDir }: Config,
  log: Logger,
): Promise<{ url: string; embedded?: EmbeddedPostgres }> {
  if (databaseUrl !== undefined) return { url: databaseUrl };
  const embedded = await openEmbeddedPostgres({ dataDir, log });
  return { url: embedded.url, embedded };
}

/** The e-mail address of the account that the invite code and the link of `greet` create or open. */
const EMAIL = 'you@localhost';

const INVITE_DAYS = 7;
const LINK_DAYS = 1;

/** The exit code if a second signal ends the process before its requests have finished. */
const INTERRUPTED = 130;

/**
 * Prints the API's address, an invite code, and a link to the page. The link works only once. Its code is in the URL's
 * fragment, which browsers do not send. On loopback, the page signs in with this code immediately. On any other host,
 * it only fills in the field for the code.
 */
async function greet(
  { database, site }: Pick<Context, 'database' | 'site'>,
  listeningOrigin: string,
): Promise<void> {
  const invite = await issueInvite(database, EMAIL, INVITE_DAYS);
  const link = await issueInvite(database, EMAIL, LINK_DAYS);
  const origin = site.namedOrigin ?? site.origin ?? listeningOrigin;
  const lines = [
    '',
    `The API: ${origin}/api/v1 (reference: ${origin}/docs)`,
    `Invite code: ${invite.code}`,
    'Your bookmarks (this link signs you in once):',
    `${origin}/#code=${link.code}`,
    '',
  ];
  console.log(lines.join('\n'));
}

/** Starts the sweeps, the app and the worker that a role needs. `stack` closes them. */
async function start(
  context: Context,
  role: ServingRole,
  stack: AsyncDisposableStack,
): Promise<FastifyInstance> {
  const { config, coordination, log } = context;
  const stopSweeper = startSweeper(context, role !== 'api');
  stack.defer(stopSweeper);
  const app = role === 'worker' ? buildHealthApp(context) : await buildApp(context);
  // The app and the worker close at the same time, because open requests may wait for an import that the worker runs.
  const closeSteps: (() => Promise<unknown>)[] = [() => app.close()];
  stack.defer(async () => void (await Promise.all(closeSteps.map((closeStep) => closeStep()))));
  if (role !== 'api') {
    await coordination.imports.startWorker(config.importConcurrency);
    closeSteps.push(() => coordination.imports.stopWorker(WORKER_GRACE_MS));
  }
  await listen(app, config);
  // Until here, a signal ends the process immediately. From here on, a signal lets open requests finish.
  endOnSignal(context, stack);
  log.info({ role, origin: app.listeningOrigin }, LISTENING);
  log.flush();
  return app;
}

/**
 * The length of the queue for new connections. It is long because all clients reconnect at the same time after a
 * failover. Linux limits it to `net.core.somaxconn`.
 */
const LISTEN_BACKLOG = 16_384;

/** Listens on HOST and PORT. If the address cannot be used, rejects with a message that names these variables. */
async function listen(app: FastifyInstance, { host, port }: Config): Promise<void> {
  try {
    await app.listen({ host, port, backlog: LISTEN_BACKLOG });
  } catch (error) {
    throw listenError('HOST and PORT', `${host}:${port}`, error, 'HOST=127.0.0.1 PORT=3001');
  }
}

function buildHealthApp(
  context: Pick<Context, 'coordination' | 'databaseFaults' | 'lifecycle' | 'probe'>,
): FastifyInstance {
  const app = fastify();
  healthRoutes(app, context);
  return app;
}

/**
 * Ends the process gracefully at the first SIGTERM or SIGINT, and immediately at the second. An uncaught error also
 * ends the process gracefully, with exit code 1.
 */
function endOnSignal(context: Context, stack: AsyncDisposableStack): void {
  const { log, lifecycle } = context;
  const end = (code: number, drainMs: number, limitMs: number) => {
    // If the process is ending already, a second signal or an error ends it immediately.
    if (lifecycle.draining) process.exit(code === 0 ? INTERRUPTED : code);
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

/** Drains for `drainMs`, then closes everything. Resolves at most `limitMs` later, even if something is still open. */
async function close(
  { coordination, log }: Pick<Context, 'coordination' | 'log'>,
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
