import { invalid } from '../../domain/errors.ts';
import type { BookmarkSearch } from '../../domain/resources.ts';
import { UNREAD } from './fields.ts';

/** Reads the query strings of linkding's lists. */

export interface Range {
  offset: number;
  limit: number;
}

type Query = Record<string, unknown>;

const MAX_LIMIT = 100;
const MAX_OFFSET = 1_000_000_000;
const INTEGER = /^\d+$/;

/** Reads `limit` (at most 100, default 100) and `offset`. Ignores invalid values, as linkding does. */
export function readRange(query: Query): Range {
  const limit = readInteger(query.limit, MAX_LIMIT);
  return {
    offset: Math.min(readInteger(query.offset, 0), MAX_OFFSET),
    limit: limit === 0 ? MAX_LIMIT : Math.min(limit, MAX_LIMIT),
  };
}

const readInteger = (value: unknown, byDefault: number): number =>
  typeof value === 'string' && INTEGER.test(value) ? Number(value) : byDefault;

/** linkding's filters that this service does not have. */
const UNSUPPORTED = ['modified_since', 'bundle'];

/**
 * Reads the search in `q` and `added_since`. `q` may contain words, `#tag`, `!untagged` and `!unread`. Quotes are
 * ignored. Throws `VALIDATION_ERROR` for an unsupported filter, because the client would otherwise get bookmarks that
 * it did not ask for.
 */
export function readSearch(query: Query): BookmarkSearch {
  for (const name of UNSUPPORTED) if (query[name] !== undefined) throw invalid(`${name}: is not supported`);
  const words: string[] = [];
  const tags: string[] = [];
  let untagged = false;
  for (const word of String(query.q ?? '').split(/\s+/)) {
    if (word.length > 1 && word.startsWith('#')) tags.push(word.slice(1));
    else if (word === '!untagged') untagged = true;
    else if (word === '!unread') tags.push(UNREAD);
    else words.push(word.replaceAll('"', ''));
  }
  const since = query.added_since;
  return {
    query: words.join(' ').trim(),
    ...(tags.length > 0 && { tags }),
    ...(untagged && { untagged }),
    ...(since !== undefined && { created_after: String(since) }),
  };
}
