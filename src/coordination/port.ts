/**
 * What replicas share, as the rest of the service sees it: the rate limit, the notifications of long polls, the import queue and logins
 * under way. The Redis side and the in-process side keep the same promises; nobody else knows which one serves. A replica is
 * a process of this service; one of a Redis server is always called a Redis replica.
 */

import type { PendingKind } from './pending-kinds.ts';
import type { RedisAddress } from './redis-address.ts';
import type { LimiterName } from './windows.ts';

/** Monotonic milliseconds and timers; tests bring their own. The default is `systemClock`. */
export interface Clock {
  now(): number;
  /** Calls `run` once after `delayMs`, unless the returned function is called first. Does not keep the process alive. */
  after(delayMs: number, run: () => void): () => void;
}

/** A key's quota as one call left it (spec 8). Refused calls are not counted. */
export interface Quota {
  admitted: boolean;
  /** Requests that any window admits. */
  limit: number;
  /** Requests that would be admitted now. */
  remaining: number;
  /** Milliseconds until the oldest counted request leaves the window, so until quota comes back. */
  resetMs: number;
  /** Present if these numbers are those of the key's group. */
  ofGroup?: true;
}

/** A limit that several keys share: that of an account, whose keys are its tokens. */
export interface Group {
  /** A hash tag (`{u42}`). Each key of the group begins with it, so that a Redis Cluster keeps all of them on one node. */
  key: string;
  limit: number;
}

/**
 * Admits at most `limit` requests of a key in any window of the limiter's length: a sliding window, exact, over all
 * replicas. The limit belongs to the request: each call may bring another one, a higher or a lower, for the same key.
 *
 * A request with a group counts for the key and for the group, or, if either limit refuses it, for neither. The quota is
 * that of the limit which matters: of two refusals the one that ends later, else the one with fewer requests left.
 *
 * To limit only what fails, ask `refusal` before and `consume` after a failure: a replica then lets through at most
 * what it has in flight, and one failure, beyond the limit.
 */
export interface RateLimiter {
  /** The refusal that still stands for a key, from memory alone; `undefined` where a slot may be free. */
  refusal(key: string, limit: number, group?: Group): Quota | undefined;
  /** Counts one request of a key and says whether it is admitted. Never rejects; never waits longer than 300 ms. */
  consume(key: string, limit: number, group?: Group): Promise<Quota>;
}

/** The limiters, one for each line of `windows.ts`. */
export type Limiters = Readonly<Record<LimiterName, RateLimiter>>;

/**
 * Why a waiter stopped waiting: it was woken, a notification may have been lost, the time is up, the replica drains, or the
 * client has gone. `timeout` says as well that no notification can have been lost since the last `woken` or `check`.
 */
export type WaitEnd = 'woken' | 'check' | 'timeout' | 'drain' | 'gone';

/** Why a wait is not held: too many of this holder's (decision 16), or the replica holds all that it can. */
export type HoldRefusal = 'holder-full' | 'replica-full';

/** One client's interest in a channel, from registration to `release`. A notification between two waits is not lost. */
export interface Waiter {
  /** Takes one of the holder's and the replica's places for held waits; once per waiter. */
  hold(): HoldRefusal | undefined;
  /** Waits until something may have changed, at most until `deadline` (milliseconds of the injected clock). */
  next(deadline: number): Promise<WaitEnd>;
  /** The client has gone: a pending `next` ends with `gone`. */
  cancel(): void;
  /** Frees everything the waiter holds. Safe to call twice. */
  release(): void;
}

/** Wakes waiters on every replica. Delivery is at most once; a woken waiter queries, no message says what it will find. */
export interface Notifier {
  /** False while notifications of other replicas may get lost; waits then end with `check` after one to two seconds. */
  readonly connected: boolean;
  /** Held waits on this replica. */
  readonly held: number;
  /** Over how long the clients whose waits ended with `drain` should spread their return; 0 before that. */
  readonly returnSpreadMs: number;
  /** Registers interest in a channel (a short string without line breaks, like `user:42`) before the first query. `holder` is who the places are counted for. */
  register(channel: string, holder: string): Waiter;
  /** Wakes the channel's waiters here at once and on every replica soon. Never rejects, never waits. */
  notify(channel: string): void;
  /** Ends all waits of this replica with `drain`, spread over `spreadMs`; later ones end at once. */
  drain(spreadMs: number): void;
}

