import type { Bookmark, BookmarkTag } from '../../src/client/index.ts';

/**
 * The log of a run: the clients' requests and responses, the faults, and the lifetimes of the processes. The checks use
 * only this log and the state at the end.
 */

/**
 * How a call ended for its caller. A call that is `done` succeeded. If it is `refused`, nothing happened. If it is
 * `unknown`, it may have happened, or may still happen later.
 */
export type Outcome = 'done' | 'refused' | 'unknown';

/** One call of a writer, including retries. Times are in milliseconds of one monotonic clock. */
interface Call {
  user: number;
  sentMs: number;
  endMs: number;
  outcome: Outcome;
  /** The error's code. Empty if the call succeeded. */
  code: string;
  /** How often the call was sent. */
  attempts: number;
}

/** An entry of an import, or a bookmark to add. Each url is used by only one call, unless a `merge` repeats it. */
export interface Asked {
  url: string;
  title: string;
  comment: string;
  tags: string[];
}

export interface AddCall extends Call, Asked {
  kind: 'add';
  isKeyed: boolean;
  /** Set if the call is done. */
  id: number | undefined;
}

export interface EditCall extends Call {
  kind: 'edit';
  id: number;
  title: string | undefined;
  comment: string | undefined;
  tags: string[] | undefined;
  /**
   * The version that the edit's writer read. The edit fails if the bookmark has a different version. Undefined if the
   * edit names no version.
   */
  seen: string | undefined;
  /** The version that the edit created, if it is done. */
  version: string | undefined;
}

/** Deletes one bookmark, or several in one request. */
export interface DeleteCall extends Call {
  kind: 'delete';
  ids: number[];
}

/** Adds tags to several bookmarks and removes other tags. The names of all these tags begin with `PASSING_PREFIX`. */
interface EditSeveralCall extends Call {
  kind: 'edit several';
  ids: number[];
  addTags: string[];
  removeTags: string[];
}

export interface ImportCall extends Call {
  kind: 'import';
  mode: 'merge' | 'replace';
  entries: Asked[];
  /** How many entries have an invalid url. */
  invalid: number;
  /** The urls in this import that an earlier call had already used. */
  repeated: string[];
  result: { imported: number; skipped: number; errors: number } | undefined;
  /** How often a process was killed while it ran this import. */
  crashes: number;
}

interface TagCall extends Call {
  kind: 'tag';
  operation: 'create' | 'rename' | 'delete' | 'merge';
  /** The tag's new name. For a deleted or merged tag, its old name. */
  name: string;
}

export type AnyCall = AddCall | EditCall | DeleteCall | EditSeveralCall | ImportCall | TagCall;

/**
 * All bookmarks of a user, as seen in one response (an export or a page of the list) or in a mirror that is up to date.
 */
export interface Look {
  source: 'export' | 'list' | 'mirror';
  user: number;
  sentMs: number;
  endMs: number;
  /** The count that the response states. */
  count: number;
  ids: number[];
  urls: string[];
}

/** A bookmark that a follower received. */
export interface Receipt {
  id: number;
  url: string;
  atMs: number;
  /** When the client sent the request whose response contained the bookmark. */
  askedMs: number;
}

export interface Follower {
  name: string;
  user: number;
  receipts: Receipt[];
  /** How often the follower restarted from its stored cursor. */
  restarts: number;
}

/** A user's data as clients see it: the bookmarks in the order of ids, and the tags in the order of names. */
export interface Collection {
  bookmarks: Bookmark[];
  tags: BookmarkTag[];
}

/** A change that a mirror received: `deleted <id>`, `title <title>` of a bookmark, or `tag <name>`. */
interface ChangeReceipt {
  change: string;
  atMs: number;
  /** When the client sent the request whose response contained the change. */
  askedMs: number;
}

export interface Mirror {
  name: string;
  user: number;
  store: 'memory' | 'sqlite';
  receipts: ChangeReceipt[];
  /** The number of pages that the mirror applied, and how many of them were resets. */
  pages: number;
  resets: number;
  /** How often the mirror restarted, with or without its copy. */
  restarts: number;
  /** The mirror's content at the end. Undefined if the mirror could not catch up. */
  copy: Collection | undefined;
}

/** One request on the wire. */
export interface Attempt {
  token: string;
  path: string;
  sentMs: number;
  /** When the head of the response arrived or the request failed. Infinite until then. */
  endMs: number;
  /** 0 if there was no response. */
  status: number;
  /** The replica's name in the balancer. Empty if the balancer itself responded. */
  servedBy: string;
  /** Whether the limiter counted the request. If it did, the response contains the quota. */
  isCounted: boolean;
  /** Whether the caller aborted the request. */
  isAborted: boolean;
}

/** A fault that the run caused. */
export interface Fault {
  kind: string;
  target: string;
  startMs: number;
  endMs: number;
  /** Why the fault could not be completed. */
  failure?: string;
}

/** The lifetime of a process of the service. */
export interface Life {
  name: string;
  startMs: number;
  /** When the process first responded. Undefined if it never did. */
  answeredMs: number | undefined;
  endMs: number;
  /** The signal that the run sent to end the process. Nothing else may end a process. */
  endedBy: 'SIGKILL' | 'SIGTERM' | undefined;
  /** The process's exit code or signal. */
  end: number | string | undefined;
  /** Warnings and errors in the process's log, and everything that the process wrote to standard error. */
  problems: { level: number; text: string }[];
  /** The times during which the process limited requests on its own, without Redis. */
  fallbacks: { startMs: number; endMs: number }[];
}

/** A bookmark of the final database. */
export interface Row {
  id: number;
  user: number;
  url: string;
  title: string;
  comment: string;
  tags: string[];
}

/** The state when all work has ended. */
export interface Rest {
  rows: Row[];
  /** The errors in the data that `findFaults` finds: wrong counts and duplicates. */
  recountFaults: string[];
  /** Sentences about resources that were not released: waiters, connections, timers, memory. */
  leftovers: string[];
  /** Followers that did not receive everything in time. */
  behind: string[];
  /** By user id: the user's data. */
  collections: Map<number, Collection>;
  /** What was checked for leftovers. */
  looked: {
    /** The number of processes whose heap, timers and sockets were compared with their state before the run. */
    processes: number;
    /** The number of gauges that had to be 0. */
    gauges: number;
  };
}

export interface Journal {
  calls: AnyCall[];
  looks: Look[];
  followers: Follower[];
  mirrors: Mirror[];
  attempts: Attempt[];
  faults: Fault[];
  lives: Life[];
  /** Events that no client should ever see. */
  surprises: string[];
  /** The number of polls that the replicas held during an exercise, before the first fault. */
  heldPolls: number;
}

export interface Limits {
  bookmarks: number;
  requests: number;
  windowMs: number;
}

/** Everything that the checks use. */
export interface Evidence {
  journal: Journal;
  rest: Rest;
  limits: Limits;
}

export const openJournal = (): Journal => ({
  calls: [],
  looks: [],
  followers: [],
  mirrors: [],
  attempts: [],
  faults: [],
  lives: [],
  surprises: [],
  heldPolls: 0,
});

/** Returns the run's monotonic clock in milliseconds. */
export const nowMs = (): number => performance.now();
