import type {
  Account,
  Batch,
  BatchResults,
  Bookmark,
  BookmarkDeletion,
  BookmarkDigest,
  BookmarkEdit,
  BookmarkExport,
  BookmarkImport,
  BookmarkList,
  BookmarkSearch,
  BookmarksDeletion,
  BookmarksEdit,
  BookmarkTag,
  Changes,
  ChangesPosition,
  ChosenBookmarks,
  CodeExchange,
  CreatedTag,
  CreatedToken,
  Deleted,
  DeletedBookmarks,
  DigestRange,
  EditedBookmark,
  EditedBookmarks,
  FoundBookmarks,
  ImportResult,
  ListPosition,
  LoggedOut,
  NewBookmark,
  NewTag,
  NewToken,
  Profile,
  RenamedTags,
  RestoredBookmarks,
  Revoked,
  RevokedSessions,
  Session,
  SessionList,
  SyncedBookmarks,
  SyncPosition,
  Tag,
  TagList,
  TagMerge,
  TagRename,
  TokenList,
  TrashDeletion,
  TrashList,
} from '../domain/resources.ts';
import { streamExport } from './export-stream.ts';
import {
  type ClientOptions,
  type KeyedOptions,
  Requester,
  type RequestOptions,
  randomId,
} from './requester.ts';

/** The largest page sizes of `/bookmarks/list` and `/bookmarks/search` (docs/contract.md, section 8). */
const LIST_LIMIT = 500;
const SEARCH_LIMIT = 100;

/**
 * A client with one method for each endpoint. `BookmarkClient` extends this class. The service's own web page uses this
 * class directly, so that the page loads less code.
 */
export class EndpointClient {
  protected readonly options: ClientOptions;
  protected readonly requester: Requester;

  /** Throws a `TypeError` if the address or the token is malformed. */
  constructor(options: ClientOptions) {
    this.options = options;
    this.requester = new Requester(options);
  }

  /** Returns the profile of the token's user (docs/contract.md, section 4.1). */
  profile(options?: RequestOptions): Promise<Profile> {
    return this.requester.request('/user/profile', {}, options);
  }

  /** Returns the account of the token's user, and what the token may do (docs/contract.md, section 4.1). */
  account(options?: RequestOptions): Promise<Account> {
    return this.requester.request('/account/get', {}, options);
  }

  /**
   * Exchanges a single-use invite code for a session token (docs/contract.md, section 4.1). The request is not retried
   * if the service may already have processed it. Pass the invite's `email` if you know it: while strangers guess
   * codes, the service may refuse an exchange without an `email`.
   */
  exchangeInvite(
    code: string,
    { email, ...options }: RequestOptions & { email?: string | undefined } = {},
  ): Promise<Session> {
    return this.requester.request('/auth/invite', { code, email }, options);
  }

  /**
   * Exchanges the single-use code that a signed-in device shows for a session token (docs/contract.md, section 5.3).
   * Like `exchangeInvite`, the request is not repeated, and `email` is optional.
   */
  exchangeDeviceCode(
    code: string,
    { email, ...options }: RequestOptions & { email?: string | undefined } = {},
  ): Promise<Session> {
    return this.requester.request('/auth/device', { code, email }, options);
  }

  /**
   * Exchanges the single-use code from `/login/app` for a session token. The request is not retried if the service may
   * already have processed it.
   */
  exchangeCode(exchange: CodeExchange, options?: RequestOptions): Promise<Session> {
    return this.requester.request('/auth/exchange', exchange, options);
  }

  /** Revokes the session token of this client (docs/contract.md, section 4.1). */
  logout(options?: RequestOptions): Promise<LoggedOut> {
    return this.requester.request('/logout', {}, options);
  }

  /** Adds a bookmark (docs/contract.md, section 4.2). A retry does not add it a second time. */
  addBookmark(bookmark: NewBookmark, options?: KeyedOptions): Promise<Bookmark> {
    return this.requester.request('/bookmarks/add', bookmark, options);
  }

  /**
   * Changes the given fields of a bookmark (docs/contract.md, section 4.2). `tags` replaces all its tags. With
   * `if_updated_at`, the call rejects with `CONFLICT` if the bookmark has changed since that time.
   */
  editBookmark(edit: BookmarkEdit, options?: KeyedOptions): Promise<EditedBookmark> {
    return this.requester.request('/bookmarks/edit', edit, options);
  }

  /** Adds and removes tags on at most 500 bookmarks, in one transaction (docs/contract.md, section 4.2). */
  editBookmarks(edit: BookmarksEdit, options?: KeyedOptions): Promise<EditedBookmarks> {
    return this.requester.request('/bookmarks/edit', edit, options);
  }

  /**
   * Deletes a bookmark for good (docs/contract.md, section 4.2). With `trash: true`, the bookmark moves to the trash.
   * With `if_updated_at`, the call rejects with `CONFLICT` if the bookmark has changed since that time.
   */
  deleteBookmark(bookmark: number | BookmarkDeletion, options?: KeyedOptions): Promise<Deleted> {
    const body = typeof bookmark === 'number' ? { id: bookmark } : bookmark;
    return this.requester.request('/bookmarks/delete', body, options);
  }

