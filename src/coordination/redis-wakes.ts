import { randomBytes } from 'node:crypto';
import type { Counters, Waiter, WakeBus } from './port.ts';
import type { RedisClient } from './redis-clients.ts';
import type { WaiterRegistry } from './waiters.ts';

/** Topics kept while they cannot be published; beyond it one message wakes everybody. */
const MAX_PENDING = 10_000;

/** Pause before what could not be published is published again. */
const RETRY_MS = 200;

/** Stands for every topic. */
const EVERYBODY = '*';

/** What a shared wake bus is made of. */
export interface RedisWakeParts {
  publisher: RedisClient;
  channel: string;
  waiters: WaiterRegistry;
  counters: Counters;
}

/**
 * Wakes waiters here at once and those of other replicas by one message for all topics of a tick. What could not be
 * published is kept and goes out when Redis is back.
 */
export class RedisWakeBus implements WakeBus {
  readonly #parts: RedisWakeParts;
  /** Marks this replica's messages, which it hears itself as well. */
  readonly #origin = randomBytes(6).toString('base64url');
  #pending = new Set<string>();
  #scheduled = false;

  constructor(parts: RedisWakeParts) {
    this.#parts = parts;
  }

  get connected(): boolean {
    return this.#parts.waiters.connected;
  }

  get held(): number {
    return this.#parts.waiters.held;
  }

  register(topic: string, holder: string): Waiter {
    return this.#parts.waiters.register(topic, holder);
  }

  wake(topic: string): void {
    this.#parts.waiters.wake(topic);
    this.#keep(topic);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => void this.flush());
  }

  drain(spreadMs: number): void {
    this.#parts.waiters.drain(spreadMs);
  }

  /** Takes in a message of any replica. */
  receive(message: string): void {
    const [origin, ...topics] = message.split('\n');
    if (origin === this.#origin) return;
    this.#parts.counters.wakesReceived += topics.length;
    for (const topic of topics) {
      if (topic === EVERYBODY) this.#parts.waiters.wakeAll();
      else this.#parts.waiters.wake(topic);
    }
  }

  /** Publishes what is pending, if Redis is there. Never rejects. */
  async flush(): Promise<void> {
    this.#scheduled = false;
    const { publisher, channel, counters } = this.#parts;
    if (this.#pending.size === 0 || publisher.status !== 'ready') return;
    const topics = this.#pending;
    this.#pending = new Set();
    try {
      await publisher.publish(channel, [this.#origin, ...topics].join('\n'));
      counters.wakesPublished += topics.size;
    } catch {
      for (const topic of topics) this.#keep(topic);
      // A cluster's client stays ready when one of its nodes is lost, so nothing else would say when to try again.
      setTimeout(() => void this.flush(), RETRY_MS).unref();
    }
  }

  #keep(topic: string): void {
    if (this.#pending.size >= MAX_PENDING) this.#pending = new Set([EVERYBODY]);
    if (!this.#pending.has(EVERYBODY)) this.#pending.add(topic);
  }
}
