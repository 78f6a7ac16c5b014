import { Cluster, Redis, type RedisOptions, ReplyError } from 'ioredis';
import type { RedisAccess } from './port.ts';
import { readAccess } from './redis-address.ts';
import { backOff, untilReady } from './redis-calls.ts';
import { SentinelWatch } from './redis-sentinels.ts';

/** One connection to one server, or the client of a cluster. */
export type RedisClient = Redis | Cluster;

/** The client's types take a url only beside options whose reply mapping is not open. */
type ConnectionOptions = Omit<RedisOptions, 'replyMapping'>;

/**
 * Commands fail instead of waiting for a connection: the caller has another way. A server that does not respond for a
 * second is given up. A connection that ended stays so: who opened it opens the next one, and asks anew what is there.
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

/** For the queue's blocking call: Redis may be silent for long, and the connection comes back by itself. */
const BLOCKING: ConnectionOptions = {
  ...FAIL_FAST,
  enableOfflineQueue: true,
  maxRetriesPerRequest: null,
  socketTimeout: undefined,
  retryStrategy: (attempt) => backOff(attempt - 1, 100, 500),
};

/** Opens connections to where Redis is. */
export class RedisOpener {
  readonly #access: RedisAccess;
  readonly #onReplyError: (error: Error) => void;
  readonly #sentinels: SentinelWatch | undefined;

  /** `onReplyError` takes the errors that servers reply with, whatever library's command they are the reply to. */
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
   * Connects for commands, to a master or to a cluster: the server itself says which it is. Rejects where it cannot,
   * and for a Redis replica; the next attempt then goes to the next url.
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
   * A connection of its own for a subscription, to where the client is: of a cluster to one node, for every node hears
   * every message. It does not come back by itself.
   */
  openSubscriber(client: RedisClient, attempt: number): Redis {
    if (client instanceof Redis) return client.duplicate();
    const nodes = client.nodes();
    return nodes[attempt % nodes.length]!.duplicate({ ...FAIL_FAST, lazyConnect: false });
  }

  /** Whether Sentinels say that the master is elsewhere now. */
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
    const { address } = this.#access;
    const common = { ...FAIL_FAST, ...this.#reportReplyErrors };
    if (address.kind === 'servers') {
      const url = address.urls[attempt % address.urls.length]!;
      return new Redis(url, { ...common, ...(readAccess(url).tls && this.#tls) });
    }
    const { username, password, db, tls } = address;
    const master = await this.#sentinels!.findMaster();
    const credentials = { ...(username && { username }), ...(password && { password }) };
    return new Redis({ ...common, ...master, ...credentials, db, ...(tls && this.#tls) });
  }

  /** A client that knows all nodes of the cluster, beginning with those of the urls, whose credentials are the nodes'. */
  #openCluster(): Cluster {
    const { address } = this.#access;
    const urls = address.kind === 'servers' ? address.urls : [];
    const { tls, ...credentials } = readAccess(urls[0]!);
    const cluster = new Cluster([...urls], {
      // Names stay names: a certificate knows its server by name, not by address.
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

  get #tls(): ConnectionOptions {
    const { ca } = this.#access;
    return { tls: ca === undefined ? {} : { ca } };
  }

  /** The client asks of every error reply whether to reconnect: the one place that sees those of all libraries. */
  get #reportReplyErrors(): ConnectionOptions {
    return {
      reconnectOnError: (error) => {
        this.#onReplyError(error);
        return false;
      },
    };
  }
}

/** A connection like the client's for blocking calls. It comes back by itself as long as the client's server is there. */
export function duplicateForBlocking(client: RedisClient): RedisClient {
  const duplicate =
    client instanceof Redis
      ? client.duplicate(BLOCKING)
      : guardAsking(client.duplicate([], { redisOptions: BLOCKING, enableOfflineQueue: true }));
  duplicate.on('error', () => {});
  return duplicate;
}

/** The cluster client drops the promise of ASKING; lost with its connection, it would end the process. */
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

/** What the server says it is; a single master where it refuses to say. Rejects where the connection ends before. */
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
 * Has the commands that are given in this turn of the event loop written together: to write is what a command costs
 * most, here and in Redis. A cluster's client writes each by itself.
 */
export function writeTogether(client: RedisClient): void {
  if (!(client instanceof Redis)) return;
  const { stream } = client;
  if (!stream || stream.writableCorked > 0) return;
  stream.cork();
  setImmediate(() => stream.uncork());
}
