import type { Redis } from 'ioredis';
import { backOff, describeRedisError } from './calls.ts';
import type { RedisLink } from './link.ts';

/**
 * The first and the longest pause between two attempts to connect. The first pause is short, because perhaps only the
 * connection was lost, and Redis still runs.
 */
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 400;

/** Options of a subscription. */
interface SubscriptionOptions {
  link: RedisLink;
  channels: readonly string[];
  onMessage: (channel: string, message: string) => void;
  /**
   * Called with a short reason when the subscription fails or its connection ends. Messages are lost until the
   * subscription is active again.
   */
  onLost: (reason: string) => void;
}

/**
 * A subscription that knows whether it is active. It is active from the moment when Redis acknowledges it until its
 * connection ends. It connects to the same server as the link's client, and reconnects while the link has a client.
 * ioredis could also resubscribe by itself, but it does not report when the subscription is active again.
 */
export class RedisSubscription {
  readonly #options: SubscriptionOptions;
  #redis: Redis | undefined;
  #isActive = false;
  /** The number of the next attempt to connect. It selects one of the nodes of a cluster. */
  #attempt = 0;
  /** Failed attempts and lost connections since the last successful attempt. */
  #failures = 0;
  #reopenTimer: NodeJS.Timeout | undefined;

  constructor(options: SubscriptionOptions) {
    this.#options = options;
    options.link.onClient(() => this.#open());
  }

  /** The connection, while Redis sends messages through it. */
  get connection(): Redis | undefined {
    return this.#isActive ? this.#redis : undefined;
  }

  end(): void {
    clearTimeout(this.#reopenTimer);
    const redis = this.#redis;
    this.#redis = undefined;
    this.#isActive = false;
    redis?.disconnect();
  }

  /** Closes the connection. If the link has a client, opens a new connection to the server of that client. */
  #open(): void {
    this.end();
    const { client, opener } = this.#options.link;
    if (client === undefined) return;
    const redis = opener.openSubscriber(client, this.#attempt++);
    this.#redis = redis;
    let reason = 'subscription lost';
    redis.on('error', (error: Error) => {
      reason = describeRedisError(error);
    });
    redis.on('message', this.#options.onMessage);
    redis.once('ready', () => void this.#subscribe(redis));
    redis.once('end', () => {
      if (redis === this.#redis) this.#reopen(reason);
    });
  }

  async #subscribe(redis: Redis): Promise<void> {
    try {
      await redis.subscribe(...this.#options.channels);
    } catch (error) {
      if (redis === this.#redis) this.#reopen(describeRedisError(error));
      return;
    }
    if (redis !== this.#redis) return;
    this.#isActive = true;
    this.#failures = 0;
    this.#options.link.checkNow();
  }

  #reopen(reason: string): void {
    this.end();
    this.#options.onLost(reason);
    const pauseMs = backOff(this.#failures++, FIRST_PAUSE_MS, MAX_PAUSE_MS);
    this.#reopenTimer = setTimeout(() => this.#open(), pauseMs);
    this.#reopenTimer.unref();
  }
}
