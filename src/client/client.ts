import type {
  Bookmark,
  BookmarkEdit,
  BookmarkExport,
  BookmarkImport,
  BookmarkList,
  BookmarkSearch,
  BookmarksChoice,
  BookmarksEdit,
  BookmarkTag,
  BookmarkVersion,
  Changes,
  ChangesPosition,
  ChosenBookmarks,
  CodeExchange,
  CreatedTag,
  CreatedToken,
  Deleted,
  DeletedBookmarks,
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
import { parseWebUrl } from '../domain/web-url.ts';
import { streamExport } from './export-stream.ts';
import {
  type KeyedOptions,
  type Path,
  Requester,
  type RequestOptions,
  type RetryEvent,
} from './requester.ts';
import { type Clock, systemClock } from './timing.ts';

export interface ClientOptions {
  /**
   * The address of the service with its version: `https://bookmarks.example.org/api/v1`. The constructor throws a
   * `TypeError` for one that cannot be used, and for such a token.
   */
  baseUrl: string;
  /** A session token or an API token; exchanging an invite needs none. */
  token?: string | undefined;
  /**
   * The longest time without progress, in ms; default 30,000. The time for which the service may hold a request is
   * added.
   */
  timeoutMs?: number | undefined;
  /**
   * How long a failed request is retried where that is safe, in ms from the first failure; default 120,000; 0: not at
   * all.
   */
  retryForMs?: number | undefined;
  /** Called before each wait for a retry. */
  onRetry?: ((event: RetryEvent) => void) | undefined;
  /** Called before a request waits because nothing is left of the token's quota. */
  onQuotaWait?: ((waitMs: number) => void) | undefined;
  /** Default: the platform's. */
  fetch?: typeof fetch | undefined;
  clock?: Clock | undefined;
  /** A number from 0 to below 1, for jitter. */
  random?: (() => number) | undefined;
}

/** Whether a header can carry a token: visible ASCII, as every token of the service is. */
export const isSendable = (token: string): boolean => /^[\x21-\x7e]+$/.test(token);

/** Refuses at once what no request could be made with; else it would look like a connection that is lost again and again. */
function checkOptions({ baseUrl, token }: ClientOptions): void {
  const url = parseWebUrl(baseUrl);
  if (url === null) throw new TypeError('baseUrl: expected an http or https url');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new TypeError('baseUrl: expected no user, password, query or fragment');
  if (token !== undefined && !isSendable(token))
    throw new TypeError('token: expected visible ASCII characters, as the service gave it');
}

/** The largest pages of `/bookmarks/list` and `/bookmarks/search` (spec 8). */
const LIST_LIMIT = 500;
const SEARCH_LIMIT = 100;

/** The method for each endpoint. The client does not compile if an endpoint or its method is missing. */
interface Methods {
  '/user/profile': 'profile';
  '/auth/invite': 'exchangeInvite';
  '/auth/exchange': 'exchangeCode';
  '/logout': 'logout';
  '/bookmarks/add': 'addBookmark';
  '/bookmarks/edit': 'editBookmark' | 'editBookmarks';
  '/bookmarks/delete': 'deleteBookmark' | 'deleteBookmarks';
  '/bookmarks/get': 'getBookmarks';
  '/bookmarks/search': 'searchBookmarks';
  '/bookmarks/list': 'listBookmarks';
  '/bookmarks/sync': 'syncBookmarks';
  '/bookmarks/changes': 'readChanges';
  '/trash/list': 'listTrash';
  '/trash/restore': 'restoreBookmarks';
  '/trash/delete': 'deleteFromTrash' | 'emptyTrash';
  '/tags/list': 'listTags';
  '/tags/create': 'createTag';
  '/tags/update': 'renameTag';
  '/tags/delete': 'deleteTag';
  '/tags/merge': 'mergeTags';
  '/export': 'exportBookmarks' | 'exportStream';
  '/account/delete': 'deleteAccount';
  '/tokens/list': 'listTokens';
  '/tokens/create': 'createToken';
  '/tokens/revoke': 'revokeToken';
  '/sessions/list': 'listSessions';
  '/sessions/revoke': 'revokeSession';
  '/sessions/revoke-others': 'revokeOtherSessions';
  '/import': 'importBookmarks';
}

/** A method for each endpoint: what the page in a browser loads of `BookmarkClient`. */
export class EndpointClient implements Record<Methods[Path], unknown> {
  protected readonly options: ClientOptions;
  readonly #requester: Requester;

  constructor(options: ClientOptions) {
    checkOptions(options);
    this.options = options;
    this.#requester = new Requester({
      baseUrl: options.baseUrl.replace(/\/+$/, ''),
      token: options.token,
      // Browsers refuse a `fetch` that is called as a method of something else.
      fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
      clock: options.clock ?? systemClock,
      random: options.random ?? Math.random,
      timeoutMs: options.timeoutMs ?? 30_000,
      retryForMs: options.retryForMs ?? 120_000,
      onRetry: options.onRetry,
      onQuotaWait: options.onQuotaWait,
    });
  }

  protected get requester(): Requester {
    return this.#requester;
  }

  /** The user whose token it is (spec 4.1). */
  profile(options?: RequestOptions): Promise<Profile> {
    return this.#requester.request('/user/profile', {}, options);
  }

  /**
   * Exchanges an invite code, which works once, for a session token (spec 4.1). It is not retried. Give the invite's `email`
   * where it is known: the request is then not refused when strangers guess codes.
   */
  exchangeInvite(
    code: string,
    { email, ...options }: RequestOptions & { email?: string | undefined } = {},
  ): Promise<Session> {
    return this.#requester.request('/auth/invite', { code, email }, options);
  }

  /** Exchanges the code that an app was given at `/login/app`, once, for a session token. It is not retried. */
  exchangeCode(exchange: CodeExchange, options?: RequestOptions): Promise<Session> {
    return this.#requester.request('/auth/exchange', exchange, options);
  }

  /** Revokes the session token of this client (spec 4.1). */
  logout(options?: RequestOptions): Promise<LoggedOut> {
    return this.#requester.request('/logout', {}, options);
  }

  /** Adds a bookmark (spec 4.2); once, however often it is retried. */
  addBookmark(bookmark: NewBookmark, options?: KeyedOptions): Promise<Bookmark> {
    return this.#requester.request('/bookmarks/add', bookmark, options);
  }

  /**
   * Changes the given fields; a list of tags replaces the tags (spec 4.2). With `if_updated_at` it rejects with `CONFLICT`
   * where the bookmark was changed since.
   */
  editBookmark(edit: BookmarkEdit, options?: KeyedOptions): Promise<EditedBookmark> {
    return this.#requester.request('/bookmarks/edit', edit, options) as Promise<EditedBookmark>;
  }

  /** Adds tags to at most 500 bookmarks and takes others off, in one transaction (spec 4.2). */
  editBookmarks(edit: BookmarksEdit, options?: KeyedOptions): Promise<EditedBookmarks> {
    return this.#requester.request('/bookmarks/edit', edit, options) as Promise<EditedBookmarks>;
  }

  /** Deletes a bookmark; with `if_updated_at` it rejects with `CONFLICT` where that was changed since (spec 4.2). */
  deleteBookmark(bookmark: number | BookmarkVersion, options?: KeyedOptions): Promise<Deleted> {
    const body = typeof bookmark === 'number' ? { id: bookmark } : bookmark;
    return this.#requester.request('/bookmarks/delete', body, options);
  }

  /**
   * Deletes at most 500 bookmarks, in one transaction; those that are gone already are no error (spec 4.2). By `items` it
   * leaves alone those that were changed since `if_updated_at`.
   */
  deleteBookmarks(choice: number[] | BookmarksChoice, options?: KeyedOptions): Promise<DeletedBookmarks> {
    const body = Array.isArray(choice) ? { ids: choice } : choice;
    return this.#requester.request('/bookmarks/delete', body, options) as Promise<DeletedBookmarks>;
  }

  /** The bookmark with an id, or those whose url is the same, newest first; none is an empty array (spec 4.2). */
  getBookmarks(choice: { id: number } | { url: string }, options?: RequestOptions): Promise<ChosenBookmarks> {
    return this.#requester.request('/bookmarks/get', choice, options);
  }

  /** A page of what a search finds, newest first unless it says otherwise (spec 4.2). `searchAll` reads all pages. */
  searchBookmarks(search: BookmarkSearch = {}, options?: RequestOptions): Promise<FoundBookmarks> {
    return this.#requester.request('/bookmarks/search', search, options);
  }

  /** A page of all bookmarks, in the order of their ids (spec 4.2). */
  listBookmarks(position: ListPosition = {}, options?: RequestOptions): Promise<BookmarkList> {
    return this.#requester.request('/bookmarks/list', position, options);
  }

  /** The bookmarks that are new since a cursor; waits for some if asked to (spec 4.2). `sync` does so without end. */
  syncBookmarks(position: SyncPosition = {}, options?: RequestOptions): Promise<SyncedBookmarks> {
    return this.#requester.request('/bookmarks/sync', position, options);
  }

  /** What changed in the collection since a cursor; waits for changes if asked to. `mirror` does so without end. */
  readChanges(position: ChangesPosition = {}, options?: RequestOptions): Promise<Changes> {
    return this.#requester.request('/bookmarks/changes', position, options);
  }

  /** A page of the deleted bookmarks, the last deleted first (contract 4.6). */
  listTrash(position: ListPosition = {}, options?: RequestOptions): Promise<TrashList> {
    return this.#requester.request('/trash/list', position, options);
  }

  /** Restores at most 500 deleted bookmarks under new ids, in one transaction (contract 4.6). */
  restoreBookmarks(ids: number[], options?: KeyedOptions): Promise<RestoredBookmarks> {
    return this.#requester.request('/trash/restore', { ids }, options);
  }

  /** Deletes at most 500 bookmarks in the trash for good (contract 4.6). */
  deleteFromTrash(ids: number[], options?: KeyedOptions): Promise<TrashDeletion> {
    return this.#requester.request('/trash/delete', { ids }, options);
  }

  /** Deletes everything in the trash for good (contract 4.6). */
  emptyTrash(options?: KeyedOptions): Promise<TrashDeletion> {
    return this.#requester.request('/trash/delete', { all: true }, options);
  }

  /** All tags, each with the number of its bookmarks (spec 4.3). */
  listTags(options?: RequestOptions): Promise<TagList> {
    return this.#requester.request('/tags/list', {}, options);
  }

  /** Creates a tag (spec 4.3); once, however often it is retried. */
  createTag(tag: NewTag, options?: KeyedOptions): Promise<CreatedTag> {
    return this.#requester.request('/tags/create', tag, options);
  }

  /** Renames a tag on all its bookmarks (spec 4.3). */
  renameTag(rename: TagRename, options?: KeyedOptions): Promise<BookmarkTag> {
    return this.#requester.request('/tags/update', rename, options);
  }

  /** Deletes a tag; its bookmarks stay (spec 4.3). */
  deleteTag(id: number, options?: KeyedOptions): Promise<Deleted> {
    return this.#requester.request('/tags/delete', { id }, options);
  }

  /** The API tokens of the account. This and what follows up to `revokeOtherSessions` needs a session token. */
  listTokens(options?: RequestOptions): Promise<TokenList> {
    return this.#requester.request('/tokens/list', {}, options);
  }

  /** Creates an API token, which is shown once. It is not retried: the repeat would find the name taken. */
  createToken(token: NewToken, options?: RequestOptions): Promise<CreatedToken> {
    return this.#requester.request('/tokens/create', token, options);
  }

  /** Revokes an API token of the account. */
  revokeToken(id: number, options?: KeyedOptions): Promise<Revoked> {
    return this.#requester.request('/tokens/revoke', { id }, options);
  }

  /** The sessions of the account. */
  listSessions(options?: RequestOptions): Promise<SessionList> {
    return this.#requester.request('/sessions/list', {}, options);
  }

  /** Ends a session of the account. */
  revokeSession(id: number, options?: KeyedOptions): Promise<Revoked> {
    return this.#requester.request('/sessions/revoke', { id }, options);
  }

  /** Ends all sessions of the account but this client's. */
  revokeOtherSessions(options?: KeyedOptions): Promise<RevokedSessions> {
    return this.#requester.request('/sessions/revoke-others', {}, options);
  }

  /** Puts the tag `into_id` in the place of the tag `id` on all bookmarks, and deletes that; returns the one that stays. */
  mergeTags(merge: TagMerge, options?: KeyedOptions): Promise<Tag> {
    return this.#requester.request('/tags/merge', merge, options);
  }

  /** Deletes the account with all that is in it, for good; `confirm` is its e-mail address. Needs a session token. */
  deleteAccount(confirm: string, options?: RequestOptions): Promise<Deleted> {
    return this.#requester.request('/account/delete', { confirm }, options);
  }

  /** All bookmarks, in memory (spec 4.4). */
  exportBookmarks(options?: RequestOptions): Promise<BookmarkExport> {
    return this.#requester.request('/export', {}, options);
  }

  /** All bookmarks, as the bytes of the JSON that `exportBookmarks` parses; throws where the export breaks off. */
  exportStream(options?: RequestOptions): AsyncGenerator<Uint8Array, void, undefined> {
    return streamExport(this.#requester, options);
  }

  /** Imports at most 100,000 bookmarks in one transaction (spec 4.4); once, however often it is retried. */
  importBookmarks(bookmarks: BookmarkImport, options?: KeyedOptions): Promise<ImportResult> {
    return this.#requester.request('/import', bookmarks, options);
  }

  /**
   * All bookmarks, in the order of their ids, in pages of 500. A bookmark that exists from start to end comes exactly
   * once.
   */
  async *listAll(options?: RequestOptions): AsyncGenerator<Bookmark[], void, undefined> {
    let cursor: string | undefined;
    do {
      const page = await this.listBookmarks({ cursor, limit: LIST_LIMIT }, options);
      if (page.bookmarks.length > 0) yield page.bookmarks;
      cursor = page.next_cursor;
    } while (cursor !== undefined);
  }

  /** All that a search finds, in its order, in pages; nothing comes twice, and nothing that stays is missed. */
  async *searchAll(
    search: Omit<BookmarkSearch, 'page' | 'cursor' | 'per_page'> = {},
    options?: RequestOptions,
  ): AsyncGenerator<Bookmark[], void, undefined> {
    let cursor: string | undefined;
    do {
      const page = await this.searchBookmarks({ ...search, cursor, per_page: SEARCH_LIMIT }, options);
      if (page.bookmarks.length > 0) yield page.bookmarks;
      cursor = page.next_cursor;
    } while (cursor !== undefined);
  }
}
