import type { BookmarkFields, FieldName, GivenName, Operation } from './bookmark-fields.ts';

/**
 * The resources of spec 2, the requests and the answers of spec 4, as they travel. Plain types, shared by the service
 * and its clients: `routes/route.ts` holds every schema to them, so that neither can drift.
 */

/** A tag inside a bookmark (decision 8). */
export interface BookmarkTag {
  id: number;
  name: string;
}

/** What a field of a kind holds. */
interface Held {
  url: string;
  text: string;
  tags: BookmarkTag[];
  time: string;
  flag: boolean;
}

/** What a request gives for a field of a kind. */
interface Given extends Omit<Held, 'tags'> {
  tags: string[];
}

type HeldFields = { -readonly [Name in FieldName]: Held[BookmarkFields[Name]['kind']] };

type Kind<Name extends FieldName> = BookmarkFields[Name]['kind'];

/** The fields that every request of an operation gives: none where it edits. */
type RequiredName<Op extends Operation> = Op extends 'edit'
  ? never
  : {
      [Name in GivenName<Op>]: BookmarkFields[Name] extends { isRequired: true } ? Name : never;
    }[GivenName<Op>];

/** What a request of an operation gives of a bookmark. */
type GivenFields<Op extends Operation, Values extends Record<keyof Given, unknown> = Given> = {
  -readonly [Name in RequiredName<Op>]: Values[Kind<Name>];
} & {
  -readonly [Name in Exclude<GivenName<Op>, RequiredName<Op>>]?: Values[Kind<Name>] | undefined;
};

/** A bookmark, the same in add, list, search, sync and export (spec 2.2); `BOOKMARK_FIELDS` describes its fields. */
export interface Bookmark extends HeldFields {
  id: number;
}

/** What `/bookmarks/edit` answers: the six fields of spec 4.2. */
export type EditedBookmark = Omit<Bookmark, 'created_at'>;

/** A tag in the tag list (spec 2.3). */
export interface Tag {
  id: number;
  name: string;
  /** Bookmarks that carry it. */
  bookmark_count: number;
}

/** A tag as its creation answers it. */
export interface CreatedTag {
  id: number;
  name: string;
  created_at: string;
}

/** The profile of the current user (spec 4.1). */
export interface Profile {
  email: string;
  is_premium: boolean;
  created_at: string;
}

/** What an invite exchange answers (spec 4.1). */
export interface Session {
  /** The session token, shown once. */
  token: string;
  user: { id: number; email: string };
}

/** An entry of an import that could not be taken (decision 19). */
export interface ImportError {
  /** Its place in the array that was sent, from 0. */
  index: number;
  /** The url that was sent, `null` where there is no string. */
  url: string | null;
  code: 'VALIDATION_ERROR';
  error: string;
}

/** `imported + skipped + errors.length` is the number of entries sent (decision 19). */
export interface ImportResult {
  imported: number;
  skipped: number;
  errors: ImportError[];
}

/** Every code of an error answer: those of spec 7, and the two of decision 3. */
export type ErrorCode =
  | 'VALIDATION_ERROR'
  | 'INVALID_TOKEN'
  | 'PERMISSION_DENIED'
  | 'LIMIT_EXCEEDED'
  | 'NOT_FOUND'
  | 'RATE_LIMITED'
  | 'INTERNAL_ERROR'
  | 'UNAVAILABLE';

/** What an operation without parameters takes. */
export type Empty = Record<string, never>;

export interface InviteExchange {
  /** 8 characters, A to Z and 0 to 9. */
  code: string;
}

export interface LoggedOut {
  logged_out: true;
  message: string;
}

export type NewBookmark = GivenFields<'add'>;

/** Fields to change; an absent one stays as it is. */
export type BookmarkEdit = { id: number } & GivenFields<'edit'>;

export interface ById {
  id: number;
}

export interface Deleted {
  deleted: true;
}

export interface BookmarkSearch {
  /** Every word must occur in url, title or comment, whatever its case; absent or blank: all. */
  query?: string | undefined;
  /** A tag's whole name, whatever its case. */
  tag?: string | undefined;
  /** From 1. */
  page?: number | undefined;
  /** 1 to 100; 50 when absent. */
  per_page?: number | undefined;
}

/** Newest first. */
export interface FoundBookmarks {
  bookmarks: Bookmark[];
  /** All that match, exact. */
  total: number;
  page: number;
  per_page: number;
  has_more: boolean;
}

