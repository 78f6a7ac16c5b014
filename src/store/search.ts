import { signatureBits } from '../domain/signatures.ts';
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

/** The longest terms, which exclude most rows, and patterns for further ones; null where there are none. */
function splitTerms(terms: readonly string[]): { single: string[]; patterns: string[] | null } {
  const sorted = terms.toSorted((a, b) => b.length - a.length);
  const patterns = sorted.slice(SINGLE_TERMS).map(likePattern);
  return { single: sorted.slice(0, SINGLE_TERMS), patterns: patterns.length === 0 ? null : patterns };
}

/** Conditions on the terms. `strpos` is the fastest test; terms beyond a few are one condition on a list. */
function hasTerms(sql: Sql, terms: readonly string[]) {
  const { single, patterns } = splitTerms(terms);
  return [
    ...single.map((term) => sql`and strpos(search_text, ${term}) > 0`),
    patterns === null ? sql`` : sql`and search_text like all (${patterns})`,
  ];
}

/** The ids of bookmarks that hold all terms, falling. */
function withTerms(sql: Sql, { userId }: Owner, terms: readonly string[]) {
  const { single, patterns } = splitTerms(terms);
  return sql`find_texts(${userId}, ${single}, ${patterns}::text[], ${signatureBits(terms)}::integer[])`;
}

/** Those of them that carry a tag: the index of tags leads to its bookmarks, and their terms are tried one by one. */
const withTag = (sql: Sql, { userId }: Owner, terms: readonly string[], tagKey: string) => sql`(
  select coalesce(array_agg(id), '{}')
  from (
    select id
    from bookmarks
    where user_id = ${userId} ${hasTerms(sql, terms)}
      and tag_ids @> array[(select id from tags where user_id = ${userId} and name_key = ${tagKey})]
    order by id desc
  ) newest_first
)`;

/**
 * Searches a user's bookmarks (decision 13). The total is exact, from the same snapshot as the page. The statements
 * have few shapes, so that each stays prepared. Words alone are looked for in blocks of texts (`search_blocks`).
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
    select ${tagKey === undefined ? withTerms(sql, owner, terms) : withTag(sql, owner, terms, tagKey)} as ids
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
  const { single, patterns } = splitTerms(terms);
  const tagKeys = [...new Set([...(tagKey === undefined ? [] : [tagKey]), ...(more.tagKeys ?? [])])];
  return sql<FoundRow[]>`
    select ${tokenIsValid(sql, owner)} as valid, page.total, '[' || page.bookmarks || ']' as bookmarks,
      page.has_more as "hasMore", page.last_id as "lastId", page.last_key as "lastKey"
    from search_bookmarks(
      ${owner.userId}, ${single}, ${patterns}::text[], ${signatureBits(terms)}::integer[],
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
