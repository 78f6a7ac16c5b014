import { type FaultyProxy, startProxy } from '../support/proxy.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { failOver, startCluster } from '../support/redis-cluster.ts';
import type { ReplicaEnv } from '../support/replica.ts';
import type { Random } from './random.ts';

/** The kinds of Redis that docs/scaling.md recommends. */
export const REDIS_KINDS = ['single', 'cluster'] as const;
export type RedisKind = (typeof REDIS_KINDS)[number];

/** The Redis of a run: one node or several. */
export interface RedisNodes extends AsyncDisposable {
  nodes: readonly RedisServer[];
  /**
   * Returns the environment variables with which a process connects to Redis. Also returns the proxy between the
   * process and Redis, if there can be one.
   */
  connect(): Promise<{ env: ReplicaEnv; proxy: FaultyProxy | undefined }>;
  /** Promotes a replica without closing connections. Undefined if this kind of Redis cannot do that within seconds. */
  failOver: ((draw: Random) => Promise<void>) | undefined;
}

/**
 * A failover that takes longer than this is abandoned. In that case, a node that it needs is probably killed or frozen.
 */
const FAILOVER_LIMIT_MS = 6_000;

/** Starts the nodes of this kind. Resolves when they know each other. */
export const openRedisNodes = (kind: RedisKind): Promise<RedisNodes> =>
  kind === 'single' ? openSingle() : openCluster();

/** Starts one Redis. Each process connects to it through a proxy of its own. */
async function openSingle(): Promise<RedisNodes> {
  const server = await startRedis();
  const proxies: FaultyProxy[] = [];
  return {
    nodes: [server],
    async connect() {
      const proxy = await startProxy(server.url);
      proxies.push(proxy);
      return { env: { REDIS_URL: `redis://127.0.0.1:${proxy.port}` }, proxy };
    },
    failOver: undefined,
    async [Symbol.asyncDispose]() {
      for (const proxy of proxies) await proxy.close();
      await server.stop();
    },
  };
}

/**
 * Starts three masters and their replicas. A cluster tells clients its nodes' own addresses, so there can be no proxy.
 */
async function openCluster(): Promise<RedisNodes> {
  const cluster = await startCluster({ withReplicas: true });
  const env = { REDIS_URL: cluster.nodes.map(({ url }) => url).join(',') };
  return {
    nodes: cluster.nodes,
    connect: async () => ({ env, proxy: undefined }),
    failOver: (draw) => failOver(cluster, draw.pick(cluster.nodes), FAILOVER_LIMIT_MS),
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}