/**
 * Says to a worker that there is a staged import to run. It may say so twice, and forgets what it said: an import that
 * fails, or whose worker ends, is added again by the sweep of staged imports.
 */
export interface ImportQueue {
  /** Queues an id once, however often it is added while it is queued. Where no queue can be reached, it runs in this process. */
  add(id: string): Promise<void>;
  /** Starts taking jobs in this process, `concurrency` at a time. */
  startWorker(concurrency: number): Promise<void>;
  /** Stops taking imports; waits up to `graceMs` for those at work, then has them stop. Resolves with those left to others. */
  stopWorker(graceMs: number): Promise<readonly string[]>;
}

/** Redis did not take what only it can keep for all replicas. */
export class PendingUnavailable extends Error {
  override readonly name = 'PendingUnavailable';
}

/**
 * Values that are kept for minutes and taken once, by whichever replica is asked first: logins under way, codes of apps.
 * Keys are hashes: who can read Redis' memory can present none of them. The number of values of a kind is bounded, and the
 * oldest make room for new ones: a flood of logins ends slow logins, and fills no memory. Both functions reject with
 * `PendingUnavailable` while a configured Redis is away: another replica could not take what this one kept.
 */
export interface PendingValues {
  /** Keeps a value for the life of its kind, under a key that nobody else has. */
  keep(kind: PendingKind, key: string, value: string): Promise<void>;
  /** The value, to the first who asks for it in time; `undefined` to everybody else. */
  take(kind: PendingKind, key: string): Promise<string | undefined>;
}

/** What this replica has done since it started; plain numbers that only rise. */
export interface Counters {
  admitted: number;
  refused: number;
  /** Decisions of the in-process limiter while Redis was away; they count as admitted or refused as well. */
  fallback: number;
  /** Channels sent to other replicas, and channels heard from them. */
  wakesPublished: number;
  wakesReceived: number;
  /** Imports handed to the queue, and started in this process without one. */
  importsQueued: number;
  importsInProcess: number;
  /** Imports that this process ended well, and that threw. */
  importsDone: number;
  importsFailed: number;
  /** Times that Redis was lost. */
  degradations: number;
}

/** Everything that replicas share. */
export interface Coordination {
  /** `limiters.tokens.consume(key, limit)`; a further limiter is one line in `windows.ts`. */
  readonly limiters: Limiters;
  readonly notifier: Notifier;
  readonly imports: ImportQueue;
  readonly pending: PendingValues;
  /** Whether Redis serves now: `none` is configured, `shared`, or `degraded` while it is away (decision 27). */
  readonly state: CoordinationState;
  /** The parts that this replica does by itself because Redis is away; none where no Redis is configured. */
  readonly away: readonly SharedPart[];
  readonly counters: Readonly<Counters>;
  /** The clock of waits: a deadline is `clock.now()` plus a time. */
  readonly clock: Clock;
  /** Ends connections, timers and waits that are left. The import worker is stopped first, by `stopWorker`. */
  close(): Promise<void>;
}

/** `none`: no Redis is configured; `shared`: it serves all parts; `degraded`: it does not, and the replica is by itself. */
type CoordinationState = 'none' | 'shared' | 'degraded';

/** What Redis does for all replicas. Each part can fail while the other is served. */
export const SHARED_PARTS = ['limits', 'wakes'] as const;
export type SharedPart = (typeof SHARED_PARTS)[number];

/** Where Redis is, and how to be let in. */
export interface RedisAccess {
  address: RedisAddress;
  /** PEM text of the authority that signed Redis' certificates, where Node does not know it. */
  ca?: string | undefined;
  /** For the Sentinels themselves; the data nodes' password is in the address. */
  sentinelPassword?: string | undefined;
  /** Sets apart deployments that share a Redis. */
  prefix: string;
}

/** How `openCoordination` is set up. Times in milliseconds. */
export interface CoordinationOptions {
  /** Absent: one replica, coordinated in the process. */
  redis?: RedisAccess | undefined;
  /** Length of the windows that requests are counted in: at least 1,000 ms. */
  windowMs: number;
  /** Held waits that this replica takes in all, and of one holder. */
  maxHeld: number;
  maxHeldPerHolder: number;
  clock?: Clock;
}
