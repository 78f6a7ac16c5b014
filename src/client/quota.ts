import { type Clock, sleep } from './timing.ts';

/** While the quota stands at nothing, one request in this time may find out whether that is still so. */
const PROBE_MS = 1_000;

/** No window of the service is longer. */
const MAX_RESET_MS = 3_600_000;

/**
 * What is left of the token's quota, as the answers tell it (spec 8): requests wait here until there is some, rather
 * than be refused.
 */
export class Quota {
  readonly #clock: Clock;
  #remaining = Number.POSITIVE_INFINITY;
  #resetAtMs = 0;
  #sent = 0;
  /** The newest request whose answer was heard: a poll's answer tells what was left half a minute ago. */
  #heard = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when a request may be sent, with its number; rejects with the signal's reason. */
  async admit(signal?: AbortSignal): Promise<number> {
    signal?.throwIfAborted();
    for (;;) {
      const waitMs = this.#remaining > 0 ? 0 : this.#resetAtMs - this.#clock.now();
      if (waitMs <= 0) break;
      await sleep(this.#clock, waitMs, signal);
    }
    // Of many that waited for the same moment one goes first: a sliding window gives back one request at a time.
    if (this.#remaining <= 0) this.#resetAtMs = this.#clock.now() + PROBE_MS;
    else this.#remaining -= 1;
    this.#sent += 1;
    return this.#sent;
  }

  /** Takes what an answer's headers say of the quota. */
  hear(request: number, headers: Headers): void {
    const remaining = readNumber(headers, 'x-ratelimit-remaining');
    const resetSeconds = readNumber(headers, 'x-ratelimit-reset');
    if (remaining === undefined || resetSeconds === undefined || request < this.#heard) return;
    this.#heard = request;
    this.#remaining = remaining - (this.#sent - request);
    // The service's own clock, where it can be had: this one may be wrong. Browsers hide the header.
    const date = Date.parse(headers.get('date') ?? '');
    const resetMs = resetSeconds * 1_000 - (Number.isNaN(date) ? this.#clock.now() : date);
    this.#resetAtMs = this.#clock.now() + Math.min(Math.max(resetMs, 0), MAX_RESET_MS);
  }
}

function readNumber(headers: Headers, name: string): number | undefined {
  const text = headers.get(name);
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
