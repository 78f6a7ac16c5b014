import type { ImportEntry } from '../domain/resources.ts';
import { parseWebUrl } from '../domain/web-url.ts';
import { folderTag } from './folders.ts';

/** The formats of bookmark files. */
export type Format =
  | 'bookmark-service'
  | 'netscape'
  | 'pinboard'
  | 'raindrop'
  | 'linkding'
  | 'karakeep'
  | 'pocket'
  | 'instapaper'
  | 'firefox'
  | 'chrome'
  | 'onetab'
  | 'buku'
  | 'csv';

export interface ReadOptions {
  /** Whether the path of a bookmark's folder becomes a tag. */
  foldersAsTags: boolean;
}

/** A bookmark as another program wrote it. */
export interface ForeignBookmark {
  url: string;
  title?: unknown;
  /** The paragraphs of the comment. Values that are empty or not strings are dropped. */
  comment?: unknown[];
  tags?: readonly string[];
  /** The paths of the bookmark's folders. A path is a list of names, the outermost folder first. */
  folders?: readonly (readonly string[])[];
  /** Dates in any format that `readDate` can read. */
  createdAt?: unknown;
  updatedAt?: unknown;
}

/** The bookmarks in a file of another program. */
export interface ForeignFile {
  format: Format;
  bookmarks: ForeignBookmark[];
}

/** Thrown if a file contains no readable bookmarks. The message says why, and what to do. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile';
}

/** An entry that is not a web page, for example a bookmarklet or a local file. */
interface LeftOut {
  url: string;
  title: string;
}

export interface ParsedFile {
  format: Format;
  entries: ImportEntry[];
  leftOut: LeftOut[];
  /** The number of entries that were merged into an earlier entry with the same url. */
  combined: number;
  /** The folders that become tags, in file order. `folder` is a path. `bookmarks` counts the bookmarks in it. */
  folders: { folder: string[]; tag: string; bookmarks: number }[];
}

export type JsonObject = Record<string, unknown>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the strings of an array. Drops other values. */
export const stringsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];

/** Trims a text and removes what the service cannot store. Returns an empty text if the value is not a string. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value.replaceAll('\0', '').toWellFormed().trim() : '';

/** An entry whose tags are all given by name, as strings. */
type NamedEntry = Omit<ImportEntry, 'tags'> & { tags: string[] };

/**
 * Converts a numeric time to milliseconds since 1970. Files contain seconds, milliseconds or microseconds
 * since 1970, or microseconds since 1601. The size of the number shows which of these four it is.
 */
function epochToMs(value: number): number {
  // Seconds. Dates before 1970 are negative numbers.
  if (value < 1e11) return value * 1_000;
  if (value < 1e14) return value;
  // 1e16 microseconds after 1970 is in the year 2286. So a larger value must be microseconds since 1601, from Chromium.
  return value < 1e16 ? value / 1_000 : value / 1_000 - 11_644_473_600_000;
}

/** Whether a date is ambiguous, such as `01/02/2020`: some programs write the day first, others the month. */
const isAmbiguous = (text: string): boolean =>
  /^-?\d[-\d./ :]*$/.test(text) && !/^\d{4}-\d\d-\d\d/.test(text);

/**
 * Converts a date to RFC 3339. A time without an offset is UTC. Returns undefined for the number 0, for text that is
 * not a date, and for years outside 1 to 9999. Returns an ambiguous date unchanged, so that the service refuses the
 * entry.
 */
export function readDate(value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : textOf(value);
  const isNumber = /^(-?\d{1,11}|\d{12,17})(\.\d+)?$/.test(text);
  const hasNoOffset = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(text);
  if (!isNumber && isAmbiguous(text)) return text;
  const ms = isNumber
    ? epochToMs(Number(text))
    : Date.parse(hasNoOffset ? `${text.replace(' ', 'T')}Z` : text);
  if (Number.isNaN(ms) || (isNumber && ms === 0)) return undefined;
  const date = new Date(ms);
  const year = date.getUTCFullYear();
  return year >= 1 && year <= 9_999 ? date.toISOString() : undefined;
}

function toEntry({ url, title, comment = [], tags = [], createdAt, updatedAt }: ForeignBookmark): NamedEntry {
  const updated = readDate(updatedAt);
  const created = readDate(createdAt) ?? updated;
  return {
    url: textOf(url),
    title: textOf(title),
    comment: comment.map(textOf).filter(Boolean).join('\n\n'),
    tags: distinct(tags),
    ...(created !== undefined && { created_at: created }),
    ...(updated !== undefined && { updated_at: updated }),
  };
}

/** Removes empty names, and names that equal an earlier name except for case. */
function distinct(names: readonly string[]): string[] {
  const byKey = new Map<string, string>();
  for (const name of names.map(textOf)) {
    const key = name.toLowerCase();
    if (name !== '' && !byKey.has(key)) byKey.set(key, name);
  }
  return [...byKey.values()];
}

/**
 * Turns the bookmarks of another program into entries of an import. If several bookmarks have the same url, for example
 * because a page is in several folders, they become one entry with all their tags. Otherwise the service would import
 * only the first of them.
 */
export function collect({ format, bookmarks }: ForeignFile, { foldersAsTags }: ReadOptions): ParsedFile {
  const entryByUrl = new Map<string, NamedEntry>();
  const folderByTag = new Map<string, ParsedFile['folders'][number]>();
  const parsed: ParsedFile = { format, entries: [], leftOut: [], combined: 0, folders: [] };
  for (const bookmark of bookmarks) {
    const paths = foldersAsTags ? (bookmark.folders ?? []) : [];
    const taggedFolders = paths
      .map((folder) => ({ folder: [...folder], tag: folderTag(folder) }))
      .filter(({ tag }) => tag !== '');
    const entry = toEntry({
      ...bookmark,
      tags: [...taggedFolders.map(({ tag }) => tag), ...(bookmark.tags ?? [])],
    });
    const href = parseWebUrl(entry.url)?.href;
    if (href === undefined) {
      parsed.leftOut.push({ url: entry.url, title: entry.title ?? '' });
      continue;
    }
    for (const { folder, tag } of taggedFolders) {
      const counted = folderByTag.get(tag) ?? { folder, tag, bookmarks: 0 };
      folderByTag.set(tag, { ...counted, bookmarks: counted.bookmarks + 1 });
    }
    const first = entryByUrl.get(href);
    if (first === undefined) {
      entryByUrl.set(href, entry);
      continue;
    }
    combine(first, entry);
    parsed.combined += 1;
  }
  parsed.entries = [...entryByUrl.values()];
  parsed.folders = [...folderByTag.values()];
  return parsed;
}

/**
 * Returns whether a creation time is to replace another one. An unambiguous time replaces an ambiguous one. If neither
 * is ambiguous, the earlier time replaces the later one. If both are, the service refuses the entry anyway.
 */
function isBetterTime(time: string, other: string | undefined): boolean {
  if (other === undefined) return true;
  return isAmbiguous(time) === isAmbiguous(other) ? time < other : isAmbiguous(other);
}

/** Merges a later entry into the first entry with the same url. `isBetterTime` chooses the creation time. */
function combine(first: NamedEntry, later: NamedEntry): void {
  first.title ||= later.title;
  if (later.comment && !first.comment?.includes(later.comment)) {
    first.comment = [first.comment, later.comment].filter(Boolean).join('\n\n');
  }
  first.tags = distinct([...first.tags, ...later.tags]);
  if (later.created_at !== undefined && isBetterTime(later.created_at, first.created_at)) {
    first.created_at = later.created_at;
  }
}
