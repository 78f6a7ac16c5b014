import { hash } from 'node:crypto';
import type { z } from 'zod';
import { SEARCHED_NAMES } from '../domain/bookmark-fields.ts';
import type { addedBookmark, bookmarkChange } from '../domain/bookmark-schemas.ts';
import { BOUNDS, type BookmarkVersions, MAX_ID, type TagNames } from '../domain/fields.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import { compareByCodePoints, searchedLine, searchText } from '../domain/text.ts';
import type { Database, Sql, Statement } from './driver/database.ts';
import {
  keyArguments,
  type Outcome,
  onlyRow,
  requireSuccess,
  requireValidToken,
  type Written,
} from './outcomes.ts';
import {
  checkedTokenIsValid,
  hashesOf,
  type PrincipalKey,
  positionsExcept,
  tokenIsValid,
  usersOf,
} from './tokens.ts';

/** A bookmark to add, as the schema `addedBookmark` returns it. */
export type AddedBookmark = z.output<typeof addedBookmark>;

/** The fields to change in a bookmark. A field that is absent stays unchanged. */
export type BookmarkChange = z.output<typeof bookmarkChange>;

/** Consecutive bookmarks of a user. */
export interface Page {
  /** JSON text of an array of bookmarks (docs/contract.md, section 2.2), rendered by Postgres. */
  bookmarks: string;
  count: number;
  /** The highest id of a bookmark in the page; null in an empty page. */
  lastId: number | null;
  /** Whether the user has bookmarks with ids above `lastId`. */
  hasMore: boolean;
}

/**
 * Returns the key of a url. Urls with the same WHATWG serialization have the same key. Bookmarks with the same key
 * count as bookmarks of the same url (docs/contract.md, decision 10). The key is the first 128 bits of the SHA-256 of
 * the serialization, written as a uuid.
 */
export const urlKey = (url: string): string => hrefKey(new URL(url).href);

