import type { Logger } from 'pino';
import type { Clock, Coordination, CoordinationOptions, Counters } from './port.ts';
import { ProcessImportQueue, type RunImport, watchRuns } from './process/imports.ts';
import { ProcessPendingValues } from './process/pending.ts';
import { ProcessWindow } from './process/window.ts';
import { RememberingLimiter } from './remembering-limiter.ts';
import { WaiterRegistry } from './waiters.ts';
import { openLimiters } from './windows.ts';

/** What the coordination needs from the service: a log, and a function that runs an import. */
interface CoordinationContext {
  log: Logger;
  runImport: RunImport;
}

/** The process's monotonic clock. Setting the wall clock does not affect it. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Returns counters that are all zero. */
export const startCounters = (): Counters => ({
  admitted: 0,
  refused: 0,
  fallback: 0,
  wakesPublished: 0,
  wakesReceived: 0,
  importsQueued: 0,
  importsInProcess: 0,
  importsDone: 0,
  importsFailed: 0,
  degradations: 0,
});

/**
 * Opens the coordination of this replica. If Redis is configured, this function waits up to two seconds for Redis to
 * serve this replica. If Redis is still unavailable then, this replica starts without it, and the promise resolves.
 */
export async function openCoordination(
  options: CoordinationOptions,
  context: CoordinationContext,
): Promise<Coordination> {
  const clock = options.clock ?? systemClock;
  const counters = startCounters();
  const { log } = context;
  const runImport = watchRuns(context.runImport, log, counters);
  const waiters = new WaiterRegistry(clock, options, { hearsOthers: options.redis !== undefined });
  const imports = new ProcessImportQueue(runImport, clock, counters);
  if (options.redis !== undefined) {
    const { openShared } = await import('./redis/open.ts');
    const { redis, windowSeconds } = options;
    return openShared({ redis, windowSeconds, log, clock, counters, waiters, imports });
  }
  return {
    limiters: openLimiters(
      options.windowSeconds,
      (window) =>
        new RememberingLimiter(new ProcessWindow(window.windowSeconds, clock), window, clock, counters),
    ),
    notifier: waiters,
    imports,
    pending: new ProcessPendingValues(clock),
    state: 'none',
    away: [],
    counters,
    clock,
    async close() {
      waiters.drain(0);
      await imports.stopWorker(0);
    },
  };
}
