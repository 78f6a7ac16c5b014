import { z } from 'zod';
import type { Sort } from '../../domain/bounds.ts';
import { invalid } from '../../domain/errors.ts';
import { BOUNDS } from '../../domain/fields.ts';
import type { BookmarkSearch } from '../../domain/resources.ts';
import { parseBody } from '../../domain/validation.ts';
import type { RunEndpoint } from '../run-endpoint.ts';
import { SHARED, UNREAD } from './fields.ts';
import { type Literal, parseQuery } from './query-language.ts';
import { readTagNames } from './tag-names.ts';
import { linkdingTime } from './times.ts';

/** Converts the filters of linkding's lists to one search of this service. */

/** This service's orders, keyed by linkding's. It has no equivalent of `modified_asc` and `title_desc`. */
const SORTS = {
  added_desc: 'created',
  added_asc: 'created_oldest',
  modified_desc: 'updated',
  title_asc: 'title',
} as const satisfies Record<string, Sort>;

/** linkding's filters that this service does not have. */
const UNSUPPORTED = ['bundle', 'user', 'modified_since'];

const flagFilter = z.enum(['yes', 'no', 'off']).default('off');
const filters = z.object({
  q: z.string().max(BOUNDS.query, `at most ${BOUNDS.query} characters`).default(''),
  unread: flagFilter,
  shared: flagFilter,
  sort: z.enum(Object.keys(SORTS) as (keyof typeof SORTS)[]).default('added_desc'),
  added_since: linkdingTime.optional(),
});

/** The conditions of a list on the tags that stand for flags. */
export type ListConditions = Pick<BookmarkSearch, 'tags' | 'without_tags'>;

/**
 * Converts the filters in a query string. A bookmark must also meet the conditions of the requested list. Throws
 * `VALIDATION_ERROR` for a filter that this service cannot apply, because the client would otherwise get bookmarks that
 * it did not ask for.
 */
export async function readSearch(
  run: RunEndpoint,
  query: Record<string, string>,
  list: ListConditions,
): Promise<BookmarkSearch> {
  const unsupported = UNSUPPORTED.find((name) => query[name] !== undefined);
  if (unsupported !== undefined) throw invalid(`${unsupported}: is not supported`);
  const { q, unread, shared, sort, added_since: since } = parseBody(filters, query);
  const literals = await resolveTags(run, readLiterals(q));
  const flags: [string, string][] = [
    [UNREAD, unread],
    [SHARED, shared],
  ];
  const flagTags = (state: string) => flags.filter(([, wanted]) => wanted === state).map(([tag]) => tag);
  const search = toSearch(literals);
  const tags = [...search.tags, ...flagTags('yes'), ...(list.tags ?? [])];
  const withoutTags = [...search.without_tags, ...flagTags('no'), ...(list.without_tags ?? [])];
  if (search.untagged === true && tags.length > 0)
    throw invalid('q: !untagged cannot be combined with tags, flags or their lists');
  const { tags: _tags, ...others } = search;
  return {
    ...others,
    ...(tags.length > 0 && { tags }),
    without_tags: withoutTags,
    sort: SORTS[sort],
    ...(since !== undefined && { created_after: since }),
  };
}

/** Returns the literals of a query. Throws `VALIDATION_ERROR` for keywords and alternatives that cannot be searched. */
function readLiterals(q: string): Literal[] {
  const [first = [], ...others] = parseQuery(q);
  if (others.length > 0) throw invalid('q: `or` is not supported');
  return first.map(toKnownLiteral);
}

/** Converts the keyword `!unread` to its tag. */
function toKnownLiteral(literal: Literal): Literal {
  const { kind, value, isNegated } = literal;
  if (kind !== 'keyword') return literal;
  if (value === 'unread') return { kind: 'tag', value: UNREAD, isNegated };
  if (value !== 'untagged') throw invalid(`q: !${value} is not supported`);
  if (isNegated) throw invalid('q: `not !untagged` is not supported');
  return literal;
}

/** Converts the names in literals to those of the account's tags. Reads the tags only if it has to. */
async function resolveTags(run: RunEndpoint, literals: Literal[]): Promise<Literal[]> {
  if (!literals.some(({ kind, value }) => kind === 'tag' && value.includes('-'))) return literals;
  const { resolve } = await readTagNames(run);
  return literals.map((each) => (each.kind === 'tag' ? { ...each, value: resolve(each.value) } : each));
}

/** Converts literals that a bookmark must all meet. */
function toSearch(literals: readonly Literal[]) {
  const valuesOf = (kind: Literal['kind'], isNegated: boolean) =>
    literals.filter((each) => each.kind === kind && each.isNegated === isNegated).map(({ value }) => value);
  const texts = valuesOf('text', false);
  const hasBlank = (text: string) => /\s/u.test(text);
  if (valuesOf('text', true).length > 0) throw invalid('q: `not` before a term is not supported');
  return {
    query: texts.filter((text) => !hasBlank(text)).join(' '),
    phrases: texts.filter(hasBlank),
    tags: valuesOf('tag', false),
    without_tags: valuesOf('tag', true),
    ...(valuesOf('keyword', false).length > 0 && { untagged: true }),
  };
}
