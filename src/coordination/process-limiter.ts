import type { Clock, Counters, Group, Quota, RateLimiter } from './port.ts';

/**
 * One limiter keeps at most `MAX_KEYS` keys in memory. The logs of all its keys together hold at most `MAX_TIMES`
 * times. Above either maximum, the limiter forgets the least recently used keys.
 */
const MAX_KEYS = 250_000;
const MAX_TIMES = 4_000_000;

/**
 * A rate limiter that counts only the requests that this process admitted. Without Redis, it is the only limiter. With
 * Redis, each `RedisRateLimiter` uses one, to refuse requests without asking Redis, and to limit requests while Redis
 * is unavailable.
 */
export class ProcessRateLimiter implements RateLimiter {
  readonly #windowMs: number;
  readonly #clock: Clock;
  readonly #counters: Counters;
  /** The log of each key, with the most recently used key at the end. So expired logs are at the front. */
  readonly #logs = new Map<string, AdmissionLog>();
  /** The number of times in all logs together. */
  #timeCount = 0;

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
   * Returns a refusal only if the key's previous request had the same limit. After a change of the limit, this process
   * cannot say when a slot is free, because it does not know the requests that other replicas admitted.
   */
  refusal(key: string, limit: number, group?: Group): Quota | undefined {
    const ownRefusal = this.#findSameLimitRefusal(key, limit);
    const groupRefusal = group && this.#findSameLimitRefusal(group.key, group.limit);
    return this.#countRefusal(ownRefusal, groupRefusal);
  }

  async consume(key: string, limit: number, group?: Group): Promise<Quota> {
    return this.admit(key, limit, group);
  }

  /** Does the same as `consume`, without a promise. */
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
    return chooseQuota(this.peek(key, limit, now), group && this.peek(group.key, group.limit, now));
  }

  /** Returns the key's quota, computed from the requests that this process admitted. Counts no request. */
  peek(key: string, limit: number, now: number): Quota {
    const log = this.#logs.get(key);
    if (log === undefined) return quotaOf(limit, 0, 0);
    this.#timeCount -= log.dropUntil(now - this.#windowMs);
    // A key that is full under a higher limit is also full under `limit`.
    if (log.limit >= limit && log.fullUntil > now) return quotaOf(limit, limit, log.fullUntil - now);
    // After the limit was lowered, the window may hold more than `limit` requests. In that case, a slot becomes free
    // when the `limit`-th newest request leaves the window, and not when the oldest one does.
    const nextToLeave = log.fromNewest(limit) ?? log.oldest;
    return quotaOf(limit, log.size, nextToLeave === undefined ? 0 : nextToLeave + this.#windowMs - now);
  }

  /** Whether this process has admitted at least `limit` requests in the window that ends at `now`. */
  isFull(key: string, limit: number, now: number): boolean {
    const time = this.#logs.get(key)?.fromNewest(limit);
    return time !== undefined && time > now - this.#windowMs;
  }

  /** Counts a request that was admitted at `time` under `limit`. */
  record(key: string, limit: number, time: number): void {
    const log = this.#touch(key, limit);
    log.add(time);
    this.#timeCount += 1;
    this.#forget(time);
  }

  /** Remembers that the key has no free slot under `limit` until `time`. */
  refuseUntil(key: string, limit: number, time: number): void {
    this.#touch(key, limit).fullUntil = time;
  }

  /** Returns the time in whole milliseconds, like the times in the logs. */
  now(): number {
    return Math.floor(this.#clock.now());
  }

  #findSameLimitRefusal(key: string, limit: number): Quota | undefined {
    return this.#logs.get(key)?.limit === limit ? this.#findRefusal(key, limit, this.now()) : undefined;
  }

  #findRefusal(key: string, limit: number, now: number): Quota | undefined {
    const quota = this.peek(key, limit, now);
    return quota.remaining > 0 ? undefined : { ...quota, admitted: false };
  }

  /**
   * Returns the refusal by the key or by its group, and counts the request as refused. Returns undefined if neither
   * refuses.
   */
  #countRefusal(own: Quota | undefined, group: Quota | undefined): Quota | undefined {
    const refusal = own ? chooseQuota(own, group) : group && { ...group, ofGroup: true as const };
    if (refusal) this.#counters.refused += 1;
    return refusal;
  }

  /** Returns the log of a key, and creates it if necessary. Sets its limit, and makes it the most recently used log. */
  #touch(key: string, limit: number): AdmissionLog {
    const log = this.#logs.get(key) ?? new AdmissionLog();
    // The time at which a slot becomes free under the old limit does not apply to the new limit.
    if (log.limit !== limit) log.fullUntil = 0;
    log.limit = limit;
    this.#logs.delete(key);
    this.#logs.set(key, log);
    return log;
  }

  /** Forgets expired keys. If there are too many keys or times, also forgets the least recently used keys. */
  #forget(now: number): void {
    for (const [key, log] of this.#logs) {
      const expired = log.fullUntil <= now && (log.newest ?? 0) <= now - this.#windowMs;
      if (!expired && this.#logs.size <= MAX_KEYS && this.#timeCount <= MAX_TIMES) return;
      this.#logs.delete(key);
      this.#timeCount -= log.size;
    }
  }
}

