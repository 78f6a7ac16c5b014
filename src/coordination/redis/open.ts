import type { Logger } from 'pino';
import type { Clock, Coordination, Counters, RedisAccess } from '../port.ts';
import type { ProcessImportQueue } from '../process/imports.ts';
import type { WaiterRegistry } from '../waiters.ts';
import { throttleWarnings, withDeadline } from './calls.ts';
import { RedisImportQueue } from './imports.ts';
import { nameKeys } from './keys.ts';
import { RedisLink, type RedisSide } from './link.ts';
import { LinkState } from './link-state.ts';
import { RedisNotifier } from './notifier.ts';
import { RedisPendingValues } from './pending.ts';
import { openRedisLimiters } from './window.ts';

/** How long the start waits for Redis before it continues without Redis. */
const START_WAIT_MS = 2_000;

/** Options of `openShared`. While Redis is unavailable, this replica uses only its own `waiters` and `imports`. */
interface SharedOptions {
  redis: RedisAccess;
  windowSeconds: number;
  log: Logger;
  clock: Clock;
  counters: Counters;
  waiters: WaiterRegistry;
  imports: ProcessImportQueue;
}

/** Opens the coordination that uses Redis. Resolves as soon as Redis serves everything, or else after two seconds. */
export async function openShared(shared: SharedOptions): Promise<Coordination> {
  const { redis, log, clock, counters, waiters } = shared;
  waiters.setConnected(false);
  const state = new LinkState(log, counters, (connected) => waiters.setConnected(connected));
  const link = new RedisLink(redis, state);
  const side: RedisSide = { link, keys: nameKeys(redis.prefix), clock, counters };
  const limiters = openRedisLimiters(side, shared.windowSeconds);
  const notifier = new RedisNotifier(side, waiters);
  const imports = new RedisImportQueue(side, shared.imports, throttleWarnings(log));
  void link.connect();
  // This timer keeps the process alive during the wait, because no other timer or connection is sure to do so.
  const keepAliveTimer = setInterval(() => {}, START_WAIT_MS);
  await withDeadline(state.firstShared, START_WAIT_MS).catch(() => state.noteStartWithoutRedis());
  clearInterval(keepAliveTimer);
  return {
    limiters,
    notifier,
    imports,
    pending: new RedisPendingValues(side),
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
      await notifier.close();
      link.end();
    },
  };
}
