import { readFileSync } from 'node:fs';
import { nameLimited, nameProbe } from './keys.ts';
import type { Counters, Group, Limiters, Quota, RateLimiter } from './port.ts';
import { chooseQuota, ProcessRateLimiter } from './process-limiter.ts';
import { NOT_CONNECTED, REPLY_WAIT_MS, withDeadline } from './redis-calls.ts';
import { type RedisClient, writeTogether } from './redis-clients.ts';
import type { RedisLink, RedisSide } from './redis-link.ts';
import { openLimiters } from './windows.ts';

const SLIDING_WINDOW = readFileSync(new URL('./sliding-window.lua', import.meta.url), 'utf8');

/**
 * Opens the limiters that all replicas share. `windowMs` applies to limiters without a window of their own. Also makes
 * the link run the limiters' script regularly, to find out whether Redis accepts writes.
 */
export function openRedisLimiters({ link, keys, clock, counters }: RedisSide, windowMs: number): Limiters {
  // A cluster may serve one key and not another, so the check uses the node of the key that failed most recently.
  let failedKey = 'start';
  link.addCheck('limits', (client) =>
    admit(client, 1_000, [{ ...PROBE, name: nameProbe(keys.probe, failedKey) }]),
  );
  const fail = (error: unknown, key: string) => {
    failedKey = key;
    link.fail('limits', error);
  };
  return openLimiters(windowMs, counters, (keyPart, ownWindowMs, ownCounters) => {
    const memory = new ProcessRateLimiter(ownWindowMs, clock, ownCounters);
    const keyPrefix = keys.limit(keyPart);
    return new RedisRateLimiter({
      link,
      keyPrefix,
      windowMs: ownWindowMs,
      memory,
      counters: ownCounters,
      fail,
    });
  });
}

interface RedisLimiterOptions {
  link: RedisLink;
  /** The beginning of the Redis keys. The limited key follows after a colon. */
  keyPrefix: string;
  windowMs: number;
  /** The requests that this replica admitted. */
  memory: ProcessRateLimiter;
  counters: Counters;
  /** Called when Redis failed to count a request. `key` is the Redis key, with the prefix. */
  fail: (error: unknown, key: string) => void;
}

/** A test write, which is always admitted. */
const PROBE = { key: 'probe', limit: Number.MAX_SAFE_INTEGER };

interface KeyLimit {
  key: string;
  limit: number;
  /** The key's name in Redis. */
  name: string;
}

/** What Redis replied for one key. */
interface Reply extends KeyLimit {
  /** Admitted requests in the window, including this one if it is admitted. `limit + 1` if this key refuses it. */
  used: number;
  /** Milliseconds until a slot is free if this key refuses. Otherwise until the oldest request leaves the window. */
  resetMs: number;
}

/**
 * A sliding window that all replicas share. A request takes at most one call to Redis. This replica also remembers the
 * requests that it admitted. So it can refuse requests of a full key without a call, and it still limits requests when
 * Redis is unavailable or has lost its data.
 */
class RedisRateLimiter implements RateLimiter {
  readonly #options: RedisLimiterOptions;

  constructor(options: RedisLimiterOptions) {
    this.#options = options;
  }

  refusal(key: string, limit: number, group?: Group): Quota | undefined {
    return this.#options.memory.refusal(key, limit, group);
  }

  async consume(key: string, limit: number, group?: Group): Promise<Quota> {
    const { memory, link, keyPrefix, windowMs, fail } = this.#options;
    const refused = memory.refusal(key, limit, group);
    if (refused) return refused;
    const { client } = link;
    if (client === undefined || !link.serves('limits')) return this.#fallBack(key, limit, group);
    const askedAt = memory.now();
    const own = { key, limit, name: nameLimited(keyPrefix, key) };
    const limits = group ? [own, { ...group, name: nameLimited(keyPrefix, group.key) }] : [own];
    writeTogether(client);
    try {
      return this.#applyReplies(askedAt, await withDeadline(admit(client, windowMs, limits), REPLY_WAIT_MS));
    } catch (error) {
      fail(error, own.name);
      return this.#fallBack(key, limit, group);
    }
  }

  /**
   * Decides whether the request is admitted, and records the decision in this replica's memory.
   *
   * The request is admitted if both Redis and the memory have a free slot for each key. The reply from Redis alone is
   * not enough: if Redis has just lost its data, it would admit too many requests. The memory decides for a time that
   * is one millisecond ahead, because the clocks of Redis and of this process round differently.
   *
   * The memory records the request with the time of the call. Redis counted the request a little later. So a slot is
   * free in the memory no later than in Redis.
   */
  #applyReplies(askedAt: number, replies: readonly Reply[]): Quota {
    const { memory, counters } = this.#options;
    const decidedAt = memory.now() + 1;
    const decided = replies.map((reply) => ({
      ...reply,
      admitted: reply.used <= reply.limit && !memory.isFull(reply.key, reply.limit, decidedAt),
    }));
    const isAdmitted = decided.every(({ admitted }) => admitted);
    if (isAdmitted) counters.admitted += 1;
    else counters.refused += 1;
    const quotas: Quota[] = [];
    for (const { key, limit, admitted, used, resetMs } of decided) {
      const remaining = Math.max(limit - used, 0);
      if (isAdmitted) memory.record(key, limit, askedAt);
      if (remaining === 0) memory.refuseUntil(key, limit, askedAt + resetMs);
      // If Redis has lost its data, the memory may count more requests than Redis.
      const ofMemory = memory.peek(key, limit, memory.now());
      const quota = ofMemory.remaining < remaining ? ofMemory : { limit, remaining, resetMs };
      quotas.push({ ...quota, admitted });
    }
    const [own, group] = quotas;
    return chooseQuota(own!, group);
  }

  #fallBack(key: string, limit: number, group: Group | undefined): Quota {
    this.#options.counters.fallback += 1;
    return this.#options.memory.admit(key, limit, group);
  }
}

/**
 * Runs `sliding-window.lua` as a command of the client. The arguments are the number of keys, the keys, the window in
 * milliseconds, and a limit for each key. The reply has two numbers for each key.
 */
type Admit = (keyCount: number, ...rest: (string | number)[]) => Promise<number[]>;

/**
 * Runs the limiters' script for one request. Returns the reply for each key. Rejects immediately if there is no
 * connection.
 */
async function admit(
  client: RedisClient & { admit?: Admit },
  windowMs: number,
  limits: readonly KeyLimit[],
): Promise<Reply[]> {
  if (client.status !== 'ready') throw new Error(NOT_CONNECTED);
  if (client.admit === undefined) client.defineCommand('admit', { lua: SLIDING_WINDOW });
  const names = limits.map(({ name }) => name);
  const reply = await client.admit!(names.length, ...names, windowMs, ...limits.map(({ limit }) => limit));
  return limits.map((keyLimit, i) => {
    const [used, resetMs] = reply.slice(2 * i);
    if (used === undefined || resetMs === undefined) throw new Error('the reply of the script is too short');
    return { ...keyLimit, used, resetMs };
  });
}
