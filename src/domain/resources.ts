import type { BookmarkFields, FieldName, GivenName, Operation } from './bookmark-fields.ts';
import type { Sort } from './bounds.ts';

/**
 * The resources, requests and responses of docs/contract.md, as they are sent. The numbers of sections and decisions in
 * this file are those of docs/contract.md. The service and its clients share these types. `src/http/route.ts` compares
 * every schema with them at compile time.
 */

/** A tag inside a bookmark (decision 8). */
export interface BookmarkTag {
  id: number;
  name: string;
}

/** The type of a field's value in a response, for each kind of field. */
interface FieldValues {
  url: string;
  text: string;
  tags: BookmarkTag[];
  time: string;
  flag: boolean;
}

/** The type of a field's value in a request, for each kind of field. */
interface GivenValues extends Omit<FieldValues, 'tags'> {
  tags: string[];
}

type BookmarkValues = { -readonly [Name in FieldName]: FieldValues[BookmarkFields[Name]['kind']] };

type Kind<Name extends FieldName> = BookmarkFields[Name]['kind'];

/** The names of the fields that a request of an operation must contain. For an edit, there are none. */
type RequiredName<Op extends Operation> = Op extends 'edit'
  ? never
  : {
      [Name in GivenName<Op>]: BookmarkFields[Name] extends { isRequired: true } ? Name : never;
    }[GivenName<Op>];

/** The fields of a bookmark in the requests of an operation. */
type GivenFields<Op extends Operation, Values extends Record<keyof GivenValues, unknown> = GivenValues> = {
  -readonly [Name in RequiredName<Op>]: Values[Kind<Name>];
} & {
  -readonly [Name in Exclude<GivenName<Op>, RequiredName<Op>>]?: Values[Kind<Name>] | undefined;
};

/**
 * A bookmark as all endpoints except `/bookmarks/edit` return it (section 2.2). `BOOKMARK_FIELDS` describes its fields.
 */
export interface Bookmark extends BookmarkValues {
  id: number;
}

/** The response to an edit of one bookmark (section 4.2). */
export type EditedBookmark = Omit<Bookmark, 'created_at'>;

/** A tag in the tag list (section 2.3). */
export interface Tag {
  id: number;
  name: string;
  /** The number of bookmarks with this tag. */
  bookmark_count: number;
}

/** The response to `/tags/create`. */
export interface CreatedTag {
  id: number;
  name: string;
  created_at: string;
}

/** The profile of the current user (section 4.1). */
export interface Profile {
  email: string;
  is_premium: boolean;
  created_at: string;
}

/** The account of the current user, and the token of the request (section 4.1). */
export interface Account extends Profile {
  id: number;
  bookmark_count: number;
  /** The maximum number of bookmarks in the account; `null` means no limit. */
  bookmark_limit: number | null;
  /** The scope of the request's token. */
  scope: 'read' | 'write';
  /** When the request's token expires; `null` means never. */
  token_expires_at: string | null;
}

/** The response to the exchange of an invite or a code (section 4.1). */
export interface Session {
  /** The session token, shown once. */
  token: string;
  user: { id: number; email: string };
}

/** An entry that an import refused (decision 19). */
export interface ImportError {
  /** The entry's position in the array, counted from 0. */
  index: number;
  /** The url that was sent; `null` if it is not a string. */
  url: string | null;
  code: 'VALIDATION_ERROR';
  error: string;
}

/** `imported + skipped + errors.length` equals the number of entries sent (decision 19). */
export interface ImportResult {
  imported: number;
  skipped: number;
  errors: ImportError[];
}

/** All codes of error responses: those of section 7, those of decisions 3 and 43, and `ACCOUNT_SUSPENDED`. */
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

/** The body of a request without parameters. */
export type Empty = Record<string, never>;

export interface InviteExchange {
  /** 8 characters, A to Z and 0 to 9. */
  code: string;
  /** The e-mail address that the invite was sent to, if known. */
  email?: string | undefined;
}

/** Exchanges a code that a signed-in device shows. */
export interface DeviceCodeExchange {
  /** 12 characters, A to Z and 0 to 9. */
  code: string;
  /** The e-mail address of the account, if known. */
  email?: string | undefined;
}

