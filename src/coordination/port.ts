/**
 * What replicas share: the rate limit, the notifications of long polls, the import queue and logins in progress. The
 * Redis side and the in-process side keep the same promises, so the rest of the service does not know which one serves.
 * "Replica" means a process of this service; a replica of a Redis server is always called a Redis replica.
 */

import type { PendingKind } from './pending-kinds.ts';
import type { RedisAddress } from './redis-address.ts';
import type { LimiterName } from './windows.ts';

/** Monotonic milliseconds and timers. Tests pass their own; the default is `systemClock`. */
export interface Clock {
  now(): number;
  /**
   * Calls `run` once after `delayMs`, unless the returned function is called first. Does not keep the process alive.
   */
  after(delayMs: number, run: () => void): () => void;
}

/** A key's quota after one call (spec 8). Refused calls are not counted. */
export interface Quota {
  admitted: boolean;
  /** The most requests in any window. */
  limit: number;
  /** Requests that would be admitted now. */
  remaining: number;
  /** Milliseconds until the oldest counted request leaves the window, which frees a slot. */
  resetMs: number;
  /** Present if these numbers describe the group and not the key. */
  ofGroup?: true;
}

/** A limit that several keys share, for example an account's limit, which its tokens share. */
export interface Group {
  /** A hash tag (`{u42}`). Each key of the group begins with it, so that a Redis Cluster keeps them on one node. */
  key: string;
  limit: number;
}

/**
 * Admits at most `limit` requests of a key in any window of the limiter's length. The window slides, and the limit is
 * exact over all replicas. Each call brings its own limit, which may be higher or lower than the last one for the same
 * key.
 *
 * A request with a group counts for the key and for the group. If either limit refuses it, it counts for neither. The
 * returned quota is that of the limit which refuses. If both refuse, it is the quota whose refusal ends later. If both
 * admit, it is the quota with fewer requests left.
 *
 * To limit only failures, call `refusal` before the attempt and `consume` after a failure. Then each replica may admit
 * more failures than the limit: those of the attempts in flight, and one more.
 */
export interface RateLimiter {
  /** The current refusal of a key, read from memory without a call to Redis; `undefined` if a slot may be free. */
  refusal(key: string, limit: number, group?: Group): Quota | undefined;
  /** Counts one request of a key and says whether it is admitted. Never rejects; never takes longer than 300 ms. */
  consume(key: string, limit: number, group?: Group): Promise<Quota>;
}

/** The limiters, one for each line of `windows.ts`. */
export type Limiters = Readonly<Record<LimiterName, RateLimiter>>;

/**
 * Why a wait ended: a notification came, a notification may have been lost, the time is up, the replica drains, or the
 * client has gone. `timeout` also means that no notification was lost since the last `woken` or `check`.
 */
export type WaitEnd = 'woken' | 'check' | 'timeout' | 'drain' | 'gone';

/** Why a wait is not held: its holder has too many held waits (decision 16), or the replica has no free place. */
export type HoldRefusal = 'holder-full' | 'replica-full';

/**
 * One client's interest in a channel, from registration to `release`. A notification between two waits is remembered.
 */
export interface Waiter {
  /** Takes one place for held waits of the holder and of the replica. A waiter takes at most one. */
  hold(): HoldRefusal | undefined;
  /** Waits until something may have changed, at most until `deadline` (milliseconds of the injected clock). */
  next(deadline: number): Promise<WaitEnd>;
  /** The client has gone: a pending `next` ends with `gone`. */
  cancel(): void;
  /** Frees everything the waiter holds. A second call does nothing. */
  release(): void;
}

/**
 * Wakes waiters on every replica. A notification is delivered at most once and carries no content: a woken waiter
 * queries.
 */
export interface Notifier {
  /** False while notifications of other replicas may get lost. Waits then end with `check` after one to two seconds. */
  readonly connected: boolean;
  /** Held waits on this replica. */
  readonly held: number;
  /** Clients whose waits ended with `drain` should spread their next requests over this time. 0 before a drain. */
  readonly returnSpreadMs: number;
  /**
   * Registers interest in a channel before the first query. A channel is a short string without line breaks, like
   * `user:42`. Places are counted for each `holder`.
   */
  register(channel: string, holder: string): Waiter;
  /** Wakes the channel's waiters, here at once and on other replicas soon. Never rejects, never waits. */
  notify(channel: string): void;
  /** Ends all waits of this replica with `drain`, spread over `spreadMs`. Later waits end at once. */
  drain(spreadMs: number): void;
}

