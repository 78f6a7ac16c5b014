import { Cluster, Redis, type RedisOptions, ReplyError } from 'ioredis';
import type { RedisAccess } from './port.ts';
import { readAccess } from './redis-address.ts';
import { backOff, chooseServer, untilReady } from './redis-calls.ts';
import { SentinelWatch } from './redis-sentinels.ts';

/** One connection to one server, or the client of a cluster. */
export type RedisClient = Redis | Cluster;

/** The client's types accept a url only with options that leave out `replyMapping`. */
type ConnectionOptions = Omit<RedisOptions, 'replyMapping'>;

/**
 * Commands fail at once instead of waiting for a connection, because every caller has a fallback. A server that does
 * not respond for a second counts as lost. A connection never reconnects by itself. Instead the link opens a new
 * connection and asks the server again whether it is a master.
 */
const FAIL_FAST: ConnectionOptions = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 1_000,
  socketTimeout: 1_000,
  keepAlive: 10_000,
  retryStrategy: () => null,
  enableReadyCheck: false,
  disableClientInfo: true,
  autoResubscribe: false,
};

/** For the queue's blocking call: Redis may be silent for a long time, and the connection reconnects by itself. */
const BLOCKING: ConnectionOptions = {
  ...FAIL_FAST,
  enableOfflineQueue: true,
  maxRetriesPerRequest: null,
  socketTimeout: undefined,
  retryStrategy: (attempt) => backOff(attempt - 1, 100, 500),
};

/** Opens connections to Redis. */
export class RedisOpener {
  readonly #access: RedisAccess;
  readonly #onReplyError: (error: Error) => void;
  readonly #sentinels: SentinelWatch | undefined;

  /** `onReplyError` receives every error reply, including those to commands of BullMQ. */
  constructor(access: RedisAccess, onReplyError: (error: Error) => void) {
    this.#access = access;
    this.#onReplyError = onReplyError;
    const { address, sentinelPassword } = access;
    if (address.kind !== 'sentinels') return;
    const password = sentinelPassword !== undefined && { password: sentinelPassword };
    const options = { ...FAIL_FAST, ...(address.tls && this.#tls), ...password };
    this.#sentinels = new SentinelWatch(address, (sentinel) => new Redis({ ...options, ...sentinel }));
  }

  /**
   * Connects for commands, to a master or to a cluster. It asks the server which of the two it is. Rejects if the
   * connection fails or leads to a Redis replica. The next attempt then uses the next url.
   */
  async openClient(attempt: number): Promise<RedisClient> {
    const redis = await untilReady(await this.#openServer(attempt));
    const { mode, role } = await askServer(redis);
    if (mode !== 'cluster' && role === 'master') return redis;
    redis.disconnect();
    if (mode !== 'cluster') throw new Error('is a Redis replica');
    return untilReady(this.#openCluster());
  }

  /**
   * Opens a connection for a subscription, to the client's server. In a cluster it connects to only one node, because
   * every node receives every message. The connection does not reconnect by itself.
   */
  openSubscriber(client: RedisClient, attempt: number): Redis {
    if (client instanceof Redis) return client.duplicate();
    return chooseServer(client.nodes(), attempt).duplicate({ ...FAIL_FAST, lazyConnect: false });
  }

  /** Whether Sentinels say that another server is the master now. */
  async hasMoved(client: RedisClient): Promise<boolean> {
    if (this.#sentinels === undefined || !(client instanceof Redis)) return false;
    const master = await this.#sentinels.findMaster().catch(() => undefined);
    return (
      master !== undefined && (master.host !== client.options.host || master.port !== client.options.port)
    );
  }

  end(): void {
    this.#sentinels?.end();
  }

  async #openServer(attempt: number): Promise<Redis> {
    const common = { ...FAIL_FAST, ...this.#reportReplyErrors };
    if (this.#sentinels === undefined) {
      const url = chooseServer(this.#urls, attempt);
      return new Redis(url, { ...common, ...(readAccess(url).tls && this.#tls) });
    }
    const { username, password, db, tls } = this.#sentinels.address;
    const master = await this.#sentinels.findMaster();
    const credentials = { ...(username && { username }), ...(password && { password }) };
    return new Redis({ ...common, ...master, ...credentials, db, ...(tls && this.#tls) });
  }

  /**
   * A client that knows all nodes of the cluster. It starts with the nodes in the urls and uses their credentials for
   * all nodes.
   */
  #openCluster(): Cluster {
    const { tls, ...credentials } = readAccess(chooseServer(this.#urls, 0));
    const cluster = new Cluster([...this.#urls], {
      // Keep host names: a certificate names its server by host name, not by address.
      dnsLookup: (host, callback) => callback(null, host),
      clusterRetryStrategy: () => null,
      enableOfflineQueue: false,
      retryDelayOnFailover: 50,
      retryDelayOnClusterDown: 50,
      slotsRefreshTimeout: 1_000,
      slotsRefreshInterval: 5_000,
      redisOptions: { ...FAIL_FAST, ...credentials, ...(tls && this.#tls), ...this.#reportReplyErrors },
    });
    return guardAsking(cluster);
  }

  /** The urls of servers; empty if Sentinels know the server. */
  get #urls(): readonly string[] {
    const { address } = this.#access;
    return address.kind === 'servers' ? address.urls : [];
  }

  get #tls(): ConnectionOptions {
    const { ca } = this.#access;
    return { tls: ca === undefined ? {} : { ca } };
  }

  /** ioredis calls `reconnectOnError` for every error reply, whichever library sent the command. */
  get #reportReplyErrors(): ConnectionOptions {
    return {
      reconnectOnError: (error) => {
        this.#onReplyError(error);
        return false;
      },
    };
  }
}

/** A connection like the client's, for blocking calls. It reconnects by itself while the client's server is known. */
export function duplicateForBlocking(client: RedisClient): RedisClient {
  const duplicate =
    client instanceof Redis
      ? client.duplicate(BLOCKING)
      : guardAsking(client.duplicate([], { redisOptions: BLOCKING, enableOfflineQueue: true }));
  duplicate.on('error', () => {});
  return duplicate;
}

/**
 * The cluster client does not handle the promise of ASKING. If the connection is lost, its rejection would end the
 * process.
 */
function guardAsking(cluster: Cluster): Cluster {
  return cluster.on('+node', (node: Redis) => {
    const asking = node.asking.bind(node);
    node.asking = () => {
      const asked = asking();
      asked.catch(() => {});
      return asked;
    };
  });
}

/**
 * Asks the server for its mode and role. A server that refuses the question counts as a single master. Rejects if the
 * connection ends first.
 */
async function askServer(redis: Redis): Promise<{ mode: string; role: string }> {
  const reply = await redis.call('HELLO').catch((error: unknown) => {
    if (error instanceof ReplyError) return [];
    throw error;
  });
  const facts = new Map<unknown, unknown>();
  for (let i = 0; Array.isArray(reply) && i + 1 < reply.length; i += 2) facts.set(reply[i], reply[i + 1]);
  return { mode: String(facts.get('mode') ?? 'standalone'), role: String(facts.get('role') ?? 'master') };
}

/**
 * Makes the client write all commands of this turn of the event loop together, because a write is the largest cost of a
 * command, here and in Redis. Does nothing for a cluster, whose client writes each command separately.
 */
export function writeTogether(client: RedisClient): void {
  if (!(client instanceof Redis)) return;
  const { stream } = client;
  if (!stream || stream.writableCorked > 0) return;
  stream.cork();
  setImmediate(() => stream.uncork());
}
