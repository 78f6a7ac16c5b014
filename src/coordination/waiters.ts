import type { Clock, HoldRefusal, Notifier, WaitEnd, Waiter } from './port.ts';

/**
 * The waiters of this replica. A waiter is in one of these states:
 *
 * - **registered**: `register` was called, and the poll queries the database. A notification is remembered, so the next
 *   wait ends immediately.
 * - **pending**: `next` was called. The wait ends with `woken` by a notification, `timeout` at its deadline, `check` if
 *   a notification may have been lost, or `drain` when the process drains. After the wait, the waiter is registered
 *   again.
 * - **gone**: `cancel` or `release` was called. The pending wait, if any, and all later waits end with `gone`.
 *
 * In any state, `hold` counts the waiter towards the limits of its holder and its replica, until `release`.
 *
 * `mayHaveMissed` is true if a notification may have been lost since the poll last queried. While notifications of
 * other replicas do not arrive, it is true for each pending waiter. When they arrive again, it becomes true for all
 * waiters. It becomes false when a wait ends with `woken` or `check`, because the poll then queries.
 */

/** While notifications may be lost, a wait ends with `check` after one to two seconds. */
const CHECK_MIN_MS = 1_000;
const CHECK_SPREAD_MS = 1_000;

/** When notifications arrive again after a loss, all waits end with `check`, but at most this many per millisecond. */
const CHECKS_PER_MS = 10;

/** Wake waiters in batches of this size, so that other requests are served in between. */
const WAKE_BATCH = 250;

/**
 * When a replica drains, it asks the clients of its long polls to spread their next requests over some time. The time
 * is chosen so that the clients return at the rate `RETURNS_PER_MS`, but it is at least one second and at most ten.
 */
const RETURNS_PER_MS = 1;
const SHORTEST_RETURN_MS = 1_000;
const LONGEST_RETURN_MS = 10_000;

/** How many long polls may wait on this replica in total, and how many of one holder. */
export interface Places {
  maxHeld: number;
  maxHeldPerHolder: number;
}

/**
 * The waiters of this replica, by channel. Without Redis, this class is the only notifier. With Redis, `RedisNotifier`
 * passes the notifications of other replicas to it.
 */
export class WaiterRegistry implements Notifier {
  readonly #clock: Clock;
  readonly #places: Places;
  readonly #hearsOthers: boolean;
  readonly #channels = new Map<string, Set<LocalWaiter>>();
  readonly #heldByHolder = new Map<string, number>();
  #held = 0;
  #connected = true;
  #draining = false;
  #returnSpreadMs = 0;

  /**
   * `hearsOthers`: whether notifications of other processes can arrive at all. If not, a wait that reaches its deadline
   * ends with `check` instead of `timeout`.
   */
  constructor(clock: Clock, places: Places, { hearsOthers = true } = {}) {
    this.#clock = clock;
    this.#places = places;
    this.#hearsOthers = hearsOthers;
  }

  get held(): number {
    return this.#held;
  }

  get connected(): boolean {
    return this.#connected;
  }

  get draining(): boolean {
    return this.#draining;
  }

  get returnSpreadMs(): number {
    return this.#returnSpreadMs;
  }

  register(channel: string, holder: string): Waiter {
    const waiter = new LocalWaiter(this, channel, holder);
    const waiters = this.#channels.get(channel);
    if (waiters !== undefined) waiters.add(waiter);
    else this.#channels.set(channel, new Set([waiter]));
    return waiter;
  }

  /** Wakes the channel's waiters. */
  notify(channel: string): void {
    const waiters = this.#channels.get(channel);
    if (waiters !== undefined) wakeInBatches([...waiters]);
  }

  /**
   * Ends every wait with `check`, because a notification may have been lost. If there are many waits, spreads their
   * ends over time.
   */
  checkAll(): void {
    const now = this.#clock.now();
    let count = 0;
    for (const waiters of this.#channels.values()) {
      for (const waiter of waiters) {
        waiter.mayHaveMissed = true;
        const delayMs = Math.floor(count++ / CHECKS_PER_MS);
        if (waiter.pending) waiter.expireAt(Math.min(waiter.deadline, now + delayMs));
      }
    }
  }

  /**
   * Sets whether notifications of other replicas arrive. When notifications arrive again, the pending or next wait of
   * each waiter ends with `check`.
   */
  setConnected(connected: boolean): void {
    if (this.#connected === connected) return;
    this.#connected = connected;
    if (connected) this.checkAll();
    else this.#eachPending((waiter) => this.schedule(waiter));
  }

  drain(spreadMs: number): void {
    if (this.#draining) return;
    this.#draining = true;
    this.#returnSpreadMs = Math.min(
      Math.max(this.#held / RETURNS_PER_MS, SHORTEST_RETURN_MS),
      LONGEST_RETURN_MS,
    );
    const now = this.#clock.now();
    this.#eachPending((waiter) => {
      if (spreadMs <= 0) waiter.expire();
      else waiter.expireAt(Math.min(waiter.deadline, now + Math.random() * spreadMs));
    });
  }

