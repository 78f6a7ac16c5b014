import type { Bookmark, BookmarkTag } from '../../src/client/index.ts';

/** The clients' own log of a run: what was sent, when, and what came back. All that the checks go by, but for the database. */

/**
 * How a call ended for its caller: `done`; `refused`, so that nothing happened; or `unknown`: it may have happened, even
 * after its end.
 */
export type Outcome = 'done' | 'refused' | 'unknown';

/** One call of a writer, retries included; times in milliseconds of one monotonic clock. */
interface Call {
  user: number;
  sentMs: number;
  endMs: number;
  outcome: Outcome;
  /** The error's code; empty where it was done. */
  code: string;
  /** How often it was sent. */
  attempts: number;
}

/** An entry of an import, or a bookmark to add. Each url is used by one call only, but for those that a merge repeats. */
export interface Asked {
  url: string;
  title: string;
  comment: string;
  tags: string[];
}

export interface AddCall extends Call, Asked {
  kind: 'add';
  isKeyed: boolean;
  /** Where it was done. */
  id: number | undefined;
}

export interface EditCall extends Call {
  kind: 'edit';
  id: number;
  title: string | undefined;
  comment: string | undefined;
  tags: string[] | undefined;
  /** The version that its writer had read, which it was bound to. */
  seen: string | undefined;
  /** The version that it made, where it was done. */
  version: string | undefined;
}

/** One bookmark, or several in one request. */
export interface DeleteCall extends Call {
  kind: 'delete';
  ids: number[];
}

/** Puts passing tags on several bookmarks and takes others off. */
export interface EditSeveralCall extends Call {
  kind: 'edit several';
  ids: number[];
  addTags: string[];
  removeTags: string[];
}

export interface ImportCall extends Call {
  kind: 'import';
  mode: 'merge' | 'replace';
  entries: Asked[];
  /** Of the entries, those whose url cannot be taken. */
  invalid: number;
  /** Of the entries, those whose url was used before by another call. */
  repeated: string[];
  result: { imported: number; skipped: number; errors: number } | undefined;
  /** How often the process that ran it was killed in the middle of it. */
  crashes: number;
}

export interface TagCall extends Call {
  kind: 'tag';
  operation: 'create' | 'rename' | 'delete' | 'merge';
  /** Its new name; of one that is deleted or merged, the old one. */
  name: string;
}

export type AnyCall = AddCall | EditCall | DeleteCall | EditSeveralCall | ImportCall | TagCall;

/** All bookmarks of a user in one response, an export or a page of the list; or what a mirror held when it was up to date. */
export interface Look {
  source: 'export' | 'list' | 'mirror';
  user: number;
  sentMs: number;
  endMs: number;
  /** What the response says of its number. */
  count: number;
  ids: number[];
  urls: string[];
}

/** A bookmark that a follower got. */
export interface Receipt {
  id: number;
  url: string;
  atMs: number;
  /** When the request that brought it was sent. */
  askedMs: number;
}

export interface Follower {
  name: string;
  user: number;
  receipts: Receipt[];
  /** How often it began anew from its stored cursor. */
  restarts: number;
}

/** All that a user has, as a client is shown it: bookmarks by id, tags by name. */
export interface Collection {
  bookmarks: Bookmark[];
  tags: BookmarkTag[];
}

/** A change that a mirror got: `deleted <id>`, `title <title>` of a bookmark, or `tag <name>`. */
export interface ChangeReceipt {
  change: string;
  atMs: number;
  /** When the request that brought it was sent. */
  askedMs: number;
}

export interface Mirror {
  name: string;
  user: number;
  store: 'memory' | 'sqlite';
  receipts: ChangeReceipt[];
  /** Pages that it applied, and those of them that had it begin anew. */
  pages: number;
  resets: number;
  /** How often it was started again, with its copy or with none. */
  restarts: number;
  /** What it held in the end; undefined where it could not catch up. */
  copy: Collection | undefined;
}

/** One request as it went over the wire. */
export interface Attempt {
  token: string;
  path: string;
  sentMs: number;
  /** When the head of the response came, or the failure; infinite while neither has. */
  endMs: number;
  /** 0: no response. */
  status: number;
  /** The replica, as the balancer names it; empty where it was the balancer itself. */
  servedBy: string;
  /** Whether the limiter had counted it: its response carries the quota. */
  isCounted: boolean;
  /** Whether its caller gave it up. */
  isAborted: boolean;
}

/** Something that was done to the service. */
export interface Fault {
  kind: string;
  target: string;
  startMs: number;
  endMs: number;
  /** Why it could not be done to the end. */
  failure?: string;
}

/** The life of a process of the service. */
export interface Life {
  name: string;
  startMs: number;
  /** Its first response; undefined where it ended before. */
  answeredMs: number | undefined;
  endMs: number;
  /** What ended it, where somebody did: nothing else may. */
  endedBy: 'SIGKILL' | 'SIGTERM' | undefined;
  /** Its exit code or signal. */
  end: number | string | undefined;
  /** Warnings and errors of its log, and whatever it wrote to its standard error. */
  problems: { level: number; text: string }[];
  /** When it limited by itself, without Redis. */
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

/** How things stood once all had come to rest. */
export interface Rest {
  rows: Row[];
  /** What `findFaults` finds: recounts and whatever is stored twice. */
  recountFaults: string[];
  /** Sentences about what did not return to where it was: waiters, connections, timers, memory. */
  leftovers: string[];
  /** Followers that were not told of everything in time. */
  behind: string[];
  /** What each user has. */
  collections: Map<number, Collection>;
  /** What was looked at for leftovers. */
  looked: {
    /** Processes whose heap, timers and sockets were compared with those at their start. */
    processes: number;
    /** Gauges that were read as zero. */
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
  /** What an actor met that no client should. */
  surprises: string[];
  /** Polls that the replicas held at once before the faults. */
  heldPolls: number;
}

export interface Limits {
  bookmarks: number;
  requests: number;
  windowMs: number;
}

/** All that is checked. */
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

/** The run's clock: milliseconds, never stepping back. */
export const nowMs = (): number => performance.now();
