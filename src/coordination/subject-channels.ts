import type { RedisKeys } from './keys.ts';
import type { Clock } from './port.ts';
import { slotOf } from './redis-clients.ts';
import type { WakeChannel } from './redis-shard.ts';
import { subjectOf } from './topics.ts';

/** A channel stays subscribed to for so long after its last waiter: most clients poll again at once. */
const LINGER_MS = 10_000;

/** Pace at which channels that nobody needs any more are left, many in one write. */
const SWEEP_MS = 1_000;

/** What the channels are made of. */
export interface SubjectChannelsOptions {
  keys: RedisKeys;
  clock: Clock;
  /** Nobody has needed these for long, and they are forgotten: they may still be subscribed to. */
  onLeft: (channels: readonly WakeChannel[]) => void;
}

/** The sharded channels that this replica's waiters need, by subject: from the first waiter until some time after the last. */
export class SubjectChannels {
  /** Wanted, and not subscribed to. */
  readonly unsent = new Set<WakeChannel>();
  readonly #options: SubjectChannelsOptions;
  readonly #bySubject = new Map<string, WakeChannel>();
  /** Nobody waits for them; with the time since when, the first ones first. */
  readonly #lingering = new Map<WakeChannel, number>();
  #cancelSweep: (() => void) | undefined;

  constructor(options: SubjectChannelsOptions) {
    this.#options = options;
  }

  /** The channel of a topic; `undefined` where no waiter of its subject was here lately. */
  find(topic: string): WakeChannel | undefined {
    return this.#bySubject.get(subjectOf(topic));
  }

  /** The topic has its first waiter here. */
  enter(topic: string): void {
    const subject = subjectOf(topic);
    const channel = this.#bySubject.get(subject) ?? openChannel(subject, this.#options.keys.wakesOf(subject));
    this.#bySubject.set(subject, channel);
    channel.topics.add(topic);
    this.#lingering.delete(channel);
  }

  /** The topic's last waiter here is released. */
  leave(topic: string): void {
    const channel = this.find(topic)!;
    channel.topics.delete(topic);
    if (channel.topics.size > 0) return;
    if (channel.shard === undefined) {
      this.#forget(channel);
      return;
    }
    this.#lingering.set(channel, this.#options.clock.now());
    this.#sweepLater();
  }

  /** The channel is subscribed to nowhere any more: where somebody waits for it, it is to be again. */
  lose(channel: WakeChannel): void {
    if (channel.topics.size === 0) this.#forget(channel);
    else this.unsent.add(channel);
  }

  end(): void {
    this.#cancelSweep?.();
  }

  #forget(channel: WakeChannel): void {
    this.#lingering.delete(channel);
    this.unsent.delete(channel);
    this.#bySubject.delete(channel.subject);
  }

  #sweepLater(): void {
    this.#cancelSweep ??= this.#options.clock.after(SWEEP_MS, () => this.#sweep());
  }

  #sweep(): void {
    this.#cancelSweep = undefined;
    const { clock, onLeft } = this.#options;
    const before = clock.now() - LINGER_MS;
    const left: WakeChannel[] = [];
    for (const [channel, since] of this.#lingering) {
      if (since > before) break;
      left.push(channel);
    }
    for (const channel of left) this.#forget(channel);
    onLeft(left);
    if (this.#lingering.size > 0) this.#sweepLater();
  }
}

const openChannel = (subject: string, name: string): WakeChannel => ({
  ...{ subject, name, slot: slotOf(name), topics: new Set<string>() },
  ...{ isWanted: false, shard: undefined, isHeld: false },
});
