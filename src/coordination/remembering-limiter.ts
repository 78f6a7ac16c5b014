import type { Clock, Counters, Quota, RateLimiter, Window } from './port.ts';
import type { WindowOptions } from './windows.ts';

/** A limiter remembers at most this many keys. Above that, it forgets those that were used up longest ago. */
const MAX_KEYS = 100_000;

/** What is remembered of a key that had no slot left under `limit`. Times are those of the clock. */
interface UsedUp {
  limit: number;
  /** When a slot is free again. */
  until: number;
  /** Refusals before this time are repeated: one was reported within the length of a window. */
  reportedUntil: number;
}

/**
 * A rate limiter over a window. It remembers the keys that have no slot left, and refuses their requests without asking
 * the window.
 */
export class RememberingLimiter implements RateLimiter {
  readonly #window: Window;
  readonly #windowMs: number;
  readonly #clock: Clock;
  readonly #counters: Counters | undefined;
  /** The key that was used up longest ago comes first. */
  readonly #usedUp = new Map<string, UsedUp>();

  constructor(
    window: Window,
    { windowSeconds, countsFailures }: WindowOptions,
    clock: Clock,
    counters: Counters,
  ) {
    this.#window = window;
    this.#windowMs = windowSeconds * 1_000;
    this.#clock = clock;
    this.#counters = countsFailures ? undefined : counters;
  }

  /** The number of keys in memory. */
  get size(): number {
    return this.#usedUp.size;
  }

  refusal(key: string, limit: number): Quota | undefined {
    const now = this.#clock.now();
    const quota = this.#find(key, limit, now);
    return quota && this.#refuse(key, quota, now);
  }

  async consume(key: string, limit: number): Promise<Quota> {
    // A call takes time, so a slot is free at the latest this much after the call began.
    const now = this.#clock.now();
    const remembered = this.#find(key, limit, now);
    if (remembered) return this.#refuse(key, remembered, now);
    const quota = await this.#window.consume(key, limit);
    if (quota.remaining === 0) this.#remember(key, quota, now);
    if (!quota.admitted) return this.#refuse(key, quota, now);
    if (this.#counters) this.#counters.admitted += 1;
    return quota;
  }

  async peek(key: string, limit: number): Promise<Quota> {
    const now = this.#clock.now();
    const remembered = this.#find(key, limit, now);
    if (remembered) return remembered;
    const quota = await this.#window.peek(key, limit);
    if (quota.remaining === 0) this.#remember(key, quota, now);
    return quota;
  }

  /**
   * Returns the remembered refusal, but only if the key was used up under the same limit. Under another limit, this
   * process cannot say when a slot is free.
   */
  #find(key: string, limit: number, now: number): Quota | undefined {
    const usedUp = this.#usedUp.get(key);
    if (usedUp?.limit !== limit || usedUp.until <= now) return undefined;
    return { admitted: false, limit, remaining: 0, resetMs: usedUp.until - now };
  }

  #remember(key: string, { limit, resetMs }: Quota, now: number): void {
    const reportedUntil = this.#usedUp.get(key)?.reportedUntil ?? 0;
    this.#usedUp.delete(key);
    this.#usedUp.set(key, { limit, until: now + resetMs, reportedUntil });
    for (const [oldest, { until, reportedUntil: laterEnd }] of this.#usedUp) {
      if (Math.max(until, laterEnd) > now && this.#usedUp.size <= MAX_KEYS) return;
      this.#usedUp.delete(oldest);
    }
  }

  /** Counts a refusal, and marks it if the key was refused before within the length of a window. */
  #refuse(key: string, quota: Quota, now: number): Quota {
    if (this.#counters) this.#counters.refused += 1;
    const usedUp = this.#usedUp.get(key);
    if (usedUp !== undefined && usedUp.reportedUntil > now) return { ...quota, isRepeated: true };
    if (usedUp !== undefined) usedUp.reportedUntil = now + this.#windowMs;
    return quota;
  }
}
