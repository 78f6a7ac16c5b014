import type { Counters } from './port.ts';
import type { RedisClient } from './redis-clients.ts';
import type { RedisLink, RedisSide } from './redis-link.ts';
import type { RedisShard, WakeChannel } from './redis-shard.ts';
import { groupForCommands, ownerOf } from './redis-slots.ts';
import { SubjectChannels } from './subject-channels.ts';
import type { TopicListener, WaiterRegistry } from './waiters.ts';

/** Channels of one shard that are subscribed to at a time: heartbeats come in between. */
const SUBSCRIBED_TOGETHER = 500;

/** What the subscriptions are made of. */
export interface ShardSubscriptionsOptions {
  side: RedisSide;
  waiters: WaiterRegistry;
  /** The connection to the server that has a slot, where there is one. */
  findShard: (node: string | undefined) => RedisShard | undefined;
}

/**
 * Keeps the channels that waiters want subscribed to, each at the server that has its slot. A topic is heard from Redis'
 * acknowledgement until its channel is released. Whenever a topic is heard again its waiters check, for its wakes may have been
 * lost until then.
 */
export class ShardSubscriptions implements TopicListener {
  readonly #link: RedisLink;
  readonly #counters: Counters;
  readonly #waiters: WaiterRegistry;
  readonly #findShard: ShardSubscriptionsOptions['findShard'];
  readonly #channels: SubjectChannels;
  /** Shards whose last subscriptions are not acknowledged yet. */
  readonly #busy = new Set<RedisShard>();
  #heldAgain: string[] = [];
  #isFlushing = false;

  constructor({ side, waiters, findShard }: ShardSubscriptionsOptions) {
    const { link, keys, clock, counters } = side;
    this.#link = link;
    this.#counters = counters;
    this.#waiters = waiters;
    this.#findShard = findShard;
    this.#channels = new SubjectChannels({ keys, clock, onLeft: (left) => this.#unsubscribe(left) });
  }

  hears(topic: string): boolean {
    return this.#channels.find(topic)?.isHeld === true;
  }

  enter(topic: string): void {
    this.#channels.enter(topic);
  }

  want(topic: string): void {
    const channel = this.#channels.find(topic);
    if (channel === undefined || channel.isWanted) return;
    channel.isWanted = true;
    this.#channels.unsent.add(channel);
    this.#flushSoon();
  }

  leave(topic: string): void {
    this.#channels.leave(topic);
  }

  end(): void {
    this.#channels.end();
  }

  /** The shard's connection has ended, and its channels are not held any more. */
  lose(shard: RedisShard): void {
    this.#busy.delete(shard);
    this.release([...shard.channels]);
  }

  /** These channels are not held any more. Those that somebody waits for are subscribed to again by the next flush. */
  release(channels: readonly WakeChannel[]): void {
    for (const channel of channels) {
      channel.shard?.channels.delete(channel);
      channel.shard = undefined;
      const wasHeld = channel.isHeld;
      channel.isHeld = false;
      this.#channels.lose(channel);
      if (!wasHeld) continue;
      this.#counters.wakeChannelsLost += 1;
      this.#waiters.loseTopics(channel.topics);
    }
  }

  /** Subscribes to what is wanted, some of it at a time. */
  flush(): void {
    const { client } = this.#link;
    const { unsent } = this.#channels;
    if (client === undefined || unsent.size === 0) return;
    const batches = new Map<RedisShard, WakeChannel[]>();
    for (const channel of unsent) {
      const shard = this.#findShard(ownerOf(client, channel.slot));
      if (shard === undefined || !shard.isReady || this.#busy.has(shard)) continue;
      const batch = batches.get(shard) ?? [];
      if (batch.length >= SUBSCRIBED_TOGETHER) continue;
      batches.set(shard, batch);
      batch.push(channel);
      unsent.delete(channel);
    }
    for (const [shard, batch] of batches) void this.#subscribe(client, shard, batch);
  }

  #flushSoon(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => {
      this.#isFlushing = false;
      this.flush();
    });
  }

  async #subscribe(client: RedisClient, shard: RedisShard, batch: readonly WakeChannel[]): Promise<void> {
    this.#busy.add(shard);
    let isRefused = false;
    const sending = groupForCommands(client, batch).map(async (group) => {
      const still = () => group.filter((channel) => channel.shard === shard);
      try {
        await shard.subscribe(group);
        this.#hold(still());
      } catch (error) {
        isRefused = true;
        this.release(still());
        if (!(error as Error).message.startsWith('MOVED')) this.#link.fail('wakes', error);
      }
    });
    await Promise.all(sending);
    this.#busy.delete(shard);
    // What was refused would be so again, until it is known who has the slot.
    if (!isRefused) this.#flushSoon();
  }

  /** The server has acknowledged these channels. What was lost before is found by a check of each waiter. */
  #hold(channels: readonly WakeChannel[]): void {
    if (this.#heldAgain.length === 0) setImmediate(() => this.#checkHeld());
    for (const channel of channels) {
      channel.isHeld = true;
      this.#heldAgain.push(...channel.topics);
    }
  }

  #checkHeld(): void {
    const topics = this.#heldAgain;
    this.#heldAgain = [];
    this.#waiters.checkTopics(topics);
  }

  #unsubscribe(channels: readonly WakeChannel[]): void {
    const { client } = this.#link;
    for (const [shard, some] of Map.groupBy(channels, (channel) => channel.shard)) {
      for (const channel of some) {
        channel.shard = undefined;
        channel.isHeld = false;
      }
      if (client === undefined || shard === undefined) continue;
      for (const group of groupForCommands(client, some)) shard.unsubscribe(group);
    }
  }
}
