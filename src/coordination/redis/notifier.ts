import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import type { Counters, Notifier, Waiter } from '../port.ts';
import type { WaiterRegistry } from '../waiters.ts';
import { NOT_CONNECTED, REPLY_WAIT_MS, withDeadline } from './calls.ts';
import type { RedisClient } from './clients.ts';
import type { RedisLink, RedisSide } from './link.ts';
import { RedisSubscription } from './subscription.ts';

/** The maximum number of channels in a set. A set that would grow larger contains only `EVERYBODY` instead. */
const MAX_KEPT = 10_000;

/** In a message, this name stands for all channels. It makes the waits of all waiters end with `check`. */
const EVERYBODY = '*';

/** After this many lost heartbeats in a row, this replica closes its connections to Redis and opens new ones. */
const MAX_MISSED = 2;

/**
 * Wakes the waiters of this replica immediately. For other replicas, it publishes one message with all channels that
 * were notified in the same tick.
 *
 * Redis does not say whether a message was delivered. So each check publishes a heartbeat, which this replica receives
 * through its own subscription. A heartbeat that arrives shows that all earlier messages were delivered. A notified
 * channel is in one of these sets until a heartbeat has shown that the channel's message was delivered:
 *
 * - `#pending`: it is not published yet.
 * - `#publishedAfter`: it was published after the latest heartbeat was sent.
 * - `#publishedBefore`: it was published before that heartbeat. The set is emptied when the heartbeat arrives.
 *
 * While Redis does not deliver notifications, every check moves the channels of the last two sets to `#pending`. So
 * they are published again before the next heartbeat.
 */
export class RedisNotifier implements Notifier {
  readonly #link: RedisLink;
  readonly #redisChannel: string;
  readonly #counters: Counters;
  readonly #waiters: WaiterRegistry;
  /** The first line of each notification message of this replica. The replica recognizes its own messages by it. */
  readonly #instanceId = randomBytes(6).toString('base64url');
  readonly #beatChannel: string;
  readonly #subscription: RedisSubscription;
  #pending = new Set<string>();
  #publishedAfter = new Set<string>();
  #publishedBefore = new Set<string>();
  #isScheduled = false;
  /** The number of the latest heartbeat, and a promise that resolves when that heartbeat arrives. */
  #beats = 0;
  #heard = Promise.withResolvers<void>();
  /** How many heartbeats in a row have not arrived. */
  #missed = 0;
  /** How many calls of `#send` failed. Selects the node of a cluster for the next call. */
  #failures = 0;

