import { makeMatcher } from '../client/match-search.ts';
import type { SearchFilter } from '../client/search-text.ts';
import type { Sort } from '../domain/bounds.ts';
import type { Bookmark } from '../domain/resources.ts';
import { compareByCodePoints, searchedLine } from '../domain/text.ts';

/** Larger than all ids of the service. */
const AFTER_ALL_IDS = 2 ** 52;

/** A bookmark that is not sent yet has a negative id, and is newer than all others. */
const orderOf = ({ id }: Bookmark): number => (id < 0 ? AFTER_ALL_IDS - id : id);

const byId = (one: Bookmark, other: Bookmark): number => orderOf(one) - orderOf(other);

/** How many characters the service compares. */
const TITLE_KEY_LENGTH = 200;

/** Returns the same key as the SQL function `title_key`. */
function titleKey({ title, url }: Bookmark): string {
  const key = searchedLine('title', title) || searchedLine('url', url).replace(/^https?:\/\/(www\.)?/, '');
  return key.length <= TITLE_KEY_LENGTH ? key : [...key].slice(0, TITLE_KEY_LENGTH).join('');
}

/** The orders of `/bookmarks/search` (docs/contract.md, section 4.2). */
const COMPARISONS: Record<Sort, (one: Bookmark, other: Bookmark) => number> = {
  newest: (one, other) => byId(other, one),
  oldest: byId,
  created: (one, other) => compareByCodePoints(other.created_at, one.created_at) || byId(other, one),
  created_oldest: (one, other) => compareByCodePoints(one.created_at, other.created_at) || byId(one, other),
  updated: (one, other) => compareByCodePoints(other.updated_at, one.updated_at) || byId(other, one),
  title: (one, other) => compareByCodePoints(titleKey(one), titleKey(other)) || byId(one, other),
};

/** Returns all bookmarks of a local copy that a search finds, in its order. */
export const searchLocally = (bookmarks: readonly Bookmark[], search: SearchFilter, sort: Sort): Bookmark[] =>
  bookmarks.filter(makeMatcher(search)).sort(COMPARISONS[sort]);
