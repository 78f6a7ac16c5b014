import type { ImportEntry } from '../domain/resources.ts';

/** What the readers of bookmark files have in common: the bookmarks of other programs, and what is reported of a file. */

/** The formats of bookmark files. */
export type Format =
  | 'bookmark-service'
  | 'netscape'
  | 'pinboard'
  | 'raindrop'
  | 'linkding'
  | 'linkwarden'
  | 'karakeep'
  | 'pocket'
  | 'instapaper'
  | 'omnivore'
  | 'wallabag'
  | 'firefox'
  | 'chrome'
  | 'onetab'
  | 'buku'
  | 'csv'
  | 'json';

export interface ReadOptions {
  /** Whether the path of a bookmark's folder becomes a tag. */
  foldersAsTags: boolean;
}

/**
 * Why a reader leaves out an entry:
 *
 * - `no-url`: the entry has no url, for example because it is a note.
 * - `not-web`: the url is not http or https, for example because it is a bookmarklet or a local file.
 * - `bad-url`: the url is http or https, but no program can open it.
 * - `trash`: the entry is in the browser's trash.
 * - `truncated`: the file ends inside the entry.
 * - `no-entry`: a value in a list of bookmarks is not an object.
 */
export type Omission = 'no-url' | 'not-web' | 'bad-url' | 'trash' | 'truncated' | 'no-entry';

/** An entry that is not imported. */
export interface LeftOut {
  url: string;
  title: string;
  reason: Omission;
}

/**
 * What a reader changes in an entry that is imported:
 *
 * - `title-shortened`: the title was too long. The rest of it is in the comment.
 * - `comment-shortened`, `tag-shortened`: the text was too long, and its end is missing.
 * - `folder-shortened`: the path of a folder was too long. Its outermost folders, or the end of its name, are missing.
 * - `tags-dropped`: there were too many tags. `text` lists the missing ones.
 * - `date-dropped`: the date is unreadable or ambiguous.
 * - `value-dropped`: the title, a part of the comment or a tag is not a text.
 * - `bytes-replaced`: the file's encoding is damaged here. U+FFFD is in the place of unreadable bytes.
 */
export type ChangeKind =
  | 'title-shortened'
  | 'comment-shortened'
  | 'tag-shortened'
  | 'folder-shortened'
  | 'tags-dropped'
  | 'date-dropped'
  | 'value-dropped'
  | 'bytes-replaced';

/** A change to an entry. `text` is the beginning of what the file contains. */
export interface Change {
  url: string;
  change: ChangeKind;
  text: string;
}

/** A bookmark as another program wrote it. Each value may have any type, because files may contain anything. */
export interface ForeignBookmark {
  url: unknown;
  title?: unknown;
  /** The paragraphs of the comment. */
  comment?: readonly unknown[];
  tags?: readonly unknown[];
  /** The paths of the bookmark's folders. A path is a list of names, the outermost folder first. */
  folders?: readonly (readonly string[])[];
  /** Dates in any format that `readDate` can read. */
  createdAt?: unknown;
  updatedAt?: unknown;
  /** Set if the bookmark must not be imported. */
  omission?: Omission;
}

/** The bookmarks in a file of another program. */
export interface ForeignFile {
  format: Format;
  bookmarks: ForeignBookmark[];
  /** The columns or fields that the reader does not know, and that are not empty. */
  unknownFields?: string[];
}

/** Thrown if a file contains no readable bookmarks. The message says why, and what to do. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile';
}

/** Every link of the file is in `entries`, counted in `combined`, or in `leftOut`. */
export interface ParsedFile {
  format: Format;
  entries: ImportEntry[];
  leftOut: LeftOut[];
  /** The number of entries that were merged into an earlier entry with the same url. */
  combined: number;
  /** What differs from the file in entries that are imported. */
  changes: Change[];
  /** The columns or fields that were not read. */
  unknownFields: string[];
  /** The folders that become tags, in file order. `folder` is a path. `bookmarks` counts the bookmarks in it. */
  folders: { folder: string[]; tag: string; bookmarks: number }[];
}

export type JsonObject = Record<string, unknown>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the objects of an array. Returns none for any other value. */
export const objectsIn = (value: unknown): JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

/** Returns the values of an array. Returns none for any other value. */
export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/**
 * Trims a text and removes what the service cannot store. Writes a number as text. Returns an empty text for any other
 * value.
 */
export function textOf(value: unknown): string {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' ? value.replaceAll('\0', '').toWellFormed().trim() : '';
}

/** Whether a program has set a flag. Programs write `true`, `1`, `yes` and others, and spreadsheets write `TRUE`. */
export const isSet = (value: unknown): boolean =>
  value === true || /^(true|yes|y|x|1|wahr|vrai)$/i.test(textOf(value));
