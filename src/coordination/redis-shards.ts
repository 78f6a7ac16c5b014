import { Redis } from 'ioredis';
import type { RedisKeys } from './keys.ts';
import { ChannelsRefused, type Clock, type Counters } from './port.ts';
import { NOT_CONNECTED, REPLY_WAIT_MS, withDeadline } from './redis-calls.ts';
import { type RedisClient, slotOf, writeTogether } from './redis-clients.ts';
import type { RedisLink, RedisSide } from './redis-link.ts';
import { asRefusal, RedisShard, type WakeChannel } from './redis-shard.ts';
import { subjectOf } from './topics.ts';
import type { TopicListener, WaiterRegistry } from './waiters.ts';

/** A channel stays subscribed to for so long after its last waiter: most clients poll again at once. */
const LINGER_MS = 10_000;

/** Pace at which channels that nobody needs any more are left, many in one write. */
const SWEEP_MS = 1_000;

/** Channels of one shard that are subscribed to at a time: heartbeats come in between. */
const SUBSCRIBED_TOGETHER = 500;

/** Wakes that are published at a time. */
const PUBLISHED_TOGETHER = 500;

/** How long the nodes of a cluster are given to tell each other who has a slot, before they are asked. */
const SETTLE_MS = 100;

/** A cluster whose nodes say that a slot has another owner, and whose owner has not ended its subscriptions, has so long to do it. */
const STALE_MS = 1_000;

/** Names that are tried for a heartbeat's channel: enough for a server that has one slot alone. */
const BEAT_NAMES = 300_000;

/** The one server where there is no cluster. */
const ONLY = '';

/** What the subscriptions are made of. */
export interface ShardsOptions {
  side: RedisSide;
  /** Marks this replica's messages. */
  origin: string;
  waiters: WaiterRegistry;
  onMessage: (message: string) => void;
}

/**
 * Wakes by sharded channels (SSUBSCRIBE, SPUBLISH): one for each subject, subscribed to while a waiter of this replica needs it,
 * at the server that has its slot. A topic is heard from Redis' acknowledgement until the connection ends, or the server gives up
 * the slot. Whenever a topic is heard again its waiters check, for its wakes may have been lost until then.
 */
export class RedisShards implements TopicListener {
  readonly #link: RedisLink;
  readonly #keys: RedisKeys;
  readonly #clock: Clock;
  readonly #counters: Counters;
  readonly #origin: string;
  readonly #waiters: WaiterRegistry;
  readonly #onMessage: (message: string) => void;
  /** By subject. */
  readonly #channels = new Map<string, WakeChannel>();
  readonly #shards = new Map<string, RedisShard>();
  /** Wanted, and not subscribed to. */
  #unsent = new Set<WakeChannel>();
  /** Shards whose last subscriptions are not acknowledged yet. */
  readonly #busy = new Set<RedisShard>();
  /** Nobody waits for them; with the time since when, the first ones first. */
  readonly #lingering = new Map<WakeChannel, number>();
  #heldAgain: string[] = [];
  /** The slots of the names that heartbeats may have, as far as they were needed. */
  readonly #beatSlots: number[] = [];
  readonly #refusal = Promise.withResolvers<never>();
  #isFlushing = false;
  #cancelSweep: (() => void) | undefined;
  #cancelSettle: (() => void) | undefined;
  #settlesAt = Number.POSITIVE_INFINITY;

