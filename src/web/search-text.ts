import { foldPath, makeMatcher as matchSearch, termsOf as searchTermsOf } from '../client/match-search.ts';
import {
  formatGroups,
  formatTag,
  formatUnder,
  groupSearch,
  parseSearch,
  type SearchPart,
} from '../client/search-text.ts';
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

type Groups = ReturnType<typeof groupSearch>;

/** Returns the part if it stands alone, so that every found bookmark must match it. */
const alone = ([part, ...others]: Groups[number]) => (others.length === 0 ? part : undefined);

/** Replaces the words that are the name of a tag with `tag:` and that name. */
export function replaceWordsByTag(text: string, name: string): string {
  const groups = groupSearch(text);
  const wordOf = (group: Groups[number]) => {
    const part = alone(group);
    return part?.key === undefined && !part?.isNegated ? part?.value : undefined;
  };
  const isName = (word: string) => sameName(word, name);
  const isWord = groups.some((group) => isName(wordOf(group) ?? ''));
  const kept = groups.filter((group) => {
    const word = wordOf(group);
    return word === undefined || (isWord && !isName(word));
  });
  return addPart(kept, formatTag(name));
}

const addPart = (groups: Groups, part: string): string => `${formatGroups(groups)} ${part}`.trimStart();

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

/** Removes the parts that `isRemoved` chooses from the search text, or adds `part` if there are none. */
function toggle(text: string, part: string, isRemoved: (part: SearchPart) => boolean): string {
  const groups = groupSearch(text);
  const kept = groups.filter((group) => {
    const part = alone(group);
    return part === undefined || !isRemoved(part);
  });
  return kept.length < groups.length ? formatGroups(kept) : addPart(kept, part);
}

/** Adds `tag:` with this name to the search text. If the text already contains it, removes it instead. */
export const toggleTag = (text: string, name: string): string =>
  toggle(
    text,
    formatTag(name),
    ({ key, value, isNegated }) => key === 'tag' && !isNegated && sameName(value, name),
  );

/** Adds `under:` with this path to the search text. If the text already contains it, removes it instead. */
export const togglePath = (text: string, path: string): string =>
  toggle(text, formatUnder(path), ({ key, value }) => key === 'under' && foldPath(value) === foldPath(path));

/** Renames a tag in the search text. */
export function renameInSearch(text: string, from: string, to: string): string {
  const renamed = tagsOf(text)(from) ? toggleTag(toggleTag(text, from), to) : text;
  return pathsOf(renamed)(from) ? togglePath(togglePath(renamed, from), to) : renamed;
}

/** Returns a function that says whether a search with this text finds a bookmark. */
export const makeMatcher = (text: string): ((bookmark: Bookmark) => boolean) =>
  matchSearch(parseSearch(text).search);
