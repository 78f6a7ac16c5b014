import { readFileSync } from 'node:fs';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { tagSlot } from './keys.ts';
import type { Counters, Limiters, Quota, RateLimiter } from './port.ts';
import { ProcessRateLimiter } from './process-limiter.ts';
import { REPLY_WAIT_MS, withDeadline } from './redis-calls.ts';
import { type RedisClient, writeTogether } from './redis-clients.ts';
import type { RedisLink, RedisSide } from './redis-link.ts';
import { openLimiters } from './windows.ts';

const SLIDING_WINDOW = readFileSync(new URL('./sliding-window.lua', import.meta.url), 'utf8');

/**
 * Opens the limiters that all replicas share, and has the link check what they need: a write by their script. `windowMs` is
 * for those that have no window of their own.
 */
export function openRedisLimiters({ link, keys, clock, counters }: RedisSide, windowMs: number): Limiters {
  // A cluster may serve one key and not another, so the check asks for the one that failed last.
  let failedKey = 'start';
  const probes = new ClientWindows(keys.probe, 1_000);
  link.addCheck('limits', (client) => ask(probes.find(client, Number.MAX_SAFE_INTEGER), tagSlot(failedKey)));
  const fail = (error: unknown, key: string) => {
    failedKey = key;
    link.fail('limits', error);
  };
  return openLimiters(windowMs, counters, (keyPart, ownWindowMs, counted) => {
    const memory = new ProcessRateLimiter(ownWindowMs, clock, counted);
    const windowOptions = { link, keyPrefix: keys.limit(keyPart), windowMs: ownWindowMs };
    return new RedisRateLimiter({ ...windowOptions, memory, counters: counted, fail });
  });
}

interface RedisLimiterOptions {
  link: RedisLink;
  /** What the keys begin with; the key follows after a colon. */
  keyPrefix: string;
  windowMs: number;
  memory: ProcessRateLimiter;
  counters: Counters;
  /** Takes that Redis did not count a key, given as Redis knows it. */
  fail: (error: unknown, key: string) => void;
}

/**
 * The window shared by all replicas, in one call to Redis. What this replica admitted it also keeps in its memory:
 * from there it refuses without asking, and goes on without a gap when Redis is lost or comes back empty.
 */
class RedisRateLimiter implements RateLimiter {
  readonly #options: RedisLimiterOptions;
  readonly #windows: ClientWindows;

  constructor(options: RedisLimiterOptions) {
    this.#options = options;
    this.#windows = new ClientWindows(options.keyPrefix, options.windowMs);
  }

  refusal(key: string, limit: number): Quota | undefined {
    return this.#options.memory.refusal(key, limit);
  }

  async consume(key: string, limit: number): Promise<Quota> {
    const { memory, link, fail } = this.#options;
    const refused = memory.refusal(key, limit);
    if (refused) return refused;
    const { client } = link;
    if (client === undefined || !link.serves('limits')) return this.#fallBack(key, limit);
    const window = this.#windows.find(client, limit);
    const askedAt = memory.now();
    writeTogether(client);
    try {
      return this.#remember(key, limit, askedAt, await withDeadline(ask(window, key), REPLY_WAIT_MS));
    } catch (error) {
      fail(error, window.getKey(key));
      return this.#fallBack(key, limit);
    }
  }

  /**
   * Remembers the response as of the time of the call. Redis counted a little later, so memory never refuses for longer
   * than Redis would.
   *
   * Redis may have lost its data while requests were in flight, and then admits too many. Memory then decides: it refuses a
   * request that the window of this replica alone does not allow. The extra millisecond covers rounding of the two clocks.
   */
  #remember(key: string, limit: number, askedAt: number, response: RateLimiterRes): Quota {
    const { memory, counters } = this.#options;
    const admitted = response.consumedPoints <= limit && !memory.isFull(key, limit, memory.now() + 1);
    const remaining = Math.max(limit - response.consumedPoints, 0);
    const quota = { admitted, limit, remaining, resetMs: response.msBeforeNext };
    if (admitted) memory.record(key, limit, askedAt);
    if (remaining === 0) memory.refuseUntil(key, limit, askedAt + quota.resetMs);
    if (admitted) counters.admitted += 1;
    else counters.refused += 1;
    const own = memory.peek(key, limit, memory.now());
    return own && own.remaining < remaining ? { ...own, admitted } : quota;
  }

  #fallBack(key: string, limit: number): Quota {
    this.#options.counters.fallback += 1;
    return this.#options.memory.admit(key, limit);
  }
}

/** The library's object for each limit. There are few, because limits come from the configuration. */
class ClientWindows {
  readonly #keyPrefix: string;
  readonly #windowMs: number;
  readonly #windows = new Map<number, RateLimiterRedis>();
  #client: RedisClient | undefined;

  constructor(keyPrefix: string, windowMs: number) {
    this.#keyPrefix = keyPrefix;
    this.#windowMs = windowMs;
  }

  /** The object for this limit and the current client. */
  find(client: RedisClient, limit: number): RateLimiterRedis {
    if (client !== this.#client) this.#windows.clear();
    this.#client = client;
    const window = this.#windows.get(limit) ?? this.#open(client, limit);
    this.#windows.set(limit, window);
    return window;
  }

  /**
   * Fails at once while there is no connection. Of the library only `consume` is used: the rest assumes that the key
   * holds a number. The library makes the script a command of the client, always under the same name: all windows of a
   * client use this one script.
   */
  #open(client: RedisClient, limit: number): RateLimiterRedis {
    return new RateLimiterRedis({
      storeClient: client,
      keyPrefix: this.#keyPrefix,
      points: limit,
      duration: this.#windowMs / 1_000,
      customIncrTtlLuaScript: SLIDING_WINDOW,
      rejectIfRedisNotReady: true,
    });
  }
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
