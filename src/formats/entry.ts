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
  /** Turn the path of a bookmark's folder into a tag. */
  foldersAsTags: boolean;
}

/** A bookmark as another program wrote it. */
export interface ForeignBookmark {
  url: string;
  title?: unknown;
  /** Paragraphs. Values that are empty or not strings are dropped. */
  comment?: unknown[];
  tags?: readonly string[];
  /** The paths of its folders, as names from the outermost folder inwards. */
  folders?: readonly (readonly string[])[];
  /** In any form that `readDate` reads. */
  createdAt?: unknown;
  updatedAt?: unknown;
}

/** A file of another program. */
export interface ForeignFile {
  format: Format;
  bookmarks: ForeignBookmark[];
}

/** The file contains no readable bookmarks. The message says why, and what to do. */
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
  /** The number of entries whose url appeared before. Their tags and texts were added to the first entry. */
  combined: number;
  /** The folders that become tags, in file order, with their numbers of bookmarks. */
  folders: { folder: string[]; tag: string; bookmarks: number }[];
}

export type JsonObject = Record<string, unknown>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the strings of an array. Drops other values. */
export const stringsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];

/** Trims a text and removes what the service cannot store. Returns an empty text for other values. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value.replaceAll('\0', '').toWellFormed().trim() : '';

/** An entry whose tags are all names. */
type NamedEntry = Omit<ImportEntry, 'tags'> & { tags: string[] };

/**
 * Converts to milliseconds since 1970. Files use seconds, milliseconds or microseconds since 1970, or microseconds
 * since 1601.
 */
function epochToMs(value: number): number {
  // This includes dates before 1970, which are negative.
  if (value < 1e11) return value * 1_000;
  if (value < 1e14) return value;
  // More microseconds since 1970 would be after the year 2286. So a larger value is Chromium's time, since 1601.
  return value < 1e16 ? value / 1_000 : value / 1_000 - 11_644_473_600_000;
}

/** Whether a date is ambiguous, such as `01/02/2020`: some programs write the day first, others the month. */
const isUnclear = (text: string): boolean => /^-?\d[-\d./ :]*$/.test(text) && !/^\d{4}-\d\d-\d\d/.test(text);

/**
 * Converts a date to RFC 3339. A time without an offset is UTC. Returns undefined for the number 0 and for text that
 * is not a date. Returns an ambiguous date unchanged, which the service then refuses.
 */
export function readDate(value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : textOf(value);
  const isNumber = /^(-?\d{1,11}|\d{12,17})(\.\d+)?$/.test(text);
  const isLocal = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(text);
  if (!isNumber && isUnclear(text)) return text;
  const ms = isNumber ? epochToMs(Number(text)) : Date.parse(isLocal ? `${text.replace(' ', 'T')}Z` : text);
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

/** Removes empty and repeated names, ignoring case. The first spelling is kept. */
function distinct(names: readonly string[]): string[] {
  const byKey = new Map<string, string>();
  for (const name of names.map(textOf)) {
    const key = name.toLowerCase();
    if (name !== '' && !byKey.has(key)) byKey.set(key, name);
  }
  return [...byKey.values()];
}

/**
 * Turns another program's bookmarks into import entries. Entries with the same url, for example from several folders,
 * are combined into one with all tags. Otherwise the import would skip the later ones.
 */
export function collect({ format, bookmarks }: ForeignFile, { foldersAsTags }: ReadOptions): ParsedFile {
  const byUrl = new Map<string, NamedEntry>();
  const byTag = new Map<string, ParsedFile['folders'][number]>();
  const parsed: ParsedFile = { format, entries: [], leftOut: [], combined: 0, folders: [] };
  for (const bookmark of bookmarks) {
    const folders = foldersAsTags ? (bookmark.folders ?? []) : [];
    const named = folders
      .map((folder) => ({ folder: [...folder], tag: folderTag(folder) }))
      .filter(({ tag }) => tag !== '');
    const entry = toEntry({
      ...bookmark,
      tags: [...named.map(({ tag }) => tag), ...(bookmark.tags ?? [])],
    });
    const key = parseWebUrl(entry.url)?.href;
    if (key === undefined) {
      parsed.leftOut.push({ url: entry.url, title: entry.title ?? '' });
      continue;
    }
    for (const { folder, tag } of named) {
      const known = byTag.get(tag) ?? { folder, tag, bookmarks: 0 };
      byTag.set(tag, { ...known, bookmarks: known.bookmarks + 1 });
    }
    const first = byUrl.get(key);
    if (first === undefined) {
      byUrl.set(key, entry);
      continue;
    }
    combine(first, entry);
    parsed.combined += 1;
  }
  parsed.entries = [...byUrl.values()];
  parsed.folders = [...byTag.values()];
  return parsed;
}

function combine(first: NamedEntry, later: NamedEntry): void {
  first.title ||= later.title;
  if (later.comment && !first.comment?.includes(later.comment)) {
    first.comment = [first.comment, later.comment].filter(Boolean).join('\n\n');
  }
  first.tags = distinct([...first.tags, ...later.tags]);
  if (later.created_at !== undefined && later.created_at < (first.created_at ?? '~')) {
    first.created_at = later.created_at;
  }
}
