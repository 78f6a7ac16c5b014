import type { Clock } from './port.ts';

/** The process's monotonic clock: it does not step when the wall clock is set. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