/**
 * Passes the ids of staged imports to workers, each id normally to one worker. It may pass an id to two workers, and it
 * may lose an id. The sweep of staged imports adds an import again if it was lost, failed, or its worker died.
 */
export interface ImportQueue {
  /**
   * Queues an id. Adding it again while it is queued does nothing. If no queue can be reached, the import runs in this
   * process.
   */
  add(id: string): Promise<void>;
  /** Starts taking jobs in this process, `concurrency` at a time. */
  startWorker(concurrency: number): Promise<void>;
  /**
   * Stops taking imports, waits up to `graceMs` for running ones, then stops them. Resolves with the ids of imports
   * that other workers must run.
   */
  stopWorker(graceMs: number): Promise<readonly string[]>;
}

/** A value cannot be kept or taken, because Redis does not serve. Only Redis can keep values for all replicas. */
export class PendingUnavailable extends Error {
  override readonly name = 'PendingUnavailable';
}

/**
 * Values that are kept for minutes and can be taken once, by any replica: logins in progress and codes of apps. Keys
 * are hashes, so somebody who reads Redis' memory cannot use them.
 *
 * The number of values of a kind is limited, and new values displace the oldest. So a flood of logins can end slow
 * logins, but cannot fill the memory. While a configured Redis is away, both functions reject with
 * `PendingUnavailable`, because other replicas could not take a value from this replica's memory.
 */
export interface PendingValues {
  /** Keeps a value for the lifetime of its kind. The key must be unique. */
  keep(kind: PendingKind, key: string, value: string): Promise<void>;
  /** Returns the value to the first caller in time, and `undefined` to all others. */
  take(kind: PendingKind, key: string): Promise<string | undefined>;
}

/** What this replica has done since it started. The numbers only rise. */
export interface Counters {
  admitted: number;
  refused: number;
  /** Decisions of the in-process limiter while Redis was away. They also count as admitted or refused. */
  fallback: number;
  /** Channels sent to other replicas, and channels received from them. */
  wakesPublished: number;
  wakesReceived: number;
  /** Imports added to the queue, and imports started in this process because no queue could be reached. */
  importsQueued: number;
  importsInProcess: number;
  /** Imports that this process finished, and imports that threw. */
  importsDone: number;
  importsFailed: number;
  /** How often Redis was lost. */
  degradations: number;
}

/** Everything that replicas share. */
export interface Coordination {
  /** `limiters.tokens.consume(key, limit)`. To add a limiter, add a line to `windows.ts`. */
  readonly limiters: Limiters;
  readonly notifier: Notifier;
  readonly imports: ImportQueue;
  readonly pending: PendingValues;
  /** Whether Redis serves now (decision 27). */
  readonly state: CoordinationState;
  /** The parts that Redis does not serve now. Empty if no Redis is configured. */
  readonly away: readonly SharedPart[];
  readonly counters: Readonly<Counters>;
  /** The clock of waits: a deadline is `clock.now()` plus a time. */
  readonly clock: Clock;
  /** Ends the remaining connections, timers and waits. Call `stopWorker` of the import queue first. */
  close(): Promise<void>;
}

/**
 * `none`: no Redis is configured. `shared`: Redis serves all parts. `degraded`: Redis does not serve all parts, and
 * this replica does the missing ones alone.
 */
type CoordinationState = 'none' | 'shared' | 'degraded';

/** What Redis does for all replicas. One part can fail while the other still works. */
export const SHARED_PARTS = ['limits', 'wakes'] as const;
export type SharedPart = (typeof SHARED_PARTS)[number];

/** Where Redis is, and the credentials for it. */
export interface RedisAccess {
  address: RedisAddress;
  /** PEM text of the authority that signed Redis' certificates. Needed if Node does not know the authority. */
  ca?: string | undefined;
  /** The password of the Sentinels themselves. The data nodes' password is in the address. */
  sentinelPassword?: string | undefined;
  /** Separates deployments that share a Redis. */
  prefix: string;
}

/** Options of `openCoordination`. Times are in milliseconds. */
export interface CoordinationOptions {
  /** If absent, there is one replica, and the process coordinates itself. */
  redis?: RedisAccess | undefined;
  /** Length of the windows that requests are counted in: at least 1,000 ms. */
  windowMs: number;
  /** How many held waits this replica accepts in total, and from one holder. */
  maxHeld: number;
  maxHeldPerHolder: number;
  clock?: Clock;
}