export interface CodeExchange {
  /** The code from the query of the app's redirect address. */
  code: string;
  /** The PKCE verifier, 43 to 128 characters. */
  code_verifier: string;
  /** The redirect address, the same as in the app's original request. */
  redirect_uri: string;
}

export interface LoggedOut {
  logged_out: true;
  message: string;
}

export type NewBookmark = GivenFields<'add'> & {
  /**
   * What to do if bookmarks with the same url exist (decision 10). `add`, the default, adds another bookmark. `return`
   * returns the newest of them unchanged. `error` refuses the request with `VALIDATION_ERROR`.
   */
  on_duplicate?: 'add' | 'return' | 'error' | undefined;
};

/** A bookmark and the version that the client knows. */
export interface BookmarkVersion {
  id: number;
  /** The `updated_at` that the client saw last. A bookmark that has changed since then is a conflict (decision 43). */
  if_updated_at: string;
}

/** Chooses several bookmarks by exactly one of the two fields, with 1 to 500 entries. Duplicates count once. */
export type BookmarksChoice =
  | { ids: number[]; items?: undefined }
  | { items: BookmarkVersion[]; ids?: undefined };

/** The fields to change. An absent field stays unchanged. */
export type BookmarkEdit = {
  id: number;
  /** The `updated_at` that the client saw last. If the bookmark has changed since, the response is `CONFLICT`. */
  if_updated_at?: string | undefined;
} & GivenFields<'edit'>;

/** Tags to add to and remove from several bookmarks. Other tags are kept. */
export type BookmarksEdit = BookmarksChoice & {
  add_tags?: string[] | undefined;
  remove_tags?: string[] | undefined;
};

/** The body of an edit: one bookmark by `id`, or the tags of several by `ids` or `items`. */
export type AnyEdit = {
  [Name in keyof (BookmarkEdit & BookmarksEdit)]?: (BookmarkEdit & BookmarksEdit)[Name] | undefined;
};

/** The result of an operation that handled several bookmarks in one transaction. */
interface SeveralDone {
  /** How many of the bookmarks exist and are not in `conflicts`. */
  count: number;
  /** The ids that do not exist. */
  missing: number[];
  /**
   * The ids of bookmarks that were not handled, because they changed after `if_updated_at`. Only present for `items`.
   */
  conflicts?: number[] | undefined;
}

/** The response to an edit by `ids` or `items`. */
export interface EditedBookmarks extends SeveralDone {
  edited: true;
}

/** The body of a deletion: one bookmark by `id`, or several by `ids` or `items`. */
export interface AnyDeletion {
  id?: number | undefined;
  /** Only with `id`. If the bookmark has changed since this time, it is kept, and the response is `CONFLICT`. */
  if_updated_at?: string | undefined;
  ids?: number[] | undefined;
  items?: BookmarkVersion[] | undefined;
  /** Whether the bookmarks move to the trash. By default, the deletion is permanent. */
  trash?: boolean | undefined;
}

/** Deletes one bookmark. */
export type BookmarkDeletion = Pick<AnyDeletion, 'if_updated_at' | 'trash'> & { id: number };

/** Deletes several bookmarks. */
export type BookmarksDeletion = BookmarksChoice & Pick<AnyDeletion, 'trash'>;

export interface ById {
  id: number;
}

export interface Deleted {
  deleted: true;
}

/** The response to a deletion by `ids` or `items`. */
export interface DeletedBookmarks extends SeveralDone {
  deleted: true;
}

/** One write of a batch: the fields of the request that does the same alone. */
export type BatchOperation = {
  /** Has the meaning of the header `Idempotency-Key` of that request. */
  key?: string | undefined;
} & (({ do: 'add' } & NewBookmark) | ({ do: 'edit' } & BookmarkEdit) | ({ do: 'delete' } & BookmarkDeletion));

/** Why an operation of a batch was refused. */
export interface Refusal {
  error: string;
  code: ErrorCode;
}

/** Writes that run in order, each as if it were sent alone. */
export interface Batch {
  /** 1 to 500. */
  operations: BatchOperation[];
  /** Whether all operations happen or none. Default: false. */
  atomic?: boolean | undefined;
}

