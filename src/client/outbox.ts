import type { Bookmark, BookmarkEdit, BookmarkTag, NewBookmark } from '../domain/resources.ts';
import type { MirrorStore } from './mirror.ts';

/** The fields that can conflict: all that an edit takes, except the tags. Tags are merged as sets instead. */
export type TextField = Exclude<keyof BookmarkEdit, 'id' | 'if_updated_at' | 'tags'>;

/** What the user changed, and what the user saw before. The latter is the base of the merge. */
export type Intent =
  | {
      kind: 'add';
      bookmark: { [Name in Exclude<keyof NewBookmark, 'on_duplicate'>]: NonNullable<NewBookmark[Name]> };
      onDuplicate: NonNullable<NewBookmark['on_duplicate']>;
    }
  | {
      kind: 'edit';
      fields: { [Name in TextField]?: { from: string; to: string } };
      addTags: string[];
      /**
       * Identified by id, so that a renamed tag is found. A tag with the id 0 is identified by its name.
       */
      removeTags: BookmarkTag[];
    }
  | { kind: 'delete'; bookmark: Bookmark };

/** A field that both sides changed, and the value that was kept. */
export interface FieldConflict {
  field: TextField;
  base: string;
  mine: string;
  theirs: string;
  kept: string;
}

/** A stored request. It is sent again with the same body and key after a crash. */
export interface Attempt {
  key: string;
  /** An edit, or the version to delete. For an add, the new bookmark. */
  body: NewBookmark | BookmarkEdit;
  /** The version that the request was made for. Undefined for an add. */
  version: string | undefined;
  conflicts: FieldConflict[];
  /** Milliseconds since the epoch, by the wall clock. */
  startedMs: number;
}

/** A local write that the service has not confirmed yet. */
export interface PendingWrite {
  /** Increases with each write to the store. */
  seq: number;
  /** Negative (minus the `seq` of the add) until the service has assigned an id. */
  id: number;
  intent: Intent;
  /** The `updated_at` that the user saw. Undefined while an earlier add is pending. */
  seen: string | undefined;
  /** Stored before the first send. Only the first write in the outbox can have one. */
  attempt?: Attempt | undefined;
}

/**
 * Why a write was not applied, or not applied exactly as requested:
 *
 * - `conflict`: both sides changed a field; `conflict` holds both values and the one that was kept
 * - `kept`: a deletion was dropped because the bookmark was edited elsewhere
 * - `gone`: an edit was dropped because the bookmark was deleted elsewhere; `intent` holds the lost edit
 * - `refused`: the service refused the write, or the add before it, for good
 * - `duplicate`: the url was already saved, and `on_duplicate` asked for the existing bookmark
 */
export type Report = {
  /** The `seq` of the write. */
  seq: number;
  id: number;
  intent: Intent;
} & (
  | { kind: 'conflict'; conflict: FieldConflict }
  | { kind: 'refused'; code: string; message: string; conflict?: undefined }
  | { kind: 'kept' | 'gone' | 'duplicate'; conflict?: undefined }
);

/** A bookmark in the store with its pending writes, in order. */
export interface BookmarkState {
  /** The current id. A negative id is replaced once the service has assigned one. */
  id: number;
  /** The bookmark as the service last returned it. */
  row: Bookmark | undefined;
  writes: PendingWrite[];
}

/** The changes that `update` writes. Omitted fields are kept. */
export interface StateChange {
  /**
   * Replaces the pending writes. A write without `seq` is appended. For a new bookmark, its `seq` determines the id.
   */
  writes?: (Omit<PendingWrite, 'seq'> & { seq?: number })[];
  /**
   * The bookmark as the service returned it. Null if it no longer exists there. If its id differs, `writes` is given
   * too, and they get that id.
   */
  row?: Bookmark | null;
  reports?: Report[];
}

/** Stores the copy of a collection, its outbox and its reports. */
export interface CollectionStore extends MirrorStore {
  /**
   * Reads one bookmark and writes the changes that `work` returns, in one transaction. If `work` throws, nothing is
   * written. The id 0 stands for a new bookmark. Resolves with the new state. `work` runs at most once.
   */
  update(id: number, work: (state: BookmarkState) => StateChange): Promise<BookmarkState>;
  /** Returns the first write in the outbox. */
  readNext(): Promise<PendingWrite | undefined>;
  /** Returns all writes in the outbox, in order. */
  readOutbox(): Promise<PendingWrite[]>;
  /** Returns all bookmarks as the service last returned them, and the outbox, from one transaction. */
  readAll(): Promise<{ rows: Bookmark[]; writes: PendingWrite[] }>;
  /**
   * Returns the ids of bookmarks that were stored from the response to an add, and have not been in a page since. The
   * changes do not report the deletion of a bookmark that is newer than their cursor. So the last page of a catch-up
   * removes those bookmarks that no page contained.
   */
  readAhead(): Promise<number[]>;
  readReports(): Promise<Report[]>;
  /** Removes the reports of the writes with these numbers. */
  dropReports(seqs: readonly number[]): Promise<void>;
}
