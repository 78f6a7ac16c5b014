import type { Logger } from 'pino';
import { systemClock } from './clock.ts';
import { startCounters } from './counters.ts';
import { type RunImport, watchRuns } from './import-runs.ts';
import type { Coordination, CoordinationOptions } from './port.ts';
import { ProcessImportQueue } from './process-imports.ts';
import { ProcessRateLimiter } from './process-limiter.ts';
import { ProcessPendingValues } from './process-pending.ts';
import { WaiterRegistry } from './waiters.ts';
import { openLimiters } from './windows.ts';

/** What coordination needs of the service: a log, and how an import is run. */
export interface CoordinationParts {
  log: Logger;
  runImport: RunImport;
}

/**
 * Opens what replicas share. With Redis it waits up to two seconds for it, then starts degraded: it never fails
 * because Redis is away.
 */
export async function openCoordination(
  options: CoordinationOptions,
  parts: CoordinationParts,
): Promise<Coordination> {
  const clock = options.clock ?? systemClock;
  const counters = startCounters();
  const { log } = parts;
  const runImport = watchRuns(parts.runImport, log, counters);
  const { redisUrls, redisCa } = options;
  if (redisUrls !== undefined && redisUrls.length > 0) {
    const { openShared } = await import('./open-redis.ts');
    const target = { urls: redisUrls, ...(redisCa !== undefined && { ca: redisCa }) };
    return openShared({ options, target, log, runImport, clock, counters });
  }
  const waiters = new WaiterRegistry(clock, options);
  const imports = new ProcessImportQueue(runImport, clock, counters);
  return {
    limiters: openLimiters(
      options.windowMs,
      (_, windowMs) => new ProcessRateLimiter(windowMs, clock, counters),
    ),
    wakes: waiters,
    imports,
    pending: new ProcessPendingValues(clock),
    state: 'none',
    counters,
    clock,
    async close() {
      waiters.drain(0);
      await imports.stopWorker(0);
    },
  };
}
