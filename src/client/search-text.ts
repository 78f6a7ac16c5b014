import { BOUNDS } from '../domain/bounds.ts';
import type { BookmarkSearch, SearchAlternative } from '../domain/resources.ts';
import { parseWebUrl } from '../domain/web-url.ts';

/**
 * The search syntax of the page, the CLI, the MCP tool and this client:
 *
 * - words and `"a phrase"`; with a minus, texts that must not occur: `-word`, `-"a phrase"`
 * - `tag:name` or `#name`, and `-tag:name`
 * - `a OR b` for one of the two. `OR` joins words, phrases and tags, and binds more tightly than a space: `a OR b c`
 *   means `a` or `b`, and also `c`
 * - `under:name` for a tag and all tags below it; `a/b` is below `a`
 * - `site:example.org`, `before:2026-01-31`, `after:2026-01` and `is:untagged`
 *
 * A value that contains spaces is quoted: `tag:"to read"`. Inside quotes, two quotes in a row stand for one quote. A word
 * with a colon that is not an operator is text, for example `std::move`.
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
   * - `or`: `OR` cannot join these parts, or they are more than ten alternatives
   * - `value`: the value is invalid, or the search has too many values of this kind
   * - `untagged`: `is:untagged` contradicts `tag:` or `under:`
   */
  kind: 'unknown' | 'minus' | 'or' | 'value' | 'untagged';
}

export type SearchFilter = Pick<
  BookmarkSearch,
  | 'query'
  | 'phrases'
  | 'without_phrases'
  | 'any'
  | 'tags'
  | 'without_tags'
  | 'untagged'
  | 'site'
  | 'created_after'
  | 'created_before'
> & { tag_under?: string[] | undefined };

export interface ParsedSearch {
  search: SearchFilter;
  problems: SearchProblem[];
}

