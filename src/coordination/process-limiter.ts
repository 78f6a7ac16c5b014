import type { Clock, Counters, Group, Quota, RateLimiter } from './port.ts';

/** Limits of one limiter's memory. Beyond them it forgets the keys whose last admission is longest ago. */
const MAX_KEYS = 250_000;
const MAX_TIMES = 4_000_000;

/**
 * An exact sliding window over the requests that this process admitted. Without Redis it is the only limiter. With
 * Redis it is the memory of the shared limiter: if this process alone has filled a key, the key is full for all.
 */
export class ProcessRateLimiter implements RateLimiter {
  readonly #windowMs: number;
  readonly #clock: Clock;
  readonly #counters: Counters;
  /** Sorted by last admission, so expired logs are at the front. */
  readonly #logs = new Map<string, AdmissionLog>();
  #times = 0;

  constructor(windowMs: number, clock: Clock, counters: Counters) {
    this.#windowMs = windowMs;
    this.#clock = clock;
    this.#counters = counters;
  }

  /** The number of keys in memory. */
  get size(): number {
    return this.#logs.size;
  }

  /**
   * Returns a refusal only if the key was last counted against this same limit. If the limit has changed, this memory
   * cannot say when a slot is free, because that depends on the requests that other replicas admitted.
   */
  refusal(key: string, limit: number, group?: Group): Quota | undefined {
    const own = this.#findStanding(key, limit);
    const groups = group && this.#findStanding(group.key, group.limit);
    return this.#countRefusal(own, groups);
  }

  async consume(key: string, limit: number, group?: Group): Promise<Quota> {
    return this.admit(key, limit, group);
  }

  /** `consume` without a promise. */
  admit(key: string, limit: number, group?: Group): Quota {
    const now = this.now();
    const refused = this.#countRefusal(
      this.#findRefusal(key, limit, now),
      group && this.#findRefusal(group.key, group.limit, now),
    );
    if (refused) return refused;
    this.record(key, limit, now);
    if (group) this.record(group.key, group.limit, now);
    this.#counters.admitted += 1;
    return decide(this.peek(key, limit, now), group && this.peek(group.key, group.limit, now));
  }

  /** The key's quota as this process knows it, without counting a request. */
  peek(key: string, limit: number, now: number): Quota {
    const log = this.#logs.get(key);
    if (log === undefined) return quotaOf(limit, 0, 0);
    this.#times -= log.dropUntil(now - this.#windowMs);
    // A key that is full under a higher limit is also full under this one.
    if (log.limit >= limit && log.fullUntil > now) return quotaOf(limit, limit, log.fullUntil - now);
    // The limit may have been lowered. Then a slot is free only once fewer than `limit` requests are left in the
    // window.
    const leaver = log.fromNewest(limit) ?? log.oldest;
    return quotaOf(limit, log.size, leaver === undefined ? 0 : leaver + this.#windowMs - now);
  }

  /** Whether this process alone admitted `limit` requests in the window that ends at `now`. */
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

  /** The clock in whole milliseconds, the unit of the logs. */
  now(): number {
    return Math.floor(this.#clock.now());
  }

  #findStanding(key: string, limit: number): Quota | undefined {
    return this.#logs.get(key)?.limit === limit ? this.#findRefusal(key, limit, this.now()) : undefined;
  }

  #findRefusal(key: string, limit: number, now: number): Quota | undefined {
    const quota = this.peek(key, limit, now);
    return quota.remaining > 0 ? undefined : { ...quota, admitted: false };
  }

  #countRefusal(own: Quota | undefined, group: Quota | undefined): Quota | undefined {
    const refusal = own ? decide(own, group) : group && { ...group, ofGroup: true as const };
    if (refusal) this.#counters.refused += 1;
    return refusal;
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

/**
 * Combines the quotas of a key and its group. The request is admitted if neither refuses it. If one refuses, returns
 * its quota. If both refuse, returns the quota whose refusal ends later, so that a client that waits for its end is
 * admitted. If both admit, returns the quota with fewer requests left.
 */
export function decide(own: Quota, group: Quota | undefined): Quota {
  if (group === undefined) return own;
  return isTighter(group, own) ? { ...group, ofGroup: true } : own;
}

function isTighter(group: Quota, own: Quota): boolean {
  if (group.admitted !== own.admitted) return own.admitted;
  return own.admitted ? group.remaining < own.remaining : group.resetMs > own.resetMs;
}

/**
 * The times of one key's admitted requests, oldest first, in whole milliseconds. To remove a time, it only moves a head
 * index. Once half of the array is removed, it copies the rest.
 */
class AdmissionLog {
  #times: number[] = [];
  #head = 0;
  /** The limit that the newest request was counted against; 0 before the first request. */
  limit = 0;
  /** Until this time the key is known to have no free slot under that limit; 0 if that is unknown. */
  fullUntil = 0;

  get size(): number {
    return this.#times.length - this.#head;
  }

  get oldest(): number | undefined {
    return this.#times[this.#head];
  }

  get newest(): number | undefined {
    return this.size === 0 ? undefined : this.#times[this.#times.length - 1];
  }

  /** The nth newest time, from 1; undefined if there are fewer. */
  fromNewest(n: number): number | undefined {
    return n > this.size ? undefined : this.#times[this.#times.length - n];
  }

  /** Removes the times up to and including `edge`. Returns how many it removed. */
  dropUntil(edge: number): number {
    const before = this.#head;
    while ((this.oldest ?? Number.POSITIVE_INFINITY) <= edge) this.#head += 1;
    const dropped = this.#head - before;
    if (this.#head * 2 >= this.#times.length) this.#compact();
    return dropped;
  }

  /** Adds a time at its sorted position, because replies to concurrent calls arrive out of order. */
  add(time: number): void {
    const before = this.#times.findLastIndex((other) => other <= time);
    this.#times.splice(Math.max(before + 1, this.#head), 0, time);
  }

  #compact(): void {
    if (this.#head === 0) return;
    this.#times = this.#times.slice(this.#head);
    this.#head = 0;
  }
}
