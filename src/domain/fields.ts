import { z } from 'zod';
import { BOUNDS } from './bounds.ts';
import type { BookmarkVersion } from './resources.ts';
import { cleanTagName, foldText, searchTextLine, textRule, withoutEndSlashes } from './text.ts';
import { parseTimestamp } from './timestamp.ts';
import { describeIssue } from './validation.ts';
import { findUrlFault, MAX_HOST_LENGTH, parseWebUrl } from './web-url.ts';

export { BOUNDS } from './bounds.ts';

/** The largest id and cursor. JavaScript represents every integer up to this one exactly. */
export const MAX_ID = Number.MAX_SAFE_INTEGER;

/**
 * Makes the schema of a text. The text has `min` to `max` code points after trimming, and no characters that Postgres
 * cannot store (docs/contract.md, decision 5).
 */
export function text({ max, min = 0 }: { max: number; min?: number }) {
  return z
    .string()
    .trim()
    .check((ctx) => {
      const rule = textRule(ctx.value, max, min);
      if (rule !== undefined) ctx.issues.push({ code: 'custom', message: rule, input: ctx.value });
    })
    .meta({ maxLength: max, ...(min > 0 && { minLength: min }) });
}

/**
 * Makes the schema of an absolute http or https url. The url is trimmed, and otherwise stored as sent
 * (docs/contract.md, decision 10).
 */
export const url = ({ max }: { max: number }) =>
  text({ max, min: 1 })
    .check((ctx) => {
      if (ctx.issues.length > 0) return;
      const rule = findUrlFault(ctx.value);
      if (rule !== undefined) ctx.issues.push({ code: 'custom', message: rule, input: ctx.value });
    })
    // No `format: uri` is set: a gateway that checks the format would refuse urls with blanks or non-ASCII letters.
    .meta({ maxLength: max });

/** A time from a client, converted to UTC with milliseconds (docs/contract.md, decision 18). */
export const timestamp = z
  .string()
  .transform((given, ctx) => {
    const parsed = parseTimestamp(given);
    if (parsed !== undefined) return parsed;
    ctx.issues.push({
      code: 'custom',
      message: 'expected an ISO 8601 time of the years 0001 to 9999',
      input: given,
    });
    return z.NEVER;
  })
  .meta({ format: 'date-time' });

/** A search query. A blank query matches everything (docs/contract.md, decision 13). */
export const searchQuery = text({ max: BOUNDS.query }).meta({
  maxLength: BOUNDS.query,
  examples: ['postgres sync'],
});

/** Phrases of a search, normalized. */
export const searchPhrases = z
  .array(text({ max: BOUNDS.query, min: 1 }).transform(searchTextLine), 'expected an array')
  .max(BOUNDS.phrases, `at most ${BOUNDS.phrases} phrases`)
  .meta({ maxItems: BOUNDS.phrases, examples: [['to be or not']] });

const TAG_NAME_LENGTH = { minLength: 1, maxLength: BOUNDS.tagName };

export const tagName = z
  .string()
  .transform(cleanTagName)
  .pipe(text({ max: BOUNDS.tagName, min: 1 }))
  .meta({ ...TAG_NAME_LENGTH, examples: ['reading'] });

/** A tag's name and its normalized form. */
export interface TagName {
  name: string;
  key: string;
}

/** Distinct tag names and their normalized forms, in two arrays in the same order, as the SQL functions take them. */
export interface TagNames {
  names: string[];
  keys: string[];
}

/**
 * Reads tag names. If names differ only in case, keeps the first of them (docs/contract.md, decision 12). Stops at the
 * first fault, because a body may have millions of faults, and their errors would exhaust the memory.
 */
