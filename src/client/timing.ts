/** Time as the client sees it; tests inject their own. */
export interface Clock {
  /** Milliseconds since the epoch; never steps back. */
  now(): number;
  /** Runs a function after a delay. The function that it returns cancels it. */
  after(delayMs: number, run: () => void): () => void;
}

/** The longest delay of a timer; a longer one would fire at once. */
const MAX_DELAY_MS = 2_147_483_647;

/** The platform's clock; steps of the wall clock do not affect it. */
export const systemClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, Math.min(delayMs, MAX_DELAY_MS));
    return () => clearTimeout(timer);
  },
};

/**
 * Resolves after a delay; rejects at once with the signal's reason when it aborts. Leaves no timer and no listener.
 */
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

/** What everything that waits is given. */
export interface Timing {
  clock: Clock;
  /** A number from 0 to below 1, for jitter. */
  random: () => number;
}

/** The pause after a poll that was not held (decision 16), so that polls do not become a busy loop. */
export const POLL_PAUSE_MS = 1_000;

/** The longest time that a service may ask a poll to stay away. */
const MAX_RETURN_MS = 60_000;

/**
 * Waits before the next poll, if it must: with jitter after one that was not held, and as long as a replica that is about to
 * end asks (`retry_after_ms`). Rejects with the signal's reason.
 */
export async function pausePolling(
  { clock, random }: Timing,
  { wasShort, retryAfterMs = 0 }: { wasShort: boolean; retryAfterMs?: number | undefined },
  signal?: AbortSignal,
): Promise<void> {
  const pauseMs = wasShort ? POLL_PAUSE_MS + random() * (POLL_PAUSE_MS / 4) : 0;
  const waitMs = Math.max(pauseMs, Math.min(retryAfterMs, MAX_RETURN_MS));
  if (waitMs > 0) await sleep(clock, waitMs, signal);
}

const BACKOFF_FIRST_MS = 300;
const BACKOFF_CAP_MS = 20_000;

/**
 * How long to wait after the nth failure in a row: doubling from 0.3 s to 20 s. The second half of it is random, so
 * that the clients of a service that comes back do not all send at once.
 */
export function backoffMs(failures: number, random: () => number): number {
  const ceiling = Math.min(BACKOFF_CAP_MS, BACKOFF_FIRST_MS * 2 ** Math.min(failures - 1, 20));
  return ceiling / 2 + (random() * ceiling) / 2;
}
