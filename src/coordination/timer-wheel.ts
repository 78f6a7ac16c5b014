import type { Clock } from './port.ts';

/** How coarse the wheel is. A wait may end this much late: far below what a client of a long poll notices. */
const STEP_MS = 100;

/**
 * A timing wheel: deadlines of many waits on one timer, a bucket per step of time, each a set, so that setting and
 * clearing one costs the same at 10 and at 10,000. There is no timer while there is no deadline.
 */
export class TimerWheel<T> {
  readonly #clock: Clock;
  readonly #expire: (item: T) => void;
  readonly #buckets = new Map<number, Set<T>>();
  readonly #steps = new Map<T, number>();
  #cancelTimer: (() => void) | undefined;
  #swept = 0;

  constructor(clock: Clock, expire: (item: T) => void) {
    this.#clock = clock;
    this.#expire = expire;
  }

  get size(): number {
    return this.#steps.size;
  }

  /** Expires the item at `time` or up to one step later, once; replaces an earlier deadline of it. */
  set(item: T, time: number): void {
    this.clear(item);
    if (this.#steps.size === 0) this.#swept = Math.floor(this.#clock.now() / STEP_MS);
    const step = Math.max(Math.ceil(time / STEP_MS), this.#swept + 1);
    const bucket = this.#buckets.get(step) ?? new Set();
    bucket.add(item);
    this.#buckets.set(step, bucket);
    this.#steps.set(item, step);
    this.#cancelTimer ??= this.#clock.after(STEP_MS, () => this.#sweep());
  }

  clear(item: T): void {
    const step = this.#steps.get(item);
    if (step === undefined) return;
    this.#steps.delete(item);
    const bucket = this.#buckets.get(step)!;
    bucket.delete(item);
    if (bucket.size === 0) this.#buckets.delete(step);
    if (this.#steps.size > 0) return;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #sweep(): void {
    this.#cancelTimer = undefined;
    const last = Math.floor(this.#clock.now() / STEP_MS);
    const due: T[] = [];
    while (this.#swept < last) {
      this.#swept += 1;
      for (const item of this.#buckets.get(this.#swept) ?? []) due.push(item);
    }
    if (this.#steps.size > 0) this.#cancelTimer = this.#clock.after(STEP_MS, () => this.#sweep());
    for (const item of due) {
      this.clear(item);
      this.#expire(item);
    }
  }
}