export interface BatchResults {
  /** For each operation, in order, the response of its endpoint, or why it was refused. */
  results: (Bookmark | EditedBookmark | Deleted | Refusal)[];
}

/** A bookmark in the trash, with its original `id`. */
export interface TrashedBookmark extends Bookmark {
  deleted_at: string;
}

/** A page of deleted bookmarks. The most recently deleted bookmark comes first. */
export interface TrashList {
  bookmarks: TrashedBookmark[];
  has_more: boolean;
  /** Absent on the last page. */
  next_cursor?: string | undefined;
}

export interface RestoredBookmarks {
  /** The old and the new id of each bookmark, in ascending order of old ids. */
  restored: { id: number; new_id: number }[];
  /** The ids that are not in the trash, in the order sent. */
  missing: number[];
}

/** Exactly one of the two fields must be present. */
export interface TrashChoice {
  ids?: number[] | undefined;
  /** Deletes everything in the trash. */
  all?: true | undefined;
}

export interface TrashDeletion {
  deleted: true;
  /** The number of bookmarks that were deleted from the trash. */
  count: number;
}

/** Exactly one of the two fields must be present. */
export interface BookmarkChoice {
  id?: number | undefined;
  /** Finds all bookmarks with this url (decision 10). */
  url?: string | undefined;
}

/** The matching bookmarks, newest first: at most 100 of them, and at most about 1 MiB. */
export interface ChosenBookmarks {
  bookmarks: Bookmark[];
}

/** A bookmark must contain all phrases and have all tags. At least one phrase or tag must be present. */
export interface SearchAlternative {
  phrases?: string[] | undefined;
  /** Names of tags. */
  tags?: string[] | undefined;
}

/** The conditions of a search. A bookmark is found if it meets all of them. */
export interface BookmarkSearch {
  /** Every word must occur in url, title or comment, ignoring case. A blank query matches every bookmark. */
  query?: string | undefined;
  /** Each text, including its blanks, must occur in url, title or comment, ignoring case. At most 10 texts. */
  phrases?: string[] | undefined;
  /** None of these texts may occur in url, title or comment. At most 10 texts. */
  without_phrases?: string[] | undefined;
  /** A bookmark must match at least one of these alternatives, at most 10. */
  any?: SearchAlternative[] | undefined;
  /** The whole name of a tag, ignoring case. */
  tag?: string | undefined;
  /** Names of tags. A bookmark must have all of them. */
  tags?: string[] | undefined;
  /** One tag or several, at most 10. For each, a bookmark must have that tag or one below it; `a/b` is below `a`. */
  tag_under?: string | string[] | undefined;
  /** Names of tags. A bookmark must have none of them. */
  without_tags?: string[] | undefined;
  /** If true, finds only bookmarks without tags. */
  untagged?: boolean | undefined;
  /** Only bookmarks created after this time. */
  created_after?: string | undefined;
  /** Only bookmarks created before this time. */
  created_before?: string | undefined;
  /** Only bookmarks edited or created after this time. */
  updated_after?: string | undefined;
  /** A host name. Its subdomains match too. */
  site?: string | undefined;
  /**
   * `newest` (the default) and `oldest` sort by id. `created` (by `created_at`) and `updated` (by `updated_at`) sort
   * the latest first, and `created_oldest` (by `created_at`) sorts the earliest first. `title` sorts alphabetically.
   */
  sort?: Sort | undefined;
  /** The number of the page, counted from 1. */
  page?: number | undefined;
  /**
   * `""` for the first page, or for the page that `page` names. After that, the `next_cursor` of the previous response
   * to the same search, which replaces `page`.
   */
  cursor?: string | undefined;
  /** 1 to 100. Default: 50. */
  per_page?: number | undefined;
}

/** A page of a search, in the order of `sort`. A page that is read with a cursor has at most about 1 MiB. */
export interface FoundBookmarks {
  bookmarks: Bookmark[];
  /** The exact number of matches. With a cursor, it is the number when the first page was read. */
  total: number;
  page: number;
  per_page: number;
  has_more: boolean;
  /**
   * The cursor of the next page. With it, no bookmark that stays unchanged is missed or returned twice, whatever other
   * requests write meanwhile. Absent on the last page, and if the request has no `cursor`.
   */
  next_cursor?: string | undefined;
}

