import { Redis } from 'ioredis';
import { ChannelsRefused, type Clock } from './port.ts';
import { NOT_CONNECTED } from './redis-calls.ts';
import type { RedisClient } from './redis-clients.ts';
import type { RedisLink, RedisSide } from './redis-link.ts';
import { asRefusal, RedisShard, type WakeChannel } from './redis-shard.ts';
import { ShardSubscriptions } from './redis-shard-subscriptions.ts';
import {
  type BeatNamer,
  groupForCommands,
  listOwners,
  nameBeats,
  ownerOf,
  refreshSlots,
} from './redis-slots.ts';
import type { WaiterRegistry } from './waiters.ts';

/** How long the nodes of a cluster are given to tell each other who has a slot, before they are asked. */
const SETTLE_MS = 100;

/** A cluster whose nodes say that a slot has another owner, and whose owner has not ended its subscriptions, has so long to do it. */
const STALE_MS = 1_000;

/** What the connections are made of. */
export interface ShardsOptions {
  side: RedisSide;
  /** Names this replica's heartbeats. */
  origin: string;
  waiters: WaiterRegistry;
  onMessage: (message: string) => void;
}

/**
 * Wakes by sharded channels (SSUBSCRIBE): one for each subject, subscribed to while a waiter of this replica needs it, at the
 * server that has its slot. Keeps a connection to each server that has slots, checks that it has all subscriptions, and moves them
 * with their slots.
 */
export class RedisShards {
  readonly #link: RedisLink;
  readonly #clock: Clock;
  readonly #onMessage: (message: string) => void;
  readonly #nameBeat: BeatNamer;
  readonly #shards = new Map<string, RedisShard>();
  readonly #subscriptions: ShardSubscriptions;
  readonly #refusal = Promise.withResolvers<never>();
  #cancelSettle: (() => void) | undefined;
  #settlesAt = Number.POSITIVE_INFINITY;

  constructor({ side, origin, waiters, onMessage }: ShardsOptions) {
    this.#link = side.link;
    this.#clock = side.clock;
    this.#onMessage = onMessage;
    this.#nameBeat = nameBeats(side.keys, origin);
    const findShard = (node: string | undefined) => (node === undefined ? undefined : this.#shards.get(node));
    this.#subscriptions = new ShardSubscriptions({ side, waiters, findShard });
    this.#refusal.promise.catch(() => {});
    waiters.listenThrough(this.#subscriptions);
    side.link.onClient((client) => this.#move(client));
  }

  /** Rejects with `ChannelsRefused` where the server knows no sharded channels, or this user may have none. */
  get refusal(): Promise<never> {
    return this.#refusal.promise;
  }

  /** Channels that this replica hears now. */
  get subscribed(): number {
    let count = 0;
    for (const { channels } of this.#shards.values()) count += channels.size;
    return count;
  }

  /** Connects to each server that has channels; throws until each takes subscriptions. */
  connect(client: RedisClient): void {
    this.#openAll(client);
    this.#subscriptions.flush();
    for (const shard of this.#shards.values()) if (!shard.isReady) throw new Error(NOT_CONNECTED);
  }

  /** Resolves once every server of channels has all subscriptions, and its heartbeat was heard. */
  async check(client: RedisClient): Promise<void> {
    await Promise.all([...this.#shards.values()].map((shard) => this.#prove(client, shard)));
  }

  end(): void {
    this.#subscriptions.end();
    this.#cancelSettle?.();
    this.#move(undefined);
  }

  /** The link has another client, or none. */
  #move(client: RedisClient | undefined): void {
    for (const shard of this.#shards.values()) shard.end(new Error(NOT_CONNECTED));
    if (client === undefined) return;
    if (!(client instanceof Redis)) client.on('refresh', () => this.#noticeMoved(client));
    this.#openAll(client);
  }

  /** Connects to each server that has channels, and leaves those that have none any more. */
  #openAll(client: RedisClient): void {
    const nodes = listOwners(client);
    for (const [node, shard] of this.#shards) {
      if (!nodes.has(node)) shard.end(new Error('the server has no channels any more'));
    }
    for (const node of nodes) if (!this.#shards.has(node)) this.#open(client, node);
  }

  #open(client: RedisClient, node: string): void {
    const beatChannel = this.#nameBeat(client, node);
    const redis = beatChannel && this.#link.opener.openShardSubscriber(client, node);
    if (!redis) return;
    const shard = new RedisShard(node, redis, beatChannel, {
      onReady: () => {
        this.#subscriptions.flush();
        this.#link.checkNow();
      },
      onMessage: this.#onMessage,
      onMoved: () => this.#settleSoon(SETTLE_MS),
      onLost: (lost, error) => this.#lose(lost, error),
    });
    this.#shards.set(node, shard);
  }

  async #prove(client: RedisClient, shard: RedisShard): Promise<void> {
    try {
      await this.#count(shard);
      await shard.beat(client);
    } catch (error) {
      throw this.#noticeRefusal(error);
    }
  }

  /** Has channels subscribed to again where the server has ended some of them. */
  async #count(shard: RedisShard): Promise<void> {
    if (await shard.holdsAll()) return;
    this.#subscriptions.release([...shard.channels]);
    this.#subscriptions.flush();
  }

  #noticeRefusal(error: unknown): unknown {
    const refusal = asRefusal(error);
    if (refusal instanceof ChannelsRefused) this.#refusal.reject(refusal);
    return refusal;
  }

  #lose(shard: RedisShard, error: unknown): void {
    if (this.#shards.get(shard.node) === shard) this.#shards.delete(shard.node);
    this.#subscriptions.lose(shard);
    const { client } = this.#link;
    if (client === undefined) return;
    void refreshSlots(client);
    this.#link.fail('wakes', this.#noticeRefusal(error));
  }

  /** The nodes say that slots have other owners. Whoever had them ends its subscriptions; where it does not, this replica does. */
  #noticeMoved(client: RedisClient): void {
    if (client !== this.#link.client) return;
    const moved = [...this.#shards.values()].some((shard) => listMoved(client, shard).length > 0);
    if (moved) this.#settleSoon(STALE_MS);
  }

  #settleSoon(pauseMs: number): void {
    const at = this.#clock.now() + pauseMs;
    if (this.#settlesAt <= at) return;
    this.#settlesAt = at;
    this.#cancelSettle?.();
    this.#cancelSettle = this.#clock.after(pauseMs, () => void this.#settle());
  }

  /** Asks who has which slot, and subscribes there. */
  async #settle(): Promise<void> {
    this.#settlesAt = Number.POSITIVE_INFINITY;
    const { client } = this.#link;
    if (client === undefined) return;
    await refreshSlots(client);
    if (client !== this.#link.client) return;
    this.#openAll(client);
    for (const shard of this.#shards.values()) {
      const moved = listMoved(client, shard);
      for (const group of groupForCommands(client, moved)) shard.unsubscribe(group);
      this.#subscriptions.release(moved);
      if (ownerOf(client, shard.beatSlot) !== shard.node) shard.moveBeat(this.#nameBeat(client, shard.node)!);
    }
    this.#subscriptions.flush();
    for (const shard of this.#shards.values()) {
      if (shard.isReady) await this.#count(shard).catch((error: unknown) => this.#link.fail('wakes', error));
    }
  }
}

/** The channels of a shard whose slots the cluster says are another's. */
const listMoved = (client: RedisClient, shard: RedisShard): WakeChannel[] =>
  [...shard.channels].filter(({ slot }) => ownerOf(client, slot) !== shard.node);
