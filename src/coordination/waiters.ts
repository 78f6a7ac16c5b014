import type { Clock, HoldRefusal, WaitEnd, Waiter, WakeBus } from './port.ts';
import { TimerWheel } from './timer-wheel.ts';

/** While wakes may get lost, a wait ends with `check` after one to two seconds. */
const CHECK_MIN_MS = 1_000;
const CHECK_SPREAD_MS = 1_000;

/** When all waits end with `check`, for instance once wakes arrive again, at most this many do per ms. */
const CHECKS_PER_MS = 10;

/** Of many waiters of one topic so many are woken at a time: the requests of others are served in between. */
const WOKEN_TOGETHER = 250;

/** Places for held waits. */
export interface Places {
  maxHeld: number;
  maxHeldPerHolder: number;
}

/** Has wakes of single topics arrive at this replica, where not every wake arrives at every replica. */
export interface TopicListener {
  /** Whether every wake of the topic arrives, while the bus is connected. */
  hears(topic: string): boolean;
  /** The topic has its first waiter here. */
  enter(topic: string): void;
  /** A waiter of the topic waits, and its wakes do not arrive: they shall. */
  want(topic: string): void;
  /** The topic's last waiter here is released. */
  leave(topic: string): void;
}

/**
 * The waiters of this replica by topic. For a single replica it is the whole wake bus; the Redis side delivers
 * through it what other replicas send.
 */
export class WaiterRegistry implements WakeBus {
  readonly #clock: Clock;
  readonly #places: Places;
  readonly #hearsOthers: boolean;
  readonly #topics = new Map<string, Set<LocalWaiter>>();
  readonly #heldByHolder = new Map<string, number>();
  readonly #deadlines: TimerWheel<LocalWaiter>;
  #listener: TopicListener | undefined;
  #held = 0;
  #connected = true;
  #draining = false;

  /** `hearsOthers`: whether wakes of other processes arrive while it is connected; else each wait ends with a check. */
  constructor(clock: Clock, places: Places, { hearsOthers = true } = {}) {
    this.#clock = clock;
    this.#places = places;
    this.#hearsOthers = hearsOthers;
    this.#deadlines = new TimerWheel(clock, (waiter) => waiter.expire());
  }

  get held(): number {
    return this.#held;
  }

  get connected(): boolean {
    return this.#connected;
  }

