import { withDeadline } from './deadline.ts';
import { describeRedisError } from './redis-errors.ts';

/** How long one answer of Redis is awaited: no request may wait 300 ms, and a busy event loop adds to this. */
export const ANSWER_WAIT_MS = 200;

/** Pause between probes while the circuit is open. */
const PROBE_PAUSE_MS = 200;

/** What a circuit watches. */
export interface CircuitParts {
  /** Resolves if Redis would do what `key` needs, for instance a write. */
  probe: (key: string) => Promise<unknown>;
  /** Told of every success of a probe and of every failure, so perhaps repeatedly. */
  onState: (closed: boolean, reason: string) => void;
}

/**
 * Says whether Redis is asked at all. The first failure opens it, so that one caller pays the wait and not every
 * one; probes close it again.
 */
export class Circuit {
  readonly #probe: CircuitParts['probe'];
  readonly #onState: CircuitParts['onState'];
  #closed = false;
  #ended = false;
  #key = 'start';
  #timer: NodeJS.Timeout | undefined;
  #probing = false;

  constructor({ probe, onState }: CircuitParts) {
    this.#probe = probe;
    this.#onState = onState;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Opens the circuit. It closes when `key`, which failed, could be served again. */
  trip(reason: string, key = this.#key): void {
    this.#key = key;
    this.#closed = false;
    this.#onState(false, reason);
    this.#schedule(PROBE_PAUSE_MS);
  }

  /** Probes at once, for instance because a connection is ready. */
  probeNow(): void {
    if (!this.#closed) this.#schedule(0);
  }

  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
  }

  #schedule(pauseMs: number): void {
    if (this.#ended || this.#probing) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#run(), pauseMs);
    this.#timer.unref();
  }

  async #run(): Promise<void> {
    this.#probing = true;
    const fault = await withDeadline(this.#probe(this.#key), ANSWER_WAIT_MS).then(
      () => undefined,
      (error: unknown) => describeRedisError(error),
    );
    this.#probing = false;
    if (this.#ended) return;
    if (fault !== undefined) return this.trip(fault);
    this.#closed = true;
    this.#onState(true, 'answers again');
  }
}
