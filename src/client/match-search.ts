import type { Bookmark } from '../domain/resources.ts';
import {
  foldText,
  isUnder,
  searchTerms,
  searchText,
  searchTextLine,
  withoutEndSlashes,
} from '../domain/text.ts';
import { parseWebUrl } from '../domain/web-url.ts';
import type { SearchFilter } from './search-text.ts';

/** Searches bookmarks that are already on this computer, with the same result as the service. */

/** Returns the normalized words and phrases that every found bookmark contains. */
const requiredTerms = ({ query, phrases }: SearchFilter): string[] => [
  ...searchTerms(query ?? ''),
  ...(phrases ?? []).map(searchTextLine),
];

/** Returns the normalized words and phrases that found bookmarks may contain. */
export const termsOf = (search: SearchFilter): string[] => [
  ...requiredTerms(search),
  ...(search.any ?? []).flatMap(({ phrases = [] }) => phrases.map(searchTextLine)),
];

/** Normalizes a tag path, so that equal paths are equal texts. */
export const foldPath = (path: string): string => withoutEndSlashes(foldText(path));

/** Returns a function that says whether a search finds a bookmark. */
export function makeMatcher(search: SearchFilter): (bookmark: Bookmark) => boolean {
  const { tags, tag_under, without_tags, untagged, site, created_after, created_before } = search;
  const terms = requiredTerms(search);
  const unwantedTerms = (search.without_phrases ?? []).map(searchTextLine);
  const alternatives = (search.any ?? []).map(({ phrases = [], tags = [] }) => ({
    terms: phrases.map(searchTextLine),
    names: tags.map(foldText),
  }));
  const wanted = (tags ?? []).map(foldText);
  const paths = (tag_under ?? []).map(foldPath);
  const unwanted = (without_tags ?? []).map(foldText);
  const isOfSite = (url: string) => {
    const host = hostNameOf(url);
    return site === undefined || host === site || host.endsWith(`.${site}`);
  };
  const hasTerms = terms.length + unwantedTerms.length + alternatives.length > 0;
  return (bookmark) => {
    const searched = hasTerms ? searchText(bookmark) : '';
    const names = new Set(bookmark.tags.map(({ name }) => foldText(name)));
    return (
      terms.every((term) => searched.includes(term)) &&
      !unwantedTerms.some((term) => searched.includes(term)) &&
      (alternatives.length === 0 ||
        alternatives.some(
          (one) =>
            one.terms.every((term) => searched.includes(term)) && one.names.every((name) => names.has(name)),
        )) &&
      wanted.every((name) => names.has(name)) &&
      paths.every((path) => [...names].some((name) => isUnder(name, path))) &&
      !unwanted.some((name) => names.has(name)) &&
      !(untagged && names.size > 0) &&
      isOfSite(bookmark.url) &&
      (created_after === undefined || bookmark.created_at > created_after) &&
      (created_before === undefined || bookmark.created_at < created_before)
    );
  };
}

const hostNameOf = (url: string): string => (parseWebUrl(url)?.hostname ?? '').replace(/\.$/, '');
