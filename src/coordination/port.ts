/**
 * The interface to what replicas share: the rate limits, the notifications that wake long polls, the import queue, and
 * logins in progress. It has two implementations: one uses Redis, the other uses only the memory of this process. Both
 * keep the same promises, so the callers do not know which one they use.
 *
 * A "replica" is a process of this service. A replica of a Redis server is always called a Redis replica.
 */

import type { PendingKind } from './pending-kinds.ts';
import type { RedisAddress } from './redis/address.ts';
import type { LimiterName } from './windows.ts';

/** A monotonic clock in milliseconds, with timers. Tests pass a clock of their own. The default is `systemClock`. */
export interface Clock {
  now(): number;
  /**
   * Calls `run` once after `delayMs`, unless the returned function is called first. The timer does not keep the process
   * alive.
   */
  after(delayMs: number, run: () => void): () => void;
}

/**
 * A limiter's answer to one request of a key (docs/contract.md, section 8). Refused requests do not use up the limit.
 */
export interface Quota {
  /** Whether this request is admitted. */
  admitted: boolean;
  /** The maximum number of requests in any window. */
  limit: number;
  /** How many more requests would be admitted now. */
  remaining: number;
  /**
   * If this request is refused, the milliseconds until a slot is free. If it is admitted, the milliseconds until the
   * oldest counted request leaves the window.
   */
  resetMs: number;
  /** Present if this replica refused a request of the key before, within the length of a window. */
  isRepeated?: true;
}

/** Counts requests by key, in windows of one length. The limit is an argument of each call, and may change. */
export interface Window {
  /** Decides whether to admit a request, and counts an admitted request. Never rejects, and takes at most 300 ms. */
  consume(key: string, limit: number): Promise<Quota>;
  /** Returns what `consume` would return before it counts the request. Counts nothing. */
  peek(key: string, limit: number): Promise<Quota>;
}

/**
 * A window with a memory of its refusals. For `tokens`, a key is admitted at most `limit` times in any window, exactly
 * over all replicas (docs/contract.md, section 8). The windows of the other limiters do not slide: each begins with the
 * key's first request.
 *
 * To limit only failures, call `peek` or `refusal` before each attempt, and `consume` after each failure. In this case,
 * attempts that are in progress when the limit is reached may exceed it.
 */
export interface RateLimiter extends Window {
  /** Returns the refusal of a key, or `undefined` if the key may have a free slot. Does not ask Redis. */
  refusal(key: string, limit: number): Quota | undefined;
}

/** The limiters, one for each entry of `WINDOWS` in `windows.ts`. */
export type Limiters = Readonly<Record<LimiterName, RateLimiter>>;

/**
 * Why the wait of a long poll ended.
 *
 * - `woken`: a notification came.
 * - `check`: a notification may have been lost, so the poll must ask the database.
 * - `timeout`: the deadline has passed, and as far as this replica knows, no notification was lost since the poll last
 *   queried the database.
 * - `drain`: this replica is shutting down.
 * - `gone`: the client has disconnected.
 */
export type WaitEnd = 'woken' | 'check' | 'timeout' | 'drain' | 'gone';

/**
 * Why a long poll is not allowed to wait: its holder (a token) or this replica already has the maximum number of
 * waiting polls (docs/contract.md, decision 16).
 */
export type HoldRefusal = 'holder-full' | 'replica-full';

/**
 * The registration of one long poll on a channel, from `register` to `release`. The request of a staged import also
 * registers, to wait for the result. A notification that arrives between two waits ends the next wait immediately.
 */
export interface Waiter {
  /**
   * Counts this waiter towards the maximum of its holder and of this replica, until `release`. If one of these maximums
   * is already reached, the waiter is not counted, and `hold` returns which maximum it is. Does nothing if the waiter
   * is already counted.
   */
  hold(): HoldRefusal | undefined;
  /** Waits until something may have changed, at most until `deadline`, a time of `Coordination.clock`. */
  next(deadline: number): Promise<WaitEnd>;
  /** Ends the current wait and all later waits with `gone`, because the client has disconnected. */
  cancel(): void;
  /** Cancels the waiter, removes it from its channel, and stops counting it. A second call does nothing. */
  release(): void;
}

/**
 * Wakes waiters on every replica. A notification is delivered at most once. It carries no content, so a woken poll
 * queries the database.
 */
export interface Notifier {
  /** False while notifications of other replicas may be lost. Waits then end with `check` after one to two seconds. */
  readonly connected: boolean;
  /** The number of waiters on this replica that called `hold` and are not released. */
  readonly held: number;
  /** The milliseconds over which the clients of drained waits should spread their next requests. 0 before a drain. */
  readonly returnSpreadMs: number;
  /**
   * Registers a waiter on a channel. Call it before the first query, so that no change between the query and the wait
   * is missed. A channel is a short string without line breaks, such as `user:42`. `holder` identifies the owner of
   * the waiter. For a long poll, it is the hash of the poll's token, and `hold` counts the polls of each holder.
   */
  register(channel: string, holder: string): Waiter;
  /** Wakes the channel's waiters, on this replica immediately and on other replicas soon. Never throws. */
  notify(channel: string): void;
  /** Ends all waits of this replica with `drain`, at random times within `spreadMs`. Later waits end immediately. */
  drain(spreadMs: number): void;
}

