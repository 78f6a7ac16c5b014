import { type Config, ConfigError } from './config.ts';
import { openCoordination } from './coordination/open.ts';
import type { Coordination, RedisAccess } from './coordination/port.ts';
import { unavailable } from './domain/errors.ts';
import { systemCodeOf } from './domain/thrown.ts';
import { HeldBytes, OutboundBacklog } from './flow/held-bytes.ts';
import { Overload } from './flow/overload.ts';
import { Semaphore } from './flow/semaphore.ts';
import { KnownPrincipals } from './http/known-principals.ts';
import { Preparers } from './imports/preparers.ts';
import { runImport } from './imports/run.ts';
import type { Logger } from './observability/log.ts';
import { Metrics, serveMetrics } from './observability/metrics.ts';
import { openTracing, traceCoordination, traceDatabase } from './observability/tracing.ts';
import { Provider } from './sign-in/provider.ts';
import type { Page } from './store/bookmarks.ts';
import type { ChangesPage, ChangesStart } from './store/changes.ts';
import type { Database } from './store/driver/database.ts';
import { DatabaseFaults } from './store/driver/database-faults.ts';
import type { DatabaseUnavailable } from './store/driver/errors.ts';
import type { DatabaseOptions } from './store/driver/open.ts';
import { openPlaced } from './store/driver/placed-database.ts';
import { type DatabaseProbe, openProbe } from './store/driver/probe.ts';
import { LastUses } from './store/last-uses.ts';
import { CHANGES_PAGES, PageReader, SYNC_PAGES } from './store/page-reads.ts';

/** Everything that the routes and jobs of a process share. */
export interface Context {
  readonly config: Config;
  readonly log: Logger;
  readonly database: Database;
  /** A separate connection pool for imports and for the deletion of accounts. Their statements may take minutes. */
  readonly importDatabase: Database;
  readonly coordination: Coordination;
  /** Checks whether the database responds. The probe has its own connection, so it does not wait behind requests. */
  readonly probe: DatabaseProbe;
  /** Recent faults of the database. The probe can miss them, because its own statement may still succeed. */
  readonly databaseFaults: DatabaseFaults;
  readonly principals: KnownPrincipals;
  /** Collects when tokens were last used. The sweeper writes these times to Postgres. */
  readonly lastUses: LastUses;
  readonly pageReader: PageReader<number, Page>;
  readonly changesReader: PageReader<ChangesStart, ChangesPage>;
  readonly metrics: Metrics;
  readonly outboundBacklog: OutboundBacklog;
  /** Bytes of request bodies that are being received or handled. */
  readonly received: HeldBytes;
  /** Refuses requests while the replica is overloaded. */
  readonly overload: Overload;
  /** Limits how many requests of one user run at a time. The key is the user's id. */
  readonly requestPermits: Semaphore<number>;
  /** Lets one digest of a user's bookmarks run at a time. The key is the user's id. */
  readonly digestPermits: Semaphore<number>;
  /** Lets one batch of a user's writes run at a time. The key is the user's id. */
  readonly batchPermits: Semaphore<number>;
  /**
   * Limits lookups of tokens for client addresses that have used up their budget of failures. One lookup of each
   * address runs at a time. Up to 100 other lookups of that address wait, each for at most one second.
   */
  readonly lookUpPermits: Semaphore<string>;
  /** Limits how many imports of one user write at a time. The key is the user's id. */
  readonly importPermits: Semaphore<number>;
  /** Parses and checks the bodies of imports. */
  readonly preparers: Preparers;
  /** The OpenID provider through which people sign in. Undefined if none is configured. */
  readonly provider: Provider | undefined;
  /**
   * The public origin; undefined if the service has no pages. Without `PUBLIC_URL`, the origin is unknown until the
   * service listens.
   */
  readonly site: {
    origin: string | undefined;
    /** If `PUBLIC_URL` is not set: the same origin, but with the name `localhost`. Passkeys need a host name. */
    namedOrigin?: string | undefined;
  };
  /** `draining` becomes true when the process begins to end, and stays true. */
  readonly lifecycle: { draining: boolean };
  /** Closes everything in this object, in the reverse of the order in which `openContext` opened it. */
  close(): Promise<void>;
}

/** The maximum number of long polls of one token that a replica holds (docs/contract.md, decision 16). */
const HELD_POLLS_PER_TOKEN = 16;

