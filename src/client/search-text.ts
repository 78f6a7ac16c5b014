import type { BookmarkSearch } from '../domain/resources.ts';
import { parseWebUrl } from '../domain/web-url.ts';

/**
 * The search syntax of the page, the CLI and this client:
 *
 * - words and `"a phrase"`
 * - `tag:name` or `#name`, and `-tag:name`
 * - `under:name` for a tag and all tags below it; `a/b` is below `a`
 * - `site:example.org`, `before:2026-01-31`, `after:2026-01` and `is:untagged`
 *
 * A value that contains spaces is quoted: `tag:"to read"`. Inside quotes, two quotes in a row stand for one quote.
 */

/**
 * A part of a search text that cannot be applied, and the reason. The part is searched as plain text. But an
 * `is:untagged` that contradicts another part is ignored.
 */
export interface SearchProblem {
  part: string;
  /**
   * The reason:
   *
   * - `unknown`: there is no such operator
   * - `minus`: the operator cannot be negated
   * - `value`: the value is invalid, or the search has too many phrases or too many `under:` parts
   * - `untagged`: `is:untagged` contradicts `tag:` or `under:`
   */
  kind: 'unknown' | 'minus' | 'value' | 'untagged';
}

export type SearchFilter = Pick<
  BookmarkSearch,
  'query' | 'phrases' | 'tags' | 'without_tags' | 'untagged' | 'site' | 'created_after' | 'created_before'
> & { tag_under?: string[] | undefined };

export interface ParsedSearch {
  search: SearchFilter;
  problems: SearchProblem[];
}

/** A part of a search text as typed. A plain word has no `key`. The key of a phrase is `"`. */
interface SearchPart {
  text: string;
  isNegated: boolean;
  key?: string;
  value: string;
}

/**
 * Matches a part with an operator (`tag:name`, `#name`, `"a phrase"`), or else a plain word. The groups are the minus,
 * the operator, a quoted value, and a value without quotes. The operator of a phrase is empty. If the closing quote is
 * missing, the value continues to the end of the text.
 */