export interface ListPosition {
  /** The `next_cursor` of the previous response. Absent for the first page. */
  cursor?: string | undefined;
  /** 1 to 500. Default: 100. */
  limit?: number | undefined;
}

/** A page of bookmarks in ascending order of ids. */
export interface BookmarkList {
  bookmarks: Bookmark[];
  has_more: boolean;
  /** Absent on the last page. */
  next_cursor?: string | undefined;
}

export interface SyncPosition {
  /** The id of the last bookmark seen. Default: 0. */
  cursor?: number | undefined;
  /** 1 to 100. Default: 50. */
  limit?: number | undefined;
  /** Whether to wait for something new, for up to 29 seconds. */
  wait?: boolean | undefined;
  /** The longest wait in seconds, 0 to 30, in place of `wait`. The service never waits longer than with `wait`. */
  wait_seconds?: number | undefined;
}

/** A page of bookmarks in ascending order of ids. */
export interface SyncedBookmarks {
  bookmarks: Bookmark[];
  /** The cursor for the next request. Unchanged if nothing is new. */
  cursor: number;
  has_more: boolean;
  /** Whether the request was held (decision 16). */
  waited: boolean;
}

export interface ChangesPosition {
  /** The `cursor` of the previous response. Absent to start from the beginning. */
  cursor?: string | undefined;
  /** Sent instead of a cursor. The response is then an empty page with the current cursor. */
  from?: 'now' | undefined;
  /** The maximum number of bookmarks, tags and deleted ids in a page, 1 to 500. Default: 100. */
  limit?: number | undefined;
  /** Whether to wait for something new, for up to 29 seconds. */
  wait?: boolean | undefined;
  /** The longest wait in seconds, 0 to 30, in place of `wait`. The service never waits longer than with `wait`. */
  wait_seconds?: number | undefined;
}

/**
 * What changed since a cursor. A client applies a page in this order:
 *
 * 1. If `reset` is true, remove everything.
 * 2. Insert `bookmarks`, or replace those with the same ids.
 * 3. Remove the bookmarks in `deleted`.
 * 4. Insert `tags`, or rename those with the same ids.
 * 5. Remove `deleted_tags` from all bookmarks.
 *
 * Applying a page twice is harmless.
 */
export interface Changes {
  /** Whether the client must start over with this page. */
  reset: boolean;
  /** New and edited bookmarks in their current state. */
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
}

export interface DigestRange {
  /** The number of parts, 1 to 64. Default: 16. */
  parts?: number | undefined;
  /** The range excludes this id. Default: 0. */
  after_id?: number | undefined;
  /** The range includes this id. Default: the largest possible id. */
  up_to_id?: number | undefined;
}

/** A part of a range of ids, which excludes `after_id` and includes `up_to_id`. */
export interface DigestPart {
  after_id: number;
  up_to_id: number;
  /** The number of bookmarks in the part. */
  count: number;
  /** SHA-256 of the part's bookmarks, in lower-case hex. */
  digest: string;
}

/** Digests of the bookmarks in a range of ids (docs/contract.md, section 4.2). */
export interface BookmarkDigest {
  /** The parts in order. They cover the whole range. */
  parts: DigestPart[];
  /** SHA-256 of all tags, in lower-case hex. */
  tags_digest: string;
  /** The cursor of `/bookmarks/changes` at which all this was true. */
  cursor: string;
}

export interface TagList {
  /** Sorted by name, ignoring case. */
  tags: Tag[];
}

export interface NewTag {
  name: string;
}

export interface TagRename {
  id: number;
  name: string;
  /**
   * Whether to rename all tags below this tag too (`a/b` is below `a`). If one of them cannot be renamed, none is.
   * Default: false.
   */
  with_children?: boolean | undefined;
}

/** Chooses a tag by exactly one of `id` and `path`. */
export interface TagChoice {
  id?: number | undefined;
  /** The name of a tag. It need not exist if there are tags below it. Requires `with_children: true`. */
  path?: string | undefined;
  /** Whether to choose all tags below this tag too. Default: false. */
  with_children?: boolean | undefined;
}

/** The body of a rename, by `id` or by `path`. */
export interface AnyTagRename extends TagChoice {
  name: string;
}

