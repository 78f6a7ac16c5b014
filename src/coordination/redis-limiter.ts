import { readFileSync } from 'node:fs';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { ANSWER_WAIT_MS, Circuit } from './circuit.ts';
import { withDeadline } from './deadline.ts';
import { tagSlot } from './keys.ts';
import type { Counters, Quota, RateLimiter } from './port.ts';
import type { ProcessRateLimiter } from './process-limiter.ts';
import { type RedisClient, watchClient, writeTogether } from './redis-clients.ts';
import { describeRedisError } from './redis-errors.ts';

const SLIDING_WINDOW = readFileSync(new URL('./sliding-window.lua', import.meta.url), 'utf8');

/** What a shared limiter is made of. */
export interface RedisLimiterParts {
  /** Of its own: the library makes its script a command of the client, under the same name for every script. */
  client: RedisClient;
  keyPrefix: string;
  /** For keys that only show whether Redis serves. */
  probePrefix: string;
  limit: number;
  windowMs: number;
  memory: ProcessRateLimiter;
  counters: Counters;
  /** Tells whether Redis counts or this process does, and why; perhaps repeatedly. */
  onState: (shared: boolean, reason: string) => void;
}

/**
 * The window shared by all replicas, in one call to Redis. What this replica admitted it also keeps in its memory:
 * from there it refuses without asking, and goes on without a gap when Redis is lost or comes back empty.
 */
export class RedisRateLimiter implements RateLimiter {
  readonly #parts: RedisLimiterParts;
  readonly #window: RateLimiterRedis;
  readonly #probes: RateLimiterRedis;
  readonly #circuit: Circuit;

  constructor(parts: RedisLimiterParts) {
    this.#parts = parts;
    const { client, keyPrefix, probePrefix, limit, windowMs, onState } = parts;
    this.#window = openWindow(client, keyPrefix, limit, windowMs);
    this.#probes = openWindow(client, probePrefix, Number.MAX_SAFE_INTEGER, 1_000);
    this.#circuit = new Circuit({ probe: (key) => ask(this.#probes, tagSlot(key)), onState });
    watchClient(client, {
      ready: () => this.#circuit.probeNow(),
      lost: (reason) => this.#circuit.trip(reason),
    });
  }

  refusal(key: string): Quota | undefined {
    return this.#parts.memory.refusal(key);
  }

  async consume(key: string): Promise<Quota> {
    const { memory } = this.#parts;
    const refused = memory.refusal(key);
    if (refused) return refused;
    if (!this.#circuit.closed) return this.#fallBack(key);
    const askedAt = memory.now();
    writeTogether(this.#parts.client);
    try {
      return this.#remember(key, askedAt, await withDeadline(ask(this.#window, key), ANSWER_WAIT_MS));
    } catch (error) {
      this.#circuit.trip(describeRedisError(error), this.#window.getKey(key));
      return this.#fallBack(key);
    }
  }

  /**
   * Keeps the answer in memory as of the moment of the question. Redis counted a little later, so memory never
   * refuses longer than Redis would. (The library's own block list reckons from the answer, on the wall clock.)
   *
   * Where Redis came back empty under requests in flight, or was given up while they were, it admits more than this
   * replica may by itself: memory then has the last word. The millisecond allows for two clocks that cut theirs.
   */
  #remember(key: string, askedAt: number, answer: RateLimiterRes): Quota {
    const { memory, limit, counters } = this.#parts;
    const admitted = answer.consumedPoints <= limit && !memory.isFull(key, memory.now() + 1);
    const remaining = Math.max(limit - answer.consumedPoints, 0);
    const quota = { admitted, limit, remaining, resetMs: answer.msBeforeNext };
    if (admitted) memory.record(key, askedAt);
    if (remaining === 0) memory.refuseUntil(key, askedAt + quota.resetMs);
    if (admitted) counters.admitted += 1;
    else counters.refused += 1;
    const own = memory.peek(key, memory.now());
    return own && own.remaining < remaining ? { ...own, admitted } : quota;
  }

  /** Ends the probes; the client is closed by who opened it. */
  close(): void {
    this.#circuit.end();
  }

  #fallBack(key: string): Quota {
    this.#parts.counters.fallback += 1;
    return this.#parts.memory.admit(key);
  }
}

/** Fails at once while there is no connection. Of the library only `consume` is used: the rest assumes a number. */
function openWindow(
  client: RedisClient,
  keyPrefix: string,
  limit: number,
  windowMs: number,
): RateLimiterRedis {
  return new RateLimiterRedis({
    storeClient: client,
    keyPrefix,
    points: limit,
    duration: windowMs / 1000,
    customIncrTtlLuaScript: SLIDING_WINDOW,
    rejectIfRedisNotReady: true,
  });
}

/** The library rejects with its result where it refuses, and with an error where it fails. */
async function ask(window: RateLimiterRedis, key: string): Promise<RateLimiterRes> {
  try {
    return await window.consume(key);
  } catch (refusal) {
    if (refusal instanceof RateLimiterRes) return refusal;
    throw refusal;
  }
}