const PART = /(-?)(#|[a-z]{2,}:|(?="))(?:"((?:[^"]|"")*)(?:"|$)|(\S*))|\S+/gi;

/** Splits a search text into its parts. `https://example.org` and a `#` without a name are plain words. */
export const splitSearch = (text: string): SearchPart[] =>
  [...text.matchAll(PART)].map(([part, minus, operator, quoted, bare]) => {
    const value = (quoted?.replaceAll('""', '"') ?? bare ?? '').trim();
    const isUrl = operator !== '' && value.startsWith('//');
    if (operator === undefined || isUrl || (operator === '#' && value === ''))
      return { text: part, isNegated: false, value: part };
    return { text: part, isNegated: minus === '-', key: toKey(operator), value };
  });

/** Returns the key for an operator that `PART` has matched. */
function toKey(operator: string): string {
  if (operator === '') return '"';
  if (operator === '#') return 'tag';
  const withoutColon = operator.slice(0, -1);
  return withoutColon.toLowerCase();
}

/** Parses a search text. Ignores operators without a value, for example `tag:` while it is being typed. */
export function parseSearch(text: string): ParsedSearch {
  const words: string[] = [];
  const problems: SearchProblem[] = [];
  const search: SearchFilter = {};
  for (const part of splitSearch(text)) {
    if (part.key === undefined) {
      words.push(part.text);
      continue;
    }
    if (part.value === '') continue;
    const problem = applyOperator(search, part.key, part);
    if (problem === undefined) continue;
    words.push(part.text);
    problems.push({ part: part.text, kind: problem });
  }
  if (search.untagged && (search.tags || search.tag_under)) {
    delete search.untagged;
    problems.push({ part: 'is:untagged', kind: 'untagged' });
  }
  return { search: { query: words.join(' '), ...search }, problems };
}

/** Adds an operator to a search. Returns the kind of problem if that is impossible. */
function applyOperator(
  search: SearchFilter,
  key: string,
  { value, isNegated }: SearchPart,
): SearchProblem['kind'] | undefined {
  const apply = OPERATORS.get(isNegated ? `-${key}` : key);
  if (apply !== undefined) return apply(search, value) ? undefined : 'value';
  return OPERATORS.has(key) ? 'minus' : 'unknown';
}

/** The most phrases in a search, and the most values of `under:`. */
const MAX_VALUES = 10;

/** The longest name of a tag, in code points. */
const MAX_TAG_LENGTH = 255;

/** Adds a value to a search. Returns false if the value is invalid, or if the search has too many values. */
type Apply = (search: SearchFilter, value: string) => boolean;

/** The operators by key. The key of a negated operator begins with a minus. */
const OPERATORS: ReadonlyMap<string, Apply> = new Map<string, Apply>([
  ['tag', (search, name) => isTag(name) && append(search, 'tags', name)],
  ['-tag', (search, name) => isTag(name) && append(search, 'without_tags', name)],
  ['under', (search, name) => isTag(name) && isPath(name) && append(search, 'tag_under', name, MAX_VALUES)],
  ['"', (search, phrase) => append(search, 'phrases', phrase, MAX_VALUES)],
  ['is', (search, text) => set(search, 'untagged', text.toLowerCase() === 'untagged' ? true : undefined)],
  ['site', (search, host) => set(search, 'site', readHost(host))],
  ['before', (search, day) => set(search, 'created_before', readDay(day, 0))],
  // `created_after` finds only bookmarks that are newer than its value, so the value is 1 ms before the day begins.
  ['after', (search, day) => set(search, 'created_after', readDay(day, -1))],
]);

const isTag = (name: string): boolean => [...name].length <= MAX_TAG_LENGTH;

/** A path must not consist only of slashes. */
const isPath = (name: string): boolean => /[^/]/.test(name);

/** Appends a value to a list of the search. Returns false if the list already has `maxValues` values. */
function append(
  search: SearchFilter,
  field: 'tags' | 'without_tags' | 'tag_under' | 'phrases',
  value: string,
  maxValues = Number.POSITIVE_INFINITY,
): boolean {
  const values = search[field] ?? [];
  if (values.length >= maxValues) return false;
  search[field] = [...values, value];
  return true;
}

/** Sets a field of the search. Returns false if the value is undefined. */
function set<Field extends keyof SearchFilter>(
  search: SearchFilter,
  field: Field,
  value: SearchFilter[Field],
): boolean {
  if (value === undefined) return false;
  search[field] = value;
  return true;
}

/**
 * Returns the host if the text is a whole url or a host name. Returns undefined if the text is neither, or if the host
 * consists only of dots.
 */
const readHost = (text: string): string | undefined => {
  const host = parseWebUrl(/^https?:/i.test(text) ? text : `http://${text}`)?.hostname;
  return host !== undefined && /[^.]/.test(host) ? host : undefined;
};

/**
 * Returns the local time at which a year, a month or a day begins, plus `shiftMs`, as a timestamp of the API. The text
 * is `2026`, `2026-01` or `2026-01-31`. Returns undefined if the text is not such a date.
 */
function readDay(text: string, shiftMs: number): string | undefined {
  const match = /^([1-9]\d{3})(?:-(\d\d))?(?:-(\d\d))?$/.exec(text);
  if (match === null) return undefined;
  const [year, month, day] = [Number(match[1]), Number(match[2] ?? 1), Number(match[3] ?? 1)];
  const start = new Date(year, month - 1, day);
  if (start.getMonth() !== month - 1 || start.getDate() !== day) return undefined;
  return new Date(start.getTime() + shiftMs).toISOString();
}

const formatValue = (value: string): string =>
  /[\s"]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;

/** Formats `tag:name` as a user would type it. */
export const formatTag = (name: string): string => `tag:${formatValue(name)}`;

/** Formats `under:name` as a user would type it. */
export const formatUnder = (name: string): string => `under:${formatValue(name)}`;
