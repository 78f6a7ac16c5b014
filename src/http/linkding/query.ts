import { z } from 'zod';
import type { Sort } from '../../domain/bounds.ts';
import { invalid } from '../../domain/errors.ts';
import { BOUNDS } from '../../domain/fields.ts';
import type { BookmarkSearch, SearchAlternative } from '../../domain/resources.ts';
import { foldText } from '../../domain/text.ts';
import { parseBody } from '../../domain/validation.ts';
import type { RunEndpoint } from '../run-endpoint.ts';
import { SHARED, UNREAD } from './fields.ts';
import { type Alternatives, type Literal, parseQuery } from './query-language.ts';
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
const UNSUPPORTED = ['bundle', 'user'];

const flagFilter = z.enum(['yes', 'no', 'off']).default('off');
const filters = z.object({
  q: z.string().max(BOUNDS.query, `at most ${BOUNDS.query} characters`).default(''),
  unread: flagFilter,
  shared: flagFilter,
  sort: z.enum(Object.keys(SORTS) as (keyof typeof SORTS)[]).default('added_desc'),
  added_since: linkdingTime.optional(),
  modified_since: linkdingTime.optional(),
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
  const { q, unread, shared, sort, added_since, modified_since } = parseBody(filters, query);
  const alternatives = await resolveTags(run, parseQuery(q));
  const { tags: queryTags, without_tags: queryWithoutTags, ...search } = toSearch(alternatives);
  const tags = [...queryTags, ...(list.tags ?? [])];
  const withoutTags = [...queryWithoutTags, ...(list.without_tags ?? [])];
  for (const [state, tag] of [
    [unread, UNREAD],
    [shared, SHARED],
  ] as const) {
    if (state === 'yes') tags.push(tag);
    if (state === 'no') withoutTags.push(tag);
  }
  if (search.untagged && tags.length > 0)
    throw invalid('q: !untagged cannot be combined with tags, flags or their lists');
  return {
    ...search,
    ...(tags.length > 0 && { tags }),
    without_tags: withoutTags,
    sort: SORTS[sort],
    created_after: added_since,
    updated_after: modified_since,
  };
}

/**
 * Converts keywords, and the names of tags to those of the account's tags. Reads the account's tags only if it has to.
 * Throws `VALIDATION_ERROR` for an unknown keyword.
 */
async function resolveTags(run: RunEndpoint, alternatives: Alternatives): Promise<Alternatives> {
  const needsTags = alternatives.flat().some(({ kind, value }) => kind === 'tag' && value.includes('-'));
  const resolve = needsTags ? (await readTagNames(run)).resolve : (name: string) => name;
  const toKnown = (literal: Literal): Literal => {
    const { kind, value } = literal;
    if (kind === 'tag') return { ...literal, value: resolve(value) };
    if (kind === 'text' || value === 'untagged') return literal;
    if (value !== 'unread') throw invalid(`q: !${value} is not supported`);
    return { ...literal, kind: 'tag', value: UNREAD };
  };
  return alternatives.map((literals) => literals.map(toKnown));
}

const keyOf = ({ kind, value, isNegated }: Literal): string => `${isNegated} ${kind} ${foldText(value)}`;

/**
 * Converts a query. The literals that all alternatives share become filters of the search, and the others become `any`.
 * Throws `VALIDATION_ERROR` if the search has no such filter.
 */
function toSearch(alternatives: Alternatives) {
  const sharedKeys = alternatives
    .map((literals) => new Set(literals.map(keyOf)))
    .reduce((shared, keys) => shared.intersection(keys));
  const shared = alternatives[0]!.filter((each) => sharedKeys.has(keyOf(each)));
  const rests = alternatives.map((literals) => literals.filter((each) => !sharedKeys.has(keyOf(each))));
  const valuesOf = (kind: Literal['kind'], isNegated: boolean) => valuesIn(shared, kind, isNegated);
  if (valuesOf('keyword', true).length > 0) throw invalid('q: not !untagged is not supported');
  const texts = valuesOf('text', false);
  const hasBlank = (text: string) => /\s/u.test(text);
  return {
    query: texts.filter((text) => !hasBlank(text)).join(' '),
    phrases: texts.filter(hasBlank),
    without_phrases: valuesOf('text', true),
    tags: valuesOf('tag', false),
    without_tags: valuesOf('tag', true),
    ...(valuesOf('keyword', false).length > 0 && { untagged: true }),
    // If an alternative has only shared literals, every bookmark that meets these meets the query.
    ...(rests.every((rest) => rest.length > 0) && { any: rests.map(toAlternative) }),
  };
}

function toAlternative(literals: readonly Literal[]): SearchAlternative {
  if (literals.some(({ kind, isNegated }) => isNegated || kind === 'keyword'))
    throw invalid('q: an alternative of `or` may only contain words, phrases and tags');
  return { phrases: valuesIn(literals, 'text', false), tags: valuesIn(literals, 'tag', false) };
}

const valuesIn = (literals: readonly Literal[], kind: Literal['kind'], isNegated: boolean): string[] =>
  literals.filter((each) => each.kind === kind && each.isNegated === isNegated).map(({ value }) => value);
