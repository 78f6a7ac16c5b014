import { type Cluster, type Redis, ReplyError } from 'ioredis';
import type { Logger } from 'pino';

/**
 * How long a request waits for a reply from Redis. `RateLimiter` promises to answer within 300 ms, but a busy event
 * loop may use up part of that time.
 */
export const REPLY_WAIT_MS = 200;

/**
 * The error message of calls without a connection. Instead of this message, `LinkState` logs the fault that ended the
 * connection.
 */
export const NOT_CONNECTED = 'not connected';

/** A repeated warning is logged again after this time. */
const REPEAT_MS = 60_000;

/** How many kinds of warnings `throttleWarnings` remembers. If there are more, it forgets all of them. */
const MAX_KINDS = 100;

/**
 * Returns the outcome of `work`, or rejects after `waitMs`. A busy event loop must not look like a slow server. So the
 * wait starts at the end of this turn of the event loop, when the command that `work` sends has been written to the
 * socket. When the wait is over, the event loop reads the replies that have already arrived before this call rejects.
 */
export function withDeadline<T>(work: Promise<T>, waitMs: number): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const expire = () => reject(new Error(`no response in ${waitMs} ms`));
    let timer: NodeJS.Timeout | undefined;
    const afterWrite = setImmediate(() => {
      timer = setTimeout(() => setImmediate(expire), waitMs);
      timer.unref();
    });
    const stop = () => {
      clearImmediate(afterWrite);
      clearTimeout(timer);
    };
    work.finally(stop).then(resolve, reject);
  });
}

/**
 * Returns the pause before the next attempt, in milliseconds. It doubles with each failure, up to `maxMs`. Then up to a
 * quarter is added or removed at random, so that replicas do not all reconnect at the same moment.
 */
export const backOff = (failures: number, firstMs: number, maxMs: number): number =>
  Math.min(firstMs * 2 ** failures, maxMs) * (0.75 + Math.random() / 2);

/** Resolves with the client once it is ready. If the connection ends first, rejects with the client's last error. */
export async function untilReady<Client extends Redis | Cluster>(client: Client): Promise<Client> {
  let lastError = new Error('no connection');
  client.on('error', (error: Error) => {
    lastError = error;
  });
  await new Promise<void>((resolve, reject) => {
    client.once('ready', resolve);
    client.once('end', () => reject(lastError));
  });
  return client;
}

/**
 * Chooses the servers in turn, by the number of the attempt. Throws if the list is empty, which happens when the client
 * of a cluster knows no node.
 */
export function chooseServer<T>(servers: readonly T[], attempt: number): T {
  const server = servers[attempt % servers.length];
  if (server === undefined) throw new Error('no server is known');
  return server;
}

/** Matches everything after the code of an error reply. */
const AFTER_CODE = / .*/s;

/** The id of a job in a message of BullMQ, such as `could not renew lock for job 12`. */
const JOB_ID = /(?<= job )[\w-]+/;

/**
 * Describes an error for the log. For an error reply, returns only the code, because the rest may contain keys. Leaves
 * out the id of a job, so that equal errors of several jobs have equal descriptions.
 */
export function describeRedisError(error: unknown): string {
  const text = error instanceof Error ? (error.message || error.name).replace(JOB_ID, '…') : 'unknown';
  return error instanceof ReplyError ? text.replace(AFTER_CODE, '') : text;
}

export type Warn = (message: string, error: unknown) => void;

/** Logs each kind of warning at most once a minute. */
export function throttleWarnings(log: Logger): Warn {
  /** The time of the last log line of each kind of warning. A kind is a message with a reason. */
  const loggedAt = new Map<string, number>();
  return (message, error) => {
    const reason = describeRedisError(error);
    const kind = `${message}: ${reason}`;
    const now = performance.now();
    const lastLoggedAt = loggedAt.get(kind);
    if (lastLoggedAt !== undefined && now - lastLoggedAt < REPEAT_MS) return;
    if (loggedAt.size >= MAX_KINDS) loggedAt.clear();
    loggedAt.set(kind, now);
    log.warn({ reason }, message);
  };
}
