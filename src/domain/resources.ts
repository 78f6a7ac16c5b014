import type { BookmarkFields, FieldName, GivenName, Operation } from './bookmark-fields.ts';
import type { Sort } from './rules.ts';

/**
 * The resources of spec 2 and the requests and responses of spec 4, as they are sent. Plain types that the service
 * and its clients share: `http/route.ts` compares every schema with them, so that none can differ.
 */

/** A tag inside a bookmark (decision 8). */
export interface BookmarkTag {
  id: number;
  name: string;
}

/** The value of a bookmark's field, by the field's kind. */
interface FieldValues {
  url: string;
  text: string;
  tags: BookmarkTag[];
  time: string;
  flag: boolean;
}

/** The value of a field in a request, by the field's kind. */
interface GivenValues extends Omit<FieldValues, 'tags'> {
  tags: string[];
}

type BookmarkValues = { -readonly [Name in FieldName]: FieldValues[BookmarkFields[Name]['kind']] };

type Kind<Name extends FieldName> = BookmarkFields[Name]['kind'];

/** The fields that every request of an operation must have; an edit needs none. */
type RequiredName<Op extends Operation> = Op extends 'edit'
  ? never
  : {
      [Name in GivenName<Op>]: BookmarkFields[Name] extends { isRequired: true } ? Name : never;
    }[GivenName<Op>];

/** The fields of a bookmark in a request of an operation. */
type GivenFields<Op extends Operation, Values extends Record<keyof GivenValues, unknown> = GivenValues> = {
  -readonly [Name in RequiredName<Op>]: Values[Kind<Name>];
} & {
  -readonly [Name in Exclude<GivenName<Op>, RequiredName<Op>>]?: Values[Kind<Name>] | undefined;
};

/** A bookmark, the same in add, list, search, sync and export (spec 2.2). `BOOKMARK_FIELDS` describes its fields. */
export interface Bookmark extends BookmarkValues {
  id: number;
}

/** The response of `/bookmarks/edit`: the six fields of spec 4.2. */
export type EditedBookmark = Omit<Bookmark, 'created_at'>;

/** A tag in the tag list (spec 2.3). */
export interface Tag {
  id: number;
  name: string;
  /** The number of its bookmarks. */
  bookmark_count: number;
}

/** The response to the creation of a tag. */
export interface CreatedTag {
  id: number;
  name: string;
  created_at: string;
}

/** The profile of the current user (spec 4.1). */
export interface Profile {
  id: number;
  email: string;
  is_premium: boolean;
  created_at: string;
  bookmark_count: number;
  /** How many bookmarks the account may hold; `null`: any number. */
  bookmark_limit: number | null;
  /** The scope of the token of this request. */
  scope: 'read' | 'write';
  /** When that token expires; `null`: never. */
  token_expires_at: string | null;
}

/** The response to the exchange of an invite (spec 4.1). */
export interface Session {
  /** The session token, shown once. */
  token: string;
  user: { id: number; email: string };
}