/**
 * Passes the ids of staged imports to workers. A staged import is one that is stored in Postgres until a worker runs
 * it. The queue may pass an id to two workers, and it may lose an id. A sweep adds an import again if its id was lost,
 * if it failed, or if its worker died.
 */
export interface ImportQueue {
  /**
   * Queues the id of an import. Does nothing if the id is queued already. If the queue cannot be reached, the import
   * runs in this process.
   */
  add(id: string): Promise<void>;
  /** Starts to run queued imports in this process, at most `concurrency` at a time. */
  startWorker(concurrency: number): Promise<void>;
  /**
   * Stops taking imports, and waits up to `graceMs` for the running imports. Then stops those that still run, so that
   * other workers run them. Resolves within about two seconds of the grace time, even without Redis.
   */
  stopWorker(graceMs: number): Promise<void>;
}

/** Thrown when a value cannot be kept or taken because Redis is unavailable. */
export class PendingUnavailable extends Error {
  override readonly name = 'PendingUnavailable';
}

/**
 * Values that are kept for some minutes, such as logins in progress and the codes that apps exchange for a session. A
 * value can be taken only once, by any replica. Callers pass hashes of the secrets as keys, so somebody who reads the
 * memory of Redis does not learn the secrets.
 *
 * The number of values of each kind is limited. If a kind is full, a new value displaces the oldest one. So a flood of
 * logins cannot fill the memory, but it can displace the logins of people who take a long time. While a configured
 * Redis is unavailable, all functions reject with `PendingUnavailable`. Values in this replica's own memory would
 * not help, because the next request may reach another replica.
 */
export interface PendingValues {
  /** Keeps a value for the lifetime of its kind. The key must be unique. */
  keep(kind: PendingKind, key: string, value: string): Promise<void>;
  /** Returns and deletes the value. Returns `undefined` if it has expired, was taken before, or never existed. */
  take(kind: PendingKind, key: string): Promise<string | undefined>;
  /** Deletes the value only if it equals `value`, in one step. Returns whether it did. */
  takeIfEqual(kind: PendingKind, key: string, value: string): Promise<boolean>;
}

/** What this replica has done since it started. The numbers never decrease. */
export interface Counters {
  /** Admitted requests, and refused requests. Rate limiters that count failures are left out. */
  admitted: number;
  refused: number;
  /** Requests that are counted above, and were admitted or refused without Redis because Redis was unavailable. */
  fallback: number;
  /** Notifications that were sent to other replicas, and those that were received from them. */
  wakesPublished: number;
  wakesReceived: number;
  /** Imports that were added to the queue in Redis, and imports that this process took without that queue. */
  importsQueued: number;
  importsInProcess: number;
  /** Runs of imports in this process that ended without an error, and runs that threw one. */
  importsDone: number;
  importsFailed: number;
  /** How often Redis became unavailable, including a start without Redis. */
  degradations: number;
}

/** Everything that replicas share. */
export interface Coordination {
  readonly limiters: Limiters;
  readonly notifier: Notifier;
  readonly imports: ImportQueue;
  readonly pending: PendingValues;
  /** Whether Redis is available now (docs/contract.md, decision 27). */
  readonly state: CoordinationState;
  /** The `SHARED_PARTS` that Redis does not serve now. Empty if no Redis is configured. */
  readonly away: readonly SharedPart[];
  readonly counters: Readonly<Counters>;
  /** The clock for the deadlines of waits. A deadline is `clock.now()` plus a number of milliseconds. */
  readonly clock: Clock;
  /** Ends all connections, timers and waits. Call `imports.stopWorker` first, so that running imports can end. */
  close(): Promise<void>;
}

/**
 * - `none`: no Redis is configured.
 * - `shared`: Redis serves all of `SHARED_PARTS`.
 * - `degraded`: Redis does not serve all of `SHARED_PARTS`. This replica works without the missing parts.
 */
type CoordinationState = 'none' | 'shared' | 'degraded';

/**
 * What Redis does for all replicas: it limits requests (`limits`), and it passes notifications on (`wakes`). Either can
 * fail alone.
 */
export const SHARED_PARTS = ['limits', 'wakes'] as const;
export type SharedPart = (typeof SHARED_PARTS)[number];

/** The address of Redis, and how to connect to it. */
export interface RedisAccess {
  address: RedisAddress;
  /** PEM text of the certificate authority of Redis. Needed if Node does not know this authority. */
  ca?: string | undefined;
  /** The password for the Sentinels. The password for the data nodes is in the address. */
  sentinelPassword?: string | undefined;
  /** Part of the name of every key and every channel. It separates deployments that share a Redis. */
  prefix: string;
}

/** Options of `openCoordination`. */
export interface CoordinationOptions {
  /** If absent, this process is the only replica and uses its own memory. */
  redis?: RedisAccess | undefined;
  /** The window of the rate limiters that have no window of their own, in whole seconds. */
  windowSeconds: number;
  /** How many long polls may wait on this replica in total, and how many of these may belong to one token. */
  maxHeld: number;
  maxHeldPerHolder: number;
  clock?: Clock;
}
