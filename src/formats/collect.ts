import { BOOKMARK_FIELDS } from '../domain/bookmark-fields.ts';
import { BOUNDS } from '../domain/bounds.ts';
import type { ImportEntry } from '../domain/resources.ts';
import { cleanTagName, cutText, foldText, textRule } from '../domain/text.ts';
import { parseWebUrl } from '../domain/web-url.ts';
import { isNoDate, readDate } from './dates.ts';
import {
  type Change,
  type ChangeKind,
  type ForeignBookmark,
  type ForeignFile,
  type Omission,
  type ParsedFile,
  type ReadOptions,
  textOf,
} from './entry.ts';
import { joinFolders } from './folders.ts';

/**
 * Turns the bookmarks of another program into entries of an import. The service is strict, and this module is lenient:
 * it changes what the service would refuse, and reports each change.
 */

/** An entry whose tags are all given by name, as strings. */
type NamedEntry = Omit<ImportEntry, 'tags'> & { title: string; comment: string; tags: string[] };

/** Reports a change to the entry that is being read. */
type Note = (change: ChangeKind, text: string) => void;

/** The maximum length of a text in a report, in code points. */
const REPORTED_LENGTH = 200;

/**
 * Collects the bookmarks of a file. If several bookmarks have the same url, for example because a page is in several
 * folders, they become one entry with all their tags. Otherwise the service would import only the first of them.
 */
export function collect(
  { format, bookmarks, unknownFields = [] }: ForeignFile,
  { foldersAsTags }: ReadOptions,
): ParsedFile {
  const entryByUrl = new Map<string, NamedEntry>();
  const folderByTag = new Map<string, ParsedFile['folders'][number]>();
  const parsed: ParsedFile = {
    ...{ format, entries: [], leftOut: [], combined: 0, changes: [], unknownFields, folders: [] },
  };
  for (const bookmark of bookmarks) {
    const url = cleanUrl(bookmark.url);
    const href = parseWebUrl(url)?.href;
    const omission = bookmark.omission ?? (href === undefined ? findOmission(url) : undefined);
    if (href === undefined || omission !== undefined) {
      parsed.leftOut.push({ url, title: textOf(bookmark.title), reason: omission ?? 'bad-url' });
      continue;
    }
    const note = noteIn(parsed.changes, url);
    const folders = foldersAsTags ? readFolders(bookmark.folders ?? [], note) : [];
    for (const { folder, tag } of folders) {
      const counted = folderByTag.get(tag) ?? { folder, tag, bookmarks: 0 };
      folderByTag.set(tag, { ...counted, bookmarks: counted.bookmarks + 1 });
    }
    const entry = toEntry(
      url,
      bookmark,
      folders.map(({ tag }) => tag),
      note,
    );
    const first = entryByUrl.get(href);
    if (first === undefined) {
      entryByUrl.set(href, entry);
      continue;
    }
    combine(first, entry);
    parsed.combined += 1;
  }
  for (const entry of entryByUrl.values()) fitEntry(entry, noteIn(parsed.changes, entry.url));
  parsed.entries = [...entryByUrl.values()];
  parsed.folders = [...folderByTag.values()];
  return parsed;
}

const noteIn =
  (changes: Change[], url: string): Note =>
  (change, text) =>
    changes.push({ url: cutText(url, REPORTED_LENGTH), change, text: cutText(text, REPORTED_LENGTH) });

/** Removes tabs and line breaks from a url, as browsers do. */
const cleanUrl = (value: unknown): string => textOf(value).replace(/[\t\r\n]/g, '');

function findOmission(url: string): Omission {
  if (url === '') return 'no-url';
  return /^https?:/i.test(url) ? 'bad-url' : 'not-web';
}

function readFolders(paths: readonly (readonly string[])[], note: Note): { folder: string[]; tag: string }[] {
  return paths.flatMap((path) => {
    const folder = path.map(textOf).filter(Boolean);
    const tag = folderTag(folder);
    if (tag === '') return [];
    if (tag !== joinFolders(folder)) note('folder-shortened', joinFolders(folder));
    return [{ folder, tag }];
  });
}

/**
 * Returns the tag for a path of folder names. If the tag would be too long, leaves out the outermost folders. If the
 * name of the innermost folder alone is too long, shortens it.
 */