  /** The registry itself has none. */
  get channels(): undefined {
    return undefined;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** From now on wakes of other replicas arrive only for the topics that the listener hears. */
  listenThrough(listener: TopicListener): void {
    this.#listener = listener;
  }

  /** Whether every wake of the topic arrives now. */
  hears(topic: string): boolean {
    return this.#connected && (this.#listener === undefined || this.#listener.hears(topic));
  }

  register(topic: string, holder: string): Waiter {
    const waiter = new LocalWaiter(this, topic, holder);
    const waiters = this.#topics.get(topic);
    if (waiters !== undefined) waiters.add(waiter);
    else {
      this.#topics.set(topic, new Set([waiter]));
      this.#listener?.enter(topic);
    }
    return waiter;
  }

  /** Wakes the topic's waiters. */
  wake(topic: string): void {
    const waiters = this.#topics.get(topic);
    if (waiters !== undefined) wakeInParts([...waiters]);
  }

  /** Has every waiter check, for what happened meanwhile is not known: a few at once, many spread over a second or so. */
  checkAll(): void {
    this.checkTopics(this.#topics.keys());
  }

  /** Has the waiters of these topics check, as `checkAll` does. */
  checkTopics(topics: Iterable<string>): void {
    const now = this.#clock.now();
    let count = 0;
    for (const topic of topics) {
      for (const waiter of this.#topics.get(topic) ?? []) {
        waiter.mayHaveMissed = true;
        const delayMs = Math.floor(count++ / CHECKS_PER_MS);
        if (waiter.pending) this.#deadlines.set(waiter, Math.min(waiter.deadline, now + delayMs));
      }
    }
  }

  /** The listener does not hear these topics any more: until it does again their waiters check by themselves. */
  loseTopics(topics: Iterable<string>): void {
    for (const topic of topics) {
      for (const waiter of this.#topics.get(topic) ?? []) {
        if (waiter.pending) this.schedule(waiter, waiter.deadline);
      }
    }
  }

  /** Says whether wakes of other replicas arrive. On becoming connected all waiters check once. */
  setConnected(connected: boolean): void {
    if (this.#connected === connected) return;
    this.#connected = connected;
    if (connected) this.checkAll();
    else this.#eachPending((waiter) => this.schedule(waiter, waiter.deadline));
  }

  drain(spreadMs: number): void {
    if (this.#draining) return;
    this.#draining = true;
    const now = this.#clock.now();
    this.#eachPending((waiter) => {
      if (spreadMs <= 0) waiter.expire();
      else this.#deadlines.set(waiter, Math.min(waiter.deadline, now + Math.random() * spreadMs));
    });
  }

  hold(holder: string): HoldRefusal | undefined {
    const held = this.#heldByHolder.get(holder) ?? 0;
    if (held >= this.#places.maxHeldPerHolder) return 'holder-full';
    if (this.#held >= this.#places.maxHeld) return 'replica-full';
    this.#heldByHolder.set(holder, held + 1);
    this.#held += 1;
    return undefined;
  }

  giveBack(holder: string): void {
    const held = this.#heldByHolder.get(holder)! - 1;
    if (held > 0) this.#heldByHolder.set(holder, held);
    else this.#heldByHolder.delete(holder);
    this.#held -= 1;
  }

  /** Sets when a pending wait ends by itself: at its deadline; while its topic is not heard, within 2 s, to check. */
  schedule(waiter: LocalWaiter, deadline: number): void {
    const isHeard = this.hears(waiter.topic);
    if (!isHeard) this.#listener?.want(waiter.topic);
    waiter.mayHaveMissed ||= !(isHeard && this.#hearsOthers);
    const checkAt = this.#clock.now() + CHECK_MIN_MS + Math.random() * CHECK_SPREAD_MS;
    this.#deadlines.set(waiter, isHeard ? deadline : Math.min(deadline, checkAt));
  }

  unschedule(waiter: LocalWaiter): void {
    this.#deadlines.clear(waiter);
  }

  remove(waiter: LocalWaiter): void {
    const waiters = this.#topics.get(waiter.topic);
    waiters?.delete(waiter);
    if (waiters?.size !== 0) return;
    this.#topics.delete(waiter.topic);
    this.#listener?.leave(waiter.topic);
  }

  /** Entries of every map that a waiter can leave behind; all zero when nobody waits. */
  get leftovers(): { topics: number; holders: number; deadlines: number } {
    return { topics: this.#topics.size, holders: this.#heldByHolder.size, deadlines: this.#deadlines.size };
  }

  now(): number {
    return this.#clock.now();
  }

  #eachPending(visit: (waiter: LocalWaiter) => void): void {
    for (const waiters of this.#topics.values()) {
      for (const waiter of waiters) if (waiter.pending) visit(waiter);
    }
  }
}

function wakeInParts(waiters: readonly LocalWaiter[], from = 0): void {
  const end = from + WOKEN_TOGETHER;
  for (const waiter of waiters.slice(from, end)) waiter.wake();
  if (end < waiters.length) setImmediate(wakeInParts, waiters, end);
}

class LocalWaiter implements Waiter {
  readonly topic: string;
  deadline = 0;
  readonly #registry: WaiterRegistry;
  readonly #holder: string;
  #end: ((end: WaitEnd) => void) | undefined;
  /** Whether a wake may have been lost since the wait's holder last queried. */
  mayHaveMissed = false;
  #woken = false;
  #gone = false;
  #holds = false;

  constructor(registry: WaiterRegistry, topic: string, holder: string) {
    this.#registry = registry;
    this.topic = topic;
    this.#holder = holder;
  }

  get pending(): boolean {
    return this.#end !== undefined;
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
    if (deadline <= this.#registry.now()) return this.mayHaveMissed ? this.#check() : 'timeout';
    if (this.mayHaveMissed && this.#registry.hears(this.topic)) return this.#check();
    this.deadline = deadline;
    this.#registry.schedule(this, deadline);
    return new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  wake(): void {
    if (this.#end === undefined) {
      this.#woken = true;
      return;
    }
    this.mayHaveMissed = false;
    this.#finish('woken');
  }

  /** The scheduled moment has come. */
  expire(): void {
    if (this.#registry.draining) this.#finish('drain');
    else this.#finish(this.mayHaveMissed ? this.#check() : 'timeout');
  }

  #check(): WaitEnd {
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
    const resolve = this.#end;
    if (resolve === undefined) return;
    this.#end = undefined;
    this.#registry.unschedule(this);
    resolve(end);
  }
}
