import { type Redis, ReplyError } from 'ioredis';
import { ChannelsRefused } from './port.ts';
import { describeRedisError, NOT_CONNECTED, REPLY_WAIT_MS, withDeadline } from './redis-calls.ts';
import { type RedisClient, slotOf, writeTogether } from './redis-clients.ts';

/** After so many heartbeats in a row that did not come back, the connection is given up. */
const MAX_MISSED = 2;

/** What the library's error begins with when a reply comes that no command is left for. */
const REPLY_TOO_MANY = 'Command queue state error';

/** The sharded channel of one subject's wakes, as far as this replica needs it. */
export interface WakeChannel {
  readonly subject: string;
  readonly name: string;
  readonly slot: number;
  /** The topics that have waiters here. */
  readonly topics: Set<string>;
  isWanted: boolean;
  /** Where it was subscribed to, and whether that server has acknowledged it. */
  shard: RedisShard | undefined;
  isHeld: boolean;
}

/** What becomes of a shard's connection. */
export interface ShardEvents {
  /** It takes subscriptions from now on. */
  onReady(shard: RedisShard): void;
  onMessage(message: string): void;
  /** The server has ended some of its subscriptions, or refuses one, for it has given up the channel's slot. */
  onMoved(shard: RedisShard): void;
  /** It has ended, or was refused what it needs. Called once. */
  onLost(shard: RedisShard, error: unknown): void;
}

/**
 * A connection for the sharded channels of one server. Responses come in the order of the commands, and each says how many
 * channels the connection has: so the heartbeat's channel, subscribed to again and again, shows whether all others still hold.
 */
export class RedisShard {
  /** The cluster's name of the server. */
  readonly node: string;
  /** The channels that were subscribed to here. */
  readonly channels = new Set<WakeChannel>();
  readonly #redis: Redis;
  readonly #events: ShardEvents;
  #beatChannel: string;
  #isReady = false;
  #ended = false;
  /** Subscriptions that the server has refused since the start. */
  #refused = 0;
  #beats = 0;
  #heard = Promise.withResolvers<void>();
  #missed = 0;

  constructor(node: string, redis: Redis, beatChannel: string, events: ShardEvents) {
    this.node = node;
    this.#redis = redis;
    this.#beatChannel = beatChannel;
    this.#events = events;
    let lastError: unknown = new Error('subscription lost');
    redis.on('error', (error: Error) => {
      lastError = error;
      // The library takes the server's end of a subscription for the reply to SUNSUBSCRIBE, where both cross, and each
      // reply after that for another command's: a channel would count as held that is not.
      if (error.message.startsWith(REPLY_TOO_MANY)) this.end(new Error('replies to other commands'));
    });
    redis.on('smessage', (channel: string, message: string) => this.#receive(channel, message));
    redis.on('moved', () => events.onMoved(this));
    redis.once('ready', () => void this.#begin());
    redis.once('end', () => this.end(lastError));
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  get beatSlot(): number {
    return slotOf(this.#beatChannel);
  }

  /** Closes the connection, which loses its channels. */
  end(error: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#isReady = false;
    this.#redis.disconnect();
    this.#events.onLost(this, error);
  }

  /** Subscribes to channels of one slot, or of any where there is no cluster. Rejects where the server refuses. */
  async subscribe(channels: readonly WakeChannel[]): Promise<void> {
    for (const channel of channels) {
      channel.shard = this;
      this.channels.add(channel);
    }
    writeTogether(this.#redis);
    try {
      await this.#redis.ssubscribe(...channels.map(({ name }) => name));
    } catch (error) {
      this.#refused += 1;
      throw error;
    }
  }

  /** Ends subscriptions to channels of one slot, or of any where there is no cluster. */
  unsubscribe(channels: readonly WakeChannel[]): void {
    for (const channel of channels) this.channels.delete(channel);
    if (!this.#isReady) return;
    writeTogether(this.#redis);
    // A server that has given up the slot refuses, and has ended the subscription itself.
    this.#redis.sunsubscribe(...channels.map(({ name }) => name)).catch(() => {});
  }

  /** Sends heartbeats through another channel: the server has given up the slot of the one before. */
  moveBeat(channel: string): void {
    this.#redis.sunsubscribe(this.#beatChannel).catch(() => {});
    this.#beatChannel = channel;
  }

  /** Whether the server still has every subscription that was made here and acknowledged. Rejects where it cannot say. */
  async holdsAll(): Promise<boolean> {
    if (!this.#isReady) throw new Error(NOT_CONNECTED);
    const [expected, refused] = [this.channels.size + 1, this.#refused];
    const count = await this.#redis.ssubscribe(this.#beatChannel);
    // Where one was refused meanwhile, the next check counts.
    return Number(count) === expected || refused !== this.#refused;
  }

  /** Publishes a heartbeat by the client; resolves once it is heard here. */
  async beat(client: RedisClient): Promise<void> {
    if (this.#missed >= MAX_MISSED) {
      this.end(new Error('heartbeat not heard'));
      throw new Error(NOT_CONNECTED);
    }
    const beat = String(++this.#beats);
    this.#heard = Promise.withResolvers();
    this.#missed += 1;
    await withDeadline(client.spublish(this.#beatChannel, beat), REPLY_WAIT_MS);
    await this.#heard.promise;
    this.#missed = 0;
  }

  async #begin(): Promise<void> {
    try {
      await this.#redis.ssubscribe(this.#beatChannel);
      // Only to see whether it may: without that right no channel could ever be left.
      await this.#redis.sunsubscribe(this.#beatChannel);
      await this.#redis.ssubscribe(this.#beatChannel);
    } catch (error) {
      this.end(error);
      return;
    }
    if (this.#ended) return;
    this.#isReady = true;
    this.#events.onReady(this);
  }

  #receive(channel: string, message: string): void {
    if (channel !== this.#beatChannel) this.#events.onMessage(message);
    else if (message === String(this.#beats)) this.#heard.resolve();
  }
}

/** The error, or what it says of sharded channels where it refuses them for good. */
export const asRefusal = (error: unknown): unknown =>
  error instanceof ReplyError && /^(NOPERM|ERR unknown command)/.test((error as Error).message)
    ? new ChannelsRefused(describeRefusal(describeRedisError(error)))
    : error;

const describeRefusal = (code: string): string =>
  code === 'NOPERM'
    ? 'the user of REDIS_URL needs the rights +ssubscribe, +sunsubscribe and +spublish'
    : 'the server of REDIS_URL does not know sharded channels, which need Redis 7';