  /**
   * Deletes at most 500 bookmarks for good, in one transaction (docs/contract.md, section 4.2). With `trash: true`,
   * they move to the trash. Ids that do not exist are not an error. With `items`, the service skips bookmarks that have
   * changed since their `if_updated_at`.
   */
  deleteBookmarks(
    bookmarks: number[] | BookmarksDeletion,
    options?: KeyedOptions,
  ): Promise<DeletedBookmarks> {
    const body = Array.isArray(bookmarks) ? { ids: bookmarks } : bookmarks;
    return this.requester.request('/bookmarks/delete', body, options);
  }

  /**
   * Runs up to 500 adds, edits and deletions in order, in one request of at most 1 MiB (docs/contract.md, section 4.2).
   * Resolves with the response or the error of each. With `atomic`, all happen or none, and the call rejects with the
   * first refusal. Operations without a `key` get a random one, so a retry repeats none of them. For a first upload, use
   * `importBookmarks`.
   */
  writeBookmarks({ operations, atomic }: Batch, options?: RequestOptions): Promise<BatchResults> {
    const keyed = operations.map((operation) => ({ key: randomId(), ...operation }));
    return this.requester.request('/bookmarks/batch', { operations: keyed, atomic }, options);
  }

  /**
   * Returns the bookmark with this id, or up to 100 bookmarks with this url, newest first (docs/contract.md, section
   * 4.2). The array is empty if no bookmark has this id or url.
   */
  getBookmarks(choice: { id: number } | { url: string }, options?: RequestOptions): Promise<ChosenBookmarks> {
    return this.requester.request('/bookmarks/get', choice, options);
  }

  /**
   * Returns a page of search results, newest first by default (docs/contract.md, section 4.2). `searchAll` reads all
   * pages.
   */
  searchBookmarks(search: BookmarkSearch = {}, options?: RequestOptions): Promise<FoundBookmarks> {
    return this.requester.request('/bookmarks/search', search, options);
  }

  /** Returns a page of all bookmarks, in order of ids (docs/contract.md, section 4.2). */
  listBookmarks(position: ListPosition = {}, options?: RequestOptions): Promise<BookmarkList> {
    return this.requester.request('/bookmarks/list', position, options);
  }

  /**
   * Returns the bookmarks that were added after a cursor (docs/contract.md, section 4.2). If there are none yet and
   * `wait` is given, the service waits up to 29 s for one, or up to `wait_seconds`. `BookmarkClient.sync` sends this
   * request in a loop.
   */
  syncBookmarks(position: SyncPosition = {}, options?: RequestOptions): Promise<SyncedBookmarks> {
    return this.requester.request('/bookmarks/sync', position, options);
  }

  /**
   * Returns the changes that were made after a cursor. If there are none yet and `wait` is given, the service waits up
   * to 29 s for one, or up to `wait_seconds`. `BookmarkClient.mirror` sends this request in a loop.
   */
  readChanges(position: ChangesPosition = {}, options?: RequestOptions): Promise<Changes> {
    return this.requester.request('/bookmarks/changes', position, options);
  }

  /** Returns digests of the bookmarks, with which a copy can be checked (docs/contract.md, section 4.2). */
  digestBookmarks(range: DigestRange = {}, options?: RequestOptions): Promise<BookmarkDigest> {
    return this.requester.request('/bookmarks/digest', range, options);
  }

  /** Returns a page of the deleted bookmarks, most recently deleted first (docs/contract.md, section 4.6). */
  listTrash(position: ListPosition = {}, options?: RequestOptions): Promise<TrashList> {
    return this.requester.request('/trash/list', position, options);
  }

  /** Restores at most 500 deleted bookmarks under new ids, in one transaction (docs/contract.md, section 4.6). */
  restoreBookmarks(ids: number[], options?: KeyedOptions): Promise<RestoredBookmarks> {
    return this.requester.request('/trash/restore', { ids }, options);
  }

  /** Permanently deletes at most 500 bookmarks in the trash (docs/contract.md, section 4.6). */
  deleteFromTrash(ids: number[], options?: KeyedOptions): Promise<TrashDeletion> {
    return this.requester.request('/trash/delete', { ids }, options);
  }

  /** Permanently deletes everything in the trash (docs/contract.md, section 4.6). */
  emptyTrash(options?: KeyedOptions): Promise<TrashDeletion> {
    return this.requester.request('/trash/delete', { all: true }, options);
  }

  /** Returns all tags, each with its number of bookmarks (docs/contract.md, section 4.3). */
  listTags(options?: RequestOptions): Promise<TagList> {
    return this.requester.request('/tags/list', {}, options);
  }

  /** Creates a tag (docs/contract.md, section 4.3). A retry does not create it a second time. */
  createTag(tag: NewTag, options?: KeyedOptions): Promise<CreatedTag> {
    return this.requester.request('/tags/create', tag, options);
  }

  /** Renames a tag on all its bookmarks (docs/contract.md, section 4.3). */
  renameTag(rename: TagRename, options?: KeyedOptions): Promise<BookmarkTag> {
    return this.requester.request('/tags/update', rename, options);
  }

