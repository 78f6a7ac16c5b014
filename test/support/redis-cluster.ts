import { setTimeout as sleep } from 'node:timers/promises';
import { Redis, type RedisOptions } from 'ioredis';
import { findFreePort } from './ports.ts';
import { type RedisServer, startRedis } from './redis.ts';
import { certificate, privateKey } from './tls/localhost.ts';

/** The options of a cluster. */
export interface ClusterOptions {
  masters?: number;
  /**
   * Whether each master has a replica. The replica takes the master's place if the master does not respond for two
   * seconds.
   */
  withReplicas?: boolean;
  password?: string;
  /** Whether the nodes use only TLS. If so, they announce a host name: their certificate contains no address. */
  tls?: boolean;
}

/** A node of a cluster. `url` includes the credentials. */
export interface ClusterNode extends RedisServer {
  readonly port: number;
  readonly busPort: number;
}

export interface TestCluster extends AsyncDisposable {
  /** The initial masters, then their replicas in the same order. */
  readonly nodes: readonly ClusterNode[];
  /** The certificate authority in PEM, if TLS is used. */
  readonly ca: string | undefined;
  /** Connects to one node. The caller closes the connection. */
  connect(node: ClusterNode): Redis;
}

const SLOTS = 16_384;

/** How long a node may be silent before the others consider it lost. */
const NODE_TIMEOUT_MS = 2_000;

/** Starts a cluster. Resolves when every node knows all others. */
export async function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  const { masters = 3, withReplicas = false, tls = false } = options;
  const count = withReplicas ? 2 * masters : masters;
  const nodes = await Promise.all(Array.from({ length: count }, () => startNode(options)));
  const connection: RedisOptions = { commandTimeout: 2_000, ...(tls && { tls: { ca: certificate } }) };
  const connect = (node: ClusterNode) =>
    new Redis(node.url, { replyMapping: 'legacy', ...connection } as never).on('error', () => {});
  const admins = nodes.map(connect);
  await formCluster(nodes, admins, masters);
  for (const admin of admins) admin.disconnect();
  return {
    nodes,
    ca: tls ? certificate : undefined,
    connect,
    async [Symbol.asyncDispose]() {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

async function startNode({ password, tls = false }: ClusterOptions): Promise<ClusterNode> {
  const [port, busPort] = [await findFreePort(), await findFreePort()];
  const args = ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'];
  args.push('--cluster-port', String(busPort), '--cluster-node-timeout', String(NODE_TIMEOUT_MS));
  args.push('--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0');
  if (password !== undefined) args.push('--requirepass', password, '--masterauth', password);
  if (tls) {
    args.push(
      '--tls-port',
      String(port),
      '--tls-auth-clients',
      'no',
      '--tls-ca-cert-file',
      'certificate.pem',
    );
    args.push('--tls-cert-file', 'certificate.pem', '--tls-key-file', 'key.pem');
    args.push('--tls-cluster', 'yes', '--tls-replication', 'yes');
    args.push('--cluster-announce-hostname', 'localhost', '--cluster-preferred-endpoint-type', 'hostname');
  }
  const files = { 'certificate.pem': certificate, 'key.pem': privateKey };
  const server = await startRedis({ port: tls ? 0 : port, args, ...(tls && { files }) });
  const credentials = password === undefined ? '' : `:${encodeURIComponent(password)}@`;
  const url = tls ? `rediss://${credentials}localhost:${port}` : `redis://${credentials}127.0.0.1:${port}`;
  return { ...server, port, busPort, url };
}

/** Divides the slots among the masters, introduces the nodes to each other, and gives each master its replica. */
async function formCluster(
  nodes: readonly ClusterNode[],
  admins: readonly Redis[],
  masters: number,
): Promise<void> {
  const first = nodes[0]!;
  for (const [n, admin] of admins.entries()) {
    const firstSlotOf = (master: number) => Math.floor((master * SLOTS) / masters);
    if (n < masters) await admin.cluster('ADDSLOTSRANGE', firstSlotOf(n), firstSlotOf(n + 1) - 1);
    await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', String(n + 1));
    if (n > 0) await admin.call('CLUSTER', 'MEET', '127.0.0.1', String(first.port), String(first.busPort));
  }
  const ids = await Promise.all(admins.map((admin) => admin.call('CLUSTER', 'MYID')));
  for (const [n, admin] of admins.entries()) {
    const master = n < masters ? undefined : String(ids[n - masters]);
    // The node refuses this command until it knows its master.
    while (master !== undefined && !(await tryCall(admin, 'CLUSTER', 'REPLICATE', master))) await sleep(20);
  }
  for (const admin of admins) while (!(await isWhole(admin, nodes.length, masters))) await sleep(20);
}

const tryCall = (admin: Redis, command: string, ...args: string[]): Promise<boolean> =>
  admin.call(command, ...args).then(
    () => true,
    () => false,
  );

/** Returns whether a node knows all other nodes. A replica must also follow its master. */
async function isWhole(admin: Redis, count: number, masters: number): Promise<boolean> {
  const facts = String(await admin.cluster('INFO'));
  if (!facts.includes('cluster_state:ok') || !facts.includes(`cluster_known_nodes:${count}`)) return false;
  const list = String(await admin.cluster('NODES'));
  if (list.split('\n').filter((line) => line.includes('slave')).length !== count - masters) return false;
  const replication = String(await admin.info('replication'));
  return !replication.includes('role:slave') || replication.includes('master_link_status:up');
}

/**
 * Makes a replica take the place of its running master. The old master becomes the replica of the new one, and no
 * connection ends. Does nothing if `replica` is already a master. Resolves after `limitMs` at the latest.
 */
export async function failOver(
  cluster: TestCluster,
  replica: ClusterNode,
  limitMs = Number.POSITIVE_INFINITY,
): Promise<void> {
  const admin = cluster.connect(replica);
  const untilMs = performance.now() + limitMs;
  try {
    const isMaster = async () => String(await admin.info('replication')).includes('role:master');
    if (await isMaster()) return;
    await admin.call('CLUSTER', 'FAILOVER');
    while (performance.now() < untilMs && !(await isMaster())) await sleep(20);
  } finally {
    admin.disconnect();
  }
}
