/** Time as the client sees it; tests inject their own. */
export interface Clock {
  /** Milliseconds since the epoch; never steps back. */
  now(): number;
  /** Runs a function after a delay; the answer cancels it. */
  after(delayMs: number, run: () => void): () => void;
}

/** The longest delay that timers take; a longer one would fire at once. */
const MAX_DELAY_MS = 2_147_483_647;

/** The clock of the platform; it does not follow the wall clock's steps. */
export const systemClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, Math.min(delayMs, MAX_DELAY_MS));
    return () => clearTimeout(timer);
  },
};

/** Resolves after a delay; rejects with the signal's reason at once when it aborts. Leaves neither timer nor listener. */
export async function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const onAbort = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = clock.after(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

const BACKOFF_FIRST_MS = 300;
const BACKOFF_CAP_MS = 20_000;

/**
 * How long to wait after the nth failure in a row: doubling from 0.3 s to 20 s, of which the second half is random, so
 * that the clients of a service that comes back do not come back all at once.
 */
export function backoffMs(failures: number, random: () => number): number {
  const ceiling = Math.min(BACKOFF_CAP_MS, BACKOFF_FIRST_MS * 2 ** Math.min(failures - 1, 20));
  return ceiling / 2 + (random() * ceiling) / 2;
}
