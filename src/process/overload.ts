import { monitorEventLoopDelay } from 'node:perf_hooks';
import { unavailable } from '../domain/errors.ts';
import type { Database } from '../store/database.ts';
import type { Metrics } from './metrics.ts';

/** Refuses early what would be answered late: a replica with too much to do says so at once. */

/** Limits in milliseconds; 0: none. */
export interface OverloadLimits {
  eventLoopDelayMs: number;
  poolWaitMs: number;
}

const SAMPLE_MS = 500;

/** Watches how long the event loop and the database's pool keep their work waiting. Held polls are no load. */
export class Overload {
  readonly #limits: OverloadLimits;
  readonly #database: Pick<Database, 'gauges'>;
  readonly #metrics: Metrics;
  readonly #delays = monitorEventLoopDelay({ resolution: 20 });
  readonly #timer: NodeJS.Timeout;
  #delayMs = 0;

  constructor(limits: OverloadLimits, database: Pick<Database, 'gauges'>, metrics: Metrics) {
    this.#limits = limits;
    this.#database = database;
    this.#metrics = metrics;
    this.#delays.enable();
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MS);
    this.#timer.unref();
  }

  #sample(): void {
    this.#delayMs = this.#delays.mean / 1e6;
    this.#delays.reset();
  }

  /** What this replica has too much of now; undefined where it can take requests. */
  get reason(): 'event_loop' | 'pool' | undefined {
    const { eventLoopDelayMs, poolWaitMs } = this.#limits;
    if (eventLoopDelayMs > 0 && this.#delayMs > eventLoopDelayMs) return 'event_loop';
    if (poolWaitMs > 0 && this.#database.gauges.oldestWaitMs > poolWaitMs) return 'pool';
    return undefined;
  }

  /** Throws `UNAVAILABLE` with a jittered `Retry-After` while there is too much to do. */
  refuse(): void {
    const { reason } = this;
    if (reason === undefined) return;
    this.#metrics.overloaded(reason);
    throw unavailable('the service has too much to do', 1 + Math.floor(Math.random() * 3));
  }

  close(): void {
    clearInterval(this.#timer);
    this.#delays.disable();
  }
}