function quotaOf(limit: number, used: number, resetMs: number): Quota {
  return { admitted: true, limit, remaining: Math.max(limit - used, 0), resetMs };
}

/**
 * Chooses between the quotas of a key and of its group. If one of them refuses the request, returns that quota. If both
 * refuse, returns the one whose refusal ends later, because the client is refused until then. If both admit, returns
 * the one with fewer requests left.
 */
export function chooseQuota(own: Quota, group: Quota | undefined): Quota {
  if (group === undefined) return own;
  return isTighter(group, own) ? { ...group, ofGroup: true } : own;
}

/** Whether the group limits the request more than the key does. */
function isTighter(group: Quota, own: Quota): boolean {
  // If only one of them refuses, it is the tighter one.
  if (group.admitted !== own.admitted) return own.admitted;
  return own.admitted ? group.remaining < own.remaining : group.resetMs > own.resetMs;
}

/**
 * The times of one key's admitted requests, oldest first, in whole milliseconds. `#head` is the index of the oldest
 * time. To remove times, `dropUntil` raises `#head`. Once half of the array lies before `#head`, the other half is
 * copied to a new array.
 */
class AdmissionLog {
  #times: number[] = [];
  #head = 0;
  /** The limit of the latest call of `record` or `refuseUntil`. 0 before the first call. */
  limit = 0;
  /** The key has no free slot under `limit` before this time. 0 if no such time is known. */
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

  /** Returns the `n`-th newest time, or `undefined` if there are fewer than `n` times. The newest time has `n` = 1. */
  fromNewest(n: number): number | undefined {
    return n > this.size ? undefined : this.#times[this.#times.length - n];
  }

  /** Removes the times up to and including `edge`. Returns how many it removed. */
  dropUntil(edge: number): number {
    const headBefore = this.#head;
    while ((this.oldest ?? Number.POSITIVE_INFINITY) <= edge) this.#head += 1;
    const dropped = this.#head - headBefore;
    if (this.#head * 2 >= this.#times.length) this.#compact();
    return dropped;
  }

  /** Inserts a time at its sorted position, because Redis may reply to concurrent calls out of order. */
  add(time: number): void {
    const before = this.#times.findLastIndex((other) => other <= time);
    // The positions before `#head` hold removed times.
    this.#times.splice(Math.max(before + 1, this.#head), 0, time);
  }

  #compact(): void {
    if (this.#head === 0) return;
    this.#times = this.#times.slice(this.#head);
    this.#head = 0;
  }
}
