import { hash } from 'node:crypto';
import { z } from 'zod';
import { SORTS, type Sort } from '../domain/bounds.ts';
import { invalid } from '../domain/errors.ts';
import { integer, searchPhrases, searchQuery } from '../domain/fields.ts';
import { searchFilter } from '../domain/search.ts';
import { searchTerms } from '../domain/text.ts';
import { parseTimestamp } from '../domain/timestamp.ts';
import { notCombined } from '../domain/validation.ts';
import { BOOKMARK_BODY_BYTES, principalRoute } from '../http/route.ts';
import { type SearchPage, searchBookmarks } from '../store/search.ts';
import { cursorSchemas, formatSearchCursor, parseSearchCursor, type SearchPlace } from './cursor.ts';
import * as schemas from './response-schemas.ts';

/** Search: docs/contract.md, section 4.2, decision 13. */

/** A cursor may have up to 2,000 characters, because it may contain 200 characters of a title. */
const cursor = cursorSchemas('WzMsNDIsIjAwIiwyLDEwMCw0MixudWxsXQ', 2_000);

const searchBody = z
  .object({
    query: searchQuery.default(''),
    phrases: searchPhrases.default([]),
    ...searchFilter.shape,
    sort: z.enum(SORTS).default(SORTS[0]),
    page: pageNumber(),
    cursor: cursor.given,
    per_page: integer(1, 100, 50),
  })
  .check(refusePageAfterCursor, ({ value, issues }) => {
    const tagFilter = (['tag', 'tags', 'tag_under'] as const).find((name) => value[name] !== undefined);
    if (!value.untagged || tagFilter === undefined) return;
    issues.push({
      code: 'custom',
      message: 'cannot be given with untagged',
      path: [tagFilter],
      input: value,
    });
  });

type SearchBody = z.output<typeof searchBody>;

/** Refuses a page number together with a cursor. An empty cursor begins at the page with that number. */
function refusePageAfterCursor(
  payload: z.core.ParsePayload<{ cursor?: string | undefined; page?: number | undefined }>,
): void {
  if (payload.value.cursor !== '') notCombined('cursor', ['page'])(payload);
}

/**
 * Makes the schema of a page number. The schema only shows the default in the reference and does not fill it in. So
 * `notCombined` can tell whether the client sent a page number together with a cursor.
 */
function pageNumber() {
  const rule = `expected an integer from 1 to ${Number.MAX_SAFE_INTEGER}`;
  return z.int(rule).min(1, rule).meta({ default: 1 }).optional();
}

/**
 * Splits a body into the search and the requested page. `searchHash` is a hash of the search without the page. A cursor
 * contains this hash, and works only for searches with the same hash.
 */
function readSearch({ query, phrases, sort, page, cursor, per_page: perPage, ...filter }: SearchBody) {
  const terms = [...new Set([...searchTerms(query), ...phrases])];
  const searchHash = hash('sha256', JSON.stringify([terms, filter, sort]), 'hex').slice(0, 16);
  return { terms, filter, sort, page, cursor, perPage, searchHash };
}

type Search = ReturnType<typeof readSearch>;

/**
 * Returns the place that the cursor encodes. Without a cursor, and with an empty one, the search begins at the start.
 * Throws `VALIDATION_ERROR` if the cursor is invalid.
 */
function findPlace({ cursor, sort, searchHash }: Search, userId: number): SearchPlace | undefined {
  if (!cursor) return undefined;
  const place = parseSearchCursor(cursor, userId, searchHash);
  if (!isKeyOf[sort](place.lastKey)) throw invalid('cursor: is malformed');
  return place;
}

const isTimestamp = (key: string | null): boolean => key !== null && parseTimestamp(key) === key;

/** For each sort order of a search, a function that returns whether a cursor may contain the given `lastKey`. */
const isKeyOf: Record<Sort, (key: string | null) => boolean> = {
  newest: (key) => key === null,
  oldest: (key) => key === null,
  created: isTimestamp,
  created_oldest: isTimestamp,
  updated: isTimestamp,
  title: (key) => key !== null,
};

/** Formats a page as JSON. If the request has a cursor and a page follows, the JSON has the cursor of that page. */
function formatPage(
  searchRequest: Search,
  userId: number,
  place: SearchPlace | undefined,
  foundPage: SearchPage,
): string {
  const { perPage, searchHash } = searchRequest;
  const { bookmarks, lastId, lastKey, hasMore } = foundPage;
  const page = place?.page ?? searchRequest.page ?? 1;
  const total = place?.total ?? foundPage.total;
  // A cursor contains the number of the next page, which must be a safe integer.
  const hasCursor = searchRequest.cursor !== undefined && hasMore && page < Number.MAX_SAFE_INTEGER;
  const nextCursor =
    hasCursor && lastId !== null
      ? formatSearchCursor(userId, searchHash, { page: page + 1, total, lastId, lastKey })
      : undefined;
  const cursorField = nextCursor === undefined ? '' : `,"next_cursor":"${nextCursor}"`;
  return (
    `{"bookmarks":${bookmarks},"total":${total},"page":${page},"per_page":${perPage},` +
    `"has_more":${hasMore}${cursorField}}`
  );
}

const search = principalRoute({
  path: '/bookmarks/search',
  scope: 'read',
  summary: 'Search bookmarks',
  description:
    'A bookmark must meet all conditions. Every word of the query and every phrase must occur in url, title or ' +
    'comment, ignoring case, and no text in `without_phrases` may occur there. If `any` is given, the bookmark must ' +
    'match at least one of its alternatives: contain all of its phrases and have all of its tags. The bookmark must ' +
    'have all `tags` and none of `without_tags`; both take whole names. ' +
    'For each name in `tag_under`, it must have that tag or one below it (`a/b` is below `a`). `site` matches the ' +
    'host and its subdomains. The total is exact. To read all pages, begin with `cursor: ""` (and `page` to begin ' +
    'there), and for each next page send the same search with the `next_cursor` of the last response. Then no bookmark that stays unchanged is missed or returned twice, whatever ' +
    'other requests write meanwhile. A page by cursor holds at most about 1 MiB.',
  body: searchBody,
  exampleLeavesOut: ['cursor'],
  bodyLimit: BOOKMARK_BODY_BYTES,
  response: z.object({
    bookmarks: z.array(schemas.bookmark),
    total: schemas.count,
    page: z.int().min(1),
    per_page: z
      .int()
      .min(1)
      .meta({ examples: [50] }),
    has_more: z.boolean(),
    next_cursor: cursor.next,
  }),
  async handle({ context, principal, body }) {
    const searchRequest = readSearch(body);
    const { terms, filter, sort, page = 1, perPage } = searchRequest;
    const place = findPlace(searchRequest, principal.userId);
    const foundPage = await searchBookmarks(context.database, principal, {
      terms,
      filter,
      sort,
      page,
      perPage,
      after: place,
    });
    return formatPage(searchRequest, principal.userId, place, foundPage);
  },
});

export const searchRoutes = [search];
