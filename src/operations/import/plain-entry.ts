import { BOUNDS, type TagName, type TagNames } from '../../domain/fields.ts';
import { foldText, isStorable } from '../../domain/text.ts';
import { parseTimestamp } from './timestamp.ts';

/**
 * The short way for an entry of an import that is plainly valid: schemas check anything, in three times the time. It
 * gives what they would, or nothing: then they have to look.
 */

/** An entry, checked. */
export interface PlainEntry {
  url: string;
  /** The url as WHATWG serialises it. */
  href: string;
  title: string;
  comment: string;
  tags: TagNames;
  created_at?: string | undefined;
  updated_at?: string | undefined;
}

const PLAIN_URL = /^https?:\/\/[\x21-\x7e]+$/;

const NO_TAGS: TagNames = { names: [], keys: [] };

/** Distinct tags that are remembered; of an import with more the others take the long way. */
const MAX_TAGS = 20_000;

/** Trimmed text that is storable and within its bound by any count. */
function readText(given: unknown, max: number): string | undefined {
  if (given === undefined) return '';
  if (typeof given !== 'string') return undefined;
  const text = given.trim();
  return text.length <= max && isStorable(text) ? text : undefined;
}

/** `null`: not plain. */
function readTime(given: unknown): string | undefined | null {
  if (given === undefined) return undefined;
  return typeof given === 'string' ? (parseTimestamp(given) ?? null) : null;
}

/** Reads the entries of one import, whose tags are few and come again and again. */
export class PlainEntries {
  readonly #tags = new Map<unknown, TagName>();

  read(raw: unknown): PlainEntry | undefined {
    if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return undefined;
    const given = raw as Record<string, unknown>;
    const { url } = given;
    if (typeof url !== 'string' || url.length > BOUNDS.url || !PLAIN_URL.test(url)) return undefined;
    const title = readText(given.title, BOUNDS.title);
    const comment = readText(given.comment, BOUNDS.comment);
    const tags = given.tags === undefined ? NO_TAGS : this.#readTags(given.tags);
    const created_at = readTime(given.created_at);
    const updated_at = readTime(given.updated_at);
    if (title === undefined || comment === undefined || tags === undefined) return undefined;
    if (created_at === null || updated_at === null) return undefined;
    const href = URL.parse(url)?.href;
    return href === undefined ? undefined : { url, href, title, comment, tags, created_at, updated_at };
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
