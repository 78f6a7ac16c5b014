import type { Redis } from 'ioredis';
import type { Endpoint, RedisSentinels } from './address.ts';
import { chooseServer, untilReady, withDeadline } from './calls.ts';

/** How long a Sentinel may take to respond. After this time, the next Sentinel is asked. */
const SENTINEL_WAIT_MS = 500;

/** Asks Sentinels where the master is, over one connection to the Sentinel that responded most recently. */
export class SentinelWatch {
  readonly address: RedisSentinels;
  readonly #open: (sentinel: Endpoint) => Redis;
  #redis: Redis | undefined;
  /** The number of the next attempt to connect. It selects one of the Sentinels. */
  #attempt = 0;

  /** `open` opens a connection to a Sentinel. The connection must not reconnect by itself. */
  constructor(address: RedisSentinels, open: (sentinel: Endpoint) => Redis) {
    this.address = address;
    this.#open = open;
  }

  /** Returns the master's address, from the first Sentinel that knows it. Rejects if none knows it. */
  async findMaster(): Promise<Endpoint> {
    const { sentinels, name } = this.address;
    let lastError: unknown;
    // After a fault, `#connect` chooses the next Sentinel. So each Sentinel is asked once at most.
    for (const _each of sentinels) {
      try {
        const redis = await this.#connect();
        const reply = await withDeadline(
          redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name),
          SENTINEL_WAIT_MS,
        );
        if (Array.isArray(reply)) return { host: String(reply[0]), port: Number(reply[1]) };
        throw new Error('the Sentinels do not know the master by this name');
      } catch (error) {
        lastError = error;
        this.end();
      }
    }
    throw lastError;
  }

  end(): void {
    this.#redis?.disconnect();
    this.#redis = undefined;
  }

  async #connect(): Promise<Redis> {
    if (this.#redis?.status === 'ready') return this.#redis;
    this.end();
    const { sentinels } = this.address;
    const redis = this.#open(chooseServer(sentinels, this.#attempt++));
    this.#redis = redis;
    await withDeadline(untilReady(redis), SENTINEL_WAIT_MS);
    return redis;
  }
}
