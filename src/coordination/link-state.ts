import type { Logger } from 'pino';
import type { Counters } from './port.ts';
import { NOT_CONNECTED } from './redis-errors.ts';

/** The ways in which a replica is linked to the others. */
export type Link = 'limits' | 'wakes out' | 'wakes in';

/** Whether all links are up, logged once per change. Starts with all down and nothing logged. */
export class LinkState {
  readonly #log: Logger;
  readonly #counters: Counters;
  readonly #down = new Set<Link>(['limits', 'wakes out', 'wakes in']);
  readonly #firstUp = Promise.withResolvers<void>();
  #shared = false;
  #known = false;
  #reason = 'not reached at the start';
  #ended = false;

  constructor(log: Logger, counters: Counters) {
    this.#log = log;
    this.#counters = counters;
  }

  get shared(): boolean {
    return this.#shared;
  }

  /** Resolves when all links are up for the first time. */
  get firstUp(): Promise<void> {
    return this.#firstUp.promise;
  }

  set(link: Link, up: boolean, reason: string): void {
    if (this.#ended) return;
    if (!up && reason !== NOT_CONNECTED) this.#reason = reason;
    if (up) this.#down.delete(link);
    else this.#down.add(link);
    if (this.#shared === (this.#down.size === 0)) return;
    this.#shared = !this.#shared;
    this.#known = true;
    if (this.#shared) this.#tellShared();
    else this.#tellDegraded(link);
  }

  /** To be called when the start has waited long enough: Redis being away at the start is a change as well. */
  settle(): void {
    if (!this.#known) this.#tellDegraded([...this.#down].join(', '));
    this.#known = true;
  }

  /** No more changes: what is lost from now on is closed on purpose. */
  end(): void {
    this.#ended = true;
  }

  #tellShared(): void {
    this.#firstUp.resolve();
    this.#log.info('Redis serves: limits, wakes and imports are shared');
  }

  #tellDegraded(link: string): void {
    this.#counters.degradations += 1;
    this.#log.warn(
      { link, reason: this.#reason },
      'Redis is away: this replica limits by itself, waits look into the database',
    );
  }
}
