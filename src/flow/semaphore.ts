/** Why a caller got no permit: its wait expired, the queue of its key is full, or the semaphore is closed. */
export type Refusal = 'expired' | 'full' | 'closed';

/** The error for a caller that gets no permit, if the options name no other. */
export class NoPermit extends Error {}

export interface SemaphoreOptions {
  /** The number of permits of each key. */
  permits: number;
  /** The longest wait in milliseconds; 0 for no limit. */
  waitMs: number;
  /** The maximum number of waiters of each key; default: no limit. */
  maxWaiting?: number;
  /** Returns the error for a caller that gets no permit; default: `NoPermit`. */
  refusalError?: (refusal: Refusal) => Error;
  /** Called when it is a waiter's turn to get a permit, with the seconds that the waiter has waited. */
  onWaited?: ((seconds: number) => void) | undefined;
}

/** The current permits and waiters of one key. */
export interface SemaphoreGauges {
  /** The number of permits, taken or free. */
  size: number;
  /** The number of taken permits. */
  inUse: number;
  /** The number of callers that wait for a permit. */
  waiting: number;
  /** How long the first waiter has waited, in milliseconds. 0 if nobody waits. */
  oldestWaitMs: number;
}

interface Waiter {
  /** Gives the waiter its permit. Returns false if the waiter does not need the permit any more. */
  start: () => boolean;
  refuse: (error: Error) => void;
  /** When the wait began, by `performance.now()`. */
  since: number;
  timer: NodeJS.Timeout | undefined;
  /** True if the waiter no longer waits: it was given a permit, or it was refused. */
  hasLeft: boolean;
}

/** The taken permits of one key, and its waiters in the order of arrival. */
class Line {
  inUse = 0;
  waiting = 0;
  /** A waiter that has left stays in this list until it is the first one, so that leaving needs no search. */
  readonly #waiters: Waiter[] = [];

  add(waiter: Waiter): void {
    this.waiting++;
    this.#waiters.push(waiter);
  }

  remove(waiter: Waiter): void {
    clearTimeout(waiter.timer);
    waiter.hasLeft = true;
    this.waiting--;
    while (this.#waiters[0]?.hasLeft) this.#waiters.shift();
  }

  first(): Waiter | undefined {
    return this.#waiters[0];
  }
}

/**
 * A counting semaphore for each key. Up to `permits` callers of a key hold a permit at the same time; the others wait
 * in a queue, first come first served. A key without callers takes no memory.
 */
export class Semaphore<Key> {
  readonly #options: SemaphoreOptions;
  readonly #refusalError: (refusal: Refusal) => Error;
  readonly #lines = new Map<Key, Line>();
  #isClosed = false;

  constructor(options: SemaphoreOptions) {
    this.#options = options;
    this.#refusalError = options.refusalError ?? (() => new NoPermit());
  }

  /** Returns the current permits and waiters of a key. */
  gauges(key: Key): SemaphoreGauges {
    const { inUse = 0, waiting = 0 } = this.#lines.get(key) ?? {};
    const first = this.#lines.get(key)?.first();
    const oldestWaitMs = first === undefined ? 0 : performance.now() - first.since;
    return { size: this.#options.permits, inUse, waiting, oldestWaitMs };
  }

  /**
   * Calls `start` as soon as the caller has a permit, or `refuse` if the caller gets none. If `start` returns true, the
   * permit is taken until `release` is called. If `start` returns false, the permit is free again immediately. For this
   * caller, `waitMs` replaces the longest wait from the semaphore's options.
   */
  enter(key: Key, start: () => boolean, refuse: (error: Error) => void, waitMs = this.#options.waitMs): void {
    const { permits, maxWaiting = Infinity } = this.#options;
    if (this.#isClosed) {
      refuse(this.#refusalError('closed'));
      return;
    }
    const line = this.#lineOf(key);
    if (line.inUse < permits) {
      line.inUse++;
      if (!start()) this.release(key);
    } else if (line.waiting >= maxWaiting) refuse(this.#refusalError('full'));
    else this.#wait(line, start, refuse, waitMs);
  }

  /** Gives back a permit of the key. The first waiter gets the permit. Throws if no permit of the key is taken. */
  release(key: Key): void {
    const line = this.#lines.get(key);
    if (line === undefined) throw new Error('this key has no permit to give back');
    for (let waiter = line.first(); waiter !== undefined; waiter = line.first()) {
      line.remove(waiter);
      this.#options.onWaited?.((performance.now() - waiter.since) / 1_000);
      // If this waiter does not need the permit any more, the next one gets it.
      if (waiter.start()) return;
    }
    line.inUse--;
    if (line.inUse === 0) this.#lines.delete(key);
  }

  /** Takes a permit. Resolves with the function that gives it back; further calls of that function do nothing. */
  acquire(key: Key, waitMs?: number): Promise<() => void> {
    return new Promise((resolve, reject) => {
      let isHeld = true;
      const release = () => {
        if (isHeld) this.release(key);
        isHeld = false;
      };
      const start = () => {
        resolve(release);
        return true;
      };
      this.enter(key, start, reject, waitMs);
    });
  }

  /** Does the work while it holds a permit. Rejects without doing the work if the caller gets no permit. */
  async run<T>(key: Key, work: () => Promise<T>, waitMs?: number): Promise<T> {
    const release = await this.acquire(key, waitMs);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** Refuses all current waiters of the key with this error. */
  refuseWaiters(key: Key, error: Error): void {
    const line = this.#lines.get(key);
    if (line === undefined) return;
    for (let waiter = line.first(); waiter !== undefined; waiter = line.first()) {
      line.remove(waiter);
      waiter.refuse(error);
    }
  }

  /** Refuses all waiters and all later callers. Permits that are taken can still be given back. */
  close(): void {
    this.#isClosed = true;
    for (const key of this.#lines.keys()) this.refuseWaiters(key, this.#refusalError('closed'));
  }

  #lineOf(key: Key): Line {
    const known = this.#lines.get(key);
    if (known !== undefined) return known;
    const line = new Line();
    this.#lines.set(key, line);
    return line;
  }

  #wait(line: Line, start: () => boolean, refuse: (error: Error) => void, waitMs: number): void {
    const waiter: Waiter = { start, refuse, since: performance.now(), timer: undefined, hasLeft: false };
    line.add(waiter);
    if (waitMs === 0) return;
    waiter.timer = setTimeout(() => {
      line.remove(waiter);
      refuse(this.#refusalError('expired'));
    }, waitMs);
  }
}
