import type { Logger } from 'pino';
import { nameKeys } from './keys.ts';
import { LinkState } from './link-state.ts';
import type { Clock, Coordination, Counters, RedisAccess } from './port.ts';
import type { ProcessImportQueue } from './process-imports.ts';
import type { ProcessRateLimiter } from './process-limiter.ts';
import { throttleWarnings, withDeadline } from './redis-calls.ts';
import { RedisImportQueue } from './redis-imports.ts';
import { openRedisLimiters } from './redis-limiter.ts';
import { RedisLink } from './redis-link.ts';
import { RedisPendingValues } from './redis-pending.ts';
import { RedisWakeBus } from './redis-wakes.ts';
import type { WaiterRegistry } from './waiters.ts';

/** How long a start waits for Redis before it goes on without it. */
const START_WAIT_MS = 2_000;

/** What the Redis side is given: among it the in-process side, which serves while Redis is away. */
export interface SharedOptions {
  redis: RedisAccess;
  windowMs: number;
  log: Logger;
  clock: Clock;
  counters: Counters;
  waiters: WaiterRegistry;
  imports: ProcessImportQueue;
  openLimiter: (windowMs: number, counters: Counters) => ProcessRateLimiter;
}

/** Opens the Redis side. Resolves when Redis serves, or after two seconds without it. */
export async function openShared(shared: SharedOptions): Promise<Coordination> {
  const { redis, windowMs, log, clock, counters, waiters, openLimiter } = shared;
  const keys = nameKeys(redis.prefix);
  waiters.setConnected(false);
  const state = new LinkState(log, counters, (connected) => waiters.setConnected(connected));
  const link = new RedisLink(redis, state);
  const limiters = openRedisLimiters({ link, keys, windowMs, openMemory: openLimiter, counters });
  const wakes = new RedisWakeBus({ link, keys, waiters, counters });
  const warn = throttleWarnings(log);
  const imports = new RedisImportQueue({ link, keys, local: shared.imports, counters, warn });
  void link.connect();
  // Nothing else keeps a process running whose connections to Postgres were lost meanwhile.
  const keptRunning = setInterval(() => {}, START_WAIT_MS);
  await withDeadline(state.firstShared, START_WAIT_MS).catch(() => state.settle());
  clearInterval(keptRunning);
  return {
    limiters,
    wakes,
    imports,
    pending: new RedisPendingValues(link, keys),
    get state() {
      return state.isShared ? 'shared' : 'degraded';
    },
    get away() {
      return state.away;
    },
    counters,
    clock,
    async close() {
      state.end();
      waiters.drain(0);
      await imports.close();
      await wakes.close();
      link.end();
    },
  };
}
