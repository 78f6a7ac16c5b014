import { monitorEventLoopDelay } from 'node:perf_hooks';
import { unavailable } from '../domain/errors.ts';
import type { HeldBytes, OutboundBacklog } from './held-bytes.ts';
import type { SemaphoreGauges } from './semaphore.ts';

/**
 * Why an overloaded replica refuses a request.
 *
 * - `event_loop`: the event loop is late.
 * - `pool`: statements wait too long for a connection.
 * - `unsent`: the clients of all users together leave too many bytes of responses unread.
 * - `account`: the clients of this account leave too many bytes of responses unread.
 * - `received`: the replica holds too many bytes of request bodies in total.
 * - `account_received`: the replica holds too many bytes of request bodies of this account.
 */
export const OVERLOAD_REASONS = [
  'event_loop',
  'pool',
  'unsent',
  'account',
  'received',
  'account_received',
] as const;
type OverloadReason = (typeof OVERLOAD_REASONS)[number];

/** How often the delay of the event loop is measured. */
const SAMPLE_MS = 500;

const TOO_BUSY = 'the service is overloaded';

/** While the bodies of all users together exceed their limit, a body is refused after this many of its bytes. */
const SHORT_BODY_BYTES = 65_536;

/** The message of the error for each reason. */
const MESSAGES: Record<OverloadReason, string> = {
  event_loop: TOO_BUSY,
  pool: TOO_BUSY,
  unsent: TOO_BUSY,
  account: 'earlier responses to this account have not been read yet',
  received: TOO_BUSY,
  account_received: 'other request bodies of this account are still being received',
};

interface Watched {
  /** The longest mean delay of the event loop, and the longest wait for a connection. 0 for no limit. */
  limits: { eventLoopMs: number; poolWaitMs: number };
  /** The pool of connections. */
  pool: { readonly gauges: SemaphoreGauges };
  outboundBacklog: OutboundBacklog;
  /** The bytes of request bodies that are in memory. */
  received: HeldBytes;
  /** Called for each refused request. */
  onRefused: (reason: OverloadReason) => void;
}

/** Delays of the event loop since the last reset, in nanoseconds. */
interface RecentDelays {
  readonly mean: number;
  reset(): void;
  enable?(): void;
  disable?(): void;
}

/**
 * Refuses requests early when the replica is overloaded. It watches the delay of the event loop, the wait for a
 * connection of the pool, the bytes that clients have not read, and the bytes of request bodies. It ignores
 * long polls that are waiting, because they cause no load.
 */
export class Overload {
  readonly #watched: Watched;
  readonly #delays: RecentDelays;
  readonly #timer: NodeJS.Timeout;
  /** The mean delay of the event loop in the latest sample. */
  #delayMs = 0;

  constructor(watched: Watched, delays: RecentDelays = monitorEventLoopDelay({ resolution: 20 })) {
    this.#watched = watched;
    this.#delays = delays;
    this.#delays.enable?.();
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MS);
    this.#timer.unref();
  }

  #sample(): void {
    this.#delayMs = this.#delays.mean / 1e6;
    this.#delays.reset();
  }

  /** Throws `UNAVAILABLE` with a random `Retry-After` while the replica or this user exceeds a limit. */
  refuse(userId?: number): void {
    const reason = this.#reasonFor(userId);
    if (reason !== undefined) this.#throw(reason);
  }

  /**
   * Called before a token is looked up in the database. Throws like `refuse`, but only if requests wait too long for a
   * connection of the pool.
   */
  refuseLookup(): void {
    if (this.#isPoolLate) this.#throw('pool');
  }

  /** Throws like `refuse` if the rest of a body must not be read. `bytes` is how much of the body was read already. */
  refuseBody(userId: number, bytes: number): void {
    const refusal = this.#watched.received.refusal(userId);
    if (refusal === 'account') this.#throw('account_received');
    if (refusal === 'process' && bytes >= SHORT_BODY_BYTES) this.#throw('received');
  }

  /** Returns why to refuse a request, or undefined if it is not refused. */
  #reasonFor(userId: number | undefined): OverloadReason | undefined {
    const { eventLoopMs } = this.#watched.limits;
    if (eventLoopMs > 0 && this.#delayMs > eventLoopMs) return 'event_loop';
    if (this.#isPoolLate) return 'pool';
    const refusal = this.#watched.outboundBacklog.refusal(userId);
    return refusal === 'process' ? 'unsent' : refusal;
  }

  get #isPoolLate(): boolean {
    const { limits, pool } = this.#watched;
    return limits.poolWaitMs > 0 && pool.gauges.oldestWaitMs > limits.poolWaitMs;
  }

  #throw(reason: OverloadReason): never {
    this.#watched.onRefused(reason);
    throw unavailable(MESSAGES[reason], 1 + Math.floor(Math.random() * 3));
  }

  close(): void {
    clearInterval(this.#timer);
    this.#delays.disable?.();
  }
}
