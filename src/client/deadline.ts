import type { Clock } from './timing.ts';

/** Cancels a request when the caller aborts it, or when it has made no progress for too long. */
export interface Deadline {
  /** The signal to pass to `fetch`. */
  readonly signal: AbortSignal;
  /** True if the request was cancelled because it made no progress. */
  readonly isExpired: boolean;
  /** Restarts the timeout after progress. */
  extend(): void;
  /** Removes the timer, and the listener on the caller's signal. */
  end(): void;
}

/**
 * Starts a deadline that expires after `timeoutMs` without progress. `signal` is the caller's signal. If `signal` is
 * already aborted, this function throws the reason of `signal`.
 */
export function startDeadline(clock: Clock, timeoutMs: number, signal: AbortSignal | undefined): Deadline {
  signal?.throwIfAborted();
  const controller = new AbortController();
  let isExpired = false;
  const expire = () => {
    isExpired = true;
    controller.abort();
  };
  const onAbort = () => controller.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  let cancel = clock.after(timeoutMs, expire);
  return {
    signal: controller.signal,
    get isExpired() {
      return isExpired;
    },
    extend() {
      cancel();
      cancel = clock.after(timeoutMs, expire);
    },
    end() {
      cancel();
      signal?.removeEventListener('abort', onAbort);
    },
  };
}
