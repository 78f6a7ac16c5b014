import type {
  Bookmark,
  BookmarkDeletion,
  BookmarkEdit,
  BookmarkTag,
  NewBookmark,
  Tag,
} from '../domain/resources.ts';
import type { MirrorStore } from './mirror.ts';
import type { ChangedIds } from './watchers.ts';

/** The fields that can conflict: all that an edit takes, except the tags. Tags are merged as sets instead. */
export type MergedField = Exclude<keyof BookmarkEdit, 'id' | 'if_updated_at' | 'tags'>;

/** A value of such a field. */
export type MergedValue = Bookmark[MergedField];

/**
 * What the user changed, and the values that the user saw before. The merge compares these values with the service's.
 */
export type Intent =
  | {
      kind: 'add';
      bookmark: { [Name in Exclude<keyof NewBookmark, 'on_duplicate'>]: NonNullable<NewBookmark[Name]> };
      onDuplicate: NonNullable<NewBookmark['on_duplicate']>;
    }
  | {
      kind: 'edit';
      fields: { [Name in MergedField]?: { from: MergedValue; to: MergedValue } };
      addTags: string[];
      /**
       * A tag is identified by its id, so that it is found even after a rename. A tag with the id 0 is identified by
       * its name, because the copy does not know its real id yet.
       */
      removeTags: BookmarkTag[];
    }
  | { kind: 'delete'; bookmark: Bookmark };

/**
 * A field that was changed both in the copy (`mine`) and on the service (`theirs`). `base` is the value before both
 * changes.
 */
export interface FieldConflict {
  field: MergedField;
  base: MergedValue;
  mine: MergedValue;
  theirs: MergedValue;
  /** `mine`, `theirs`, or the value that the policy's function returned. */
  kept: MergedValue;
}

/** A stored operation of a batch. After a crash, it is sent again with the same fields and key. */
export interface Attempt {
  /** The operation's key. */
  key: string;
  /** The operation's fields. */
  body: NewBookmark | BookmarkEdit | BookmarkDeletion;
  /** The `updated_at` of the bookmark when the request was made. Undefined for an add. */
  version: string | undefined;
  conflicts: FieldConflict[];
  /** When the request was made, in milliseconds since the epoch, by the wall clock. */
  startedMs: number;
}

/** A local write that the service has not confirmed yet. */
export interface PendingWrite {
  /** The number of the write in its store. Later writes have larger numbers. */
  seq: number;
  /** The bookmark's id. Until the service has assigned one, it is minus the `seq` of the write that adds it. */
  id: number;
  intent: Intent;
  /**
   * The service's `updated_at` of the bookmark that the user changed. Undefined for an add, and for a write to a
   * bookmark whose add is pending.
   */
  seen: string | undefined;
  /**
   * The request. It is stored before it is sent for the first time, and is undefined until it is stored. Only the first
   * write of a bookmark can have an attempt. If any write in the outbox has one, the first write in the outbox has one.
   */
  attempt?: Attempt | undefined;
}

/**
 * Why a write was not applied, or not applied exactly as requested:
 *
 * - `conflict`: another client changed the same field; the property `conflict` has both values and the kept one
 * - `kept`: a deletion was dropped because the bookmark was edited elsewhere
 * - `gone`: an edit was dropped because the bookmark was deleted elsewhere; `intent` has the lost edit
 * - `refused`: the service will never accept the write, or has refused the add of the same bookmark
 * - `duplicate`: the url was already saved, and `on_duplicate` asked for the existing bookmark
 */
export type Report = {
  /** The `seq` of the write. */
  seq: number;
  /** The id of the bookmark when the report was made. */
  id: number;
  intent: Intent;
} & (
  | { kind: 'conflict'; conflict: FieldConflict }
  | { kind: 'refused'; code: string; message: string; conflict?: undefined }
  | { kind: 'kept' | 'gone' | 'duplicate'; conflict?: undefined }
);

/** A bookmark in the store, and its pending writes in order of `seq`. */
export interface BookmarkState {
  /** The current id. A negative id is replaced when the service has assigned the final id. */
  id: number;
  /** The bookmark as the service last returned it. Undefined if the service does not have it. */
  row: Bookmark | undefined;
  writes: PendingWrite[];
}

/** The changes that `update` writes. Omitted fields are kept. */
export interface StateChange {
  /**
   * The writes that replace the bookmark's pending writes. A write without `seq` is appended to the outbox. The id of a
   * new bookmark is minus the `seq` of the write that adds it.
   */
  writes?: (Omit<PendingWrite, 'seq'> & { seq?: number })[];
  /**
   * The bookmark as the service returned it. Null if the service no longer has it. If the service has assigned a new
   * id, pass `writes` too: the bookmark's pending writes then get that id.
   */
  row?: Bookmark | null;
  reports?: Report[];
}

/** Stores a copy of the collection, the outbox, and the reports. */
export interface CollectionStore extends MirrorStore {
  /** Returns a bookmark and its pending writes. */
  read(id: number): Promise<BookmarkState>;
  /**
   * Reads bookmarks and writes the changes that `work` returns for each, one bookmark after the other, in one
   * transaction. If `work` throws, nothing is written about that bookmark and the later ones. The id 0 stands for a new
   * bookmark. Resolves with the new state of each. `work` runs at most once for each.
   */
  update(ids: readonly number[], work: (state: BookmarkState) => StateChange): Promise<BookmarkState[]>;
  /** Returns the writes in the outbox, in order. With `limit`, returns only the first ones. */
  readOutbox(limit?: number): Promise<PendingWrite[]>;
  /**
   * Returns the bookmarks with an id above `afterId`, in order of ids, from one transaction. Also returns those that
   * have only pending writes. If there are more than `limit`, returns the first ones.
   */
  readPage(afterId: number, limit: number): Promise<BookmarkState[]>;
  /** Returns all tags, and the bookmarks with pending writes, from one transaction. */
  readTagCounts(): Promise<{ tags: Tag[]; written: BookmarkState[] }>;
  /**
   * Calls `listener` with the ids of bookmarks after they have changed. Includes the changes of other tabs, and of other
   * processes. Returns a function that ends this. An added bookmark changes under its negative id and under its final
   * one.
   */
  watch(listener: (ids: ChangedIds) => void): () => void;
  /**
   * Returns the ids of bookmarks that were stored from the response to an add, and that no page of changes has
   * contained since. Such a bookmark was added after the store's cursor. If it has been deleted, the changes after the
   * cursor do not say so. If it still exists, a page of these changes contains it. So when the mirror applies the last
   * page of these changes, it removes each of the returned bookmarks that no page contained.
   */
  readAhead(): Promise<number[]>;
  /** Returns the reports that `dropReports` has not removed. */
  readReports(): Promise<Report[]>;
  /** Removes the reports of the writes with these `seq` numbers. */
  dropReports(seqs: readonly number[]): Promise<void>;
}

/** Returns bookmarks and their pending writes, in order of ids. Both lists are in order. */
export function toStates(rows: readonly Bookmark[], writes: readonly PendingWrite[]): BookmarkState[] {
  const states = new Map<number, BookmarkState>(rows.map((row) => [row.id, { id: row.id, row, writes: [] }]));
  for (const write of writes) {
    const state = states.get(write.id) ?? { id: write.id, row: undefined, writes: [] };
    state.writes.push(write);
    states.set(write.id, state);
  }
  return [...states.values()].sort((a, b) => a.id - b.id);
}
