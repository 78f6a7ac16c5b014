import type { Redis } from 'ioredis';
import { describeRedisError } from './redis-errors.ts';

/** Pace of the heartbeat. A silent connection is cut after this and the socket timeout together: below two seconds. */
const HEARTBEAT_MS = 800;

/** Pauses between attempts, in milliseconds: the first is quick, for a restart or a killed connection. */
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 400;

/** What a subscription is made of. */
export interface SubscriptionParts {
  /** Opens a connection that does not reconnect by itself. */
  open: (attempt: number) => Redis;
  channel: string;
  onMessage: (message: string) => void;
  /** Tells that messages arrive from now on, or may be lost from now on. */
  onConnected: (connected: boolean, reason: string) => void;
}

/**
 * A subscription that says when it can be relied on: connected only after Redis has acknowledged it, and no longer when
 * the connection ends or does not answer. The client's own resubscribing tells neither.
 */
export class RedisSubscription {
  readonly #parts: SubscriptionParts;
  #redis: Redis | undefined;
  #attempt = 0;
  #failures = 0;
  #connected = false;
  #ended = false;
  #reason = 'connection lost';
  #heartbeat: NodeJS.Timeout | undefined;
  #pause: NodeJS.Timeout | undefined;

  constructor(parts: SubscriptionParts) {
    this.#parts = parts;
    this.#connect();
  }

  end(): void {
    this.#ended = true;
    clearTimeout(this.#pause);
    clearInterval(this.#heartbeat);
    this.#redis?.disconnect();
  }

  #connect(): void {
    const redis = this.#parts.open(this.#attempt++);
    this.#redis = redis;
    redis.on('error', (error) => {
      this.#reason = describeRedisError(error);
    });
    redis.on('message', (_channel, message) => this.#parts.onMessage(message));
    redis.once('ready', () => void this.#subscribe(redis));
    redis.once('end', () => this.#reconnect());
  }

  async #subscribe(redis: Redis): Promise<void> {
    try {
      await redis.subscribe(this.#parts.channel);
    } catch (error) {
      this.#reason = describeRedisError(error);
      redis.disconnect();
      return;
    }
    if (this.#ended || redis.status !== 'ready') return;
    this.#failures = 0;
    this.#heartbeat = setInterval(() => redis.ping().catch(() => {}), HEARTBEAT_MS);
    this.#heartbeat.unref();
    this.#setConnected(true);
  }

  #reconnect(): void {
    clearInterval(this.#heartbeat);
    this.#setConnected(false);
    if (this.#ended) return;
    const pauseMs =
      Math.min(FIRST_PAUSE_MS * 2 ** this.#failures++, MAX_PAUSE_MS) * (0.75 + Math.random() / 2);
    this.#pause = setTimeout(() => this.#connect(), pauseMs);
    this.#pause.unref();
  }

  #setConnected(connected: boolean): void {
    if (this.#connected === connected) return;
    this.#connected = connected;
    this.#parts.onConnected(connected, this.#reason);
    this.#reason = 'connection lost';
  }
}
