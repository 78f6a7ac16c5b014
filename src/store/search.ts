import { bloomFilterBits } from '../domain/bloom-filters.ts';
import type { Sort } from '../domain/bounds.ts';
import type { SearchFilter } from '../domain/search.ts';
import { PAGE_BYTES } from './bookmarks.ts';
import type { Database, Sql } from './driver/database.ts';
import { requireValidToken } from './outcomes.ts';
import { type PrincipalKey, tokenIsValid } from './tokens.ts';

/** A search. A bookmark matches if its normalized text contains every term and if it passes the filter. */
export interface SearchOptions {
  terms: readonly string[];
  filter: SearchFilter;
  sort: Sort;
  perPage: number;
  /** The number of the page, from 1. Ignored if `after` is given. */
  page: number;
  /** The last bookmark of the previous page, and its sort key. */
  after?: { lastId: number; lastKey: string | null } | undefined;
}

/** A page of matches. If the search has `after`, the page has at most about 1 MiB. */
export interface SearchPage {
  /** JSON text of an array of bookmarks. */
  bookmarks: string;
  /** The number of all matches; 0 if the search has `after`. */
  total: number;
  hasMore: boolean;
  /** The last bookmark of the page, and its sort key. The next page begins after it. */
  lastId: number | null;
  lastKey: string | null;
}

/** A limit in bytes that no page reaches, because a page has at most 100 bookmarks. */
const WHOLE_PAGE = 67_108_864;

const likePattern = (term: string): string => `%${term.replace(/[\\%_]/g, '\\$&')}%`;

/**
 * How many terms get a condition of their own. Each connection prepares every different statement, so this limit keeps
 * the number of statements small.
 */
const SINGLE_TERMS = 3;

/**
 * Splits the terms of a search. `single` has the longest terms, because they exclude the most rows. `patterns` has the
 * other terms as `like` patterns; it is null if there are none.
 */
function splitTerms(terms: readonly string[]): { single: string[]; patterns: string[] | null } {
  const sorted = terms.toSorted((a, b) => b.length - a.length);
  const patterns = sorted.slice(SINGLE_TERMS).map(likePattern);
  return { single: sorted.slice(0, SINGLE_TERMS), patterns: patterns.length === 0 ? null : patterns };
}

/** Builds the conditions on the search text. The terms in `single` are tested by `strpos`, which is fastest. */
function conditionsOnTerms(sql: Sql, terms: readonly string[]) {
  const { single, patterns } = splitTerms(terms);
  return [
    ...single.map((term) => sql`and strpos(search_text, ${term}) > 0`),
    patterns === null ? sql`` : sql`and search_text like all (${patterns})`,
  ];
}

/**
 * Selects the ids of the bookmarks that have a tag and contain all terms. Postgres finds the bookmarks with the tag by
 * an index, and tests each of them for the terms.
 */
const selectIdsWithTag = (
  sql: Sql,
  { userId }: PrincipalKey,
  terms: readonly string[],
  tagKey: string,
) => sql`(
  select coalesce(array_agg(id), '{}')
  from (
    select id
    from bookmarks
    where user_id = ${userId} ${conditionsOnTerms(sql, terms)}
      and tag_ids @> array[(select id from tags where user_id = ${userId} and name_key = ${tagKey})]
    order by id desc
  ) newest_first
)`;

/**
 * Splits the terms of a search as `find_texts` takes them. All of these `bits` are set in the Bloom filter of a block
 * that contains all terms.
 */
const scanFor = (terms: readonly string[]) => {
  const { single, patterns } = splitTerms(terms);
  return { terms: single, patterns, bits: bloomFilterBits(terms) };
};

/**
 * Returns the filter as `search_bookmarks` takes it. Each alternative also has the terms of the search, so that its scan
 * skips blocks that lack them.
 */
const toSqlFilter = ({ without_phrases, any, ...others }: SearchFilter, terms: readonly string[]) => ({
  ...others,
  without_phrases: without_phrases?.map(likePattern),
  any: any?.map(({ phrases, tags }) => ({ tags, ...scanFor([...new Set([...terms, ...phrases])]) })),
});

