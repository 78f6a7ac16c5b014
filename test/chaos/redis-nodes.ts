import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { findFreePort } from '../support/ports.ts';
import { type FaultyProxy, startProxy } from '../support/proxy.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

/** One Redis, or a cluster of three, each to be hurt. */
export interface RedisNodes extends AsyncDisposable {
  nodes: RedisServer[];
  /** `REDIS_URL` of a process, and what stands between, where anything can. */
  connect(): Promise<{ url: string; proxy: FaultyProxy | undefined }>;
}

/** Starts a Redis alone; each process reaches it through a proxy of its own. */
export async function openSingle(): Promise<RedisNodes> {
  const server = await startRedis();
  const proxies: FaultyProxy[] = [];
  return {
    nodes: [server],
    async connect() {
      const proxy = await startProxy(server.url);
      proxies.push(proxy);
      return { url: `redis://127.0.0.1:${proxy.port}`, proxy };
    },
    async [Symbol.asyncDispose]() {
      for (const proxy of proxies) await proxy.close();
      await server.stop();
    },
  };
}

/** Starts a cluster of three masters. It tells clients its nodes' own addresses, so nothing stands between. */
export async function openCluster(): Promise<RedisNodes> {
  const nodes = await Promise.all(Array.from({ length: 3 }, startNode));
  await joinNodes(nodes);
  const url = nodes.map((node) => node.url).join(',');
  return {
    nodes,
    connect: async () => ({ url, proxy: undefined }),
    async [Symbol.asyncDispose]() {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

interface ClusterNode extends RedisServer {
  busPort: number;
}

async function startNode(): Promise<ClusterNode> {
  const busPort = await findFreePort();
  const args = ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'];
  args.push('--cluster-port', String(busPort), '--cluster-node-timeout', '2000');
  return Object.assign(await startRedis({ args }), { busPort });
}

const SLOTS = 16_384;

async function joinNodes(nodes: readonly ClusterNode[]): Promise<void> {
  const admins = nodes.map(({ url }) => new Redis(url));
  const first = nodes[0]!;
  for (const [n, admin] of admins.entries()) {
    const [from, to] = [n, n + 1].map((each) => Math.floor((each * SLOTS) / nodes.length));
    await admin.cluster('ADDSLOTSRANGE', from!, to! - 1);
    await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', String(n + 1));
    if (n > 0) await admin.call('CLUSTER', 'MEET', '127.0.0.1', String(first.port), String(first.busPort));
  }
  for (const admin of admins) while (!(await isWhole(admin, nodes.length))) await sleep(20);
  for (const admin of admins) admin.disconnect();
}

async function isWhole(admin: Redis, count: number): Promise<boolean> {
  const facts = String(await admin.cluster('INFO'));
  return facts.includes('cluster_state:ok') && facts.includes(`cluster_known_nodes:${count}`);
}