/** An entry of an import that was not taken over (decision 19). */
export interface ImportError {
  /** The entry's position in the array, from 0. */
  index: number;
  /** The url that was sent; `null` where it is not a string. */
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

/** Every code of an error response: those of spec 7, those of decisions 3 and 43, and `ACCOUNT_SUSPENDED`. */
export type ErrorCode =
  | 'VALIDATION_ERROR'
  | 'INVALID_TOKEN'
  | 'ACCOUNT_SUSPENDED'
  | 'PERMISSION_DENIED'
  | 'LIMIT_EXCEEDED'
  | 'NOT_FOUND'
  | 'CONFLICT'
  | 'RATE_LIMITED'
  | 'INTERNAL_ERROR'
  | 'UNAVAILABLE';

/** The body of an operation without parameters. */
export type Empty = Record<string, never>;

export interface InviteExchange {
  /** 8 characters of an invite, or 12 of a code for another device: A to Z and 0 to 9. */
  code: string;
  /** The address that the invite was sent to, where it is known. */
  email?: string | undefined;
}

export interface CodeExchange {
  /** From the query of the app's redirect address. */
  code: string;
  /** PKCE's, 43 to 128 characters. */
  code_verifier: string;
  /** As the app asked for it. */
  redirect_uri: string;
}

export interface LoggedOut {
  logged_out: true;
  message: string;
}

export type NewBookmark = GivenFields<'add'> & {
  /**
   * What to do where a bookmark has the same url already (decision 10): add another one (the default), return the
   * newest of them unchanged, or refuse with `VALIDATION_ERROR`.
   */
  on_duplicate?: 'add' | 'return' | 'error' | undefined;
};

/** A bookmark as the client knows it. */
export interface BookmarkVersion {
  id: number;
  /** The `updated_at` that the client last saw. A bookmark that was changed since is a conflict (decision 43). */
  if_updated_at: string;
}

/** Several bookmarks: exactly one of the two, 1 to 500; repeated ones count once. */
export type BookmarksChoice =
  | { ids: number[]; items?: undefined }
  | { items: BookmarkVersion[]; ids?: undefined };

/** Fields to change; an absent one stays as it is. */
export type BookmarkEdit = {
  id: number;
  /** Changes only the version that the client last saw; another one is `CONFLICT`. */
  if_updated_at?: string | undefined;
} & GivenFields<'edit'>;

/** Tags to add to several bookmarks and to take off; others stay. */
export type BookmarksEdit = BookmarksChoice & {
  add_tags?: string[] | undefined;
  remove_tags?: string[] | undefined;
};

/** The body of an edit: one bookmark by its `id`, or the tags of several by their `ids` or `items`. */
export type AnyEdit = {
  [Name in keyof (BookmarkEdit & BookmarksEdit)]?: (BookmarkEdit & BookmarksEdit)[Name] | undefined;
};

/** What became of several bookmarks, in one transaction. */
interface SeveralDone {
  /** How many bookmarks it was done to. */
  count: number;
  /** The ids that were not there. */
  missing: number[];
  /** The ids that were changed since `if_updated_at`: nothing was done to them. Only in a response to `items`. */
  conflicts?: number[] | undefined;
}

/** Of an edit by `ids` or `items`. */
export interface EditedBookmarks extends SeveralDone {
  edited: true;
}

/** The body of a deletion: one bookmark by its `id`, or several by their `ids` or `items`. */
export interface AnyDeletion {
  id?: number | undefined;
  /** With `id`: deletes only the version that the client last saw; another one is `CONFLICT`. */
  if_updated_at?: string | undefined;
  ids?: number[] | undefined;
  items?: BookmarkVersion[] | undefined;
}

export interface ById {
  id: number;
}

export interface Deleted {
  deleted: true;
}

/** Of a deletion by `ids` or `items`. */
export interface DeletedBookmarks extends SeveralDone {
  deleted: true;
}

/** A bookmark in the trash; its `id` is the one that it had. */
export interface TrashedBookmark extends Bookmark {
  deleted_at: string;
}

/** The last deleted first. */
export interface TrashList {
  bookmarks: TrashedBookmark[];
  has_more: boolean;
  /** Absent on the last page. */
  next_cursor?: string | undefined;
}

export interface RestoredBookmarks {
  /** The old id of each bookmark and its new one, by rising ids. */
  restored: { id: number; new_id: number }[];
  /** The ids that are not in the trash, in the order sent. */
  missing: number[];
}

/** Exactly one of the two. */
export interface TrashChoice {
  ids?: number[] | undefined;
  /** Everything in the trash. */
  all?: true | undefined;
}

export interface TrashDeletion {
  deleted: true;
  /** How many bookmarks were deleted. */
  count: number;
}

/** Exactly one of the two. */
export interface BookmarkChoice {
  id?: number | undefined;
  /** All bookmarks whose url is the same (decision 10). */
  url?: string | undefined;
}

/** Newest first, at most 100 and about 1 MiB; empty where there is none. */
export interface ChosenBookmarks {
  bookmarks: Bookmark[];
}

/** All that is given must hold. */
export interface BookmarkSearch {
  /** Every word must occur in url, title or comment, whatever its case; absent or blank: all. */
  query?: string | undefined;
  /** Texts that must each occur in url, title or comment as they are, blanks included, whatever their case; at most 10. */
  phrases?: string[] | undefined;
  /** A tag's whole name, whatever its case. */
  tag?: string | undefined;
  /** Names of tags that a bookmark must all carry. */
  tags?: string[] | undefined;
  /** A tag or several: for each, a bookmark must have that tag or one below it, as `a/b` is below `a`. At most 10. */
  tag_under?: string | string[] | undefined;
  /** Names of tags of which it must carry none. */
  without_tags?: string[] | undefined;
  /** true: only bookmarks without any tag. */
  untagged?: boolean | undefined;
  /** Later than this time. */
  created_after?: string | undefined;
  /** Earlier than this time. */
  created_before?: string | undefined;
  /** A host name, whose subdomains count too. */
  site?: string | undefined;
  /** By id, falling or rising; by `created_at` or `updated_at`, falling; by title, rising. Default: `newest`. */
  sort?: Sort | undefined;
  /** From 1. */
  page?: number | undefined;
  /** The `next_cursor` of the last response to the same search, in the place of `page`. */
  cursor?: string | undefined;
  /** 1 to 100; 50 when absent. */
  per_page?: number | undefined;
}

/** In the order of `sort`, about 1 MiB at most. */
export interface FoundBookmarks {
  bookmarks: Bookmark[];
  /** The exact number of all matches; with a cursor, when the first page was read. */
  total: number;
  page: number;
  per_page: number;
  has_more: boolean;
  /** Where the next page begins, whatever is written meanwhile; absent on the last page. */
  next_cursor?: string | undefined;
}

export interface ListPosition {
  /** The `next_cursor` of the last response; absent: from the start. */
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
  /** The cursor for the next request; the one that was sent where nothing is new. */
  cursor: number;
  has_more: boolean;
  /** Whether the request was held (decision 16). */
  waited: boolean;
  /** In the empty response of a replica that is about to end: how long to wait before the next request. */
  retry_after_ms?: number | undefined;
}

export interface ChangesPosition {
  /** The `cursor` of the last response; absent: from the beginning. */
  cursor?: string | undefined;
  /** Instead of a cursor: responds with an empty page and the present cursor. */
  from?: 'now' | undefined;
  /** Objects of one page, 1 to 500; 100 when absent. */
  limit?: number | undefined;
  /** Wait up to 30 seconds for something new. */
  wait?: boolean | undefined;
}

/**
 * What changed in a collection since a cursor. A client applies a page in this order: if `reset` is true it removes
 * everything that it has; it puts `bookmarks` in the place of those with the same ids; it removes those in `deleted`;
 * it gives tags the names in `tags`; it takes `deleted_tags` off all bookmarks. To apply a page twice does no harm.
 */
export interface Changes {
  /** Whether the client has to begin anew, with this page. */
  reset: boolean;
  /** New and edited bookmarks, as they are now. */
  bookmarks: Bookmark[];
  /** The ids of deleted bookmarks. */
  deleted: number[];
  /** New and renamed tags. */
  tags: BookmarkTag[];
  /** The ids of deleted tags. */
  deleted_tags: number[];
  /** The cursor for the next request. */
  cursor: string;
  has_more: boolean;
  /** Whether the request was held (decision 16). */
  waited: boolean;
  /** In the empty response of a replica that is about to end: how long to wait before the next request. */
  retry_after_ms?: number | undefined;
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
  /** Also renames all tags below it, as `a/b` is below `a`: all, or none. Default: false. */
  with_children?: boolean | undefined;
}

export interface TagMerge {
  /** The tag that goes. */
  id: number;
  /** The tag that takes its place. */
  into_id: number;
}

/** All bookmarks, by id, rising. */
export interface BookmarkExport {
  bookmarks: Bookmark[];
  exported_at: string;
  count: number;
}

/** An entry of an import: a bookmark of an export, of which only the url is required (decision 18). */
export type ImportEntry = GivenFields<
  'import',
  Omit<GivenValues, 'tags'> & { tags: (string | { name: string })[] }
>;

export interface BookmarkImport {
  /** At most 100,000. */
  bookmarks: ImportEntry[];
  /**
   * Default `merge`: skips entries whose url exists already. `replace` puts the array in the place of all bookmarks
   * (decision 20).
   */
  mode?: 'merge' | 'replace' | undefined;
}

export interface AccountDeletion {
  /** The e-mail address of the account, whatever its case. */
  confirm: string;
}

/** What every token shows of itself. */
interface ShownToken {
  id: number;
  scope: 'read' | 'write';
  created_at: string;
  /** Null: valid until it is revoked. */
  expires_at: string | null;
  /** Exact to 15 minutes; null: not used yet. */
  last_used_at: string | null;
  /** The last four characters of the token. */
  last_four: string;
}

/** An API token of one's own. */
export interface ApiToken extends ShownToken {
  kind: 'api';
  name: string;
}

/** The response to the creation of an API token. */
export interface CreatedToken extends ApiToken {
  /** The token, shown once. */
  token: string;
}

/** A session of one's own. */
export interface OpenSession extends ShownToken {
  kind: 'session';
  /** The app that it was opened for; null: a browser, or an invite exchange. */
  app_name: string | null;
  /** The program that signed in, such as `Firefox on Linux` or `curl`; null: unknown. */
  client: string | null;
  /** Whether it is the session of this request. */
  is_current: boolean;
}

export interface NewToken {
  /** Unique whatever its case, at most 255 characters. */
  name: string;
  /** Default `read`. */
  scope?: 'read' | 'write' | undefined;
  /** 1 to 365; 90 when absent; null: valid until it is revoked. */
  expires_in_days?: number | null | undefined;
}

export interface TokenList {
  /** Oldest first. */
  tokens: ApiToken[];
}

export interface SessionList {
  /** Oldest first. */
  sessions: OpenSession[];
}

export interface Revoked {
  revoked: true;
}

export interface RevokedSessions {
  /** How many sessions were ended. */
  revoked: number;
}

/** Every endpoint of spec 4 with its request and its response. */
export interface Endpoints {
  '/user/profile': { request: Empty; response: Profile };
  '/auth/invite': { request: InviteExchange; response: Session };
  '/auth/exchange': { request: CodeExchange; response: Session };
  '/logout': { request: Empty; response: LoggedOut };
  '/bookmarks/add': { request: NewBookmark; response: Bookmark };
  '/bookmarks/edit': { request: AnyEdit; response: EditedBookmark | EditedBookmarks };
  '/bookmarks/delete': { request: AnyDeletion; response: Deleted | DeletedBookmarks };
  '/bookmarks/get': { request: BookmarkChoice; response: ChosenBookmarks };
  '/bookmarks/search': { request: BookmarkSearch; response: FoundBookmarks };
  '/bookmarks/list': { request: ListPosition; response: BookmarkList };
  '/bookmarks/sync': { request: SyncPosition; response: SyncedBookmarks };
  '/bookmarks/changes': { request: ChangesPosition; response: Changes };
  '/trash/list': { request: ListPosition; response: TrashList };
  '/trash/restore': { request: { ids: number[] }; response: RestoredBookmarks };
  '/trash/delete': { request: TrashChoice; response: TrashDeletion };
  '/tags/list': { request: Empty; response: TagList };
  '/tags/create': { request: NewTag; response: CreatedTag };
  '/tags/update': { request: TagRename; response: BookmarkTag };
  '/tags/delete': { request: ById; response: Deleted };
  '/tags/merge': { request: TagMerge; response: Tag };
  '/export': { request: Empty; response: BookmarkExport };
  '/account/delete': { request: AccountDeletion; response: Deleted };
  '/tokens/list': { request: Empty; response: TokenList };
  '/tokens/create': { request: NewToken; response: CreatedToken };
  '/tokens/revoke': { request: ById; response: Revoked };
  '/sessions/list': { request: Empty; response: SessionList };
  '/sessions/revoke': { request: ById; response: Revoked };
  '/sessions/revoke-others': { request: Empty; response: RevokedSessions };
  '/import': { request: BookmarkImport; response: ImportResult };
}