/** Returns the key of a url, like `urlKey`. `href` is the WHATWG serialization of the url. */
function hrefKey(href: string): string {
  const hex = hash('sha256', href, 'hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}

/**
 * What `addBookmark` does if the user already has a bookmark of the same url. The comment of `addBookmark` explains the
 * values.
 */
export type OnDuplicate = 'add' | 'return' | 'error';

/** Matches the host of a url, after the scheme and an optional user. An IPv6 address is in brackets. */
const HREF_HOST = /^https?:\/\/(?:[^/?#]*@)?(?<host>\[[^\]]*\]|[^/?#:]*)/;

/**
 * Returns the host of a url. If the host ends with a dot, the dot is left out. `href` is the WHATWG serialization of
 * the url, so the host is in lower case, and in ASCII even if it is an internationalized name.
 */
export function hrefHost(href: string): string {
  const host = HREF_HOST.exec(href)?.groups?.host ?? '';
  return host.endsWith('.') ? host.slice(0, -1) : host;
}

/** Returns the columns of a bookmark that are computed from its url. */
function urlColumns(url: string): { url_key: string; host: string } {
  const { href } = new URL(url);
  return { url_key: hrefKey(href), host: hrefHost(href) };
}

/**
 * Returns the columns of a bookmark, except its id and tags, as `add_bookmark` and `import_bookmarks` take them. An
 * absent column gets its default.
 */
export const storedBookmark = <Fields extends Omit<AddedBookmark, 'tags'>>(fields: Fields) => ({
  ...fields,
  ...urlColumns(fields.url),
  search_text: searchText(fields),
});

/** Returns the argument `p_change` of `edit_bookmark`. */
export const storedChange = (change: Omit<BookmarkChange, 'tags'>) => ({
  ...change,
  ...(change.url !== undefined && urlColumns(change.url)),
  ...searchLines(change),
});

/**
 * Adds a bookmark and returns it as JSON text. `existed` is true if nothing was added, because `onDuplicate` is `return`
 * and the returned bookmark existed already. Throws `LIMIT_EXCEEDED` if the user would have too many bookmarks or tags.
 * If the user already has bookmarks of the same url, `onDuplicate` decides what happens: `add` adds the bookmark anyway,
 * `return` adds nothing and returns the newest existing one, and `error` throws `VALIDATION_ERROR`.
 */
export async function addBookmark(
  db: Database,
  principal: PrincipalKey,
  bookmark: AddedBookmark,
  freeBookmarkLimit: number,
  idempotency?: Idempotency,
  onDuplicate: OnDuplicate = 'add',
): Promise<{ bookmark: string; existed: boolean }> {
  const { tags: unsortedTags, ...fields } = bookmark;
  const tags = sortTags(unsortedTags);
  const json = JSON.stringify(storedBookmark(fields));
  type Added = { outcome: Outcome | null; bookmark: string; existed: boolean };
  const rows = await db.at(principal.userId).write((sql) => {
    const commonArguments = sql`
      p_user_id => ${principal.userId}, p_token_hash => ${principal.hash},
      p_bookmark => ${json}::text::jsonb, p_tag_names => ${tags.names}, p_tag_keys => ${tags.keys},
      p_free_limit => ${freeBookmarkLimit}, p_tag_limit => ${BOUNDS.tagsPerUser},
      ${keyArguments(sql, idempotency)}`;
    return onDuplicate === 'add'
      ? sql<Added[]>`select outcome, bookmark, false as existed from add_bookmark(${commonArguments})`
      : sql<Added[]>`
          select outcome, bookmark, existed
          from add_unless_saved(${commonArguments}, p_is_error => ${onDuplicate === 'error'})`;
  });
  const { bookmark: added, existed } = requireSuccess(rows);
  return { bookmark: added, existed };
}

/** Sorts tags by their keys, because a bookmark shows its tags in this order. */
export function sortTags(tags: TagNames): TagNames {
  const { names, keys } = tags;
  if (keys.length < 2) return tags;
  const sorted = keys
    .map((key, position) => ({ key, name: names[position]! }))
    .sort((a, b) => compareByCodePoints(a.key, b.key));
  return { names: sorted.map(({ name }) => name), keys: sorted.map(({ key }) => key) };
}

/** Options of `editBookmark`. */
interface WriteOptions {
  /** If this time is given and differs from the bookmark's `updated_at`, the write fails with `CONFLICT`. */
  ifUpdatedAt?: string | undefined;
  idempotency?: Idempotency | undefined;
}

/** Options of `deleteBookmark` and `deleteBookmarks`. */
interface DeleteOptions {
  /** The limit of the trash (`trashLimitOf`). If it is null or absent, the deletion is permanent. */
  trashLimit?: number | null | undefined;
  idempotency?: Idempotency | undefined;
}

/**
 * Changes fields of a bookmark. Returns the response of `/bookmarks/edit` (docs/contract.md, section 4.2) as JSON text.
 * Throws `NOT_FOUND`, `CONFLICT` or `LIMIT_EXCEEDED`.
 */
export async function editBookmark(
  db: Database,
  principal: PrincipalKey,
  id: number,
  { tags, ...change }: BookmarkChange,
  { ifUpdatedAt, idempotency }: WriteOptions = {},
): Promise<string> {
  const rows = await db.at(principal.userId).write(
    (sql) => sql<Written[]>`
      select outcome, response
      from edit_bookmark(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, p_id => ${id},
        p_if_updated_at => ${ifUpdatedAt ?? null}::timestamptz,
        p_change => ${JSON.stringify(storedChange(change))}::text::jsonb,
        p_tag_names => ${tags?.names ?? null}, p_tag_keys => ${tags?.keys ?? null},
        p_tag_limit => ${BOUNDS.tagsPerUser},
        ${keyArguments(sql, idempotency)}
      )`,
  );
  return requireSuccess(rows).response;
}

/**
 * For each changed field that search covers, returns its line of the search text, for example `title_line` for `title`.
 */
function searchLines(change: Readonly<Record<string, unknown>>): Record<string, string> {
  const changedNames = SEARCHED_NAMES.filter((name) => change[name] !== undefined);
  return Object.fromEntries(
    changedNames.map((name) => [`${name}_line`, searchedLine(name, change[name] as string)]),
  );
}

/** The maximum number of bookmarks that `findBookmarks` returns for one url. */
const SAME_URL_LIMIT = 100;

/**
 * Finds the bookmark with an id, or the bookmarks of a url, newest first. Returns the JSON text of an array, which may
 * be empty. The array has at most `SAME_URL_LIMIT` bookmarks and about `PAGE_BYTES` bytes.
 */
export async function findBookmarks(
  db: Database,
  principal: PrincipalKey,
  choice: { id: number } | { url: string },
) {
  const { userId } = principal;
  const rows = await db.at(userId).read((sql) => {
    const selectIds =
      'id' in choice
        ? sql`select id from bookmarks where user_id = ${userId} and id = ${choice.id}`
        : sql`
          select id
          from bookmarks
          where user_id = ${userId} and url_key = ${urlKey(choice.url)}
          -- id + 0 is a column of the index bookmarks_url_key
          order by id + 0 desc
          limit ${SAME_URL_LIMIT}`;
    return sql<{ valid: boolean; bookmarks: string }[]>`
      select ${tokenIsValid(sql, principal)} as valid, '[' || page.bookmarks || ']' as bookmarks
      from render_bookmarks(${userId}, array(${selectIds}), ${PAGE_BYTES}) page`;
  });
  return requireValidToken(rows).bookmarks;
}

/**
 * Deletes a bookmark for good, or moves it to the trash. Returns the response as JSON text. Throws `NOT_FOUND` or
 * `CONFLICT`.
 */
export async function deleteBookmark(
  db: Database,
  principal: PrincipalKey,
  id: number,
  { trashLimit, ifUpdatedAt, idempotency }: DeleteOptions & WriteOptions = {},
): Promise<string> {
  const rows = await db.at(principal.userId).write(
    (sql) => sql<Written[]>`
      select outcome, response
      from delete_bookmark(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, p_id => ${id},
        p_if_updated_at => ${ifUpdatedAt ?? null}::timestamptz, p_trash_limit => ${trashLimit ?? null}::bigint,
        ${keyArguments(sql, idempotency)}
      )`,
  );
  return requireSuccess(rows).response;
}

/**
 * Adds tags to bookmarks and removes other tags from them, in one transaction. Returns the response as JSON text.
 * Throws `LIMIT_EXCEEDED` if the user would have too many tags, and `VALIDATION_ERROR` if a bookmark would have too
 * many tags.
 */
export async function editBookmarks(
  db: Database,
  principal: PrincipalKey,
  { ids, times }: BookmarkVersions,
  { added, removed }: { added: TagNames; removed: TagNames },
  idempotency?: Idempotency,
): Promise<string> {
  const rows = await db.at(principal.userId).write(
    (sql) => sql<Written[]>`
      select outcome, response
      from edit_bookmarks(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash},
        p_ids => ${ids}::bigint[], p_if_updated_at => ${times ?? null}::text[]::timestamptz[],
        p_added_names => ${added.names}, p_added_keys => ${added.keys}, p_removed_keys => ${removed.keys},
        p_tag_limit => ${BOUNDS.tagsPerUser}, p_bookmark_tag_limit => ${BOUNDS.tagsPerBookmark},
        ${keyArguments(sql, idempotency)}
      )`,
  );
  return requireSuccess(rows).response;
}

/** Deletes bookmarks for good, or moves them to the trash, in one transaction. Returns the response as JSON text. */
export async function deleteBookmarks(
  db: Database,
  principal: PrincipalKey,
  { ids, times }: BookmarkVersions,
  { trashLimit, idempotency }: DeleteOptions = {},
): Promise<string> {
  const rows = await db.at(principal.userId).write(
    (sql) => sql<Written[]>`
      select outcome, response
      from delete_bookmarks(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash},
        p_ids => ${ids}::bigint[], p_if_updated_at => ${times ?? null}::text[]::timestamptz[],
        p_trash_limit => ${trashLimit ?? null}::bigint,
        ${keyArguments(sql, idempotency)}
      )`,
  );
  return requireSuccess(rows).response;
}

/** The approximate size limit of a page in bytes. A bookmark that is larger gets a page of its own. */
export const PAGE_BYTES = 1_048_576;

/** Pages of at most this many bookmarks or changes are read by `readShort`. */
const SHORT_PAGE = 100;

/** Runs a statement that reads a page of at most `limit` bookmarks or changes. */
export const readPageBy = <T extends readonly unknown[]>(
  db: Database,
  limit: number,
  run: (sql: Sql) => Statement<T>,
  deadlineMs?: number,
): Promise<T> => (limit <= SHORT_PAGE ? db.readShort(run, deadlineMs) : db.read(run, deadlineMs));

/**
 * Returns at most `limit` bookmarks with ids above `afterId`, by ascending id. A reader that passes `lastId` of a page
 * as the next `afterId` misses no bookmark. Throws `INVALID_TOKEN`.
 */
export async function readPage(
  db: Database,
  principal: PrincipalKey,
  afterId: number,
  limit: number,
  deadlineMs?: number,
): Promise<Page> {
  const rows = await readPageBy(
    db.at(principal.userId),
    limit,
    (sql) => sql<({ valid: boolean } & Page)[]>`
      select page.valid, ${pageColumns(sql)}
      from ${pageAfter(sql, principal, afterId, limit)}`,
    deadlineMs,
  );
  return requireValidToken(rows);
}

/**
 * Returns the indexes in `checks` of the principals whose user has a bookmark with an id above `start`, or whose
 * token is no longer valid.
 */
export async function findNewBookmarks(
  db: Database,
  checks: readonly { principal: PrincipalKey; start: number }[],
  deadlineMs?: number,
): Promise<number[]> {
  const starts = checks.map(({ start }) => start);
  const rows = await db.read(
    (sql) => sql<{ unchanged: number[] }[]>`
      select array(
        select (checked.position - 1)::integer
        from unnest(${usersOf(checks)}::bigint[], ${hashesOf(checks)}::text[], ${starts}::bigint[])
          with ordinality checked (user_id, token_hash, after_id, position)
        join tokens on ${checkedTokenIsValid(sql)}
        where not exists (
          select from bookmarks where bookmarks.user_id = tokens.user_id and bookmarks.id > checked.after_id
        )
      ) as unchanged`,
    deadlineMs,
  );
  return positionsExcept(checks, onlyRow(rows).unchanged);
}

/** Builds a call of `read_page`. If `hash` is null, the call checks no token. */
const pageAfter = (
  sql: Sql,
  { userId, hash }: { userId: number; hash: Buffer | null },
  afterId: number,
  limit: number,
) => sql`read_page(
    p_user_id => ${userId}, p_after => ${afterId}, p_last => ${MAX_ID}, p_limit => ${limit},
    p_bytes => ${PAGE_BYTES}, p_token_hash => ${hash}
  ) page`;

const pageColumns = (sql: Sql) => sql`
  '[' || page.bookmarks || ']' as bookmarks,
  page.count,
  page.last_id as "lastId",
  page.has_more as "hasMore"`;
