import { type Clock, sleep } from './timing.ts';

/**
 * After a used-up quota has been reset, only one waiting request is sent in each interval of this length, until a
 * response reports new quota.
 */
const PROBE_MS = 1_000;

/** How many requests the requests in the background leave to the others. With a smaller limit, it is this share of it. */
const RESERVED = 40;
const RESERVED_SHARE = 0.4;

/** The longest rate-limit window of the service. */
const MAX_RESET_MS = 3_600_000;

/**
 * Tracks the token's remaining quota from response headers (docs/contract.md, section 8). Requests wait here until they
 * have quota, so that the service does not refuse them.
 */
export class Quota {
  readonly #clock: Clock;
  readonly #onWait: ((waitMs: number) => void) | undefined;
  #remaining = Number.POSITIVE_INFINITY;
  #limit = Number.POSITIVE_INFINITY;
  /** The number of waiting requests that are not in the background. */
  #waiting = 0;
  /** The time by `#clock` at which the next request may be sent if the quota is used up. */
  #resetAtMs = 0;
  /** The number of requests sent so far. It is also the number of the newest request. */
  #sent = 0;
  /**
   * The number of the newest request whose headers were read. Responses to older requests are ignored, because a held
   * poll can report the quota of half a minute ago.
   */
  #newest = 0;

  constructor(clock: Clock, onWait?: ((waitMs: number) => void) | undefined) {
    this.#clock = clock;
    this.#onWait = onWait;
  }

  /**
   * Resolves with a request's number when the request may be sent. Rejects with the signal's reason after an abort. A
   * request in the background waits for all others, and leaves them the reserved rest of the quota.
   */
  async admit(signal?: AbortSignal, isInBackground = false): Promise<number> {
    signal?.throwIfAborted();
    const reserved = isInBackground ? Math.min(RESERVED, Math.floor(this.#limit * RESERVED_SHARE)) : 0;
    if (!isInBackground) this.#waiting += 1;
    try {
      for (;;) {
        const waitMs = this.#remaining > reserved ? 0 : this.#resetAtMs - this.#clock.now();
        if (waitMs > 0) {
          this.#onWait?.(waitMs);
          await sleep(this.#clock, waitMs, signal);
        } else if (isInBackground && this.#waiting > 0) await sleep(this.#clock, PROBE_MS, signal);
        else break;
      }
    } finally {
      if (!isInBackground) this.#waiting -= 1;
    }
    // The service's sliding window frees one request at a time. So only one of the waiting requests continues now, and
    // the others wait again.
    if (this.#remaining <= reserved) this.#resetAtMs = this.#clock.now() + PROBE_MS;
    this.#remaining = Math.max(0, this.#remaining - 1);
    this.#sent += 1;
    return this.#sent;
  }

  /** Reads the quota from the headers of a response. */
  read(request: number, headers: Headers): void {
    const remaining = readNumber(headers, 'x-ratelimit-remaining');
    const resetSeconds = readNumber(headers, 'x-ratelimit-reset');
    if (remaining === undefined || resetSeconds === undefined || request < this.#newest) return;
    this.#newest = request;
    this.#limit = readNumber(headers, 'x-ratelimit-limit') ?? this.#limit;
    // The service may have sent this response before it counted the newer requests, so they are subtracted here.
    this.#remaining = remaining - (this.#sent - request);
    // Uses the service's clock if the response has a `Date` header, because the local clock may be wrong. Browsers hide
    // that header from scripts.
    const serviceNowMs = Date.parse(headers.get('date') ?? '');
    const resetMs = resetSeconds * 1_000 - (Number.isNaN(serviceNowMs) ? this.#clock.now() : serviceNowMs);
    this.#resetAtMs = this.#clock.now() + Math.min(Math.max(resetMs, 0), MAX_RESET_MS);
  }
}

function readNumber(headers: Headers, name: string): number | undefined {
  const text = headers.get(name);
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