  constructor(side: RedisSide, waiters: WaiterRegistry) {
    const { link, keys, counters } = side;
    this.#link = link;
    this.#redisChannel = keys.wakes;
    this.#counters = counters;
    this.#waiters = waiters;
    this.#beatChannel = keys.beats(this.#instanceId);
    this.#subscription = new RedisSubscription({
      link,
      channels: [this.#redisChannel, this.#beatChannel],
      onMessage: (redisChannel, message) => {
        if (redisChannel === this.#redisChannel) this.#receive(message);
        else if (message === String(this.#beats)) this.#heard.resolve();
      },
      onLost: (reason) => link.fail('wakes', new Error(reason)),
    });
    link.addCheck('wakes', ({ main }) => this.#check(main));
  }

  get connected(): boolean {
    return this.#waiters.connected;
  }

  get held(): number {
    return this.#waiters.held;
  }

  get returnSpreadMs(): number {
    return this.#waiters.returnSpreadMs;
  }

  register(channel: string, holder: string): Waiter {
    return this.#waiters.register(channel, holder);
  }

  notify(channel: string): void {
    this.#waiters.notify(channel);
    addChannels(this.#pending, [channel]);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => void this.#publishSoon());
  }

  drain(spreadMs: number): void {
    this.#waiters.drain(spreadMs);
  }

  /** Publishes the pending channels if it can, and ends the subscription. Never rejects. */
  async close(): Promise<void> {
    const { client } = this.#link;
    if (client) await withDeadline(this.#publish(client), REPLY_WAIT_MS).catch(() => {});
    this.#subscription.end();
  }

  async #publishSoon(): Promise<void> {
    this.#isScheduled = false;
    const link = this.#link;
    // While Redis does not deliver notifications, only `#check` publishes. An attempt for each notification would be
    // useless work.
    if (link.client === undefined || !link.serves('wakes')) return;
    await this.#publish(link.client).catch((error: unknown) => link.fail('wakes', error));
  }

  /** Publishes the pending channels. If that fails, rejects and keeps them for the next attempt. */
  async #publish(client: RedisClient): Promise<void> {
    const channels = this.#pending;
    if (channels.size === 0) return;
    this.#pending = new Set();
    try {
      await this.#send(client, this.#redisChannel, [this.#instanceId, ...channels].join('\n'));
      addChannels(this.#publishedAfter, channels);
      this.#counters.wakesPublished += channels.size;
    } catch (error) {
      addChannels(this.#pending, channels);
      throw error;
    }
  }

  /** Publishes the pending channels, then a heartbeat. Resolves when this replica has received the heartbeat. */
  async #check(client: RedisClient): Promise<void> {
    const link = this.#link;
    if (this.#subscription.connection === undefined) throw new Error(NOT_CONNECTED);
    if (this.#missed >= MAX_MISSED) {
      this.#missed = 0;
      // The link ignores the outcome of this check, because `reconnect` replaces the client.
      return link.reconnect('heartbeat not heard');
    }
    addChannels(this.#publishedBefore, this.#publishedAfter);
    this.#publishedAfter.clear();
    if (!link.serves('wakes')) {
      addChannels(this.#pending, this.#publishedBefore);
      this.#publishedBefore.clear();
    }
    await this.#publish(client);
    await this.#beat(client);
    this.#publishedBefore.clear();
  }

  async #beat(client: RedisClient): Promise<void> {
    const beat = String(++this.#beats);
    this.#heard = Promise.withResolvers();
    await this.#send(client, this.#beatChannel, beat);
    // The heartbeat counts as missed until it arrives.
    this.#missed += 1;
    await this.#heard.promise;
    this.#missed = 0;
  }

  async #send(client: RedisClient, channel: string, message: string): Promise<void> {
    try {
      await withDeadline(this.#publisherOf(client).publish(channel, message), REPLY_WAIT_MS);
    } catch (error) {
      this.#failures += 1;
      throw error;
    }
  }

  #receive(message: string): void {
    const [instanceId, ...channels] = message.split('\n');
    if (instanceId === this.#instanceId) return;
    this.#counters.wakesReceived += channels.length;
    for (const channel of channels) {
      if (channel === EVERYBODY) this.#waiters.checkAll();
      else this.#waiters.notify(channel);
    }
  }

  /**
   * Returns the connection to publish with. In a cluster, the subscription uses one node. This function chooses another
   * node if there is one. So a heartbeat arrives only if the nodes pass messages on to each other, as they must do for
   * notifications.
   */
  #publisherOf(client: RedisClient): RedisClient {
    if (client instanceof Redis) return client;
    const nodes = client.nodes();
    const subscribed = this.#subscription.connection?.options;
    const others = nodes.filter(
      ({ options }) => options.host !== subscribed?.host || options.port !== subscribed?.port,
    );
    const candidates = others.length > 0 ? others : nodes;
    return candidates[this.#failures % candidates.length] ?? client;
  }
}

/** Adds channels to a set. If the set would exceed `MAX_KEPT`, it then contains only `EVERYBODY`. */
function addChannels(channels: Set<string>, more: Iterable<string>): void {
  for (const channel of more) {
    if (channels.has(EVERYBODY)) return;
    channels.add(channel);
    if (channel !== EVERYBODY && channels.size <= MAX_KEPT) continue;
    channels.clear();
    channels.add(EVERYBODY);
  }
}
