import type { Clock } from './timing.ts';

/** Cancels a request when the caller aborts it, or when nothing has arrived for too long. */
export interface Deadline {
  /** Passed to `fetch`. */
  readonly signal: AbortSignal;
  readonly isExpired: boolean;
  /** Restarts the timeout after progress. */
  extend(): void;
  /** Removes the timer and the listener. */
  end(): void;
}

/**
 * Starts a deadline that expires after `timeoutMs` without progress. Throws the signal's reason if it is already
 * aborted.
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
