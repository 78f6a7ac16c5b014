import { foldPath, makeMatcher as matchSearch, termsOf as searchTermsOf } from '../client/match-search.ts';
import { formatTag, formatUnder, parseSearch, splitSearch } from '../client/search-text.ts';
import type { Bookmark, Tag } from '../domain/resources.ts';
import { foldText, searchTerms } from '../domain/text.ts';

/** Reads and changes the text in the search field. */

/** True if a search with this text finds all bookmarks. */
export const isBlank = (text: string): boolean => {
  const { query, ...others } = parseSearch(text).search;
  return query === '' && Object.keys(others).length === 0;
};

const sameName = (one: string, other: string): boolean => foldText(one) === foldText(other);

/** Returns the normalized words and phrases of the text. */
export const termsOf = (text: string): string[] => searchTermsOf(parseSearch(text).search);

/** Returns the first tag whose name equals the whole text or one of its words. */
export function findNamedTag(text: string, tags: readonly Tag[]): Tag | undefined {
  const query = foldText(parseSearch(text).search.query ?? '');
  if (query === '') return undefined;
  const names = new Set([query, ...searchTerms(query)]);
  return tags.find(({ name }) => name.length <= query.length && names.has(foldText(name)));
}

/** Replaces the words that are the name of a tag with `tag:` and that name. */
export function replaceWordsByTag(text: string, name: string): string {
  const parts = splitSearch(text);
  const isWord = parts.some(({ key, value }) => key === undefined && sameName(value, name));
  const kept = parts.filter(({ key, value }) => key !== undefined || (isWord && !sameName(value, name)));
  return [...kept.map((part) => part.text), formatTag(name)].join(' ');
}

/** Returns a function that takes the name of a tag and says whether the search text requires that tag. */
export function tagsOf(text: string): (name: string) => boolean {
  const names = new Set((parseSearch(text).search.tags ?? []).map(foldText));
  return (name) => names.has(foldText(name));
}

/** Returns a function that takes a path and says whether the search text contains `under:` with that path. */
export function pathsOf(text: string): (path: string) => boolean {
  const paths = new Set((parseSearch(text).search.tag_under ?? []).map(foldPath));
  return (path) => paths.has(foldPath(path));
}

/** Adds `tag:` with this name to the search text. If the text already contains it, removes it instead. */
export function toggleTag(text: string, name: string): string {
  const parts = splitSearch(text);
  const kept = parts.filter(
    ({ key, value, isNegated }) => !(key === 'tag' && !isNegated && sameName(value, name)),
  );
  const texts = kept.map((part) => part.text);
  return (kept.length < parts.length ? texts : [...texts, formatTag(name)]).join(' ');
}

/** Adds `under:` with this path to the search text. If the text already contains it, removes it instead. */
export function togglePath(text: string, path: string): string {
  const parts = splitSearch(text);
  const kept = parts.filter(({ key, value }) => !(key === 'under' && foldPath(value) === foldPath(path)));
  const texts = kept.map((part) => part.text);
  return (kept.length < parts.length ? texts : [...texts, formatUnder(path)]).join(' ');
}

/** Renames a tag in the search text. */
export function renameInSearch(text: string, from: string, to: string): string {
  const renamed = tagsOf(text)(from) ? toggleTag(toggleTag(text, from), to) : text;
  return pathsOf(renamed)(from) ? togglePath(togglePath(renamed, from), to) : renamed;
}

/** Returns a function that says whether a search with this text finds a bookmark. */
export const makeMatcher = (text: string): ((bookmark: Bookmark) => boolean) =>
  matchSearch(parseSearch(text).search);
