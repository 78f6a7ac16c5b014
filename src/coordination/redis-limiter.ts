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

/** What the shared limiters are made of. */
export interface RedisLimiterParts {
  /** For all of them: the script is the same, and so is what follows from a lost connection. */
  client: RedisClient;
  /** Asked first, and told of every failure. */
  circuit: Circuit;
  /** What the keys begin with; the key follows after a colon. */
  keyPrefix: string;
  windowMs: number;
  memory: ProcessRateLimiter;
  counters: Counters;
}

/** Opens the circuit in front of the limiters' client: closed while Redis writes what they need. */
export function openLimiterCircuit(
  client: RedisClient,
  probePrefix: string,
  onState: (shared: boolean, reason: string) => void,
): Circuit {
  const probes = openWindow(client, probePrefix, Number.MAX_SAFE_INTEGER, 1_000);
  const circuit = new Circuit({ probe: (key) => ask(probes, tagSlot(key)), onState });
  watchClient(client, {
    ready: () => circuit.probeNow(),
    lost: (reason) => circuit.trip(reason),
  });
  return circuit;
}

/**
 * The window shared by all replicas, in one call to Redis. What this replica admitted it also keeps in its memory:
 * from there it refuses without asking, and goes on without a gap when Redis is lost or comes back empty.
 */
export class RedisRateLimiter implements RateLimiter {
  readonly #parts: RedisLimiterParts;
  readonly #windows = new Map<number, RateLimiterRedis>();

  constructor(parts: RedisLimiterParts) {
    this.#parts = parts;
  }

  refusal(key: string, limit: number): Quota | undefined {
    return this.#parts.memory.refusal(key, limit);
  }

  async consume(key: string, limit: number): Promise<Quota> {
    const { memory, client, circuit } = this.#parts;
    const refused = memory.refusal(key, limit);
    if (refused) return refused;
    if (!circuit.closed) return this.#fallBack(key, limit);
    const window = this.#windowFor(limit);
    const askedAt = memory.now();
    writeTogether(client);
    try {
      const response = await withDeadline(ask(window, key), ANSWER_WAIT_MS);
      return this.#remember(key, limit, askedAt, response);
    } catch (error) {
      circuit.trip(describeRedisError(error), window.getKey(key));
      return this.#fallBack(key, limit);
    }
  }

  /** The library's object for a limit: few, for limits come from the configuration. */
  #windowFor(limit: number): RateLimiterRedis {
    const { client, keyPrefix, windowMs } = this.#parts;
    const window = this.#windows.get(limit) ?? openWindow(client, keyPrefix, limit, windowMs);
    this.#windows.set(limit, window);
    return window;
  }

  /**
   * Keeps the response in memory as of the moment of the call. Redis counted a little later, so memory never
   * refuses longer than Redis would. (The library's own block list reckons from the response, on the wall clock.)
   *
   * Where Redis came back empty under requests in flight, or was given up while they were, it admits more than this
   * replica may by itself: memory then has the last word. The millisecond allows for two clocks that cut theirs.
   */
  #remember(key: string, limit: number, askedAt: number, response: RateLimiterRes): Quota {
    const { memory, counters } = this.#parts;
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
    this.#parts.counters.fallback += 1;
    return this.#parts.memory.admit(key, limit);
  }
}

/**
 * Fails at once while there is no connection. Of the library only `consume` is used: the rest assumes that the key holds
 * a number. The library makes the script a command of the client, always under the same name: all windows of a client
 * use this one script.
 */
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
