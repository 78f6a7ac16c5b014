import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql, Statement } from './database.ts';

/** The greatest number of short reads in flight on one connection. */
const DEPTH = 16;

/**
 * After this long without a response, the reads in flight are sent again on another connection. A read normally takes a
 * tenth of a millisecond.
 */
const STALL_MS = 100;

/** How long a stalled connection may take to close. */
const END_SECONDS = 5;

/**
 * How long a connection stays unused after it stalled or was lost. Because of this rest, only a few reads are sent
 * twice while the server has trouble.
 */
const REST_MS = 1_000;

/**
 * One connection with several short reads in flight. The driver writes them together, and Postgres runs them one after
 * the other. This costs the service and Postgres less than a connection for each read.
 *
 * A shared connection is in one of these states:
 *
 * - **connecting**: it accepts no reads. When the server responds, the shared connection is serving. If the connection
 *   fails, the shared connection is abandoned.
 * - **serving**: it accepts up to `DEPTH` reads at a time. It is abandoned if the connection is lost, or if Postgres
 *   reports an error. It is also abandoned if reads are in flight and nothing arrives for `STALL_MS`, because a slow
 *   read must not delay the others for long.
 * - **abandoned**: it accepts no reads, and the reads that were in flight are sent elsewhere. It closes its connection,
 *   waits for `REST_MS`, and is connecting again.
 * - **closed**: `close` was called. It stays in this state.
 */
export class SharedConnection {
  readonly #open: () => Sql;
  readonly #onAbandoned: (reason: 'stalled' | 'failed') => void;
  /** One function for each read in flight. The function makes the caller send the read on another connection. */
  readonly #inFlight = new Set<() => void>();
  #current: Sql;
  #state: 'connecting' | 'serving' | 'abandoned' | 'closed' = 'connecting';
  /**
   * The later of two times: when the last response arrived, and when a read was last sent while no other was in flight.
   */
  #respondedAt = 0;
  /** The next call of `#check`. */
  #timer: NodeJS.Timeout | undefined;

  /**
   * `open` creates a driver with one connection that accepts `DEPTH` statements at a time. The shared connection is
   * serving as soon as the driver is connected. `onAbandoned` is called when a serving connection is abandoned.
   */
  constructor(open: () => Sql, onAbandoned: (reason: 'stalled' | 'failed') => void) {
    this.#open = open;
    this.#onAbandoned = onAbandoned;
    this.#current = open();
    void this.#connect();
  }

  /** Whether this connection can accept another read. */
  get hasRoom(): boolean {
    return this.#state === 'serving' && this.#inFlight.size < DEPTH;
  }

  /** The number of reads in flight. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Sends a read. Resolves with undefined if the caller must send the read on another connection. */
  send<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>): Promise<T | undefined> {
    return new Promise((resolve) => {
      const sql = this.#current;
      const sendElsewhere = () => resolve(undefined);
      this.#add(sendElsewhere);
      run(sql).then(
        (rows) => {
          this.#inFlight.delete(sendElsewhere);
          this.#respondedAt = performance.now();
          resolve(rows);
        },
        () => {
          // If `sql` is not the current driver any more, the connection of this read was already abandoned, and the
          // read was sent elsewhere.
          if (sql === this.#current) this.#abandon('failed');
        },
      );
    });
  }

  /** Accepts no more reads, lets the reads in flight finish for up to `graceMs`, and closes the connection. */
  async close(graceMs: number): Promise<void> {
    this.#state = 'closed';
    await this.#current.end({ timeout: graceMs / 1_000 });
    clearTimeout(this.#timer);
    this.#sendElsewhere();
  }

  #add(sendElsewhere: () => void): void {
    if (this.#inFlight.size === 0) this.#respondedAt = performance.now();
    this.#inFlight.add(sendElsewhere);
    this.#timer ??= setTimeout(() => this.#check(), STALL_MS);
  }

  /** Abandons the connection if reads are in flight and nothing has arrived for `STALL_MS`. */
  #check(): void {
    // First read what has already arrived. If the event loop was busy, the server may have responded in time.
    setImmediate(() => {
      this.#timer = undefined;
      if (this.#inFlight.size === 0) return;
      const leftMs = this.#respondedAt + STALL_MS - performance.now();
      if (leftMs <= 0) this.#abandon('stalled');
      else this.#timer = setTimeout(() => this.#check(), leftMs);
    });
  }

  /** Sends the reads in flight elsewhere. If the connection is serving, replaces it with a new one. */
  #abandon(reason: 'stalled' | 'failed'): void {
    this.#sendElsewhere();
    if (this.#state !== 'serving') return;
    this.#state = 'abandoned';
    this.#onAbandoned(reason);
    void this.#replace();
  }

  #sendElsewhere(): void {
    const reads = [...this.#inFlight];
    this.#inFlight.clear();
    for (const sendElsewhere of reads) sendElsewhere();
  }

  /** Opens a new connection after the old one has closed, so that there is never more than one connection. */
  async #replace(): Promise<void> {
    await this.#current.end({ timeout: END_SECONDS });
    await sleep(REST_MS, undefined, { ref: false });
    if (this.#state === 'closed') return;
    this.#state = 'connecting';
    this.#current = this.#open();
    await this.#connect();
  }

  async #connect(): Promise<void> {
    try {
      await this.#current`select 1`;
      if (this.#state === 'connecting') this.#state = 'serving';
    } catch {
      if (this.#state === 'connecting') this.#state = 'abandoned';
      await this.#replace();
    }
  }
}