function readTagNames(
  tags: readonly unknown[],
  ctx: z.RefinementCtx,
  nameOf: (entry: unknown) => unknown,
): TagNames {
  const nameByKey = new Map<string, string>();
  const checkedNames = new Set<unknown>();
  for (const [index, entry] of tags.entries()) {
    const raw = nameOf(entry);
    // A name that was sent twice is checked only once.
    if (checkedNames.has(raw)) continue;
    checkedNames.add(raw);
    const name = typeof raw === 'string' ? cleanTagName(raw) : undefined;
    const rule = name === undefined ? 'expected a string' : textRule(name, BOUNDS.tagName, 1);
    if (name === undefined || rule !== undefined) {
      ctx.issues.push({ code: 'custom', message: rule!, path: [index], input: raw });
      return z.NEVER;
    }
    const key = foldText(name);
    if (!nameByKey.has(key)) nameByKey.set(key, name);
    if (nameByKey.size > BOUNDS.tagsPerBookmark) {
      ctx.issues.push({ code: 'custom', message: `at most ${BOUNDS.tagsPerBookmark} tags`, input: tags });
      return z.NEVER;
    }
  }
  return { names: [...nameByKey.values()], keys: [...nameByKey.keys()] };
}

/**
 * Makes the schema of one bookmark's tag names, at most 100 (docs/contract.md, decision 9). `nameOf` returns the name
 * of an entry. `items` is the JSON Schema of an entry.
 */
const tagNamesBy = <Entry>(nameOf: (entry: unknown) => unknown, items: object) =>
  z
    .custom<Entry[]>(Array.isArray, 'expected an array')
    .transform((given, ctx) => readTagNames(given, ctx, nameOf))
    .meta({ type: 'array', items, maxItems: BOUNDS.tagsPerBookmark });

const TAG_NAME = { type: 'string', ...TAG_NAME_LENGTH };

export const tagNames = tagNamesBy<string>((entry) => entry, TAG_NAME);

/**
 * One tag name or several, normalized, without trailing slashes. In a search, each also stands for all tags below it.
 */
export const tagPaths = z
  .custom<string | string[]>(
    (given) => typeof given === 'string' || Array.isArray(given),
    'expected a string or an array',
  )
  .transform((given, ctx) => {
    const fault = (message: string, path: number[] = []) => {
      ctx.issues.push({ code: 'custom', message, path, input: given });
      return z.NEVER;
    };
    const paths: unknown[] = typeof given === 'string' ? [given] : given;
    if (paths.length > BOUNDS.tagPaths) return fault(`at most ${BOUNDS.tagPaths} tags`);
    const keys = new Set<string>();
    for (const [index, raw] of paths.entries()) {
      const path = typeof given === 'string' ? [] : [index];
      if (typeof raw !== 'string') return fault('expected a string', path);
      const name = cleanTagName(raw);
      const rule = textRule(name, BOUNDS.tagName, 1);
      if (rule !== undefined) return fault(rule, path);
      const key = withoutEndSlashes(foldText(name));
      if (key === '') return fault('may not be empty', path);
      keys.add(key);
    }
    return [...keys];
  })
  .meta({
    anyOf: [TAG_NAME, { type: 'array', items: TAG_NAME, maxItems: BOUNDS.tagPaths }],
    examples: ['Work', ['Work', 'Dev/Databases']],
  });

const nameOfImportedTag = (tag: unknown): unknown =>
  typeof tag === 'object' && tag !== null && !Array.isArray(tag) && 'name' in tag ? tag.name : tag;

/** The tag names of an imported bookmark. A tag may also be an object with a `name`, as in an export. */
export const importedTagNames = tagNamesBy<string | { name: string }>(nameOfImportedTag, {
  anyOf: [TAG_NAME, { type: 'object', required: ['name'], properties: { name: TAG_NAME } }],
});

/**
 * Matches a text that contains what no host contains: a separator of a url's parts, white space, or a port at the end.
 */
