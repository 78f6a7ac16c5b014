import { AdmissionLog } from './admission-log.ts';
import type { Clock, Counters, Quota, RateLimiter } from './port.ts';

/** Bounds of one limiter's memory; beyond them the keys used longest ago are forgotten first. */
const MAX_KEYS = 250_000;
const MAX_TIMES = 4_000_000;

/**
 * An exact sliding window over the requests that this process admitted. It serves alone where there is no Redis, and
 * is the memory of the shared limiter otherwise: what it refuses is refused rightly whatever the other replicas did.
 */
export class ProcessRateLimiter implements RateLimiter {
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #clock: Clock;
  readonly #counters: Counters;
  /** In the order of last admission, so what has expired is at the front. */
  readonly #logs = new Map<string, AdmissionLog>();
  #times = 0;

  constructor(limit: number, windowMs: number, clock: Clock, counters: Counters) {
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#clock = clock;
    this.#counters = counters;
  }

  /** Keys held in memory. */
  get size(): number {
    return this.#logs.size;
  }

  refusal(key: string): Quota | undefined {
    const now = this.now();
    const quota = this.peek(key, now);
    if (quota === undefined || quota.remaining > 0) return undefined;
    this.#counters.refused += 1;
    return { ...quota, admitted: false };
  }

  async consume(key: string): Promise<Quota> {
    return this.admit(key);
  }

  /** `consume` without a promise. */
  admit(key: string): Quota {
    const refused = this.refusal(key);
    if (refused) return refused;
    const now = this.now();
    this.record(key, now);
    this.#counters.admitted += 1;
    return this.peek(key, now)!;
  }

  /** The key's quota as this process knows it, counting nothing; `undefined` where it knows of no request. */
  peek(key: string, now: number): Quota | undefined {
    const log = this.#logs.get(key);
    if (log === undefined) return undefined;
    this.#times -= log.dropUntil(now - this.#windowMs);
    if (log.fullUntil > now) return this.#quota(0, log.fullUntil - now);
    if (log.oldest === undefined) return undefined;
    return this.#quota(this.#limit - log.size, log.oldest + this.#windowMs - now);
  }

  /** Whether this process alone has admitted all that the window before `now` takes. */
  isFull(key: string, now: number): boolean {
    const time = this.#logs.get(key)?.fromNewest(this.#limit);
    return time !== undefined && time > now - this.#windowMs;
  }

  /** Counts a request that was admitted at `time`. */
  record(key: string, time: number): void {
    const log = this.#touch(key);
    log.add(time);
    this.#times += 1;
    this.#forget(time);
  }

  /** Remembers that the key has no free slot before `time`. */
  refuseUntil(key: string, time: number): void {
    this.#touch(key).fullUntil = time;
  }

  /** The clock in whole milliseconds, as the logs hold it. */
  now(): number {
    return Math.floor(this.#clock.now());
  }

  #quota(remaining: number, resetMs: number): Quota {
    return { admitted: true, limit: this.#limit, remaining: Math.max(remaining, 0), resetMs };
  }

  #touch(key: string): AdmissionLog {
    const log = this.#logs.get(key) ?? new AdmissionLog();
    this.#logs.delete(key);
    this.#logs.set(key, log);
    return log;
  }

  #forget(now: number): void {
    for (const [key, log] of this.#logs) {
      const expired = log.fullUntil <= now && (log.newest ?? 0) <= now - this.#windowMs;
      if (!expired && this.#logs.size <= MAX_KEYS && this.#times <= MAX_TIMES) return;
      this.#logs.delete(key);
      this.#times -= log.size;
    }
  }
}
