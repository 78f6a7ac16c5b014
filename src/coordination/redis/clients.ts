import { Cluster, Redis, type RedisOptions, ReplyError } from 'ioredis';
import type { RedisAccess } from '../port.ts';
import { readAccess } from './address.ts';
import { guardAsking } from './asking.ts';
import { backOff, chooseServer, untilReady, withDeadline } from './calls.ts';
import { SentinelWatch } from './sentinels.ts';

/** One connection to one server, or the client of a cluster. */
export type RedisClient = Redis | Cluster;

/** The clients that send commands. They belong to one server or cluster, and are replaced together. */
export interface RedisClients {
  /** Used for everything that has no client of its own. */
  main: RedisClient;
  /** Used for rate limits whose windows do not slide (`window.ts`). */
  counting: RedisClient;
}

/** In the types of ioredis, a client that is created from a url takes no option `replyMapping`. */
type ConnectionOptions = Omit<RedisOptions, 'replyMapping'>;

/**
 * With these options, a command without a connection fails immediately, because its caller does not need to wait for
 * Redis. A server that does not respond for a second counts as lost. A connection never reconnects by itself. Instead,
 * the link opens a new connection and asks the server again whether it is a master.
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

const reconnectSoon = (attempt: number): number => backOff(attempt - 1, 100, 500);

/**
 * Options of the connections of a BullMQ worker. On one of them, BullMQ waits for jobs. Redis may send nothing on it for
 * a long time, so there is no socket timeout. The connections reconnect by themselves.
 */
const BLOCKING: ConnectionOptions = {
  ...FAIL_FAST,
  enableOfflineQueue: true,
  maxRetriesPerRequest: null,
  socketTimeout: undefined,
  retryStrategy: reconnectSoon,
};

/** How long the link waits at most until a cluster's clients have connected to all masters. */
const CONNECT_WAIT_MS = 500;

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
   * Opens the clients for commands. Asks the server whether it is a single master or a node of a cluster. Rejects if a
   * connection fails, or if the server is a Redis replica. The caller then tries again with `attempt` raised by one,
   * which selects the next url.
   */
  async openClients(attempt: number): Promise<RedisClients> {
    const main = await this.#openMain(attempt);
    try {
      const counting = main instanceof Redis ? main.duplicate() : guardAsking(main.duplicate());
      const clients = { main, counting: await untilReady(counting) };
      await Promise.all(Object.values(clients).map(connectMasters));
      return clients;
    } catch (error) {
      main.disconnect();
      throw error;
    }
  }

  /**
   * Opens a connection for a subscription, to the same server as `client`. In a cluster it connects to only one node,
   * because every node receives every message. The connection does not reconnect by itself.
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

  async #openMain(attempt: number): Promise<RedisClient> {
    const redis = await untilReady(await this.#openServer(attempt));
    const { mode, role } = await askServer(redis);
    if (mode !== 'cluster' && role === 'master') return redis;
    redis.disconnect();
    if (mode !== 'cluster') throw new Error('is a Redis replica');
    return untilReady(this.#openCluster());
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
   * Opens a client for a cluster. The client finds all nodes through the nodes in the urls. It uses the credentials of
   * the first url for all nodes.
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

  /** The urls of the servers. Empty if Sentinels are configured, because they know the master's address. */
  get #urls(): readonly string[] {
    const { address } = this.#access;
    return address.kind === 'servers' ? address.urls : [];
  }

  get #tls(): ConnectionOptions {
    const { ca } = this.#access;
    return { tls: ca === undefined ? {} : { ca } };
  }

  /**
   * Options that pass every error reply to `#onReplyError`. ioredis calls `reconnectOnError` for each error reply,
   * including replies to BullMQ's commands. The connection stays open, because the function returns false.
   */
  get #reportReplyErrors(): ConnectionOptions {
    return {
      reconnectOnError: (error) => {
        this.#onReplyError(error);
        return false;
      },
    };
  }
}

/**
 * Opens a client for a BullMQ worker, to the server or cluster of `client`. The worker sends its commands through the new
 * client, and waits for jobs on a duplicate of it. Both reconnect by themselves.
 */
export function openWorkerClient(client: RedisClient): RedisClient {
  const opened =
    client instanceof Redis
      ? client.duplicate(BLOCKING)
      : guardAsking(
          client.duplicate([], {
            redisOptions: BLOCKING,
            enableOfflineQueue: true,
            clusterRetryStrategy: reconnectSoon,
          }),
        );
  opened.on('error', () => {});
  return opened;
}

/**
 * Connects a cluster's client to all masters, so that no request waits for a connection. By itself, the client connects
 * to a node when it sends the first command there. Waits at most `CONNECT_WAIT_MS`, because a master may be frozen.
 */
async function connectMasters(client: RedisClient): Promise<void> {
  if (client instanceof Redis) return;
  const unused = client.nodes('master').filter(({ status }) => status === 'wait');
  const connections = Promise.allSettled(unused.map((node) => node.connect()));
  await withDeadline(connections, CONNECT_WAIT_MS).catch(() => {});
}

/**
 * Asks the server for its mode and role. A server that does not accept HELLO counts as a single master. Rejects if the
 * connection is lost.
 */
async function askServer(redis: Redis): Promise<{ mode: string; role: string }> {
  const reply = await redis.call('HELLO').catch((error: unknown) => {
    if (error instanceof ReplyError) return [];
    throw error;
  });
  const items: unknown[] = Array.isArray(reply) ? reply : [];
  // Each name in the list is followed by its value.
  const facts = new Map<unknown, unknown>();
  for (let i = 0; i + 1 < items.length; i += 2) facts.set(items[i], items[i + 1]);
  return { mode: String(facts.get('mode') ?? 'standalone'), role: String(facts.get('role') ?? 'master') };
}

/**
 * Makes the client send all commands of this turn of the event loop with one write to its socket. The write is the most
 * expensive step of a command, both here and in Redis. Does nothing for a cluster, because its client has many sockets.
 */
export function writeTogether(client: RedisClient): void {
  if (!(client instanceof Redis)) return;
  const { stream } = client;
  if (!stream || stream.writableCorked > 0) return;
  stream.cork();
  setImmediate(() => stream.uncork());
}