/** Returns the entries of a filter that can exclude bookmarks. An empty list and `untagged: false` exclude none. */
function conditionsOf({ untagged, ...others }: SearchFilter): SearchFilter {
  const conditions = Object.entries({ ...others, untagged: untagged || undefined }).filter(
    ([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0),
  );
  return Object.fromEntries(conditions);
}

/**
 * Searches a user's bookmarks (docs/contract.md, decision 13). The total is exact, and comes from the same snapshot as
 * the page. There are few different statements, so that each stays prepared. A search by words alone scans blocks of
 * texts (`search_blocks`).
 */
export async function searchBookmarks(
  db: Database,
  principal: PrincipalKey,
  search: SearchOptions,
): Promise<SearchPage> {
  const { terms, filter, sort, page, perPage, after } = search;
  const { tag, ...otherConditions } = conditionsOf(filter);
  const isPlain = sort === 'newest' && after === undefined && Object.keys(otherConditions).length === 0;
  const rows = await db.at(principal.userId).read((sql) => {
    if (!isPlain) return findFiltered(sql, principal, search);
    if (tag !== undefined) return findTagged(sql, principal, search, tag);
    return terms.length === 0
      ? readNewest(sql, principal, page, perPage)
      : searchWords(sql, principal, search);
  });
  return requireValidToken(rows);
}

type FoundRow = { valid: boolean } & SearchPage;

/**
 * Reads a page of all bookmarks. The total is a counter that the account's row holds. Postgres finds the page by the
 * primary key.
 */
const readNewest = (sql: Sql, { userId, hash }: PrincipalKey, page: number, perPage: number) => sql<
  FoundRow[]
>`
  select page.valid, page.total, '[' || page.bookmarks || ']' as bookmarks, page.has_more as "hasMore",
    page.last_id as "lastId", null as "lastKey"
  from read_newest(
    p_user_id => ${userId}, p_token_hash => ${hash}, p_offset => (${page}::bigint - 1) * ${perPage},
    p_limit => ${perPage}, p_bytes => ${WHOLE_PAGE}
  ) page`;

/**
 * Searches all bookmarks for terms. `search_words` scans the blocks of texts. With `p_bits` and the blocks' Bloom
 * filters, it skips blocks that cannot match.
 */
function searchWords(sql: Sql, { userId, hash }: PrincipalKey, { terms, page, perPage }: SearchOptions) {
  const scan = scanFor(terms);
  return sql<FoundRow[]>`
    select page.valid, page.total, '[' || page.bookmarks || ']' as bookmarks, page.has_more as "hasMore",
      page.last_id as "lastId", null as "lastKey"
    from search_words(
      p_user_id => ${userId}, p_token_hash => ${hash},
      p_terms => ${scan.terms}, p_patterns => ${scan.patterns}::text[], p_bits => ${scan.bits}::integer[],
      p_offset => ${positionsOf(page, perPage).from - 1}, p_limit => ${perPage}, p_bytes => ${WHOLE_PAGE}
    ) page`;
}

/** Searches the bookmarks with one tag, for any number of terms. */
const findTagged = (
  sql: Sql,
  principal: PrincipalKey,
  { terms, page, perPage }: SearchOptions,
  tagKey: string,
) => sql<FoundRow[]>`
  with matching as materialized (
    select ${selectIdsWithTag(sql, principal, terms, tagKey)} as ids
  ), wanted as materialized (
    select cardinality(ids) as total, ids[${positionsOf(page, perPage).from}:${positionsOf(page, perPage).to}] as ids
    from matching
  )
  select ${tokenIsValid(sql, principal)} as valid, wanted.total, '[' || page.bookmarks || ']' as bookmarks,
    ${positionsOf(page, perPage).from}::bigint - 1 + page.count < wanted.total and page.count > 0 as "hasMore",
    wanted.ids[page.count] as "lastId", null as "lastKey"
  from wanted
  cross join lateral render_bookmarks(${principal.userId}, wanted.ids, ${WHOLE_PAGE}) page`;

/**
 * Searches with any filter, order or position. A page that was requested by number must be complete: the next page
 * begins `perPage` matches later, and would skip bookmarks that were left out of this page. With `after`, a page may be
 * shorter than `perPage`, because the next page begins after the last bookmark that was sent.
 */
function findFiltered(
  sql: Sql,
  principal: PrincipalKey,
  { terms, filter, sort, page, perPage, after }: SearchOptions,
) {
  const scan = scanFor(terms);
  return sql<FoundRow[]>`
    select ${tokenIsValid(sql, principal)} as valid, page.total, '[' || page.bookmarks || ']' as bookmarks,
      page.has_more as "hasMore", page.last_id as "lastId", page.last_key as "lastKey"
    from search_bookmarks(
      p_user_id => ${principal.userId},
      p_terms => ${scan.terms},
      p_patterns => ${scan.patterns}::text[],
      p_bits => ${scan.bits}::integer[],
      p_filter => ${JSON.stringify(toSqlFilter(conditionsOf(filter), terms))}::text::jsonb,
      p_sort => ${sort},
      p_offset => ${positionsOf(page, perPage).from - 1},
      p_last_id => ${after?.lastId ?? null},
      p_last_key => ${after?.lastKey ?? null},
      p_limit => ${perPage},
      p_bytes => ${after === undefined ? WHOLE_PAGE : PAGE_BYTES}
    ) page`;
}

/**
 * Returns the first and the last position of a page in the array of matches, counted from 1. `from` is at most
 * 2,000,000,000. No user has so many bookmarks, so a page that begins there is empty.
 */
function positionsOf(page: number, perPage: number): { from: number; to: number } {
  const from = Math.min((page - 1) * perPage + 1, 2_000_000_000);
  return { from, to: from + perPage - 1 };
}