export interface ListPosition {
  /** The last answer's `next_cursor`; absent: from the start. */
  cursor?: string | undefined;
  /** 1 to 500; 100 when absent. */
  limit?: number | undefined;
}

/** By id, rising. */
export interface BookmarkList {
  bookmarks: Bookmark[];
  has_more: boolean;
  /** Absent on the last page. */
  next_cursor?: string | undefined;
}

export interface SyncPosition {
  /** The id of the last bookmark seen; 0 when absent. */
  cursor?: number | undefined;
  /** 1 to 100; 50 when absent. */
  limit?: number | undefined;
  /** Wait up to 30 seconds for something new. */
  wait?: boolean | undefined;
}

/** By id, rising. */
export interface SyncedBookmarks {
  bookmarks: Bookmark[];
  /** To be sent next; the one that was sent where there is nothing new. */
  cursor: number;
  has_more: boolean;
  /** Whether the request was held (decision 16). */
  waited: boolean;
}

export interface ChangesPosition {
  /** The last response's `cursor`; absent: from the beginning. */
  cursor?: string | undefined;
  /** In the place of a cursor: an empty page with the present cursor. */
  from?: 'now' | undefined;
  /** Objects of one page, 1 to 500; 100 when absent. */
  limit?: number | undefined;
  /** Wait up to 30 seconds for something new. */
  wait?: boolean | undefined;
}

/**
 * What became of a collection since a cursor. A client applies it in this order: where `reset` is true it drops all that
 * it holds; it puts `bookmarks` in the place of those with the same ids; it removes `deleted`; it renames by `tags` in all
 * that it holds; it takes `deleted_tags` out of all that it holds. To apply a page twice is to apply it once.
 */
export interface Changes {
  /** Whether the client has to begin anew, with this page. */
  reset: boolean;
  /** New and edited ones, as they are now. */
  bookmarks: Bookmark[];
  /** The ids of bookmarks that are gone. */
  deleted: number[];
  /** New and renamed ones. */
  tags: BookmarkTag[];
  /** The ids of tags that are gone. */
  deleted_tags: number[];
  /** To be sent next. */
  cursor: string;
  has_more: boolean;
  /** Whether the request was held (decision 16). */
  waited: boolean;
}

export interface TagList {
  /** In the order of their names, whatever their case. */
  tags: Tag[];
}

export interface NewTag {
  name: string;
}

export interface TagRename {
  id: number;
  name: string;
}

/** All bookmarks, by id, rising. */
export interface BookmarkExport {
  bookmarks: Bookmark[];
  exported_at: string;
  count: number;
}

/** An entry of an import: what export gives, and less (decision 18). */
export type ImportEntry = GivenFields<
  'import',
  Omit<Given, 'tags'> & { tags: (string | { name: string })[] }
>;

export interface BookmarkImport {
  /** At most 100,000. */
  bookmarks: ImportEntry[];
  /** `merge` when absent: skips what is there. `replace` puts the array in the place of everything (decision 20). */
  mode?: 'merge' | 'replace' | undefined;
}

/** Every endpoint of spec 4 with what it takes and what it answers. */
export interface Endpoints {
  '/user/profile': { request: Empty; response: Profile };
  '/auth/invite': { request: InviteExchange; response: Session };
  '/logout': { request: Empty; response: LoggedOut };
  '/bookmarks/add': { request: NewBookmark; response: Bookmark };
  '/bookmarks/edit': { request: BookmarkEdit; response: EditedBookmark };
  '/bookmarks/delete': { request: ById; response: Deleted };
  '/bookmarks/search': { request: BookmarkSearch; response: FoundBookmarks };
  '/bookmarks/list': { request: ListPosition; response: BookmarkList };
  '/bookmarks/sync': { request: SyncPosition; response: SyncedBookmarks };
  '/bookmarks/changes': { request: ChangesPosition; response: Changes };
  '/tags/list': { request: Empty; response: TagList };
  '/tags/create': { request: NewTag; response: CreatedTag };
  '/tags/update': { request: TagRename; response: BookmarkTag };
  '/tags/delete': { request: ById; response: Deleted };
  '/export': { request: Empty; response: BookmarkExport };
  '/import': { request: BookmarkImport; response: ImportResult };
}
