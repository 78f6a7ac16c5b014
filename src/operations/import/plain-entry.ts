import { BOOKMARK_FIELDS, type Field, namesGivenTo } from '../../domain/bookmark-fields.ts';
import type { ImportedFields } from '../../domain/bookmark-schemas.ts';
import { BOUNDS, type TagName, type TagNames } from '../../domain/fields.ts';
import { foldText, isStorable } from '../../domain/text.ts';
import { parseTimestamp } from '../../domain/timestamp.ts';
import { parseWebUrl } from '../../domain/web-url.ts';

/**
 * The short way for an entry of an import that is plainly valid: schemas check anything, in three times the time. It
 * gives what they would, or nothing: then the schema decides. It knows the kinds of fields only; which fields there are is
 * described in `bookmark-fields.ts`.
 */

/** An entry, checked, and its url as WHATWG serialises it. */
export type PlainEntry = ImportedFields & { href: string };

/** What a reader gives for a value that only the schema can decide on. */
const UNCLEAR = null;

const PLAIN_URL = /^https?:\/\/[\x21-\x7e]+$/;

const NO_TAGS: TagNames = { names: [], keys: [] };

/** Distinct tags that are remembered; of an import with more the others take the long way. */
const MAX_TAGS = 20_000;

const FIELDS = namesGivenTo('import').map((name) => ({ name, field: BOOKMARK_FIELDS[name] as Field }));

const readUrl = (given: unknown, max: number) =>
  typeof given === 'string' && given.length <= max && PLAIN_URL.test(given) ? given : UNCLEAR;

/** Trimmed text that is storable and within its bound by any count. */
function readText(given: unknown, max: number): string | typeof UNCLEAR {
  if (typeof given !== 'string') return UNCLEAR;
  const text = given.trim();
  return text.length <= max && isStorable(text) ? text : UNCLEAR;
}

const readTime = (given: unknown) =>
  typeof given === 'string' ? (parseTimestamp(given) ?? UNCLEAR) : UNCLEAR;

/** Reads the entries of one import, whose tags are few and come again and again. */
export class PlainEntries {
  readonly #tags = new Map<unknown, TagName>();

  read(raw: unknown): PlainEntry | undefined {
    if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return undefined;
    const entry: Record<string, unknown> = {};
    for (const { name, field } of FIELDS) {
      const value = this.#readField((raw as Record<string, unknown>)[name], field);
      if (value === UNCLEAR) return undefined;
      entry[name] = value;
    }
    const href = parseWebUrl(entry.url as string)?.href;
    if (href === undefined) return undefined;
    entry.href = href;
    return entry as unknown as PlainEntry;
  }

  #readField(given: unknown, field: Field): unknown {
    if (given === undefined) {
      if (field.kind === 'tags') return NO_TAGS;
      if (field.kind === 'url') return UNCLEAR;
      return field.kind === 'time' ? undefined : field.default;
    }
    switch (field.kind) {
      case 'url':
        return readUrl(given, field.max);
      case 'text':
        return readText(given, field.max);
      case 'tags':
        return this.#readTags(given) ?? UNCLEAR;
      case 'time':
        return readTime(given);
      case 'flag':
        return typeof given === 'boolean' ? given : UNCLEAR;
    }
  }

  #readTags(given: unknown): TagNames | undefined {
    if (!Array.isArray(given) || given.length > BOUNDS.tagsPerBookmark) return undefined;
    const names: string[] = [];
    const keys: string[] = [];
    for (const entry of given) {
      const tag = this.#readTag(entry?.name ?? entry);
      if (tag === undefined) return undefined;
      if (keys.includes(tag.key)) continue;
      names.push(tag.name);
      keys.push(tag.key);
    }
    return { names, keys };
  }

  #readTag(raw: unknown): TagName | undefined {
    const known = this.#tags.get(raw);
    if (known !== undefined) return known;
    if (typeof raw !== 'string' || this.#tags.size >= MAX_TAGS) return undefined;
    const name = raw.trim();
    // Long names are normalised with care elsewhere.
    if (name.length === 0 || name.length > BOUNDS.tagName || !isStorable(name)) return undefined;
    const normal = name.normalize('NFC');
    if (normal.length > BOUNDS.tagName) return undefined;
    const tag = { name: normal, key: foldText(normal) };
    this.#tags.set(raw, tag);
    return tag;
  }
}
