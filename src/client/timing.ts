/** The client's source of time. Tests inject their own. */
export interface Clock {
  /** Milliseconds since the epoch. Never goes back. */
  now(): number;
  /** Calls `run` after a delay. Returns a function that cancels this call. */
  after(delayMs: number, run: () => void): () => void;
}

/** The longest delay that a timer supports. A timer with a longer delay would fire immediately. */
const MAX_DELAY_MS = 2_147_483_647;

/** The platform's clock. Adjustments of the wall clock do not affect it. */
export const systemClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, Math.min(delayMs, MAX_DELAY_MS));
    return () => clearTimeout(timer);
  },
};

/**
 * Resolves after a delay. Rejects with the signal's reason as soon as the signal is aborted. Leaves no timer or
 * listener behind.
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

/** The clock and the random numbers that functions need in order to wait. */
export interface Timing {
  clock: Clock;
  /** Returns a number from 0 up to but not including 1, for jitter. */
  random: () => number;
}

/**
 * The shortest pause after a poll that the service did not hold (docs/contract.md, decision 16). Without a pause, the
 * client would poll in a busy loop.
 */
export const POLL_PAUSE_MS = 1_000;

/** The longest pause that the client accepts from `X-Retry-After-Ms`. */
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * Waits between polls. Pass `onHeaders` to the request of each poll, so that the pause is at least as long as
 * `X-Retry-After-Ms` of the last response says. A replica that is shutting down sends this header. More than a minute
 * counts as a minute.
 */
export class PollPause {
  readonly #timing: Timing;
  #retryAfterMs = 0;

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  readonly onHeaders = (headers: Headers): void => {
    const text = headers.get('x-retry-after-ms') ?? '';
    this.#retryAfterMs = /^\d+$/.test(text) ? Math.min(Number(text), MAX_RETRY_AFTER_MS) : 0;
  };

  /**
   * Waits before the next poll if necessary. If the last poll was short, the wait is at least 1 to 1.25 s. Rejects with
   * the signal's reason if the signal is aborted.
   */
  async wait(wasShort: boolean, signal?: AbortSignal): Promise<void> {
    const { clock, random } = this.#timing;
    const pauseMs = wasShort ? POLL_PAUSE_MS + random() * (POLL_PAUSE_MS / 4) : 0;
    const waitMs = Math.max(pauseMs, this.#retryAfterMs);
    if (waitMs > 0) await sleep(clock, waitMs, signal);
  }
}

const BACKOFF_FIRST_MS = 300;
const BACKOFF_CAP_MS = 20_000;

/**
 * Returns how many ms to wait after this number of failures in a row. The longest wait doubles with each failure, from
 * 0.3 s to 20 s. The actual wait is random, between half of the longest wait and all of it. So clients do not all
 * return at the same time when the service recovers.
 */
export function backoffMs(failures: number, random: () => number): number {
  const longestMs = Math.min(BACKOFF_CAP_MS, BACKOFF_FIRST_MS * 2 ** (failures - 1));
  return longestMs / 2 + (random() * longestMs) / 2;
}
