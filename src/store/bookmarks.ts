import { hash } from 'node:crypto';
import type { z } from 'zod';
import { SEARCHED_NAMES } from '../domain/bookmark-fields.ts';
import type { addedBookmark, bookmarkChange } from '../domain/bookmark-schemas.ts';
import { BOUNDS, type BookmarkVersions, MAX_ID, type TagNames } from '../domain/fields.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import { compareByCodePoints, searchText, searchTextLine } from '../domain/text.ts';
import type { Database, Sql } from './database.ts';
import { keyArguments, type Outcome, requireSuccess, requireValidToken, type Written } from './outcomes.ts';
import {
  checkedTokenIsValid,
  hashesOf,
  type PrincipalKey,
  positionsBut,
  tokenIsValid,
  usersOf,
  validHashes,
} from './tokens.ts';

/** A bookmark to be added; its fields but the tags go to SQL as they are. */
type AddedBookmark = z.output<typeof addedBookmark>;

/** Fields to change; an absent one stays as it is. */
type BookmarkChange = z.output<typeof bookmarkChange>;

/** Consecutive bookmarks of a user: JSON text of an array of spec 2.2's bookmarks, as Postgres wrote it. */
export interface Page {
  bookmarks: string;
  count: number;
  /** The highest id in the page; null in an empty one. */
  lastId: number | null;
  /** Whether bookmarks with higher ids were there. */
  hasMore: boolean;
}

/** What makes two urls the same (decision 10): 128 bits of the SHA-256 of the WHATWG serialisation, as a uuid. */
export const urlKey = (url: string): string => hrefKey(new URL(url).href);

