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
  /** Paragraphs; empty ones, and those that are no text, are left out. */
  comment?: unknown[];
  tags?: readonly string[];
  /** The paths of its folders, each with the names from the outermost on. */
  folders?: readonly (readonly string[])[];
  /** In any form that `readDate` understands. */
  createdAt?: unknown;
  updatedAt?: unknown;
}

/** The file holds no bookmarks that can be read; the message says why, and what to do. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile';
}

/** An entry that is no web page: a bookmarklet, a saved search, a file. */
interface LeftOut {
  url: string;
  title: string;
}

export interface ParsedFile {
  format: Format;
  entries: ImportEntry[];
  leftOut: LeftOut[];
  /** The number of entries whose url came before; their tags and texts were added to the first one. */
  combined: number;
  /** The folders that become tags, in the order of the file, with the number of their bookmarks in it. */
  folders: { folder: string[]; tag: string; bookmarks: number }[];
}

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value.replaceAll('\0', '').toWellFormed().trim() : '';

/** Bookmark files count in seconds, milliseconds or microseconds since 1970, or in microseconds since 1601. */
function epochToMs(value: number): number {
  // Before 1970 as well.
  if (value < 1e11) return value * 1_000;
  if (value < 1e14) return value;
  // Microseconds since 1970 would be beyond the year 2286, so these are Chromium's, from 1601.
  return value < 1e16 ? value / 1_000 : value / 1_000 - 11_644_473_600_000;
}

/** Months as numbers come in either order: nobody can tell which date `01/02/2020` is. */
const isUnclear = (text: string): boolean => /^-?\d[-\d./ :]*$/.test(text) && !/^\d{4}-\d\d-\d\d/.test(text);

/**
 * The date in RFC 3339; undefined where there is none, the number 0 included. Without an offset it is UTC. What could be
 * several dates stays as it is: the service says that it is none.
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

function toEntry({
  url,
  title,
  comment = [],
  tags = [],
  createdAt,
  updatedAt,
}: ForeignBookmark): ImportEntry {
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

/** Names without repetitions, whatever their case; the first spelling stays. */
function distinct(names: readonly string[]): string[] {
  const byKey = new Map<string, string>();
  for (const name of names.map(textOf)) {
    const key = name.toLowerCase();
    if (name !== '' && !byKey.has(key)) byKey.set(key, name);
  }
  return [...byKey.values()];
}

/**
 * Makes import entries of another program's bookmarks. A url that comes several times, for instance in several
 * folders, becomes one entry with all its tags: an import would skip the later ones.
 */
export function collect(
  format: Format,
  bookmarks: Iterable<ForeignBookmark>,
  { foldersAsTags }: ReadOptions,
): ParsedFile {
  const byUrl = new Map<string, ImportEntry>();
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

function combine(first: ImportEntry, later: ImportEntry): void {
  first.title ||= later.title;
  if (later.comment && !first.comment?.includes(later.comment)) {
    first.comment = [first.comment, later.comment].filter(Boolean).join('\n\n');
  }
  first.tags = distinct([...(first.tags as string[]), ...(later.tags as string[])]);
  if (later.created_at !== undefined && later.created_at < (first.created_at ?? '~')) {
    first.created_at = later.created_at;
  }
}
