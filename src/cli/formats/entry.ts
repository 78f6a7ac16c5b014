import type { ImportEntry } from '../../domain/resources.ts';

/** What a file of bookmarks was found to be. */
export type Format = 'bookmark-service' | 'netscape' | 'pinboard' | 'raindrop' | 'linkding' | 'csv';

/** A bookmark as another program wrote it down. */
export interface ForeignBookmark {
  url: string;
  title?: unknown;
  /** Paragraphs; those that are empty or no text do not count. */
  comment?: unknown[];
  tags?: readonly string[];
  /** In whatever form the file has it. */
  createdAt?: unknown;
  updatedAt?: unknown;
}

/** The file holds no bookmarks that can be read; the message says why, and what to do. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile';
}

/** An entry that is no web page: a bookmarklet, a folder of searches, a file. */
export interface LeftOut {
  url: string;
  title: string;
}

export interface ParsedFile {
  format: Format;
  entries: ImportEntry[];
  leftOut: LeftOut[];
  /** Entries whose url came before: their tags and texts went to the first. */
  combined: number;
}

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value.replaceAll('\0', '').toWellFormed().trim() : '';

/** Numbers as bookmark files have them: seconds, milliseconds or microseconds since 1970, or microseconds since 1601. */
function epochToMs(value: number): number {
  if (value < 1e11) return value * 1_000;
  if (value < 1e14) return value;
  // Above this the years would be beyond 2286: what remains is Chromium's own count from 1601.
  return value < 1e16 ? value / 1_000 : value / 1_000 - 11_644_473_600_000;
}

/** A date as RFC 3339, whatever it was; undefined where there is none, 0 included. Without an offset it is UTC. */
export function readDate(value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : textOf(value);
  const isNumber = /^\d{1,17}(\.\d+)?$/.test(text);
  const isLocal = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(text);
  const ms = isNumber ? epochToMs(Number(text)) : Date.parse(isLocal ? `${text.replace(' ', 'T')}Z` : text);
  if (Number.isNaN(ms) || ms === 0) return undefined;
  const date = new Date(ms);
  const year = date.getUTCFullYear();
  return year >= 1 && year <= 9_999 ? date.toISOString() : undefined;
}

const isWebPage = (url: string): boolean => /^https?:$/.test(URL.parse(url)?.protocol ?? '');

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

/** Names that are the same whatever their case count once, in the case first given. */
function distinct(names: readonly string[]): string[] {
  const byKey = new Map<string, string>();
  for (const name of names.map(textOf)) {
    const key = name.toLowerCase();
    if (name !== '' && !byKey.has(key)) byKey.set(key, name);
  }
  return [...byKey.values()];
}

/**
 * Entries of an import from another program's bookmarks. One that is there several times, in several folders perhaps,
 * becomes one with all their tags: an import would skip the later ones.
 */
export function collect(format: Format, bookmarks: Iterable<ForeignBookmark>): ParsedFile {
  const byUrl = new Map<string, ImportEntry>();
  const parsed: ParsedFile = { format, entries: [], leftOut: [], combined: 0 };
  for (const bookmark of bookmarks) {
    const entry = toEntry(bookmark);
    if (!isWebPage(entry.url)) {
      parsed.leftOut.push({ url: entry.url, title: entry.title ?? '' });
      continue;
    }
    const key = new URL(entry.url).href;
    const first = byUrl.get(key);
    if (first === undefined) {
      byUrl.set(key, entry);
      continue;
    }
    combine(first, entry);
    parsed.combined += 1;
  }
  parsed.entries = [...byUrl.values()];
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
