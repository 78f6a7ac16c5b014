import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { describeRedisError } from './redis-errors.ts';

/** One connection to one node, or the client of a cluster. */
export type RedisClient = Redis | Cluster;

/** The client's types take a url only beside options whose reply mapping is not open. */
type ConnectionOptions = Omit<RedisOptions, 'replyMapping'>;

/** Where Redis is: one url, or several nodes of a cluster; `ca` is the PEM text of an authority of one's own. */
export interface RedisTarget {
  urls: readonly string[];
  ca?: string;
}

/** Quick at first, for a restart; never further apart than half a second, so that two seconds are enough to return. */
const retryDelayMs = (attempt: number) => Math.min(50 * 2 ** Math.min(attempt, 4), 400) + Math.random() * 100;

/** Commands fail instead of waiting for a connection: the caller has another way. A silent connection is cut. */
const FAIL_FAST: ConnectionOptions = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 1_000,
  socketTimeout: 1_000,
  keepAlive: 10_000,
  retryStrategy: retryDelayMs,
};

/** Notices a silent connection: together with the heartbeat's pace below two seconds. */
const SUBSCRIBER: ConnectionOptions = {
  ...FAIL_FAST,
  autoResubscribe: false,
  socketTimeout: 900,
  retryStrategy: () => null,
};

/** What BullMQ's workers need: commands wait for the connection, and a blocking one may be silent for long. */
const PATIENT: ConnectionOptions = {
  maxRetriesPerRequest: null,
  connectTimeout: 2_000,
  keepAlive: 10_000,
  retryStrategy: retryDelayMs,
};

/** A master that became a replica: its address may lead to the new one. Looked up once a second. */
function reconnectOnReadOnly(): (error: Error) => boolean {
  let lastAt = 0;
  return (error) => {
    if (!error.message.includes('READONLY') || performance.now() - lastAt < 1_000) return false;
    lastAt = performance.now();
    return true;
  };
}

/** A client for commands that fail at once while Redis is away, and that reconnects by itself. */
export function openFastClient(target: RedisTarget): RedisClient {
  return openClient(target, FAIL_FAST, { enableOfflineQueue: false });
}

/** A client for a queue's worker, which waits as long as Redis is away. */
export function openPatientClient(target: RedisTarget): RedisClient {
  return openClient(target, PATIENT, {});
}

/**
 * A connection for a subscription, to one node; in a cluster every node hears every message, so attempts go round.
 * It does not reconnect: the subscription opens the next one.
 */
export function openSubscriber(target: RedisTarget, attempt: number): Redis {
  const url = target.urls[attempt % target.urls.length]!;
  return new Redis(url, { ...SUBSCRIBER, ...tlsOptions(target) });
}

function openClient(
  target: RedisTarget,
  options: ConnectionOptions,
  clusterOptions: ClusterOptions,
): RedisClient {
  const redisOptions = { ...options, ...tlsOptions(target), reconnectOnError: reconnectOnReadOnly() };
  if (target.urls.length === 1) return new Redis(target.urls[0]!, redisOptions);
  const cluster = new Cluster([...target.urls], {
    clusterRetryStrategy: retryDelayMs,
    retryDelayOnFailover: 50,
    retryDelayOnClusterDown: 50,
    slotsRefreshTimeout: 1_000,
    slotsRefreshInterval: 5_000,
    ...clusterOptions,
    redisOptions: { ...redisOptions, ...credentials(target) },
  });
  cluster.on('+node', guardAsking);
  return cluster;
}

/** The nodes that a cluster names by itself take the first url's credentials. */
function credentials(target: RedisTarget): ConnectionOptions {
  const { username, password, protocol } = new URL(target.urls[0]!);
  return {
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' && { tls: {}, ...tlsOptions(target) }),
  };
}

function tlsOptions(target: RedisTarget): ConnectionOptions {
  if (target.ca === undefined || !target.urls[0]!.startsWith('rediss:')) return {};
  return { tls: { ca: target.ca } };
}

/** The cluster client drops the promise of ASKING; lost with its connection, it would end the process. */
function guardAsking(node: Redis): void {
  const asking = node.asking.bind(node);
  node.asking = () => {
    const asked = asking();
    asked.catch(() => {});
    return asked;
  };
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

/** Tells when a client is ready and when it lost its connection, with the last error as the reason. */
export function watchClient(client: RedisClient, on: { ready(): void; lost(reason: string): void }): void {
  let reason = 'connection lost';
  client.on('error', (error) => {
    reason = describeRedisError(error);
  });
  client.on('ready', on.ready);
  client.on('close', () => {
    on.lost(reason);
    reason = 'connection lost';
  });
}
