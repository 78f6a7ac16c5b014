import { bloomFilterBits } from '../domain/bloom-filters.ts';
import type { Sort } from '../domain/bounds.ts';
import type { SearchFilter } from '../domain/search.ts';
import { PAGE_BYTES } from './bookmarks.ts';
import type { Database, Sql } from './driver/database.ts';
import { requireValidToken } from './outcomes.ts';
import type { PrincipalKey } from './tokens.ts';

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

/** How many terms get a condition of their own in `matches_text`. */
const SINGLE_TERMS = 3;

/**
 * Splits the terms of a search as `find_texts` takes them. `terms` has the longest terms, because they exclude the most
 * rows. `patterns` has the other terms as `like` patterns; it is null if there are none. All of these `bits` are set in
 * the Bloom filter of a block that contains all terms.
 */
function scanFor(terms: readonly string[]) {
  const sorted = terms.toSorted((a, b) => b.length - a.length);
  const patterns = sorted.slice(SINGLE_TERMS).map(likePattern);
  return {
    terms: sorted.slice(0, SINGLE_TERMS),
    patterns: patterns.length === 0 ? null : patterns,
    bits: bloomFilterBits(terms),
  };
}

/**
 * Returns the filter as `search_bookmarks` takes it. Each alternative also has the terms of the search, so that its scan
 * skips blocks that lack them.
 */
const toSqlFilter = ({ without_phrases, any, ...others }: SearchFilter, terms: readonly string[]) => ({
  ...others,
  without_phrases: without_phrases?.map(likePattern),
  any: any?.map(({ phrases, tags }) => ({ tags, ...scanFor([...new Set([...terms, ...phrases])]) })),
});

/**
 * Returns the entries of a filter that can exclude bookmarks, with `tag` among the `tags`. An empty list and
 * `untagged: false` exclude none.
 */
function conditionsOf({ tag, tags = [], untagged, ...others }: SearchFilter): SearchFilter {
  const required = [...new Set(tag === undefined ? tags : [...tags, tag])];
  const conditions = Object.entries({ ...others, tags: required, untagged: untagged || undefined }).filter(
    ([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0),
  );
  return Object.fromEntries(conditions);
}

/**
 * Searches a user's bookmarks (docs/contract.md, decision 13). The total is exact, and comes from the same snapshot as
 * the page.
 */
export async function searchBookmarks(
  db: Database,
  principal: PrincipalKey,
  search: SearchOptions,
): Promise<SearchPage> {
  const filter = conditionsOf(search.filter);
  const isNewest =
    search.sort === 'newest' &&
    search.after === undefined &&
    search.terms.length + Object.keys(filter).length === 0;
  const rows = await db
    .at(principal.userId)
    .read((sql) =>
      isNewest ? readNewest(sql, principal, search) : readMatches(sql, principal, { ...search, filter }),
    );
  return requireValidToken(rows);
}

type FoundRow = { valid: boolean } & SearchPage;

/**
 * Reads a page of all bookmarks. The total is a counter that the account's row holds. Postgres finds the page by the
 * primary key.
 */
const readNewest = (sql: Sql, { userId, hash }: PrincipalKey, { page, perPage }: SearchOptions) => sql<
  FoundRow[]
>`
  select page.valid, page.total, '[' || page.bookmarks || ']' as bookmarks, page.has_more as "hasMore",
    page.last_id as "lastId", null as "lastKey"
  from read_newest(
    p_user_id => ${userId}, p_token_hash => ${hash}, p_offset => (${page}::bigint - 1) * ${perPage},
    p_limit => ${perPage}, p_bytes => ${WHOLE_PAGE}
  ) page`;

/**
 * Searches with any filter, order or position. A page that was requested by number must be complete: the next page
 * begins `perPage` matches later, and would skip bookmarks that were left out of this page. With `after`, a page may be
 * shorter than `perPage`, because the next page begins after the last bookmark that was sent.
 */
function readMatches(
  sql: Sql,
  { userId, hash }: PrincipalKey,
  { terms, filter, sort, page, perPage, after }: SearchOptions,
) {
  const scan = scanFor(terms);
  return sql<FoundRow[]>`
    select page.valid, page.total, '[' || page.bookmarks || ']' as bookmarks, page.has_more as "hasMore",
      page.last_id as "lastId", page.last_key as "lastKey"
    from search_bookmarks(
      p_user_id => ${userId},
      p_token_hash => ${hash},
      p_terms => ${scan.terms},
      p_patterns => ${scan.patterns}::text[],
      p_bits => ${scan.bits}::integer[],
      p_filter => ${JSON.stringify(toSqlFilter(filter, terms))}::text::jsonb,
      p_sort => ${sort},
      p_offset => (${page}::bigint - 1) * ${perPage},
      p_last_id => ${after?.lastId ?? null},
      p_last_key => ${after?.lastKey ?? null},
      p_limit => ${perPage},
      p_bytes => ${after === undefined ? WHOLE_PAGE : PAGE_BYTES}
    ) page`;
}
