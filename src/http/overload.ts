import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Context } from '../context.ts';
import { unavailable } from '../domain/errors.ts';

const SAMPLE_MS = 500;

/**
 * Watches how long work waits for the event loop and for a connection of the pool, and refuses requests at once where a
 * response would come late. Held polls are no load.
 */
export class Overload {
  readonly #context: Pick<Context, 'config' | 'database' | 'metrics'>;
  readonly #delays = monitorEventLoopDelay({ resolution: 20 });
  readonly #timer: NodeJS.Timeout;
  #delayMs = 0;

  constructor(context: Pick<Context, 'config' | 'database' | 'metrics'>) {
    this.#context = context;
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
    const { config, database } = this.#context;
    const { overloadEventLoopMs, overloadPoolWaitMs } = config;
    if (overloadEventLoopMs > 0 && this.#delayMs > overloadEventLoopMs) return 'event_loop';
    if (overloadPoolWaitMs > 0 && database.gauges.oldestWaitMs > overloadPoolWaitMs) return 'pool';
    return undefined;
  }

  /** Throws `UNAVAILABLE` with a jittered `Retry-After` while there is too much to do. */
  refuse(): void {
    const { reason } = this;
    if (reason === undefined) return;
    this.#context.metrics.overloaded(reason);
    throw unavailable('the service has too much to do', 1 + Math.floor(Math.random() * 3));
  }

  close(): void {
    clearInterval(this.#timer);
    this.#delays.disable();
  }
}
