import { type Clock, sleep } from './timing.ts';

/** While nothing is left of the quota, one request in this time may find out whether that is still so. */
const PROBE_MS = 1_000;

/** The longest window that the service can have. */
const MAX_RESET_MS = 3_600_000;

/**
 * What is left of the token's quota by the headers of responses (spec 8). Requests wait here for quota, instead of
 * being refused.
 */
export class Quota {
  readonly #clock: Clock;
  readonly #onWait: ((waitMs: number) => void) | undefined;
  #remaining = Number.POSITIVE_INFINITY;
  #resetAtMs = 0;
  #sent = 0;
  /** The newest request whose headers were read: those of a poll are half a minute old when its response ends. */
  #newest = 0;

  constructor(clock: Clock, onWait?: ((waitMs: number) => void) | undefined) {
    this.#clock = clock;
    this.#onWait = onWait;
  }

  /** Resolves with the request's number when it may be sent; rejects with the signal's reason. */
  async admit(signal?: AbortSignal): Promise<number> {
    signal?.throwIfAborted();
    for (;;) {
      const waitMs = this.#remaining > 0 ? 0 : this.#resetAtMs - this.#clock.now();
      if (waitMs <= 0) break;
      this.#onWait?.(waitMs);
      await sleep(this.#clock, waitMs, signal);
    }
    // One of those that waited for the same moment goes first: a sliding window gives back one request at a time.
    if (this.#remaining <= 0) this.#resetAtMs = this.#clock.now() + PROBE_MS;
    else this.#remaining -= 1;
    this.#sent += 1;
    return this.#sent;
  }

  /** Reads the quota from the headers of a response. */
  read(request: number, headers: Headers): void {
    const remaining = readNumber(headers, 'x-ratelimit-remaining');
    const resetSeconds = readNumber(headers, 'x-ratelimit-reset');
    if (remaining === undefined || resetSeconds === undefined || request < this.#newest) return;
    this.#newest = request;
    this.#remaining = remaining - (this.#sent - request);
    // By the service's own clock where the header is there, since this clock may be wrong. Browsers hide the header.
    const date = Date.parse(headers.get('date') ?? '');
    const resetMs = resetSeconds * 1_000 - (Number.isNaN(date) ? this.#clock.now() : date);
    this.#resetAtMs = this.#clock.now() + Math.min(Math.max(resetMs, 0), MAX_RESET_MS);
  }
}

function readNumber(headers: Headers, name: string): number | undefined {
  const text = headers.get(name);
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
