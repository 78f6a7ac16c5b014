import { readFileSync } from 'node:fs';
import { PENDING_KINDS, type PendingKind } from '../pending-kinds.ts';
import { PendingUnavailable, type PendingValues } from '../port.ts';
import { describeRedisError, NOT_CONNECTED, REPLY_WAIT_MS, withDeadline } from './calls.ts';
import type { RedisClient } from './clients.ts';
import { namePending, type RedisKeys } from './keys.ts';
import type { RedisLink, RedisSide } from './link.ts';

const KEEP = readFileSync(new URL('./keep-pending.lua', import.meta.url), 'utf8');

/** Deletes the value `KEYS[2]` and its entry in the index `KEYS[1]` if the value equals `ARGV[1]`. */
const TAKE_IF_EQUAL = `
if redis.call('get', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('del', KEYS[2])
redis.call('zrem', KEYS[1], KEYS[2])
return 1`;

/**
 * How long to wait for a reply. This time is longer than that of the rate limiters, because a login waits for people
 * and for the provider anyway.
 */
const WAIT_MS = 5 * REPLY_WAIT_MS;

/** Pending values that all replicas share. Redis deletes expired values, and gives each value to only one caller. */
export class RedisPendingValues implements PendingValues {
  readonly #link: RedisLink;
  readonly #keys: RedisKeys;

  constructor({ link, keys }: RedisSide) {
    this.#link = link;
    this.#keys = keys;
  }

  async keep(kind: PendingKind, key: string, value: string): Promise<void> {
    const { lifeMs, capacity } = PENDING_KINDS[kind];
    const index = this.#keys.pending(kind);
    await this.#ask((client) =>
      client.eval(KEEP, 2, index, namePending(index, key), value, lifeMs, capacity),
    );
  }

  async take(kind: PendingKind, key: string): Promise<string | undefined> {
    const index = this.#keys.pending(kind);
    const name = namePending(index, key);
    return this.#ask(async (client) => {
      const value = await client.getdel(name);
      // Not awaited. If this call fails, the entry in the index counts towards the capacity until the entry expires.
      if (value !== null) void client.zrem(index, name).catch(() => {});
      return value ?? undefined;
    });
  }

  async takeIfEqual(kind: PendingKind, key: string, value: string): Promise<boolean> {
    const index = this.#keys.pending(kind);
    return this.#ask(
      async (client) => (await client.eval(TAKE_IF_EQUAL, 2, index, namePending(index, key), value)) === 1,
    );
  }

  /**
   * Makes one call and waits at most `WAIT_MS` for its reply. If a value arrives later than that, it is lost, because
   * Redis has deleted it already.
   */
  async #ask<T>(call: (client: RedisClient) => Promise<T>): Promise<T> {
    const { client } = this.#link;
    // The check of `limits` also shows whether Redis accepts writes.
    if (client === undefined || !this.#link.serves('limits')) throw new PendingUnavailable(NOT_CONNECTED);
    try {
      return await withDeadline(call(client), WAIT_MS);
    } catch (error) {
      throw new PendingUnavailable(describeRedisError(error));
    }
  }
}