  /**
   * Renames the tag `path`, if it exists, and all tags below it (docs/contract.md, section 4.3). Rejects with `NOT_FOUND`
   * if there are no such tags.
   */
  renameTagPath(path: string, name: string, options?: KeyedOptions): Promise<RenamedTags> {
    return this.requester.request('/tags/update', { path, name, with_children: true }, options);
  }

  /** Deletes a tag. Its bookmarks are kept (docs/contract.md, section 4.3). */
  deleteTag(id: number, options?: KeyedOptions): Promise<Deleted> {
    return this.requester.request('/tags/delete', { id }, options);
  }

  /**
   * Deletes the tag `path`, if it exists, and all tags below it. Their bookmarks are kept (docs/contract.md, section
   * 4.3). Rejects with `NOT_FOUND` if there are no such tags.
   */
  deleteTagPath(path: string, options?: KeyedOptions): Promise<Deleted> {
    return this.requester.request('/tags/delete', { path, with_children: true }, options);
  }

  /**
   * Returns the API tokens of the account. This method and the next ones, up to `revokeOtherSessions`, need a session
   * token.
   */
  listTokens(options?: RequestOptions): Promise<TokenList> {
    return this.requester.request('/tokens/list', {}, options);
  }

  /**
   * Creates an API token. Only this response contains the token itself. The request is not retried after a lost
   * response: the token may exist by then, and a repeat would be refused because the name is taken.
   */
  createToken(token: NewToken, options?: RequestOptions): Promise<CreatedToken> {
    return this.requester.request('/tokens/create', token, options);
  }

  /** Revokes an API token of the account. */
  revokeToken(id: number, options?: KeyedOptions): Promise<Revoked> {
    return this.requester.request('/tokens/revoke', { id }, options);
  }

  /** Returns the sessions of the account. */
  listSessions(options?: RequestOptions): Promise<SessionList> {
    return this.requester.request('/sessions/list', {}, options);
  }

  /** Ends a session of the account. */
  revokeSession(id: number, options?: KeyedOptions): Promise<Revoked> {
    return this.requester.request('/sessions/revoke', { id }, options);
  }

  /** Ends all sessions of the account except this client's. */
  revokeOtherSessions(options?: KeyedOptions): Promise<RevokedSessions> {
    return this.requester.request('/sessions/revoke-others', {}, options);
  }

  /**
   * Replaces the tag `id` with the tag `into_id` on all bookmarks, and deletes the tag `id`. Returns the tag `into_id`.
   */
  mergeTags(merge: TagMerge, options?: KeyedOptions): Promise<Tag> {
    return this.requester.request('/tags/merge', merge, options);
  }

  /**
   * Permanently deletes the account and all its content. `confirm` is the user's e-mail address. Needs a session token.
   */
  deleteAccount(confirm: string, options?: RequestOptions): Promise<Deleted> {
    return this.requester.request('/account/delete', { confirm }, options);
  }

  /** Returns all bookmarks in one response (docs/contract.md, section 4.4). */
  exportBookmarks(options?: RequestOptions): Promise<BookmarkExport> {
    return this.requester.request('/export', {}, options);
  }

  /** Yields the JSON document of `exportBookmarks` in chunks of bytes. Throws if the export is truncated. */
  exportStream(options?: RequestOptions): AsyncGenerator<Uint8Array, void, undefined> {
    return streamExport(this.requester, options);
  }

  /**
   * Imports at most 100,000 bookmarks in one transaction (docs/contract.md, section 4.4). A retry does not import them
   * a second time.
   */
  importBookmarks(bookmarks: BookmarkImport, options?: KeyedOptions): Promise<ImportResult> {
    return this.requester.request('/import', bookmarks, options);
  }

  /**
   * Yields all bookmarks in pages of up to 500, in order of ids. A bookmark that exists during the whole iteration
   * appears exactly once.
   */
  async *listAll(options?: RequestOptions): AsyncGenerator<Bookmark[], void, undefined> {
    let cursor: string | undefined;
    do {
      const page = await this.listBookmarks({ cursor, limit: LIST_LIMIT }, options);
      if (page.bookmarks.length > 0) yield page.bookmarks;
      cursor = page.next_cursor;
    } while (cursor !== undefined);
  }

  /**
   * Yields all results of a search in pages, in the order of the search. A bookmark that matches and stays unchanged
   * during the whole iteration appears exactly once. In the orders `updated` and `title`, an edited bookmark may be
   * missed. In the order `title`, it may also appear twice.
   */
  async *searchAll(
    search: Omit<BookmarkSearch, 'page' | 'cursor' | 'per_page'> = {},
    options?: RequestOptions,
  ): AsyncGenerator<Bookmark[], void, undefined> {
    let cursor: string | undefined = '';
    do {
      const page: FoundBookmarks = await this.searchBookmarks(
        { ...search, cursor, per_page: SEARCH_LIMIT },
        options,
      );
      if (page.bookmarks.length > 0) yield page.bookmarks;
      cursor = page.next_cursor;
    } while (cursor !== undefined);
  }
}