const NO_HOST = /[/?#@\\\s]|:\d*$/;

/**
 * A host name. It is converted like the host of a url (docs/contract.md, decision 10), and a trailing dot is removed.
 */
export const site = text({ max: MAX_HOST_LENGTH, min: 1 })
  .transform((given, ctx) => {
    const host = NO_HOST.test(given) ? undefined : parseWebUrl(`http://${given}/`)?.hostname;
    // A host that consists only of dots is refused, because it would match every bookmark.
    if (host !== undefined && /[^.]/.test(host)) return host.replace(/\.$/, '');
    ctx.issues.push({ code: 'custom', message: 'expected a host name', input: given });
    return z.NEVER;
  })
  .meta({ minLength: 1, maxLength: MAX_HOST_LENGTH, examples: ['example.org'] });

/** The id of a bookmark or tag (docs/contract.md, decision 6). */
export const id = z
  .int({
    error: (issue) => (issue.input === undefined ? 'is required' : `expected an integer from 1 to ${MAX_ID}`),
  })
  .min(1, `expected an integer from 1 to ${MAX_ID}`)
  .meta({ examples: [42] });

/** Reads distinct ids in the given order. Stops at the first fault, like `readTagNames`. */
function readIds(given: readonly unknown[], ctx: z.RefinementCtx): number[] {
  const fault = (message: string, path: number[] = []) => {
    ctx.issues.push({ code: 'custom', message, path, input: given });
    return z.NEVER;
  };
  if (given.length === 0) return fault('may not be empty');
  if (given.length > BOUNDS.idsPerRequest) return fault(`at most ${BOUNDS.idsPerRequest} ids`);
  const wrongIndex = given.findIndex((each) => !Number.isSafeInteger(each) || (each as number) < 1);
  if (wrongIndex >= 0) return fault(`expected an integer from 1 to ${MAX_ID}`, [wrongIndex]);
  return [...new Set(given as number[])];
}

/** The ids of several bookmarks. Duplicates count once. */
export const ids = z
  .custom<number[]>(Array.isArray, {
    error: (issue) => (issue.input === undefined ? 'is required' : 'expected an array'),
  })
  .transform(readIds)
  .meta({
    type: 'array',
    items: { type: 'integer', format: 'int64', minimum: 1, maximum: MAX_ID },
    minItems: 1,
    maxItems: BOUNDS.idsPerRequest,
    examples: [[42, 43]],
  });

/**
 * The ids of bookmarks. `times`, if present, has the `updated_at` of each bookmark as the client last saw it, in the
 * order of `ids`.
 */
export interface BookmarkVersions {
  ids: number[];
  times?: string[] | undefined;
}

const bookmarkVersion = z.object({ id, if_updated_at: timestamp });

/** Reads ids and times in the given order. Stops at the first fault, like `readTagNames`. */
function readVersions(given: readonly unknown[], ctx: z.RefinementCtx): BookmarkVersions {
  const fault = (message: string, path: PropertyKey[] = []) => {
    ctx.issues.push({ code: 'custom', message, path, input: given });
    return z.NEVER;
  };
  if (given.length === 0) return fault('may not be empty');
  if (given.length > BOUNDS.idsPerRequest) return fault(`at most ${BOUNDS.idsPerRequest} items`);
  const timeById = new Map<number, string>();
  for (const [index, item] of given.entries()) {
    const { error, data } = bookmarkVersion.safeParse(item, { error: describeIssue });
    if (error !== undefined) return fault(error.issues[0]!.message, [index, ...error.issues[0]!.path]);
    const knownTime = timeById.get(data.id) ?? data.if_updated_at;
    if (knownTime !== data.if_updated_at)
      return fault('this id is listed with two different times', [index, 'if_updated_at']);
    timeById.set(data.id, knownTime);
  }
  return { ids: [...timeById.keys()], times: [...timeById.values()] };
}

/** Several bookmarks, each with its `updated_at` as the client last saw it. Duplicates count once. */
export const bookmarkVersions = z
  .custom<BookmarkVersion[]>(Array.isArray, 'expected an array')
  .transform(readVersions)
  .meta({
    type: 'array',
    items: {
      type: 'object',
      required: ['id', 'if_updated_at'],
      properties: {
        id: { type: 'integer', format: 'int64', minimum: 1, maximum: MAX_ID },
        if_updated_at: { type: 'string', format: 'date-time' },
      },
    },
    minItems: 1,
    maxItems: BOUNDS.idsPerRequest,
    examples: [[{ id: 42, if_updated_at: '2026-01-02T03:04:05.678Z' }]],
  });

/** Makes the schema of an integer from `min` to `max`. */
export const integerWithin = (min: number, max: number) => {
  const rule = `expected an integer from ${min} to ${max}`;
  return z.int(rule).min(min, rule).max(max, rule);
};

/** Makes the schema of an integer from `min` to `max`. If the field is absent, its value is `byDefault`. */
export const integer = (min: number, max: number, byDefault: number) =>
  integerWithin(min, max).default(byDefault);