/** The response to a rename by `path`. */
export interface RenamedTags {
  /** The new name of the tag. */
  name: string;
  /** The number of renamed tags. */
  renamed: number;
}

export interface TagMerge {
  /** The tag to delete. */
  id: number;
  /** The tag that replaces it. */
  into_id: number;
}

/** All bookmarks in ascending order of ids. */
export interface BookmarkExport {
  bookmarks: Bookmark[];
  exported_at: string;
  count: number;
}

/** An entry of an import. A bookmark of an export is a valid entry. Only the url is required (decision 18). */
export type ImportEntry = GivenFields<
  'import',
  Omit<GivenValues, 'tags'> & { tags: (string | { name: string })[] }
>;

export interface BookmarkImport {
  /** At most 100,000 entries. */
  bookmarks: ImportEntry[];
  /**
   * `merge` (default) skips entries whose url already exists. `replace` replaces all bookmarks of the account with
   * the entries (decision 20).
   */
  mode?: 'merge' | 'replace' | undefined;
}

export interface AccountDeletion {
  /** Must equal the e-mail address of the account, ignoring case. */
  confirm: string;
}

/** The fields that API tokens and sessions have in common in a response. */
interface ShownToken {
  id: number;
  scope: 'read' | 'write';
  created_at: string;
  /** Null means no expiry. */
  expires_at: string | null;
  /** Accurate to 15 minutes; null means never used. */
  last_used_at: string | null;
  /** The last four characters of the token. */
  last_four: string;
}

/** A user's own API token. */
export interface ApiToken extends ShownToken {
  kind: 'api';
  name: string;
}

/** The response to `/tokens/create`. */
export interface CreatedToken extends ApiToken {
  /** The token, shown once. */
  token: string;
}

/** A user's own session. */
export interface OpenSession extends ShownToken {
  kind: 'session';
  /** The app that the session was opened for; null for a browser, an invite or a code from another device. */
  app_name: string | null;
  /** The program that signed in, for example `Firefox on Linux` or `curl`; null means unknown. */
  client: string | null;
  /** Whether this is the session of the request. */
  is_current: boolean;
}

export interface NewToken {
  /** Unique, ignoring case. At most 255 characters. */
  name: string;
  /** Default: `read`. */
  scope?: 'read' | 'write' | undefined;
  /** 1 to 365. Default: 90. Null means no expiry. */
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
  /** The number of sessions that were ended. */
  revoked: number;
}

/** Every endpoint of section 4 with its request and response. */
export interface Endpoints {
  '/user/profile': { request: Empty; response: Profile };
  '/auth/invite': { request: InviteExchange; response: Session };
  '/auth/device': { request: DeviceCodeExchange; response: Session };
  '/auth/exchange': { request: CodeExchange; response: Session };
  '/logout': { request: Empty; response: LoggedOut };
  '/account/get': { request: Empty; response: Account };
  '/bookmarks/add': { request: NewBookmark; response: Bookmark };
  '/bookmarks/edit': { request: AnyEdit; response: EditedBookmark | EditedBookmarks };
  '/bookmarks/delete': { request: AnyDeletion; response: Deleted | DeletedBookmarks };
  '/bookmarks/batch': { request: Batch; response: BatchResults };
  '/bookmarks/get': { request: BookmarkChoice; response: ChosenBookmarks };
  '/bookmarks/search': { request: BookmarkSearch; response: FoundBookmarks };
  '/bookmarks/list': { request: ListPosition; response: BookmarkList };
  '/bookmarks/sync': { request: SyncPosition; response: SyncedBookmarks };
  '/bookmarks/changes': { request: ChangesPosition; response: Changes };
  '/bookmarks/digest': { request: DigestRange; response: BookmarkDigest };
  '/trash/list': { request: ListPosition; response: TrashList };
  '/trash/restore': { request: { ids: number[] }; response: RestoredBookmarks };
  '/trash/delete': { request: TrashChoice; response: TrashDeletion };
  '/tags/list': { request: Empty; response: TagList };
  '/tags/create': { request: NewTag; response: CreatedTag };
  '/tags/update': { request: AnyTagRename; response: BookmarkTag | RenamedTags };
  '/tags/delete': { request: TagChoice; response: Deleted };
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
