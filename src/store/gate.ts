import { DatabaseUnavailable } from './errors.ts';

interface Waiter {
  enter: () => boolean;
  refuse: (error: DatabaseUnavailable) => void;
  timer: NodeJS.Timeout | undefined;
  since: number;
  gone: boolean;
}

/** What the gate in front of the pool holds now. */
export interface PoolGauges {
  /** Connections of the pool, open or not. */
  size: number;
  /** Statements that run now. */
  inUse: number;
  /** Statements that wait for a connection. */
  waiting: number;
  /** How long the first in line has waited, in milliseconds; 0 where none waits. */
  oldestWaitMs: number;
}

/**
 * Lets as many statements through as the pool has connections, the others wait in line. The driver's own queue thus
 * stays empty: a statement that was refused here was never handed to it, so it cannot run later.
 */
export class Gate {
  readonly size: number;
  readonly #maxWaiting: number;
  readonly #waitMs: number;
  readonly #onWaited: ((seconds: number) => void) | undefined;
  #inUse = 0;
  #waiting = 0;
  #head = 0;
  #line: Waiter[] = [];
  #closed = false;

  /** `waitMs` 0 waits without limit; `onWaited` hears of every wait that ended with a place, in seconds. */
  constructor(size: number, maxWaiting: number, waitMs: number, onWaited?: (seconds: number) => void) {
    this.size = size;
    this.#maxWaiting = maxWaiting;
    this.#waitMs = waitMs;
    this.#onWaited = onWaited;
  }

  get gauges(): PoolGauges {
    const first = this.#waiting > 0 ? this.#first() : undefined;
    const oldestWaitMs = first === undefined ? 0 : performance.now() - first.since;
    return { size: this.size, inUse: this.#inUse, waiting: this.#waiting, oldestWaitMs };
  }

  /**
   * Calls `enter` with a place taken, now or later, or `refuse` with reason `pool` or `closed`; one of them, once.
   * An `enter` that answers false has no use for the place.
   */
  enter(enter: () => boolean, refuse: (error: DatabaseUnavailable) => void): void {
    if (this.#closed) refuse(new DatabaseUnavailable('closed', false));
    else if (this.#inUse < this.size) {
      this.#inUse++;
      if (!enter()) this.leave();
    } else if (this.#waiting >= this.#maxWaiting) refuse(new DatabaseUnavailable('pool', false));
    else this.#queue({ enter, refuse, timer: undefined, since: performance.now(), gone: false });
  }

  /** Gives a place back; the one who waits longest gets it. */
  leave(): void {
    for (let next = this.#first(); next !== undefined; next = this.#first()) {
      this.#remove(next);
      this.#onWaited?.((performance.now() - next.since) / 1_000);
      if (next.enter()) return;
    }
    this.#inUse--;
  }

  /** Refuses all who wait, with one error. */
  refuseWaiting(error: DatabaseUnavailable): void {
    for (let next = this.#first(); next !== undefined; next = this.#first()) {
      this.#remove(next);
      next.refuse(error);
    }
  }

  /** Refuses all who wait and all who come. */
  close(): void {
    this.#closed = true;
    this.refuseWaiting(new DatabaseUnavailable('closed', false));
  }

  #queue(waiter: Waiter): void {
    this.#waiting++;
    this.#line.push(waiter);
    if (this.#waitMs > 0) waiter.timer = setTimeout(() => this.#expire(waiter), this.#waitMs);
  }

  #expire(waiter: Waiter): void {
    this.#remove(waiter);
    this.#first();
    waiter.refuse(new DatabaseUnavailable('pool', false));
  }

  #remove(waiter: Waiter): void {
    clearTimeout(waiter.timer);
    waiter.gone = true;
    this.#waiting--;
  }

  /** The first who still waits; drops those before, so that the line never holds more than waits now. */
  #first(): Waiter | undefined {
    while (this.#line[this.#head]?.gone) this.#head++;
    if (this.#head >= this.#line.length || this.#head > 4_096) {
      this.#line.splice(0, this.#head);
      this.#head = 0;
    }
    return this.#line[this.#head];
  }
}
