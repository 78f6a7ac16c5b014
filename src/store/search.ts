import type { Database, Sql } from './database.ts';
import { requireValidToken } from './outcomes.ts';
import { type Owner, tokenIsValid } from './tokens.ts';

/** A search: every term must be a substring, the tag a whole name; both are folded. */
export interface SearchOptions {
  terms: readonly string[];
  tagKey?: string | undefined;
  /** From 1. */
  page: number;
  perPage: number;
}

/** A page of matches, newest first, as JSON text, and the number of all matches. */
export interface SearchPage {
  bookmarks: string;
  total: number;
}

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
 * Searches a user's bookmarks (decision 13). The total is exact, from the same snapshot as the page. The statement
 * has few shapes, so that each stays prepared. Matches are read in falling order: the scan of a user's 100,000
 * bookmarks takes half as long backward as forward.
 */
export async function searchBookmarks(
  db: Database,
  owner: Owner,
  search: SearchOptions,
): Promise<SearchPage> {
  const { terms, tagKey, page, perPage } = search;
  const isAll = terms.length === 0 && tagKey === undefined;
  const rows = await db.read((sql) =>
    isAll ? readNewest(sql, owner, page, perPage) : findMatching(sql, owner, search),
  );
  return requireValidToken(rows);
}

type FoundRow = { valid: boolean } & SearchPage;

/** Everything matches: the total is the account's counter, and the key leads to the page. */
const readNewest = (sql: Sql, owner: Owner, page: number, perPage: number) => sql<FoundRow[]>`
  select ${tokenIsValid(sql, owner)} as valid,
    (select bookmark_count from accounts where user_id = ${owner.userId}) as total,
    '[' || read_newest(${owner.userId}, (${page}::bigint - 1) * ${perPage}, ${perPage}) || ']' as bookmarks`;

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
  )
  select ${tokenIsValid(sql, owner)} as valid,
    (select cardinality(ids) from matching) as total,
    '[' || coalesce(string_agg(rendered, ','), '') || ']' as bookmarks
  from (
    select render_bookmark(b) as rendered
    from bookmarks b
    where user_id = ${owner.userId} and id = any ((
      select ids[${slice(page, perPage).from}:${slice(page, perPage).to}] from matching
    )::bigint[])
    order by id desc
  ) page`;

/** A page as positions in the array of matches. No user has 2^31 bookmarks, so a page beyond is empty. */
function slice(page: number, perPage: number): { from: number; to: number } {
  const from = Math.min((page - 1) * perPage + 1, 2_000_000_000);
  return { from, to: from + perPage - 1 };
}
