import type { Clock, Quota, Window } from '../port.ts';

/** The times of one key's admitted requests, oldest first. The times before the index `head` have left the window. */
interface Log {
  times: number[];
  head: number;
}

/**
 * A sliding window that counts only the requests of this process. It is exact for a single replica. With Redis, it
 * counts while Redis is unavailable. Above `maxKeys` keys, or `maxTimes` requests of all keys together, it forgets the
 * least recently used keys.
 */
export class ProcessWindow implements Window {
  readonly #windowMs: number;
  readonly #clock: Clock;
  readonly #maxKeys: number;
  readonly #maxTimes: number;
  /** The log of each key, with the key of the newest request at the end. So expired logs are at the front. */
  readonly #logs = new Map<string, Log>();
  /** The number of times in all logs together, including those before `head`. */
  #timeCount = 0;

  constructor(windowSeconds: number, clock: Clock, { maxKeys = 250_000, maxTimes = 4_000_000 } = {}) {
    this.#windowMs = windowSeconds * 1_000;
    this.#clock = clock;
    this.#maxKeys = maxKeys;
    this.#maxTimes = maxTimes;
  }

  /** The number of keys in memory. */
  get size(): number {
    return this.#logs.size;
  }

  async consume(key: string, limit: number): Promise<Quota> {
    const now = this.#clock.now();
    const quota = this.#quotaAt(now, key, limit);
    if (!quota.admitted) return quota;
    const log = this.#logs.get(key) ?? { times: [], head: 0 };
    log.times.push(now);
    this.#timeCount += 1;
    // The key moves to the end.
    this.#logs.delete(key);
    this.#logs.set(key, log);
    this.#forget(now);
    return { ...this.#quotaAt(now, key, limit), admitted: true };
  }

  async peek(key: string, limit: number): Promise<Quota> {
    return this.#quotaAt(this.#clock.now(), key, limit);
  }

  #quotaAt(now: number, key: string, limit: number): Quota {
    const log = this.#logs.get(key);
    if (log === undefined) return { admitted: true, limit, remaining: limit, resetMs: 0 };
    const edge = now - this.#windowMs;
    while (log.head < log.times.length && log.times[log.head]! <= edge) log.head += 1;
    // Copying the rest only when half of the times have expired keeps the cost of a request constant on average.
    if (log.head * 2 >= log.times.length) {
      this.#timeCount -= log.head;
      log.times = log.times.slice(log.head);
      log.head = 0;
    }
    const used = log.times.length - log.head;
    // After the limit was lowered, a slot becomes free only when fewer requests than the limit remain in the window.
    const nextToLeave = log.times[Math.max(log.head, log.times.length - limit)];
    const resetMs = nextToLeave === undefined ? 0 : nextToLeave - edge;
    return { admitted: used < limit, limit, remaining: Math.max(limit - used, 0), resetMs };
  }

  /** Forgets expired keys. If there are too many keys or times, also forgets the least recently used keys. */
  #forget(now: number): void {
    for (const [key, { times }] of this.#logs) {
      const isExpired = (times.at(-1) ?? 0) <= now - this.#windowMs;
      if (!isExpired && this.#logs.size <= this.#maxKeys && this.#timeCount <= this.#maxTimes) return;
      this.#logs.delete(key);
      this.#timeCount -= times.length;
    }
  }
}