/**
 * The most response bytes that one user's clients may leave unread. The limit has room for eight of the largest pages.
 */
const UNSENT_BYTES_PER_USER = 8 * 1_048_576;

/**
 * Limits of the request bodies that a replica holds. One user's limit has room for 16 imports of 1 MiB. The limit of
 * the process is an eighth of a pod's memory.
 */
const RECEIVED_BYTES = { userBytes: 16 * 1_048_576, processBytes: 256 * 1_048_576 };

/** How long a request waits for a permit of its user. `OPERATION_DEADLINE_MS` begins after this wait. */
const PERMIT_WAIT_MS = 3_000;

/**
 * The number of connections that short reads share. Postgres runs the statements of a connection one after another, so
 * two connections can use two cores of Postgres.
 */
const SHARED_CONNECTIONS = 2;

/**
 * Returns how many connections short reads share. That is `SHARED_CONNECTIONS`, but 0 if `SHARED_CONNECTIONS` is more
 * than a third of the pool or statements are not prepared. So at least two thirds of the pool are not shared. One user
 * cannot take all unshared connections, because one user has permits for only half of the pool.
 */
const countShared = ({ databasePoolSize, databasePrepare }: Config): number =>
  databasePrepare && databasePoolSize >= 3 * SHARED_CONNECTIONS ? SHARED_CONNECTIONS : 0;

/**
 * Creates a semaphore that gives each user half as many permits as the pool has connections, so that no user takes all
 * connections. A request may keep its connection for seconds, for example a slow search, or a write that waits for an
 * import of the same user.
 */
const createUserPermits = (connections: number, waitMs: number) =>
  createPermits(Math.max(1, Math.floor(connections / 2)), waitMs);

const createPermits = (permits: number, waitMs: number) =>
  new Semaphore<number>({
    permits,
    waitMs,
    refusalError: () => unavailable('too many requests of this account are in progress', 1),
  });

/** How long a statement may take, including its wait for a connection. Statements of imports have a longer limit. */
const OPERATION_DEADLINE_MS = 7_000;

/**
 * Opens the context of a process. `databaseUrl` is the url of the configured database or of the embedded Postgres.
 * `role` names the process in traces. If a step fails, this function closes what is already open, and rejects.
 */
