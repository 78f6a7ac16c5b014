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
  readonly #windowMs: number;
  readonly #clock: Clock;
  readonly #counters: Counters;
  /** In the order of last admission, so what has expired is at the front. */
  readonly #logs = new Map<string, AdmissionLog>();
  #times = 0;

  constructor(windowMs: number, clock: Clock, counters: Counters) {
    this.#windowMs = windowMs;
    this.#clock = clock;
    this.#counters = counters;
  }

  /** Keys held in memory. */
  get size(): number {
    return this.#logs.size;
  }

  /**
   * Stands only where the key was last counted against this very limit: after another one, only the requests of all
   * replicas together tell when a slot is free.
   */
  refusal(key: string, limit: number): Quota | undefined {
    return this.#logs.get(key)?.limit === limit ? this.#refuse(key, limit) : undefined;
  }

  async consume(key: string, limit: number): Promise<Quota> {
    return this.admit(key, limit);
  }

  /** `consume` without a promise. */
  admit(key: string, limit: number): Quota {
    const refused = this.#refuse(key, limit);
    if (refused) return refused;
    const now = this.now();
    this.record(key, limit, now);
    this.#counters.admitted += 1;
    return this.peek(key, limit, now)!;
  }

  /** The key's quota as this process knows it, counting nothing; `undefined` where it knows of no request. */
  peek(key: string, limit: number, now: number): Quota | undefined {
    const log = this.#logs.get(key);
    if (log === undefined) return undefined;
    this.#times -= log.dropUntil(now - this.#windowMs);
    // What is full under a higher limit is full under this one too.
    if (log.limit >= limit && log.fullUntil > now) return quotaOf(limit, limit, log.fullUntil - now);
    // Under a limit that was lowered, a slot is free when as many as it are left.
    const leaver = log.fromNewest(limit) ?? log.oldest;
    return leaver === undefined ? undefined : quotaOf(limit, log.size, leaver + this.#windowMs - now);
  }

  /** Whether this process alone has admitted all that the window before `now` takes. */
  isFull(key: string, limit: number, now: number): boolean {
    const time = this.#logs.get(key)?.fromNewest(limit);
    return time !== undefined && time > now - this.#windowMs;
  }

  /** Counts a request that was admitted at `time`, against `limit`. */
  record(key: string, limit: number, time: number): void {
    const log = this.#touch(key, limit);
    log.add(time);
    this.#times += 1;
    this.#forget(time);
  }

  /** Remembers that the key has no free slot under `limit` before `time`. */
  refuseUntil(key: string, limit: number, time: number): void {
    this.#touch(key, limit).fullUntil = time;
  }

  /** The clock in whole milliseconds, as the logs hold it. */
  now(): number {
    return Math.floor(this.#clock.now());
  }

  #refuse(key: string, limit: number): Quota | undefined {
    const quota = this.peek(key, limit, this.now());
    if (quota === undefined || quota.remaining > 0) return undefined;
    this.#counters.refused += 1;
    return { ...quota, admitted: false };
  }

  #touch(key: string, limit: number): AdmissionLog {
    const log = this.#logs.get(key) ?? new AdmissionLog();
    if (log.limit !== limit) log.fullUntil = 0;
    log.limit = limit;
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

function quotaOf(limit: number, used: number, resetMs: number): Quota {
  return { admitted: true, limit, remaining: Math.max(limit - used, 0), resetMs };
}
