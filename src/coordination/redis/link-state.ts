import type { Logger } from 'pino';
import { type Counters, SHARED_PARTS, type SharedPart } from '../port.ts';
import { NOT_CONNECTED } from './calls.ts';

/** For each part, the text in the log that says what this replica does while Redis does not serve the part. */
const WITHOUT: Record<SharedPart, string> = {
  limits: 'this replica limits by itself',
  wakes: 'waits query the database',
};

/**
 * Knows which of `SHARED_PARTS` (`limits` and `wakes`) Redis serves now. Logs the loss of a part once, and logs when
 * Redis serves all parts again. A part counts as not served until its first successful check.
 */
export class LinkState {
  readonly #log: Logger;
  readonly #counters: Counters;
  readonly #onNotifications: (connected: boolean) => void;
  readonly #away = new Set<SharedPart>(SHARED_PARTS);
  readonly #firstShared = Promise.withResolvers<void>();
  /** Whether a state was logged: the loss of a part, or that Redis serves all parts. */
  #isLogged = false;
  #reason = 'not reached at the start';
  #ended = false;

  /** `onNotifications` is called with true when notifications arrive again, and with false when they may be lost. */
  constructor(log: Logger, counters: Counters, onNotifications: (connected: boolean) => void) {
    this.#log = log;
    this.#counters = counters;
    this.#onNotifications = onNotifications;
  }

  get isShared(): boolean {
    return this.#away.size === 0;
  }

  /** The parts that Redis does not serve now. */
  get away(): readonly SharedPart[] {
    return SHARED_PARTS.filter((part) => this.#away.has(part));
  }

  /** Resolves when Redis serves all parts for the first time. */
  get firstShared(): Promise<void> {
    return this.#firstShared.promise;
  }

  serves(part: SharedPart): boolean {
    return !this.#away.has(part);
  }

  /** Sets whether Redis serves these parts. Writes one log line for all parts that are lost together. */
  set(parts: Iterable<SharedPart>, isServed: boolean, reason: string): void {
    if (this.#ended) return;
    // `NOT_CONNECTED` is only a consequence of an earlier fault, so the reason of that fault is kept.
    if (!isServed && reason !== NOT_CONNECTED) this.#reason = reason;
    const changed = [...parts].filter((part) => this.serves(part) !== isServed);
    if (changed.length === 0) return;
    if (!isServed && this.isShared) this.#counters.degradations += 1;
    for (const part of changed) {
      if (isServed) this.#away.delete(part);
      else this.#away.add(part);
    }
    if (changed.includes('wakes')) this.#onNotifications(isServed);
    if (!isServed) this.#logAway();
    else if (this.isShared) this.#logShared();
  }

  /**
   * Called when the process starts without Redis. Logs the loss and counts it, unless `set` has already logged a state.
   */
  noteStartWithoutRedis(): void {
    if (this.#isLogged) return;
    this.#counters.degradations += 1;
    this.#logAway();
  }

  /** Ignores all later changes, because the process now closes its connections on purpose. */
  end(): void {
    this.#ended = true;
  }

  #logShared(): void {
    this.#isLogged = true;
    this.#firstShared.resolve();
    this.#log.info('Redis serves: limits, notifications and imports are shared');
  }

  #logAway(): void {
    this.#isLogged = true;
    const { away } = this;
    const consequences = away.map((part) => WITHOUT[part]).join(', ');
    this.#log.warn({ away, reason: this.#reason }, `Redis is away: ${consequences}`);
  }
}
