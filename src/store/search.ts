import { PAGE_BYTES } from './bookmarks.ts';
import type { Database, Sql } from './database.ts';
import { requireValidToken } from './outcomes.ts';
import { type Owner, tokenIsValid } from './tokens.ts';

export type SearchSort = 'newest' | 'oldest' | 'updated' | 'title';

/** A search: every term must be a substring, the tag a whole name; all are folded. All that is given must hold. */
export interface SearchOptions {
  terms: readonly string[];
  tagKey?: string | undefined;
  perPage: number;
  /** From 1; not read where a place is given. */
  page: number;
  /** What few searches ask for. */
  more?: FurtherOptions | undefined;
}

export interface FurtherOptions {
  sort: SearchSort;
  tagKeys?: readonly string[] | undefined;
  withoutKeys?: readonly string[] | undefined;
  untagged?: boolean | undefined;
  createdAfter?: string | undefined;
  createdBefore?: string | undefined;
  /** A host as it is stored. */
  site?: string | undefined;
  /** The last bookmark of the page before, and its key in the order. */
  after?: { lastId: number; lastKey: string | null } | undefined;
}

/** A page of matches as JSON text of an array; behind a place about 1 MiB at most. */
export interface SearchPage {
  bookmarks: string;
  /** The number of all matches; 0 where a place was given. */
  total: number;
  hasMore: boolean;
  /** The last bookmark of the page, and its key in the order: where the next page begins. */
  lastId: number | null;
  lastKey: string | null;
}

/**
 * The bytes of a page. By number it is whole, as the next one begins `perPage` further on whatever this one held: what was
 * cut off would be missed. A cursor leads on from what was sent.
 */
const pageBytes = (more: FurtherOptions | undefined): number =>
  more?.after === undefined ? WHOLE_PAGE : PAGE_BYTES;

/** Above all that 100 bookmarks can take, which is 55 MB. */
const WHOLE_PAGE = 67_108_864;

const likePattern = (term: string): string => `%${term.replace(/[\\%_]/g, '\\$&')}%`;

/** How many terms have a condition each. Each number of them is another shape of the statement. */
const SINGLE_TERMS = 3;

/**
 * Conditions on the terms. The longest term excludes most rows, and `strpos` is the fastest test; terms beyond a few
 * are one condition on a list.
 */
function hasTerms(sql: Sql, terms: readonly string[]) {
  const sorted = terms.toSorted((a, b) => b.length - a.length);
  const others = sorted.slice(SINGLE_TERMS).map(likePattern);
  return [
    ...sorted.slice(0, SINGLE_TERMS).map((term) => sql`and strpos(search_text, ${term}) > 0`),
    others.length > 0 ? sql`and search_text like all (${others})` : sql``,
  ];
}

function hasTag(sql: Sql, { userId }: Owner, tagKey: string | undefined) {
  if (tagKey === undefined) return sql``;
  return sql`and tag_ids @> array[(select id from tags where user_id = ${userId} and name_key = ${tagKey})]`;
}

/**
 * Searches a user's bookmarks (decision 13). The total is exact, from the same snapshot as the page. The statements
 * have few shapes, so that each stays prepared. Matches are read in falling order: the scan of a user's 100,000
 * bookmarks takes half as long backward as forward.
 */
export async function searchBookmarks(
  db: Database,
  owner: Owner,
  search: SearchOptions,
): Promise<SearchPage> {
  const { terms, tagKey, page, perPage, more } = search;
  const isAll = terms.length === 0 && tagKey === undefined;
  const rows = await db.read((sql) => {
    if (more !== undefined) return findFurther(sql, owner, search, more);
    return isAll ? readNewest(sql, owner, page, perPage) : findMatching(sql, owner, search);
  });
  return requireValidToken(rows);
}

type FoundRow = { valid: boolean } & SearchPage;

/** Everything matches: the total is the account's counter, and the key leads to the page. */
const readNewest = (sql: Sql, owner: Owner, page: number, perPage: number) => sql<FoundRow[]>`
  select ${tokenIsValid(sql, owner)} as valid, account.total, '[' || page.bookmarks || ']' as bookmarks,
    (${page}::bigint - 1) * ${perPage} + page.count < account.total and page.count > 0 as "hasMore",
    page.last_id as "lastId", null as "lastKey"
  from read_newest(${owner.userId}, (${page}::bigint - 1) * ${perPage}, ${perPage}, ${WHOLE_PAGE}) page
  cross join (select bookmark_count as total from accounts where user_id = ${owner.userId}) account`;

const findMatching = (sql: Sql, owner: Owner, { terms, tagKey, page, perPage }: SearchOptions) => sql<
  FoundRow[]
>`
  with matching as materialized (
    select coalesce(array_agg(id), '{}') as ids
    from (
      select id
      from bookmarks
      where user_id = ${owner.userId} ${hasTerms(sql, terms)} ${hasTag(sql, owner, tagKey)}
      order by id desc
    ) newest_first
  ), wanted as materialized (
    select cardinality(ids) as total, ids[${slice(page, perPage).from}:${slice(page, perPage).to}] as ids
    from matching
  )
  select ${tokenIsValid(sql, owner)} as valid, wanted.total, '[' || page.bookmarks || ']' as bookmarks,
    ${slice(page, perPage).from}::bigint - 1 + page.count < wanted.total and page.count > 0 as "hasMore",
    wanted.ids[page.count] as "lastId", null as "lastKey"
  from wanted
  cross join lateral render_bookmarks(${owner.userId}, wanted.ids, ${WHOLE_PAGE}) page`;

/** With any further option. */
function findFurther(sql: Sql, owner: Owner, search: SearchOptions, more: FurtherOptions) {
  const { terms, tagKey, page, perPage } = search;
  const sorted = terms.toSorted((a, b) => b.length - a.length);
  const patterns = sorted.slice(SINGLE_TERMS).map(likePattern);
  const tagKeys = [...new Set([...(tagKey === undefined ? [] : [tagKey]), ...(more.tagKeys ?? [])])];
  return sql<FoundRow[]>`
    select ${tokenIsValid(sql, owner)} as valid, page.total, '[' || page.bookmarks || ']' as bookmarks,
      page.has_more as "hasMore", page.last_id as "lastId", page.last_key as "lastKey"
    from search_bookmarks(
      ${owner.userId}, ${sorted.slice(0, SINGLE_TERMS)}, ${patterns.length === 0 ? null : patterns}::text[],
      ${tagKeys}, ${[...(more.withoutKeys ?? [])]}, ${more.untagged ? true : null}::boolean,
      ${more.createdAfter ?? null}::timestamptz, ${more.createdBefore ?? null}::timestamptz, ${more.site ?? null},
      ${more.sort}, ${slice(page, perPage).from - 1}, ${more.after?.lastId ?? null}, ${more.after?.lastKey ?? null},
      ${perPage}, ${pageBytes(more)}
    ) page`;
}

/** A page as positions in the array of matches. No user has 2^31 bookmarks, so a page beyond is empty. */
function slice(page: number, perPage: number): { from: number; to: number } {
  const from = Math.min((page - 1) * perPage + 1, 2_000_000_000);
  return { from, to: from + perPage - 1 };
}
