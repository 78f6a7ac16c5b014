import type { BookmarkSearch } from '../domain/resources.ts';
import { parseWebUrl } from '../domain/web-url.ts';

/**
 * The text in the search field: words, and `tag:name`, `-tag:name`, `site:example.org` and `is:untagged`. A name with
 * blanks stands in quotes: `tag:"to read"`.
 */

export type SearchFilter = Pick<BookmarkSearch, 'query' | 'tags' | 'without_tags' | 'untagged' | 'site'>;

const PART = /(-?)(tag|site|is):(?:"([^"]*)"|(\S*))|(\S+)/gi;

/** Reads a search text. A part that says nothing yet, as `tag:` while it is being typed, is left out. */
export function parseSearch(text: string): SearchFilter {
  const words: string[] = [];
  const filter: { tags: string[]; without_tags: string[]; site?: string; untagged?: boolean } = {
    tags: [],
    without_tags: [],
  };
  for (const [, minus, key, quoted, bare, word] of text.matchAll(PART)) {
    if (key === undefined) {
      words.push(word!);
      continue;
    }
    const value = (quoted ?? bare ?? '').trim();
    if (value === '') continue;
    const kind = key.toLowerCase();
    if (kind === 'tag') filter[minus ? 'without_tags' : 'tags'].push(value);
    else if (kind === 'site') filter.site = readHost(value);
    else if (value.toLowerCase() === 'untagged') filter.untagged = true;
  }
  return {
    query: words.join(' '),
    ...(filter.tags.length > 0 && { tags: filter.tags }),
    ...(filter.without_tags.length > 0 && { without_tags: filter.without_tags }),
    ...(filter.site !== undefined && { site: filter.site }),
    ...(filter.untagged && { untagged: true }),
  };
}

/** The host of what was typed or pasted: a host, or a whole url. */
const readHost = (text: string): string =>
  parseWebUrl(/^https?:/i.test(text) ? text : `http://${text}`)?.hostname ?? text;

/** Whether the text asks for all bookmarks. */
export const isBlank = (text: string): boolean => {
  const { query, ...others } = parseSearch(text);
  return query === '' && Object.keys(others).length === 0;
};

/** `tag:name` as it is typed. */
export const formatTag = (name: string): string =>
  /[\s"]/.test(name) ? `tag:"${name.replaceAll('"', '')}"` : `tag:${name}`;

const sameName = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

/** Says of a tag's name whether the text asks for it. */
export function tagsOf(text: string): (name: string) => boolean {
  const names = new Set((parseSearch(text).tags ?? []).map((name) => name.toLowerCase()));
  return (name) => names.has(name.toLowerCase());
}

const hasTag = (text: string, name: string): boolean => tagsOf(text)(name);

/** The search text with a tag added to it, or taken out of it. */
export function toggleTag(text: string, name: string): string {
  const parts = [...text.matchAll(PART)];
  const kept = parts.filter(
    ([, minus, key, quoted, bare]) =>
      !(key?.toLowerCase() === 'tag' && minus === '' && sameName(quoted ?? bare ?? '', name)),
  );
  const texts = kept.map(([part]) => part);
  return (kept.length < parts.length ? texts : [...texts, formatTag(name)]).join(' ');
}

/** The search text with a tag's new name in the place of its old one. */
export const renameInSearch = (text: string, from: string, to: string): string =>
  hasTag(text, from) ? toggleTag(toggleTag(text, from), to) : text;
