import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql, Statement } from './database.ts';

/** The most short reads in flight on one connection. */
const DEPTH = 16;

/**
 * After this long without a response, the reads in flight are sent elsewhere. Each normally takes a tenth of a
 * millisecond.
 */
const STALL_MS = 100;

/** How long a stalled connection may take to close. */
const END_SECONDS = 5;

/**
 * How long a connection stays unused after a stall or a loss, so that few reads are sent twice to a server in trouble.
 */
const REST_MS = 1_000;

type Rows = readonly unknown[];

/** Resolves a read: with its rows, or with undefined if it must be sent elsewhere. */
type Settle = (rows: Rows | undefined) => void;

/**
 * One connection with several short reads in flight. They are written together, and Postgres runs them one after the
 * other. This costs both sides less than a connection for each read.
 *
 * A slow read must not delay the others for long. So the connection is abandoned if nothing arrives for `STALL_MS`, if
 * it is lost, or if Postgres reports an error. All reads in flight are then sent elsewhere, and a new connection
 * replaces it.
 */
export class SharedConnection {
  readonly #open: () => Sql;
  readonly #onAbandoned: (reason: 'stalled' | 'failed') => void;
  readonly #inFlight = new Set<Settle>();
  #current: Sql;
  #isServing = false;
  #isClosed = false;
  #respondedAt = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * `open` makes a driver with one connection that accepts `DEPTH` statements at once. It serves once it is connected.
   * `onAbandoned` is called when a serving connection is abandoned.
   */
  constructor(open: () => Sql, onAbandoned: (reason: 'stalled' | 'failed') => void) {
    this.#open = open;
    this.#onAbandoned = onAbandoned;
    this.#current = open();
    void this.#connect();
  }

  /** Whether it can accept another read. */
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
          if (sql === this.#current) this.#abandon('failed');
        },
      );
    });
  }

  /** Accepts no more reads, lets those in flight finish for up to `graceMs`, and closes the connection. */
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
    // Read what has already arrived first: a busy event loop does not mean a slow server.
    setImmediate(() => {
      this.#timer = undefined;
      if (this.#inFlight.size === 0) return;
      const leftMs = this.#respondedAt + STALL_MS - performance.now();
      if (leftMs <= 0) this.#abandon('stalled');
      else this.#timer = setTimeout(() => this.#check(), leftMs);
    });
  }

  #abandon(reason: 'stalled' | 'failed'): void {
    this.#moveAll();
    if (!this.#isServing) return;
    this.#isServing = false;
    this.#onAbandoned(reason);
    void this.#replace();
  }

  #moveAll(): void {
    const moved = [...this.#inFlight];
    this.#inFlight.clear();
    for (const settle of moved) settle(undefined);
  }

  /** Opens the next connection only after the last one has closed, so that there is never more than one. */
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