export async function openContext(
  config: Config,
  log: Logger,
  databaseUrl: string,
  role = 'all',
): Promise<Context> {
  await using opened = new AsyncDisposableStack();
  const metrics = new Metrics();
  const { otlpEndpoint, traceRatio: ratio, traceResource: resource } = config;
  if (otlpEndpoint !== undefined)
    opened.defer(await openTracing({ endpoint: otlpEndpoint, ratio, role, resource }));

  const databaseFaults = new DatabaseFaults(log);
  const openPool = async (pool: 'api' | 'import', options: Partial<DatabaseOptions>) => {
    const onWaited = (seconds: number) => metrics.waitedForConnection(pool, seconds);
    const onDefect = (sqlState: string) => metrics.databaseFailed(sqlState);
    const onUnavailable = (failure: DatabaseUnavailable) => {
      metrics.databaseUnavailable(failure.reason);
      databaseFaults.note(failure);
    };
    const poolOptions = {
      url: databaseUrl,
      log,
      prepare: config.databasePrepare,
      onWaited,
      onDefect,
      onUnavailable,
      ...options,
    };
    const database = await openPlaced(poolOptions, pool === 'api' ? config.databaseNodes : undefined);
    opened.defer(() => database.close());
    return otlpEndpoint === undefined ? database : traceDatabase(database);
  };
  const size = { max: config.databasePoolSize, shared: countShared(config) };
  const database = await openPool('api', { ...size, deadlineMs: OPERATION_DEADLINE_MS });
  const importDatabase = await openPool('import', importPoolOptions(config));

  const probe = await openProbe({ url: databaseUrl, prepare: config.databasePrepare });
  opened.defer(() => probe.close());

  // An import needs the whole context, so one that the queue passes on earlier waits for it.
  const completed = Promise.withResolvers<Context>();
  const untraced = await openCoordination(coordinationOptions(config), {
    log,
    runImport: async (id, stop) => runImport(await completed.promise, id, stop),
  });
  opened.defer(() => untraced.close());
  const coordination = otlpEndpoint === undefined ? untraced : traceCoordination(untraced);

  const outboundBacklog = new OutboundBacklog({
    processBytes: config.maxOutboundBacklog,
    userBytes: UNSENT_BYTES_PER_USER,
  });
  const preparers = new Preparers();
  opened.defer(() => preparers.close());
  const received = new HeldBytes(RECEIVED_BYTES);
  const overload = new Overload({
    limits: { eventLoopMs: config.overloadEventLoopMs, poolWaitMs: config.overloadPoolWaitMs },
    pool: database,
    outboundBacklog,
    received,
    onRefused: metrics.overloaded,
  });
  opened.defer(() => overload.close());
  const requestPermits = createUserPermits(config.databasePoolSize, PERMIT_WAIT_MS);
  const closedWithContext = new AsyncDisposableStack();
  const context: Context = {
    config,
    log,
    database,
    importDatabase,
    coordination,
    probe,
    databaseFaults,
    metrics,
    principals: new KnownPrincipals(),
    lastUses: new LastUses(),
    pageReader: new PageReader(database, SYNC_PAGES, requestPermits, OPERATION_DEADLINE_MS),
    changesReader: new PageReader(database, CHANGES_PAGES, requestPermits, OPERATION_DEADLINE_MS),
    outboundBacklog,
    received,
    overload,
    requestPermits,
    digestPermits: createPermits(1, PERMIT_WAIT_MS),
    batchPermits: createPermits(1, PERMIT_WAIT_MS),
    lookUpPermits: new Semaphore<string>({ permits: 1, maxWaiting: 100, waitMs: 1_000 }),
    preparers,
    importPermits: createUserPermits(config.databaseImportPoolSize, config.importWaitSeconds * 1_000),
    provider: config.signIn.provider && new Provider(config.signIn.provider),
    site: { origin: config.publicUrl },
    lifecycle: { draining: false },
    close: () => closedWithContext.disposeAsync(),
  };
  if (config.metricsPort !== undefined) {
    const { maxWaiters, maxOutboundBacklog } = config;
    const limits = { maxWaiters, maxOutboundBacklog };
    metrics.watch({ database, importDatabase, probe, coordination, outboundBacklog, ...limits });
    const server = await listenForMetrics(metrics, config.host, config.metricsPort);
    opened.defer(() => void server.close());
  }
  // No step has failed. From here on, only `context.close` closes what was opened.
  closedWithContext.use(opened.move());
  completed.resolve(context);
  return context;
}

/** Serves metrics for Prometheus. Rejects with a message that names METRICS_PORT if the port cannot be used. */
async function listenForMetrics({ registry }: Metrics, host: string, port: number) {
  try {
    return await serveMetrics(registry, host, port);
  } catch (error) {
    throw listenError('METRICS_PORT', `${host}:${port}`, error, 'METRICS_PORT=9464');
  }
}

/** Returns the error for an address on which the process cannot listen. The error names the address's variables. */
export const listenError = (variables: string, address: string, cause: unknown, example: string) =>
  new ConfigError(
    `${variables}: cannot listen on ${address} (${systemCodeOf(cause)}); for example ${example}`,
  );

/**
 * Returns the options of the import pool. All time limits of the pool equal the time that a request may wait for its
 * import.
 */
function importPoolOptions(config: Config): Partial<DatabaseOptions> {
  const longestMs = config.importWaitSeconds * 1_000;
  return {
    ...(config.databaseImportUrl && { url: config.databaseImportUrl }),
    application: 'bookmark-service import',
    max: config.databaseImportPoolSize,
    deadlineMs: longestMs,
    waitMs: longestMs,
    statementTimeoutMs: longestMs,
    lockTimeoutMs: longestMs,
  };
}

/** Returns how to reach Redis; undefined if no Redis is configured. */
export const redisAccess = (config: Config): RedisAccess | undefined =>
  config.redisAddress && {
    address: config.redisAddress,
    ca: config.redisCa,
    sentinelPassword: config.redisSentinelPassword,
    prefix: config.redisPrefix,
  };

const coordinationOptions = (config: Config) => ({
  redis: redisAccess(config),
  windowSeconds: config.rateLimitWindowSeconds,
  maxHeld: config.maxWaiters,
  maxHeldPerHolder: HELD_POLLS_PER_TOKEN,
});
