import postgres from 'postgres';
import type { ServingRole } from '../../src/process/serve.ts';
import type { Database } from '../../src/store/driver/database.ts';
import { openDatabase } from '../../src/store/driver/open.ts';
import { nodesTemplate } from '../support/citus.ts';
import { makeFolder } from '../support/folders.ts';
import type { Balancer } from '../support/haproxy.ts';
import { findFreePort } from '../support/ports.ts';
import { type FaultyProxy, startProxy } from '../support/proxy.ts';
import type { ReplicaEnv } from '../support/replica.ts';
import { runDir } from '../support/run.ts';
import { createPrincipal, issueToken } from '../support/users.ts';
import { startBalancer } from './balancer.ts';
import { type DatabaseNodes, openDatabaseNodes } from './database-nodes.ts';
import type { Journal, Limits } from './journal.ts';
import { openRedisNodes, type RedisKind, type RedisNodes } from './redis-nodes.ts';
import { openProcess, type ServiceProcess } from './service-process.ts';

/**
 * The service as in a deployment: replicas behind a balancer, workers, the database, Redis, and proxies that cause
 * faults.
 */
export interface Fleet extends AsyncDisposable {
  readonly database: DatabaseNodes;
  readonly redis: RedisNodes;
  readonly balancer: Balancer;
  readonly processes: ServiceProcess[];
  /** By name: the proxies between the processes on one side and the balancer, Postgres and Redis on the other. */
  readonly proxies: Map<string, FaultyProxy>;
  /** Reads the database directly, not through the service. */
  readonly sql: postgres.Sql;
  /** Creates a user with API tokens of scope write. */
  user(tokens: number): Promise<{ id: number; tokens: string[] }>;
}

export interface FleetOptions {
  redis: RedisKind;
  limits: Limits;
  apis: number;
  workers: number;
  syncWaitSeconds: number;
  /** The url of a cluster's coordinator. If set, the fleet uses the cluster instead of a single Postgres. */
  citusUrl?: string | undefined;
  /** Called with each chunk that a process sends to Redis, before Redis gets it. */
  onRedisRequest?: ((chunk: Buffer) => void) | undefined;
}

/** Starts all processes. Resolves when every process responds. */
export async function openFleet(options: FleetOptions, journal: Journal): Promise<Fleet> {
  await using opened = new AsyncDisposableStack();
  const database = opened.use(await openDatabaseNodes(options.citusUrl));
  const [url] = database.urls as [string];
  const redis = opened.use(await openRedisNodes(options.redis));
  const proxies = new Map<string, FaultyProxy>();
  opened.defer(async () => {
    for (const proxy of proxies.values()) await proxy.close();
  });
  const processes = opened.use(new Processes());
  const folder = makeFolder('fleet', runDir());
  const starts = [];
  for (const [n, role] of listRoles(options).entries()) {
    const name = `${role}-${n + 1}`;
    const process = await connectProcess(
      name,
      database.urls[n % database.urls.length]!,
      redis,
      proxies,
      options,
    );
    // On a cluster, half of the processes send each statement to the node with the user's rows. Each of the other
    // processes sends all its statements to a single node.
    const isPlaced = options.citusUrl !== undefined && n % 2 === 0;
    const env = { ...process, ...(isPlaced && { DATABASE_NODES: nodesTemplate(url) }) };
    const [port, metricsPort] = [await findFreePort(), await findFreePort()];
    starts.push(openProcess({ name, role, port, metricsPort, env, folder }, journal));
  }
  processes.all.push(...(await Promise.all(starts)));
  const backends = [];
  for (const { name, port, role } of processes.all) {
    if (role === 'worker') continue;
    const proxy = await startProxy(`http://127.0.0.1:${port}`);
    proxies.set(`balancer to ${name}`, proxy);
    backends.push({ name, port: proxy.port });
  }
  const balancer = opened.use(await startBalancer(backends));
  const sql = postgres(url, { max: 3, onnotice: () => {}, backoff: () => 0.1 });
  opened.defer(() => sql.end({ timeout: 0 }));
  const store = await openDatabase({ url, max: 1, application: 'chaos' });
  opened.defer(() => store.close(0));
  const closing = opened.move();
  return {
    database,
    redis,
    balancer,
    processes: processes.all,
    proxies,
    sql,
    user: (tokens) => createWithTokens(store, tokens),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

const listRoles = ({ apis, workers }: FleetOptions): ServingRole[] => [
  ...new Array<'api'>(apis).fill('api'),
  ...new Array<'worker'>(workers).fill('worker'),
];

class Processes implements AsyncDisposable {
  readonly all: ServiceProcess[] = [];

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.all.filter(({ isUp }) => isUp).map((each) => each.end('SIGKILL')));
  }
}

async function connectProcess(
  name: string,
  databaseUrl: string,
  redis: RedisNodes,
  proxies: Map<string, FaultyProxy>,
  { limits, syncWaitSeconds, onRedisRequest }: FleetOptions,
): Promise<ReplicaEnv> {
  const toPostgres = await startProxy(databaseUrl);
  const toRedis = await redis.connect();
  proxies.set(`${name} to postgres`, toPostgres);
  if (toRedis.proxy !== undefined) {
    toRedis.proxy.onRequest = onRedisRequest;
    proxies.set(`${name} to redis`, toRedis.proxy);
  }
  return {
    DATABASE_URL: Object.assign(new URL(databaseUrl), { port: String(toPostgres.port) }).href,
    ...toRedis.env,
    RATE_LIMIT_REQUESTS: limits.requests,
    RATE_LIMIT_WINDOW_SECONDS: limits.windowMs / 1_000,
    FREE_BOOKMARK_LIMIT: limits.bookmarks,
    SYNC_WAIT_SECONDS: syncWaitSeconds,
    IMPORT_INLINE_BYTES: 2_000,
    DRAIN_SECONDS: 1,
  };
}

async function createWithTokens(
  database: Database,
  count: number,
): Promise<{ id: number; tokens: string[] }> {
  const { id, token } = await createPrincipal(database);
  const tokens = [token];
  while (tokens.length < count) tokens.push(await issueToken(database, id, 'write'));
  return { id, tokens };
}
