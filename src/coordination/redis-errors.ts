import { ReplyError } from 'ioredis';
import type { Logger } from 'pino';

/** A repeated complaint is logged again after this time. */
const REPEAT_MS = 60_000;

/** What follows from a fault that was told before, and says nothing about it. */
export const NOT_CONNECTED = 'not connected';

/** How the limiter's library says so. */
const LIBRARY_NOT_CONNECTED = 'Redis connection is not ready';

/** What went wrong in a few words. Of a reply only its code: its text and its command may name keys. */
export function describeRedisError(error: unknown): string {
  if (error instanceof ReplyError) return (error as Error).message.split(' ', 1)[0]!;
  if (error instanceof Error && error.message === LIBRARY_NOT_CONNECTED) return NOT_CONNECTED;
  return error instanceof Error ? error.message || error.name : 'unknown';
}

/** Logs what fails beside a change of state, each kind of complaint once a minute. */
export function openComplaints(log: Logger): (what: string, error: unknown) => void {
  const last = new Map<string, number>();
  return (what, error) => {
    const reason = describeRedisError(error);
    const complaint = `${what}: ${reason}`;
    const now = performance.now();
    if (now - (last.get(complaint) ?? -REPEAT_MS) < REPEAT_MS) return;
    if (last.size >= 100) last.clear();
    last.set(complaint, now);
    log.warn({ reason }, what);
  };
}
