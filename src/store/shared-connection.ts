import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql, Statement } from './database.ts';

/** Short reads in flight on one connection at most. */
const DEPTH = 16;

/** After so long without a response the reads in flight are made elsewhere: each takes a tenth of a millisecond. */
const STALL_MS = 100;

/** How long a connection that stalled may still take to end. */
const END_SECONDS = 5;

/** How long one that stalled or was lost is left alone, so that a server in trouble gets few reads twice. */
const REST_MS = 1_000;

type Rows = readonly unknown[];

/** Ends a read: with its rows, or with undefined where it has to be made elsewhere. */
type Settle = (rows: Rows | undefined) => void;

/**
 * One connection with several short reads in flight. They are written together and Postgres runs them one after the other,
 * which takes less of both than a connection for each. None waits for long behind a slow one: where nothing comes for
 * `STALL_MS`, the connection is lost or Postgres reports an error, all in flight have to be made elsewhere, and the connection
 * is replaced.
 */
export class SharedConnection {
  readonly #open: () => Sql;
  readonly #onGivenUp: (reason: 'stalled' | 'failed') => void;
  readonly #inFlight = new Set<Settle>();
  #current: Sql;
  #isServing = false;
  #isClosed = false;
  #respondedAt = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `open` makes a driver of one connection that takes `DEPTH` statements at once; it serves once it is connected. */
  constructor(open: () => Sql, onGivenUp: (reason: 'stalled' | 'failed') => void) {
    this.#open = open;
    this.#onGivenUp = onGivenUp;
    this.#current = open();
    void this.#connect();
  }

  /** Whether it can take another read. */
  get hasRoom(): boolean {
    return this.#isServing && this.#inFlight.size < DEPTH;
  }

  /** The number of reads in flight. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Sends a read. Resolves with undefined if the caller must send it on another connection. */
  send<T extends Rows>(run: (sql: Sql) => Statement<T>): Promise<T | undefined> {
    return new Promise((resolve) => {
      const sql = this.#current;
      const settle = resolve as Settle;
      this.#add(settle);
      run(sql).then(
        (rows) => {
          this.#inFlight.delete(settle);
          this.#respondedAt = performance.now();
          resolve(rows);
        },
        () => {
          if (sql === this.#current) this.#giveUp('failed');
        },
      );
    });
  }

  /** Takes no more reads, lets those in flight end for up to `graceMs`, and closes the connection. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    this.#isServing = false;
    await this.#current.end({ timeout: graceMs / 1_000 });
    clearTimeout(this.#timer);
    this.#moveAll();
  }

  #add(settle: Settle): void {
    if (this.#inFlight.size === 0) this.#respondedAt = performance.now();
    this.#inFlight.add(settle);
    this.#timer ??= setTimeout(() => this.#check(), STALL_MS);
  }

  #check(): void {
    // Read what has already arrived first: a busy event loop is no sign of a slow server.
    setImmediate(() => {
      this.#timer = undefined;
      if (this.#inFlight.size === 0) return;
      const leftMs = this.#respondedAt + STALL_MS - performance.now();
      if (leftMs <= 0) this.#giveUp('stalled');
      else this.#timer = setTimeout(() => this.#check(), leftMs);
    });
  }

  #giveUp(reason: 'stalled' | 'failed'): void {
    this.#moveAll();
    if (!this.#isServing) return;
    this.#isServing = false;
    this.#onGivenUp(reason);
    void this.#replace();
  }

  #moveAll(): void {
    const moved = [...this.#inFlight];
    this.#inFlight.clear();
    for (const settle of moved) settle(undefined);
  }

  /** Opens the next connection after the last one has closed, so that there is never more than one. */
  async #replace(): Promise<void> {
    await this.#current.end({ timeout: END_SECONDS });
    await sleep(REST_MS, undefined, { ref: false });
    if (this.#isClosed) return;
    this.#current = this.#open();
    await this.#connect();
  }

  async #connect(): Promise<void> {
    try {
      await this.#current`select 1`;
      this.#isServing = !this.#isClosed;
    } catch {
      await this.#replace();
    }
  }
}
