import { type Cluster, type Redis, ReplyError } from 'ioredis';
import type { Logger } from 'pino';

/** How long a response of Redis is awaited: no request may wait 300 ms, and a busy event loop adds to this. */
export const REPLY_WAIT_MS = 200;

/** What follows from a fault that was logged before, and says nothing about its cause. */
export const NOT_CONNECTED = 'not connected';

/** A warning that comes again is logged again after this time. */
const REPEAT_MS = 60_000;

/**
 * The promise's outcome, or a rejection after `waitMs`. A busy event loop is not a slow server: the time runs from the
 * end of this turn of the loop, when the command is written, and a response that lies in the socket already still
 * counts, so the rejection waits until what has arrived was read.
 */
export function withDeadline<T>(work: Promise<T>, waitMs: number): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const expire = () => reject(new Error(`no response in ${waitMs} ms`));
    let timer: NodeJS.Timeout | undefined;
    const written = setImmediate(() => {
      timer = setTimeout(() => setImmediate(expire), waitMs);
      timer.unref();
    });
    const stop = () => {
      clearImmediate(written);
      clearTimeout(timer);
    };
    work.finally(stop).then(resolve, reject);
  });
}

/**
 * The pause before the next attempt, in milliseconds: twice as long after each failure in a row, and spread by a quarter, so
 * that replicas which lost Redis together do not come back together.
 */
export const backOff = (failures: number, firstMs: number, maxMs: number): number =>
  Math.min(firstMs * 2 ** failures, maxMs) * (0.75 + Math.random() / 2);

/** The client once it is ready; rejects with its last error where its connection ended instead. */
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

/** What went wrong in a few words. Of a reply only its code: its text and its command may name keys. */
export function describeRedisError(error: unknown): string {
  if (error instanceof ReplyError) return (error as Error).message.split(' ', 1)[0]!;
  return error instanceof Error ? error.message || error.name : 'unknown';
}

export type Warn = (message: string, error: unknown) => void;

/** Logs warnings, each kind once a minute. */
export function throttleWarnings(log: Logger): Warn {
  const last = new Map<string, number>();
  return (message, error) => {
    const reason = describeRedisError(error);
    const kind = `${message}: ${reason}`;
    const now = performance.now();
    if (now - (last.get(kind) ?? -REPEAT_MS) < REPEAT_MS) return;
    if (last.size >= 100) last.clear();
    last.set(kind, now);
    log.warn({ reason }, message);
  };
}
