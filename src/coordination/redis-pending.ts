import { readFileSync } from 'node:fs';
import { ANSWER_WAIT_MS, type Circuit } from './circuit.ts';
import { withDeadline } from './deadline.ts';
import { namePending, type RedisKeys } from './keys.ts';
import { PENDING_KINDS, type PendingKind } from './pending-kinds.ts';
import { PendingUnavailable, type PendingValues } from './port.ts';
import type { RedisClient } from './redis-clients.ts';
import { describeRedisError, NOT_CONNECTED } from './redis-errors.ts';

const KEEP = readFileSync(new URL('./keep-pending.lua', import.meta.url), 'utf8');

/** A login waits for people and for the provider: Redis may take longer than for a request that is only counted. */
const WAIT_MS = 5 * ANSWER_WAIT_MS;

/** Pending values that all replicas share. Redis expires them, and gives each to one caller (`GETDEL`). */
export class RedisPendingValues implements PendingValues {
  readonly #client: RedisClient;
  readonly #circuit: Circuit;
  readonly #keys: RedisKeys;

  constructor(client: RedisClient, circuit: Circuit, keys: RedisKeys) {
    this.#client = client;
    this.#circuit = circuit;
    this.#keys = keys;
  }

  async keep(kind: PendingKind, key: string, value: string): Promise<void> {
    const { lifeMs, capacity } = PENDING_KINDS[kind];
    const index = this.#keys.pending(kind);
    await this.#ask(() =>
      this.#client.eval(KEEP, 2, index, namePending(index, key), value, lifeMs, capacity),
    );
  }

  async take(kind: PendingKind, key: string): Promise<string | undefined> {
    const index = this.#keys.pending(kind);
    const name = namePending(index, key);
    const value = await this.#ask(() => this.#client.getdel(name));
    // Nobody waits for this: an entry that stays only counts until it expires.
    if (value !== null) void this.#client.zrem(index, name).catch(() => {});
    return value ?? undefined;
  }

  /** One call, at most `WAIT_MS` long. The value of a `take` that comes later is lost, and never given twice. */
  async #ask<T>(call: () => Promise<T>): Promise<T> {
    if (!this.#circuit.closed) throw new PendingUnavailable(NOT_CONNECTED);
    try {
      return await withDeadline(call(), WAIT_MS);
    } catch (error) {
      throw new PendingUnavailable(describeRedisError(error));
    }
  }
}
