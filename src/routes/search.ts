import { hash } from 'node:crypto';
import { z } from 'zod';
import { invalid } from '../domain/errors.ts';
import { integer, searchQuery, site, tagName, tagNames, timestamp } from '../domain/fields.ts';
import { foldText, searchTerms } from '../domain/text.ts';
import { parseTimestamp } from '../domain/timestamp.ts';
import { notBeside } from '../domain/validation.ts';
import { BOOKMARK_BODY_BYTES, callerRoute } from '../http/route.ts';
import {
  type FurtherOptions,
  type SearchOptions,
  type SearchPage,
  searchBookmarks,
} from '../store/search.ts';
import {
  formatSearchCursor,
  MAX_SEARCH_CURSOR_LENGTH,
  parseSearchCursor,
  type SearchPlace,
} from './cursor.ts';
import * as schemas from './response-schemas.ts';

/** Search: spec 4.2, decision 13. */

const time = timestamp.meta({ format: 'date-time', examples: ['2026-01-31T12:00:00.000Z'] });

const searchBody = z
  .object({
    query: searchQuery.default(''),
    tag: tagName.optional(),
    tags: tagNames.meta({ ...tagNames.meta(), examples: [['reading']] }).optional(),
    without_tags: tagNames.meta({ ...tagNames.meta(), examples: [['done']] }).optional(),
    untagged: z.boolean().default(false),
    created_after: time.optional(),
    created_before: time.optional(),
    site: site.optional(),
    sort: z.enum(['newest', 'oldest', 'updated', 'title']).default('newest'),
    page: pageNumber(),
    cursor: z
      .string()
      .max(MAX_SEARCH_CURSOR_LENGTH, 'is malformed')
      .meta({ examples: ['WzMsNDIsIjAwIiwyLDEwMCw0MixudWxsXQ'] })
      .optional(),
    per_page: integer(1, 100, 50),
  })
  .check(notBeside('cursor', ['page']), ({ value, issues }) => {
    const tagged = (['tag', 'tags'] as const).find((name) => value[name] !== undefined);
    if (!value.untagged || tagged === undefined) return;
    issues.push({ code: 'custom', message: 'cannot be given with untagged', path: [tagged], input: value });
  });

type SearchBody = z.output<typeof searchBody>;

/** A number without a default in the body, which tells whether it was given beside a cursor. */
function pageNumber() {
  const rule = `expected an integer from 1 to ${Number.MAX_SAFE_INTEGER}`;
  return z.int(rule).min(1, rule).meta({ default: 1 }).optional();
}

/** What few searches ask for; undefined where this one does not. */
function furtherOptions(body: SearchBody, place: SearchPlace | undefined): FurtherOptions | undefined {
  const options: FurtherOptions = {
    sort: body.sort,
    tagKeys: body.tags?.keys,
    withoutKeys: body.without_tags?.keys,
    untagged: body.untagged || undefined,
    createdAfter: body.created_after,
    createdBefore: body.created_before,
    site: body.site,
    after: place,
  };
  const { sort, ...others } = options;
  const isPlain = sort === 'newest' && Object.values(others).every((option) => option === undefined);
  return isPlain ? undefined : options;
}

/** What makes two searches the same, whatever part of them is asked for. */
const hashSearch = ({
  query,
  page: _page,
  cursor: _cursor,
  per_page: _perPage,
  ...options
}: SearchBody): string => hash('sha256', JSON.stringify([searchTerms(query), options]), 'hex').slice(0, 16);

function findPlace(body: SearchBody, userId: number): SearchPlace | undefined {
  if (body.cursor === undefined) return undefined;
  const place = parseSearchCursor(body.cursor, userId, hashSearch(body));
  const isKey = {
    newest: place.lastKey === null,
    oldest: place.lastKey === null,
    updated: place.lastKey !== null && parseTimestamp(place.lastKey) === place.lastKey,
    title: place.lastKey !== null,
  };
  if (!isKey[body.sort]) throw invalid('cursor: is malformed');
  return place;
}

function formatPage(
  body: SearchBody,
  userId: number,
  place: SearchPlace | undefined,
  found: SearchPage,
): string {
  const page = place?.page ?? body.page ?? 1;
  const total = place?.total ?? found.total;
  const { lastId, lastKey, hasMore } = found;
  const next =
    hasMore && lastId !== null && page < Number.MAX_SAFE_INTEGER
      ? `,"next_cursor":"${formatSearchCursor(userId, hashSearch(body), { page: page + 1, total, lastId, lastKey })}"`
      : '';
  return `{"bookmarks":${found.bookmarks},"total":${total},"page":${page},"per_page":${body.per_page},"has_more":${hasMore}${next}}`;
}

const search = callerRoute({
  path: '/bookmarks/search',
  scope: 'read',
  summary: 'Search bookmarks',
  description:
    'All that is given must hold: every word of the query in url, title or comment, whatever its case; all of `tags`, by whole ' +
    'names, and none of `without_tags`; the host or a subdomain of `site`. The total is exact. To scroll, send the same ' +
    'search with `cursor`, the `next_cursor` of the last response: nothing comes twice, and nothing that stays is missed, ' +
    'while others write. A page holds about 1 MiB at most.',
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
    next_cursor: z
      .string()
      .meta({ examples: ['WzMsNDIsIjAwIiwyLDEwMCw0MixudWxsXQ'] })
      .optional(),
  }),
  async handle({ context, caller, body }) {
    const place = findPlace(body, caller.userId);
    const options: SearchOptions = {
      terms: searchTerms(body.query),
      tagKey: body.tag === undefined ? undefined : foldText(body.tag),
      page: body.page ?? 1,
      perPage: body.per_page,
      more: furtherOptions(body, place),
    };
    const found = await searchBookmarks(context.database, caller, options);
    return formatPage(body, caller.userId, place, found);
  },
});

export const searchRoutes = [search];
