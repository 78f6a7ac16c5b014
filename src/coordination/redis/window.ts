import { readFileSync } from 'node:fs';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { Counters, Limiters, Quota, Window } from '../port.ts';
import { ProcessWindow } from '../process/window.ts';
import { RememberingLimiter } from '../remembering-limiter.ts';
import { openLimiters, type WindowOptions } from '../windows.ts';
import { NOT_CONNECTED, REPLY_WAIT_MS, withDeadline } from './calls.ts';
import { type RedisClient, type RedisClients, writeTogether } from './clients.ts';
import { nameHashTag, nameLimited } from './keys.ts';
import type { RedisLink, RedisSide } from './link.ts';

const SLIDING_WINDOW = readFileSync(new URL('./sliding-window.lua', import.meta.url), 'utf8');

/**
 * Opens the limiters that all replicas share. `windowSeconds` applies to limiters without a window of their own. Also
 * makes the link count a request in both kinds of windows regularly, to find out whether Redis accepts writes.
 */
export function openRedisLimiters(
  { link, keys, clock, counters }: RedisSide,
  windowSeconds: number,
): Limiters {
  // A cluster may serve one key and not another, so the check uses the node of the key that failed most recently.
  let failedKey = 'start';
  link.addCheck('limits', (clients) => {
    const probes = [true, false].map((slides) => {
      const options = { keyPrefix: keys.probe(slides ? 'log' : 'count'), windowSeconds: 1, slides };
      return openLimiter(clients, options, Number.MAX_SAFE_INTEGER).consume(nameHashTag(failedKey));
    });
    return Promise.all(probes);
  });
  const fail = (error: unknown, key: string) => {
    failedKey = key;
    link.fail('limits', error);
  };
  return openLimiters(windowSeconds, (options) => {
    const fallback = new ProcessWindow(options.windowSeconds, clock);
    const keyPrefix = keys.window(options.keyPart);
    const window = new RedisWindow({ ...options, keyPrefix, link, fallback, counters, fail });
    return new RememberingLimiter(window, options, clock, counters);
  });
}

/** The options of a limiter in Redis. */
interface LimiterOptions extends Pick<WindowOptions, 'windowSeconds' | 'slides'> {
  /** The beginning of the Redis keys. The limited key follows after a colon. */
  keyPrefix: string;
}

/** The library defines its script as a command of the client, so limiters with another script need another client. */
const clientOf = ({ main, counting }: RedisClients, slides?: boolean): RedisClient =>
  slides ? main : counting;

/** Opens a limiter of the library. Each of its limiters has a fixed limit. */
const openLimiter = (
  clients: RedisClients,
  { keyPrefix, windowSeconds, slides }: LimiterOptions,
  limit: number,
) =>
  new RateLimiterRedis({
    storeClient: clientOf(clients, slides),
    rejectIfRedisNotReady: true,
    keyPrefix,
    points: limit,
    duration: windowSeconds,
    ...(slides && { customIncrTtlLuaScript: SLIDING_WINDOW }),
  });

interface RedisWindowOptions extends LimiterOptions {
  link: RedisLink;
  /** Decides while Redis is unavailable. */
  fallback: Window;
  counters: Counters;
  /** Called when Redis failed to count a request. `key` is the Redis key, with the prefix. */
  fail: (error: unknown, key: string) => void;
}

/** What the library replies. For a refused request, it throws the reply. */
type Reply = RateLimiterRes | null;

/** A window that all replicas share. Each call makes one call to Redis. */
class RedisWindow implements Window {
  readonly #options: RedisWindowOptions;
  #clients: RedisClients | undefined;
  /** The limiters of `#clients`, by their limit. */
  readonly #limiters = new Map<number, RateLimiterRedis>();

  constructor(options: RedisWindowOptions) {
    this.#options = options;
  }

  async consume(key: string, limit: number): Promise<Quota> {
    const quota = await this.#ask(key, limit, (limiter) => limiter.consume(key));
    if (quota !== undefined) return quota;
    const { counters, fallback } = this.#options;
    counters.fallback += 1;
    return fallback.consume(key, limit);
  }

  async peek(key: string, limit: number): Promise<Quota> {
    const { slides, fallback } = this.#options;
    const quota = await this.#ask(key, limit, (limiter) =>
      slides ? limiter.consume(key, 0) : limiter.get(key),
    );
    return quota ? { ...quota, admitted: quota.remaining > 0 } : fallback.peek(key, limit);
  }

  /** Calls the limiter of this limit. Returns undefined if Redis is unavailable. */
  async #ask(
    key: string,
    limit: number,
    call: (limiter: RateLimiterRedis) => Promise<Reply>,
  ): Promise<Quota | undefined> {
    const { link, fail, keyPrefix, slides } = this.#options;
    const { clients } = link;
    if (clients === undefined || !link.serves('limits')) return undefined;
    writeTogether(clientOf(clients, slides));
    try {
      return toQuota(limit, await withDeadline(call(this.#limiterOf(clients, limit)), REPLY_WAIT_MS));
    } catch (error) {
      if (error instanceof RateLimiterRes) return toQuota(limit, error);
      const wasReady = Object.values(clients).every(({ status }) => status === 'ready');
      fail(wasReady ? error : new Error(NOT_CONNECTED), nameLimited(keyPrefix, key));
      return undefined;
    }
  }

  #limiterOf(clients: RedisClients, limit: number): RateLimiterRedis {
    if (clients !== this.#clients) this.#limiters.clear();
    this.#clients = clients;
    const limiter = this.#limiters.get(limit) ?? openLimiter(clients, this.#options, limit);
    this.#limiters.set(limit, limiter);
    return limiter;
  }
}

/** Converts the library's reply. It is null if the key has no window yet. */
function toQuota(limit: number, reply: Reply): Quota {
  if (reply === null) return { admitted: true, limit, remaining: limit, resetMs: 0 };
  const { consumedPoints, remainingPoints, msBeforeNext } = reply;
  return { admitted: consumedPoints <= limit, limit, remaining: remainingPoints, resetMs: msBeforeNext };
}