/** `urlKey` of a url that is serialised already. */
export function hrefKey(href: string): string {
  const hex = hash('sha256', href, 'hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}

/** What an add does where the user has a bookmark of the same url already. */
type OnDuplicate = 'add' | 'return' | 'error';

const HREF_HOST = /^https?:\/\/(?:[^/?#]*@)?(\[[^\]]*\]|[^/?#:]*)/;

/** The host of an url that is serialised already: lower case, IDNA, without a dot at its end. */
export const hrefHost = (href: string): string => HREF_HOST.exec(href)![1]!.replace(/\.$/, '');

/** What is stored of an url beside itself. */
function urlColumns(url: string): { url_key: string; host: string } {
  const { href } = new URL(url);
  return { url_key: hrefKey(href), host: hrefHost(href) };
}

/**
 * Adds a bookmark and returns it as JSON text; throws `LIMIT_EXCEEDED` at a cap. Where one of the same url is there,
 * `return` gives back the newest of those and adds nothing, `error` throws `VALIDATION_ERROR`.
 */
export async function addBookmark(
  db: Database,
  principal: PrincipalKey,
  bookmark: AddedBookmark,
  freeBookmarkLimit: number,
  idempotency?: Idempotency,
  onDuplicate: OnDuplicate = 'add',
): Promise<string> {
  const { tags: given, ...fields } = bookmark;
  const tags = inOrder(given);
  const stored = { ...fields, ...urlColumns(fields.url), search_text: searchText(fields) };
  const json = JSON.stringify(stored);
  type Added = { outcome: Outcome | null; bookmark: string };
  const rows = await db.write((sql) => {
    const given = sql`
      p_user_id => ${principal.userId}, p_token_hash => ${principal.hash},
      p_bookmark => ${json}::text::jsonb, p_tag_names => ${tags.names}, p_tag_keys => ${tags.keys},
      p_free_limit => ${freeBookmarkLimit}, p_tag_limit => ${BOUNDS.tagsPerUser},
      ${keyArguments(sql, idempotency)}`;
    return onDuplicate === 'add'
      ? sql<Added[]>`select outcome, bookmark from add_bookmark(${given})`
      : sql<Added[]>`
          select outcome, bookmark from add_unless_saved(${given}, p_is_error => ${onDuplicate === 'error'})`;
  });
  return requireSuccess(rows).bookmark;
}

/** Tags in the order of their keys, in which a bookmark shows them. */
function inOrder(tags: TagNames): TagNames {
  const { names, keys } = tags;
  if (keys.length < 2) return tags;
  const order = [...keys.keys()].sort((one, other) => compareByCodePoints(keys[one]!, keys[other]!));
  return { names: order.map((n) => names[n]!), keys: order.map((n) => keys[n]!) };
}

/** A write of one bookmark, or of several, as a client asks for it. */
interface WriteOptions {
  /** Where given, only the version of that time is changed; another one is `CONFLICT`. */
  ifUpdatedAt?: string | undefined;
  idempotency?: Idempotency | undefined;
}

/**
 * Changes the given fields and returns the six fields of spec 4.2 as JSON text; throws `NOT_FOUND`, `CONFLICT`,
 * `LIMIT_EXCEEDED`.
 */
export async function editBookmark(
  db: Database,
  principal: PrincipalKey,
  id: number,
  { tags, ...change }: BookmarkChange,
  { ifUpdatedAt, idempotency }: WriteOptions = {},
): Promise<string> {
  const stored = {
    ...change,
    ...(change.url !== undefined && urlColumns(change.url)),
    ...searchLines(change),
  };
  const rows = await db.write(
    (sql) => sql<Written[]>`
      select outcome, response
      from edit_bookmark(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, p_id => ${id},
        p_if_updated_at => ${ifUpdatedAt ?? null}::timestamptz,
        p_change => ${JSON.stringify(stored)}::text::jsonb,
        p_tag_names => ${tags?.names ?? null}, p_tag_keys => ${tags?.keys ?? null},
        p_tag_limit => ${BOUNDS.tagsPerUser},
        ${keyArguments(sql, idempotency)}
      )`,
  );
  return requireSuccess(rows).response;
}

/** The lines of the search text that change with the fields: `title_line` with `title`. */
function searchLines(change: Readonly<Record<string, unknown>>): Record<string, string> {
  const changed = SEARCHED_NAMES.filter((name) => change[name] !== undefined);
  return Object.fromEntries(changed.map((name) => [`${name}_line`, searchTextLine(change[name] as string)]));
}

/** How many bookmarks of one url a response holds. */
const SAME_URL_LIMIT = 100;

/**
 * The bookmark with an id, or those whose url is the same, newest first, at most 100 and `PAGE_BYTES`: JSON text of an
 * array, empty where there is none.
 */
export async function findBookmarks(
  db: Database,
  principal: PrincipalKey,
  choice: { id: number } | { url: string },
) {
  const { userId } = principal;
  const rows = await db.read((sql) => {
    const ids =
      'id' in choice
        ? sql`select id from bookmarks where user_id = ${userId} and id = ${choice.id}`
        : sql`
          select id
          from bookmarks
          where user_id = ${userId} and url_key = ${urlKey(choice.url)}
          order by id desc
          limit ${SAME_URL_LIMIT}`;
    return sql<{ valid: boolean; bookmarks: string }[]>`
      select ${tokenIsValid(sql, principal)} as valid, '[' || page.bookmarks || ']' as bookmarks
      from render_bookmarks(${userId}, array(${ids}), ${PAGE_BYTES}) page`;
  });
  return requireValidToken(rows).bookmarks;
}

/** Moves a bookmark to the trash; returns the response as JSON text. Throws `NOT_FOUND`, `CONFLICT`. */
export async function deleteBookmark(
  db: Database,
  principal: PrincipalKey,
  id: number,
  freeBookmarkLimit: number,
  { ifUpdatedAt, idempotency }: WriteOptions = {},
): Promise<string> {
  const rows = await db.write(
    (sql) => sql<Written[]>`
      select outcome, response
      from delete_bookmark(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, p_id => ${id},
        p_if_updated_at => ${ifUpdatedAt ?? null}::timestamptz, p_free_limit => ${freeBookmarkLimit},
        ${keyArguments(sql, idempotency)}
      )`,
  );
  return requireSuccess(rows).response;
}

/**
 * Adds tags to bookmarks and takes others off, in one transaction; returns the response as JSON text. Throws
 * `LIMIT_EXCEEDED`, and `VALIDATION_ERROR` where a bookmark would have too many tags.
 */
export async function editBookmarks(
  db: Database,
  principal: PrincipalKey,
  { ids, times }: BookmarkVersions,
  { added, removed }: { added: TagNames; removed: TagNames },
  idempotency?: Idempotency,
): Promise<string> {
  const rows = await db.write(
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

/** Moves bookmarks to the trash in one transaction; returns the response as JSON text. */
export async function deleteBookmarks(
  db: Database,
  principal: PrincipalKey,
  { ids, times }: BookmarkVersions,
  freeBookmarkLimit: number,
  idempotency?: Idempotency,
): Promise<string> {
  const rows = await db.write(
    (sql) => sql<Written[]>`
      select outcome, response
      from delete_bookmarks(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash},
        p_ids => ${ids}::bigint[], p_if_updated_at => ${times ?? null}::text[]::timestamptz[],
        p_free_limit => ${freeBookmarkLimit},
        ${keyArguments(sql, idempotency)}
      )`,
  );
  return requireSuccess(rows).response;
}

/** About how many bytes of bookmarks a page holds at most; one bookmark at least. */
export const PAGE_BYTES = 1_048_576;

/** A page of so many takes half a millisecond of Postgres at most, unless its bookmarks are long. */
export const SHORT_PAGE = 100;

/** The bookmarks after an id, rising: keyset pagination, exact under concurrent writers. */
export async function readPage(
  db: Database,
  principal: PrincipalKey,
  afterId: number,
  limit: number,
  deadlineMs?: number,
): Promise<Page> {
  const rows = await db[limit <= SHORT_PAGE ? 'readShort' : 'read'](
    (sql) => sql<({ valid: boolean } & Page)[]>`
      select ${tokenIsValid(sql, principal)} as valid, ${pageColumns(sql)}
      from ${pageAfter(sql, principal, afterId, limit)}`,
    deadlineMs,
  );
  return requireValidToken(rows);
}

/** The same for several tokens of one user, and which of them were valid: their hashes in hex. */
export async function readPageForAll(
  db: Database,
  principals: readonly PrincipalKey[],
  afterId: number,
  limit: number,
  deadlineMs?: number,
): Promise<Page & { valid: string[] }> {
  const { userId } = principals[0]!;
  const rows = await db.read(
    (sql) => sql<(Page & { valid: string[] })[]>`
      select
        ${validHashes(sql, principals)} as valid,
        ${pageColumns(sql)}
      from ${pageAfter(sql, { userId }, afterId, limit)}`,
    deadlineMs,
  );
  return rows[0]!;
}

/** Of many principals those who have a bookmark after an id, or whose token is no longer valid: positions in the list. */
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
  return positionsBut(checks, rows[0]!.unchanged);
}

const pageAfter = (sql: Sql, { userId }: Pick<PrincipalKey, 'userId'>, afterId: number, limit: number) =>
  sql`read_page(
    p_user_id => ${userId}, p_after => ${afterId}, p_last => ${MAX_ID}, p_limit => ${limit},
    p_bytes => ${PAGE_BYTES}
  ) page`;

const pageColumns = (sql: Sql) => sql`
  '[' || page.bookmarks || ']' as bookmarks,
  page.count,
  page.last_id as "lastId",
  page.has_more as "hasMore"`;