function folderTag(folder: readonly string[]): string {
  const names = [...folder];
  while (names.length > 1 && excessOf(names) > 0) names.shift();
  if (excessOf(names) <= 0) return joinFolders(names);
  // Normalization can lengthen the text, so it comes before the exact cut.
  const name = cutText(names.join(''), BOUNDS.tagName).normalize('NFC');
  // One more character is cut for the ellipsis.
  return joinFolders([cutText(name, [...name].length - excessOf([name]) - 1)]);
}

/** Returns by how many characters the tag for a path is too long. */
const excessOf = (names: readonly string[]): number =>
  [...cleanTagName(joinFolders(names))].length - BOUNDS.tagName;

function toEntry(url: string, bookmark: ForeignBookmark, folderTags: string[], note: Note): NamedEntry {
  const { title, comment = [], tags = [], createdAt, updatedAt } = bookmark;
  for (const value of [title, ...comment, ...tags]) {
    if (typeof value === 'object' && value !== null) note('value-dropped', JSON.stringify(value));
  }
  for (const value of [createdAt, updatedAt]) {
    const isText = typeof value !== 'object';
    if (!isText && value !== null) note('date-dropped', JSON.stringify(value));
    if (isText && !isNoDate(value) && readDate(value) === undefined) note('date-dropped', textOf(value));
  }
  const updated = readDate(updatedAt);
  const created = readDate(createdAt) ?? updated;
  return {
    url,
    title: textOf(title),
    comment: comment.map(textOf).filter(Boolean).join('\n\n'),
    tags: distinct([...folderTags, ...tags.map((tag) => fitTag(textOf(tag), note))]),
    ...(created !== undefined && { created_at: created }),
    ...(updated !== undefined && { updated_at: updated }),
  };
}

/** Shortens the name of a tag that is too long. */
function fitTag(name: string, note: Note): string {
  const clean = cleanTagName(name);
  if (textRule(clean, BOUNDS.tagName, 0) === undefined) return name;
  note('tag-shortened', name);
  // Normalization can lengthen the text, so the result is cut again.
  return cutText(cutText(clean, BOUNDS.tagName - 1).normalize('NFC'), BOUNDS.tagName - 1);
}

/** Removes empty names, and names that the service would treat as the same tag as an earlier one. */
function distinct(names: readonly string[]): string[] {
  const byKey = new Map<string, string>();
  for (const name of names) {
    const key = foldText(name);
    if (name !== '' && !byKey.has(key)) byKey.set(key, name);
  }
  return [...byKey.values()];
}

/** Merges a later entry into the first entry with the same url. The earliest creation and the latest edit count. */
function combine(first: NamedEntry, later: NamedEntry): void {
  first.title ||= later.title;
  if (later.comment && !first.comment.includes(later.comment)) {
    first.comment = [first.comment, later.comment].filter(Boolean).join('\n\n');
  }
  first.tags = distinct([...first.tags, ...later.tags]);
  if (later.created_at !== undefined && later.created_at < (first.created_at ?? '~')) {
    first.created_at = later.created_at;
  }
  if (later.updated_at !== undefined && later.updated_at > (first.updated_at ?? '')) {
    first.updated_at = later.updated_at;
  }
}

/** Shortens the texts and the list of tags of an entry to what the service takes. */
function fitEntry(entry: NamedEntry, note: Note): void {
  const { title, comment } = BOOKMARK_FIELDS;
  if (textRule(entry.title, title.max, 0) !== undefined) {
    note('title-shortened', entry.title);
    const start = cutText(entry.title, title.max - 1);
    const rest = `…${entry.title.slice(start.length - 1)}`;
    entry.title = start;
    entry.comment = [rest, entry.comment].filter(Boolean).join('\n\n');
  }
  if (textRule(entry.comment, comment.max, 0) !== undefined) {
    note('comment-shortened', entry.comment);
    entry.comment = cutText(entry.comment, comment.max - 1);
  }
  if (entry.tags.length > BOUNDS.tagsPerBookmark) {
    note('tags-dropped', entry.tags.slice(BOUNDS.tagsPerBookmark).join(', '));
    entry.tags = entry.tags.slice(0, BOUNDS.tagsPerBookmark);
  }
}

/** Reports the entries in which unreadable bytes were replaced. */
export function reportReplacedBytes({ entries, changes }: ParsedFile): void {
  for (const { url, title = '', comment = '', tags = [] } of entries) {
    const damaged = [url, title, comment, ...tags.map(String)].find((text) => text.includes('\ufffd'));
    if (damaged !== undefined) noteIn(changes, url)('bytes-replaced', damaged);
  }
}