/** A part of a search text as typed. A plain word has no `key`. The key of a phrase is `"`. */
export interface SearchPart {
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

/** The minus of a negated word. `--word` and a minus alone are plain words. */
const MINUS = /^-(?=[^-])/;

/** Matches a word that may be meant as an operator: `color:red`, but not `https://example.org`, `std::move` or `Zebra:`. */
const LIKE_OPERATOR = /^-?[a-z]{2,}:(?!:|\/\/)./i;

/** Splits a search text into its parts. A `#` without a name, and a word whose operator is unknown, are plain words. */
export const splitSearch = (text: string): SearchPart[] =>
  [...text.matchAll(PART)].map(([part, minus, operator, quoted, bare]) => {
    const value = (quoted?.replaceAll('""', '"') ?? bare ?? '').trim();
    const key = operator === undefined ? undefined : toKey(operator);
    const isWord = key === undefined || !OPERATORS.has(key) || (operator === '#' && value === '');
    return isWord
      ? { text: part, isNegated: MINUS.test(part), value: part.replace(MINUS, '') }
      : { text: part, isNegated: minus === '-', key, value };
  });

/** Returns the key for an operator that `PART` has matched. */
function toKey(operator: string): string {
  if (operator === '') return '"';
  if (operator === '#') return 'tag';
  const withoutColon = operator.slice(0, -1);
  return withoutColon.toLowerCase();
}

/**
 * Splits a search text into groups of parts. A group has one part, or several that `OR` joins. An `OR` at the start of
 * the text is a word. An `OR` at the end is ignored, because the next part is still being typed.
 */
export function groupSearch(text: string): SearchPart[][] {
  const groups: SearchPart[][] = [];
  let isJoined = false;
  for (const part of splitSearch(text)) {
    const group = groups.at(-1);
    if (part.text === 'OR' && group !== undefined) {
      isJoined = true;
      continue;
    }
    if (isJoined) group?.push(part);
    else groups.push([part]);
    isJoined = false;
  }
  return groups;
}

/** Formats groups of parts as a user would type them. */
export const formatGroups = (groups: readonly (readonly SearchPart[])[]): string =>
  groups.map((group) => group.map(({ text }) => text).join(' OR ')).join(' ');

/**
 * Parses a search text. Ignores operators without a value, for example `tag:` while it is being typed. Days begin in the
 * local time zone, or as `startDay` says.
 */
export function parseSearch(text: string, startDay: StartDay = startLocalDay): ParsedSearch {
  const problems: SearchProblem[] = [];
  const search: SearchFilter = { query: '' };
  for (const typed of groupSearch(text)) {
    const group = typed.filter(({ value }) => value !== '');
    const part = formatGroups([group]);
    const kind =
      group.length > 1 ? applyOr(search, group) : group.map((one) => applyPart(search, one, startDay))[0];
    if (kind === undefined) continue;
    problems.push({ part, kind });
    if (kind !== 'unknown') addText(search, part);
  }
  if (search.untagged && (search.tags || search.tag_under)) {
    delete search.untagged;
    problems.push({ part: 'is:untagged', kind: 'untagged' });
  }
  return { search, problems };
}

/** Adds a part to a search. Returns the kind of problem if there is one. An unknown operator is added as text. */
function applyPart(
  search: SearchFilter,
  { text, key, value, isNegated }: SearchPart,
  startDay: StartDay,
): SearchProblem['kind'] | undefined {
  const apply = OPERATORS.get(`${isNegated ? '-' : ''}${key ?? ''}`);
  if (apply === undefined) return 'minus';
  if (!apply(search, value, startDay)) return 'value';
  return key === undefined && LIKE_OPERATOR.test(text) ? 'unknown' : undefined;
}

/** Adds alternatives to a search. If it has some already, each of them is combined with each new one. */
function applyOr(search: SearchFilter, group: readonly SearchPart[]): 'or' | undefined {
  const earlier = search.any ?? [{}];
  const isPossible = group.every(({ key, value, isNegated }) => !isNegated && toAlternative(key, value));
  if (!isPossible || earlier.length * group.length > BOUNDS.alternatives) return 'or';
  search.any = earlier.flatMap((one) =>
    group.map(({ key, value }) => joinAlternatives(one, toAlternative(key, value) ?? {})),
  );
  return undefined;
}

/** Returns the alternative for a word, a phrase or a tag; undefined for anything else. */
function toAlternative(key: string | undefined, value: string): SearchAlternative | undefined {
  if (key === undefined || key === '"') return { phrases: [value] };
  return key === 'tag' && isTag(value) ? { tags: [value] } : undefined;
}

function joinAlternatives(one: SearchAlternative, other: SearchAlternative): SearchAlternative {
  const phrases = [...(one.phrases ?? []), ...(other.phrases ?? [])];
  const tags = [...(one.tags ?? []), ...(other.tags ?? [])];
  return { ...(phrases.length > 0 && { phrases }), ...(tags.length > 0 && { tags }) };
}

/** Adds a value to a search. Returns false if the value is invalid, or if the search has too many values. */
type Apply = (search: SearchFilter, value: string, startDay: StartDay) => boolean;

const exclude: Apply = (search, text) => append(search, 'without_phrases', text, BOUNDS.phrases);

/** The operators by key. The key of a word is empty. The key of a negated operator begins with a minus. */
const OPERATORS: ReadonlyMap<string, Apply> = new Map<string, Apply>([
  ['', addText],
  ['-', exclude],
  ['-"', exclude],
  ['tag', (search, name) => isTag(name) && append(search, 'tags', name)],
  ['-tag', (search, name) => isTag(name) && append(search, 'without_tags', name)],
  [
    'under',
    (search, name) => isTag(name) && isPath(name) && append(search, 'tag_under', name, BOUNDS.tagPaths),
  ],
  ['"', (search, phrase) => append(search, 'phrases', phrase, BOUNDS.phrases)],
  ['is', (search, text) => set(search, 'untagged', text.toLowerCase() === 'untagged' ? true : undefined)],
  ['site', (search, host) => set(search, 'site', readHost(host))],
  ['before', (search, day, startDay) => set(search, 'created_before', readDay(day, startDay, 0))],
  // `created_after` finds only bookmarks that are newer than its value, so the value is 1 ms before the day begins.
  ['after', (search, day, startDay) => set(search, 'created_after', readDay(day, startDay, -1))],
]);

/** Says whether a search text may contain an operator of this name, in any case. */
export const isOperator = (name: string): boolean => OPERATORS.has(name.toLowerCase());

const isTag = (name: string): boolean => [...name].length <= BOUNDS.tagName;

/** A path must not consist only of slashes. */
const isPath = (name: string): boolean => /[^/]/.test(name);

/** Adds a text that must occur. If it contains white space, it is a phrase, because the query is split there. */
function addText(search: SearchFilter, text: string): true {
  if (/\s/.test(text) && append(search, 'phrases', text, BOUNDS.phrases)) return true;
  search.query = search.query ? `${search.query} ${text}` : text;
  return true;
}

/** Appends a value to a list of the search. Returns false if the list already has `maxValues` values. */
function append(
  search: SearchFilter,
  field: 'tags' | 'without_tags' | 'tag_under' | 'phrases' | 'without_phrases',
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

/** Returns the time at which a day begins. Months count from 0, as in `Date`. */
type StartDay = (year: number, month: number, day: number) => Date;

const startLocalDay: StartDay = (year, month, day) => new Date(year, month, day);

/** The days of UTC, for a reader whose time zone is not known. */
export const startUtcDay: StartDay = (year, month, day) => new Date(Date.UTC(year, month, day));

/**
 * Returns the time at which a year, a month or a day begins, plus `shiftMs`, as a timestamp of the API. The text is
 * `2026`, `2026-01` or `2026-01-31`. Returns undefined if the text is not such a date.
 */
function readDay(text: string, startDay: StartDay, shiftMs: number): string | undefined {
  const match = /^([1-9]\d{3})(?:-(\d\d))?(?:-(\d\d))?$/.exec(text);
  if (match === null) return undefined;
  const [year, month, day] = [Number(match[1]), Number(match[2] ?? 1) - 1, Number(match[3] ?? 1)];
  const inUtc = startUtcDay(year, month, day);
  if (inUtc.getUTCMonth() !== month || inUtc.getUTCDate() !== day) return undefined;
  return new Date(startDay(year, month, day).getTime() + shiftMs).toISOString();
}

const formatValue = (value: string): string =>
  /[\s"]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;

/** Formats `tag:name` as a user would type it. */
export const formatTag = (name: string): string => `tag:${formatValue(name)}`;

/** Formats `under:name` as a user would type it. */
export const formatUnder = (name: string): string => `under:${formatValue(name)}`;