  /** Counts one more waiter of this holder, or returns which maximum is reached. */
  hold(holder: string): HoldRefusal | undefined {
    const ofHolder = this.#heldByHolder.get(holder) ?? 0;
    if (ofHolder >= this.#places.maxHeldPerHolder) return 'holder-full';
    if (this.#held >= this.#places.maxHeld) return 'replica-full';
    this.#heldByHolder.set(holder, ofHolder + 1);
    this.#held += 1;
    return undefined;
  }

  /** Stops counting one waiter of this holder. */
  giveBack(holder: string): void {
    const ofHolder = (this.#heldByHolder.get(holder) ?? 0) - 1;
    if (ofHolder > 0) this.#heldByHolder.set(holder, ofHolder);
    else this.#heldByHolder.delete(holder);
    this.#held -= 1;
  }

  /** Sets when a pending wait ends: at its deadline, or earlier with `check` while notifications may be lost. */
  schedule(waiter: LocalWaiter): void {
    waiter.mayHaveMissed ||= !(this.#connected && this.#hearsOthers);
    const checkAt = this.#clock.now() + CHECK_MIN_MS + Math.random() * CHECK_SPREAD_MS;
    waiter.expireAt(this.#connected ? waiter.deadline : Math.min(waiter.deadline, checkAt));
  }

  remove(waiter: LocalWaiter): void {
    const waiters = this.#channels.get(waiter.channel);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.#channels.delete(waiter.channel);
  }

  /** How many channels and holders are in memory. Both are zero when no waiter is registered. */
  get leftovers(): { channels: number; holders: number } {
    return { channels: this.#channels.size, holders: this.#heldByHolder.size };
  }

  get clock(): Clock {
    return this.#clock;
  }

  #eachPending(visit: (waiter: LocalWaiter) => void): void {
    for (const waiters of this.#channels.values()) {
      for (const waiter of waiters) if (waiter.pending) visit(waiter);
    }
  }
}

function wakeInBatches(waiters: readonly LocalWaiter[], from = 0): void {
  const end = from + WAKE_BATCH;
  for (const waiter of waiters.slice(from, end)) waiter.wake();
  if (end < waiters.length) setImmediate(wakeInBatches, waiters, end);
}

class LocalWaiter implements Waiter {
  readonly channel: string;
  /** The deadline of the pending wait, by the registry's clock. */
  deadline = 0;
  readonly #registry: WaiterRegistry;
  readonly #holder: string;
  /** Ends the pending wait. Undefined while no wait is pending. */
  #resolveWait: ((end: WaitEnd) => void) | undefined;
  #cancelTimer: (() => void) | undefined;
  mayHaveMissed = false;
  /** Whether a notification came while no wait was pending. */
  #woken = false;
  #gone = false;
  /** Whether `hold` has counted this waiter. */
  #holds = false;

  constructor(registry: WaiterRegistry, channel: string, holder: string) {
    this.#registry = registry;
    this.channel = channel;
    this.#holder = holder;
  }

  get pending(): boolean {
    return this.#resolveWait !== undefined;
  }

  hold(): HoldRefusal | undefined {
    if (this.#holds) return undefined;
    const refusal = this.#registry.hold(this.#holder);
    this.#holds = refusal === undefined;
    return refusal;
  }

  async next(deadline: number): Promise<WaitEnd> {
    if (this.#gone) return 'gone';
    if (this.#registry.draining) return 'drain';
    if (this.#woken) {
      this.#woken = false;
      this.mayHaveMissed = false;
      return 'woken';
    }
    const isOver = deadline <= this.#registry.clock.now();
    // A poll that may have missed a notification checks now if its time is over or if notifications arrive again.
    // Otherwise, `schedule` sets when it checks.
    if (this.mayHaveMissed && (isOver || this.#registry.connected)) return this.#requestCheck();
    if (isOver) return 'timeout';
    this.deadline = deadline;
    this.#registry.schedule(this);
    return new Promise((resolve) => {
      this.#resolveWait = resolve;
    });
  }

  wake(): void {
    if (this.#resolveWait === undefined) {
      this.#woken = true;
      return;
    }
    this.mayHaveMissed = false;
    this.#finish('woken');
  }

  /** Sets when the pending wait ends. Replaces the time set before. */
  expireAt(time: number): void {
    this.#cancelTimer?.();
    const { clock } = this.#registry;
    this.#cancelTimer = clock.after(Math.max(0, time - clock.now()), () => this.expire());
  }

  /** Ends the pending wait now, because its time is over or because the replica drains. */
  expire(): void {
    if (this.#registry.draining) this.#finish('drain');
    else this.#finish(this.mayHaveMissed ? this.#requestCheck() : 'timeout');
  }

  /** Returns `check`. The poll then queries, and so finds every change whose notification was lost before. */
  #requestCheck(): WaitEnd {
    this.mayHaveMissed = false;
    return 'check';
  }

  cancel(): void {
    this.#gone = true;
    this.#finish('gone');
  }

  release(): void {
    this.cancel();
    if (this.#holds) this.#registry.giveBack(this.#holder);
    this.#holds = false;
    this.#registry.remove(this);
  }

  #finish(end: WaitEnd): void {
    const resolve = this.#resolveWait;
    if (resolve === undefined) return;
    this.#resolveWait = undefined;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    resolve(end);
  }
}