  constructor({ side, origin, waiters, onMessage }: ShardsOptions) {
    this.#link = side.link;
    this.#keys = side.keys;
    this.#clock = side.clock;
    this.#counters = side.counters;
    this.#origin = origin;
    this.#waiters = waiters;
    this.#onMessage = onMessage;
    this.#refusal.promise.catch(() => {});
    waiters.listenThrough(this);
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

  hears(topic: string): boolean {
    return this.#channels.get(subjectOf(topic))?.isHeld === true;
  }

  enter(topic: string): void {
    const subject = subjectOf(topic);
    const channel = this.#channels.get(subject) ?? openChannel(subject, this.#keys.wakesOf(subject));
    this.#channels.set(subject, channel);
    channel.topics.add(topic);
    this.#lingering.delete(channel);
  }

  want(topic: string): void {
    const channel = this.#channels.get(subjectOf(topic));
    if (channel === undefined || channel.isWanted) return;
    channel.isWanted = true;
    this.#unsent.add(channel);
    this.#flushSoon();
  }

  leave(topic: string): void {
    const channel = this.#channels.get(subjectOf(topic))!;
    channel.topics.delete(topic);
    if (channel.topics.size > 0) return;
    if (channel.shard === undefined) {
      this.#forget(channel);
      return;
    }
    this.#lingering.set(channel, this.#clock.now());
    this.#cancelSweep ??= this.#clock.after(SWEEP_MS, () => this.#sweep());
  }

  /** Publishes the topics, those of a subject in one message. Never rejects: says which could not be, and why. */
  async publish(
    client: RedisClient,
    topics: Iterable<string>,
  ): Promise<{ failed: string[]; error: unknown }> {
    const messages = [...Map.groupBy(topics, subjectOf)];
    const failed: string[] = [];
    let lastError: unknown;
    for (let from = 0; from < messages.length; from += PUBLISHED_TOGETHER) {
      const unsent = new Set(messages.slice(from, from + PUBLISHED_TOGETHER));
      writeTogether(client);
      const sending = [...unsent].map(async (message) => {
        const [subject, some] = message;
        await client.spublish(this.#keys.wakesOf(subject), [this.#origin, ...some].join('\n'));
        unsent.delete(message);
      });
      for (const each of sending) each.catch(() => {});
      await withDeadline(Promise.all(sending), REPLY_WAIT_MS).catch((error: unknown) => {
        lastError = error;
      });
      for (const [, some] of unsent) failed.push(...some);
    }
    return { failed, error: lastError };
  }

  /** Connects to each server that has channels; throws until each takes subscriptions. */
  connect(client: RedisClient): void {
    this.#openAll(client);
    this.#flush();
    for (const shard of this.#shards.values()) if (!shard.isReady) throw new Error(NOT_CONNECTED);
  }

  /** Resolves once every server of channels has all subscriptions, and its heartbeat was heard. */
  async check(client: RedisClient): Promise<void> {
    await Promise.all([...this.#shards.values()].map((shard) => this.#prove(client, shard)));
  }

  end(): void {
    this.#cancelSweep?.();
    this.#cancelSettle?.();
    this.#move(undefined);
  }

  #forget(channel: WakeChannel): void {
    this.#lingering.delete(channel);
    this.#unsent.delete(channel);
    this.#channels.delete(channel.subject);
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
    const nodes = client instanceof Redis ? new Set([ONLY]) : new Set(client.slots.map((keys) => keys[0]!));
    for (const [node, shard] of this.#shards) {
      if (!nodes.has(node)) shard.end(new Error('the server has no channels any more'));
    }
    for (const node of nodes) {
      if (this.#shards.has(node)) continue;
      const beatChannel = this.#nameBeat(client, node);
      const redis = beatChannel && this.#link.opener.openShardSubscriber(client, node);
      if (!redis) continue;
      const shard = new RedisShard(node, redis, beatChannel, {
        onReady: () => {
          this.#flush();
          this.#link.checkNow();
        },
        onMessage: this.#onMessage,
        onMoved: () => this.#settleSoon(SETTLE_MS),
        onLost: (lost, error) => this.#lose(lost, error),
      });
      this.#shards.set(node, shard);
    }
  }

  /** A channel of this replica's own whose slot the server has; `undefined` where it has none. */
  #nameBeat(client: RedisClient, node: string): string | undefined {
    for (let n = 0; n < BEAT_NAMES; n += 1) {
      const slot = this.#beatSlots[n] ?? slotOf(this.#keys.beats(`${this.#origin}.${n}`));
      this.#beatSlots[n] = slot;
      if (ownerOf(client, slot) === node) return this.#keys.beats(`${this.#origin}.${n}`);
    }
    return undefined;
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
    this.#release([...shard.channels]);
    this.#flush();
  }

  #noticeRefusal(error: unknown): unknown {
    const refusal = asRefusal(error);
    if (refusal instanceof ChannelsRefused) this.#refusal.reject(refusal);
    return refusal;
  }

  #lose(shard: RedisShard, error: unknown): void {
    if (this.#shards.get(shard.node) === shard) this.#shards.delete(shard.node);
    this.#busy.delete(shard);
    this.#release([...shard.channels]);
    const { client } = this.#link;
    if (client === undefined) return;
    if (!(client instanceof Redis)) client.refreshSlotsCache();
    this.#link.fail('wakes', this.#noticeRefusal(error));
  }

  /** These channels are not held any more. Those that somebody waits for are subscribed to again by the next flush. */
  #release(channels: readonly WakeChannel[]): void {
    for (const channel of channels) {
      channel.shard?.channels.delete(channel);
      channel.shard = undefined;
      const wasHeld = channel.isHeld;
      channel.isHeld = false;
      if (channel.topics.size === 0) this.#forget(channel);
      else this.#unsent.add(channel);
      if (!wasHeld) continue;
      this.#counters.wakeChannelsLost += 1;
      this.#waiters.loseTopics(channel.topics);
    }
  }

  #flushSoon(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => {
      this.#isFlushing = false;
      this.#flush();
    });
  }

  /** Subscribes to what is wanted, some of it at a time. */
  #flush(): void {
    const { client } = this.#link;
    if (client === undefined || this.#unsent.size === 0) return;
    const batches = new Map<RedisShard, WakeChannel[]>();
    for (const channel of this.#unsent) {
      const shard = this.#shards.get(ownerOf(client, channel.slot) ?? ONLY);
      if (shard === undefined || !shard.isReady || this.#busy.has(shard)) continue;
      const batch = batches.get(shard) ?? [];
      if (batch.length >= SUBSCRIBED_TOGETHER) continue;
      batches.set(shard, batch);
      batch.push(channel);
      this.#unsent.delete(channel);
    }
    for (const [shard, batch] of batches) void this.#subscribe(client, shard, batch);
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
        this.#release(still());
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

  #sweep(): void {
    this.#cancelSweep = undefined;
    const before = this.#clock.now() - LINGER_MS;
    const left: WakeChannel[] = [];
    for (const [channel, since] of this.#lingering) {
      if (since > before) break;
      left.push(channel);
    }
    for (const channel of left) this.#forget(channel);
    this.#unsubscribe(left);
    if (this.#lingering.size > 0) this.#cancelSweep = this.#clock.after(SWEEP_MS, () => this.#sweep());
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
    if (!(client instanceof Redis))
      await new Promise<void>((resolve) => client.refreshSlotsCache(() => resolve()));
    if (client !== this.#link.client) return;
    this.#openAll(client);
    for (const shard of this.#shards.values()) {
      const moved = listMoved(client, shard);
      for (const group of groupForCommands(client, moved)) shard.unsubscribe(group);
      this.#release(moved);
      if (ownerOf(client, shard.beatSlot) !== shard.node) shard.moveBeat(this.#nameBeat(client, shard.node)!);
    }
    this.#flush();
    for (const shard of this.#shards.values()) {
      if (shard.isReady) await this.#count(shard).catch((error: unknown) => this.#link.fail('wakes', error));
    }
  }
}

const openChannel = (subject: string, name: string): WakeChannel => ({
  ...{ subject, name, slot: slotOf(name), topics: new Set<string>() },
  ...{ isWanted: false, shard: undefined, isHeld: false },
});

/** The server that a slot's channels are at; `undefined` where nobody has the slot. */
const ownerOf = (client: RedisClient, slot: number): string | undefined =>
  client instanceof Redis ? ONLY : client.slots[slot]?.[0];

/** The channels of a shard whose slots the cluster says are another's. */
const listMoved = (client: RedisClient, shard: RedisShard): WakeChannel[] =>
  [...shard.channels].filter(({ slot }) => ownerOf(client, slot) !== shard.node);

/** Channels by commands: in a cluster each command names those of one slot. */
const groupForCommands = (client: RedisClient, channels: readonly WakeChannel[]): WakeChannel[][] => {
  if (channels.length === 0) return [];
  if (client instanceof Redis) return [[...channels]];
  return [...Map.groupBy(channels, ({ slot }) => slot).values()];
};
