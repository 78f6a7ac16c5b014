import type { Bookmark, BookmarkTag, NewBookmark } from '../domain/resources.ts';
import type { MirrorStore } from './mirror.ts';

/** The fields that a conflict is settled for; tags merge as sets instead. */
export type TextField = 'url' | 'title' | 'comment';

/** What the user wanted, with what the user saw: the base of a merge. */
export type Intent =
  | {
      kind: 'add';
      bookmark: { url: string; title: string; comment: string; tags: string[]; created_at: string };
      onDuplicate: NonNullable<NewBookmark['on_duplicate']>;
    }
  | {
      kind: 'edit';
      fields: { [Name in TextField]?: { from: string; to: string } };
      addTags: string[];
      /** By id, so that a tag renamed meanwhile is found; by name where its id is 0. */
      removeTags: BookmarkTag[];
    }
  | { kind: 'delete'; bookmark: Bookmark };

/** A field that both sides changed, and the value that it has now. */
export interface FieldConflict {
  field: TextField;
  base: string;
  mine: string;
  theirs: string;
  kept: string;
}

/** A request as it is sent, and sent again after a crash: the same bytes under the same key. */
export interface Attempt {
  key: string;
  body: object;
  /** The version that the request was made for; undefined for an add. */
  version: string | undefined;
  conflicts: FieldConflict[];
  startedMs: number;
}

/** A local write that the service has not confirmed yet. */
export interface PendingWrite {
  /** Rises with each write of the store. */
  seq: number;
  /** Negative until the service has given the bookmark an id: minus the `seq` of its add. */
  id: number;
  intent: Intent;
  /** The `updated_at` that the user saw; undefined while an add before it is pending. */
  seen: string | undefined;
  /** Stored before the first send. Only the first write of the outbox can have one. */
  attempt?: Attempt | undefined;
}

/**
 * What became of a write that was not simply applied:
 *
 * - `conflict`: a field was changed on both sides; `conflict` holds both values and the one that was kept
 * - `kept`: a deletion was dropped, because the bookmark was edited elsewhere
 * - `gone`: an edit was dropped, because the bookmark was deleted elsewhere; `intent` holds what was written
 * - `refused`: the service refuses it for good, or refused the add that it follows
 * - `duplicate`: the service had a bookmark with this url, and `on_duplicate` asked for that one
 */
export interface Report {
  /** The `seq` of the write. */
  seq: number;
  id: number;
  kind: 'conflict' | 'kept' | 'gone' | 'refused' | 'duplicate';
  intent: Intent;
  conflict?: FieldConflict | undefined;
  code?: string | undefined;
  message?: string | undefined;
}

/** A bookmark in the store, with the writes that are pending for it, in order. */
export interface BookmarkState {
  /** The bookmark's id now: a negative one is replaced once the service has given an id. */
  id: number;
  /** As the service showed it last. */
  row: Bookmark | undefined;
  writes: PendingWrite[];
}

/** What `update` writes. What is absent stays. */
export interface StateChange {
  /** The pending writes from now on. One without `seq` is appended; in a new bookmark it gives the id. */
  writes?: (Omit<PendingWrite, 'seq'> & { seq?: number })[];
  /** The bookmark as the service shows it; null: it is gone there. With another id the writes move to that id. */
  row?: Bookmark | null;
  reports?: Report[];
}

/** Where a collection keeps its copy, its outbox and its reports. */
export interface CollectionStore extends MirrorStore {
  /**
   * Reads one bookmark and writes what `work` returns, in one transaction; nothing where `work` throws. The id 0 stands
   * for a new bookmark. Resolves with the bookmark's id and state after that. `work` may run only once.
   */
  update(id: number, work: (state: BookmarkState) => StateChange): Promise<BookmarkState>;
  /** The first write of the outbox. */
  readNext(): Promise<PendingWrite | undefined>;
  /** All writes of the outbox, in order. */
  readOutbox(): Promise<PendingWrite[]>;
  /** All bookmarks as the service showed them last, with the outbox of the same moment. */
  readAll(): Promise<{ rows: Bookmark[]; writes: PendingWrite[] }>;
  /**
   * The ids of bookmarks that came with the response to an add and with no page since. The changes do not show the
   * deletion of a bookmark that is newer than their cursor, so the last page of a walk removes those it did not show.
   */
  readAhead(): Promise<number[]>;
  readReports(): Promise<Report[]>;
  /** Removes the reports of the writes up to `seq`. */
  dropReports(seq: number): Promise<void>;
}
