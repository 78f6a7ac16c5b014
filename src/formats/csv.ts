import { type DateOrder, findOrder, readDate } from './dates.ts';
import {
  type ForeignBookmark,
  type ForeignFile,
  type Format,
  isSet,
  type JsonObject,
  textOf,
} from './entry.ts';
import { splitFolders } from './folders.ts';
import { openTable, readRows } from './table.ts';
import { CSV_COLUMNS, readCell } from './write-csv.ts';

/**
 * Reads bookmarks whose fields have common names: tables with a header, such as exports of Raindrop, Pocket and
 * Instapaper, and lists in JSON.
 */

/** A bookmark as a row of a table, or as an object. The names are in lower case. */
type Row = Readonly<JsonObject>;

const URL_NAMES = ['url', 'href', 'link', 'uri', 'given_url', 'resolved_url'];
const TITLE_NAMES = ['title', 'name', 'given_title', 'resolved_title'];
const NOTE_NAMES = ['note', 'notes', 'comment', 'comments'];
const TEXT_NAMES = ['excerpt', 'description', 'selection', 'extended', 'summary'];
const TAG_NAMES = ['tags', 'tag', 'labels', 'label', 'keywords', 'tag_names'];
const FOLDER_NAMES = ['folder', 'collection', 'folders', 'category'];
const CREATED_NAMES = [
  ...['created', 'created_at', 'createdat', 'date_created', 'datecreated', 'creation date', 'created on'],
  ...['date_added', 'dateadded', 'date added', 'added', 'added_at', 'addedat', 'add_date', 'time_added'],
  ...['timeadded', 'saved', 'saved_at', 'savedat', 'date_saved', 'timestamp', 'time', 'date'],
];
const UPDATED_NAMES = [
  ...['updated', 'updated_at', 'updatedat', 'modified', 'modified_at', 'modifiedat', 'date_modified'],
  ...['datemodified', 'date modified', 'last_modified', 'lastmodified', 'lastupdate', 'time_updated'],
];
const FLAG_NAMES: Readonly<Record<string, readonly string[]>> = {
  toread: ['toread', 'to_read', 'unread'],
  archived: ['archived', 'is_archived', 'isarchived'],
  favorite: ['favorite', 'favourite', 'favorited', 'favourited', 'is_starred', 'starred', 'is_favorite'],
};

/**
 * Names whose values are left out on purpose: numbers that only the other program knows, pictures, and who may see the
 * bookmark. All bookmarks in this service are private.
 */
const IGNORED_NAMES = [
  ...[
    'id',
    'index',
    'hash',
    'meta',
    'cover',
    'cursor',
    'shared',
    'private',
    'public',
    'is_public',
    'favicon',
  ],
  ...['thumbnail', 'image', 'preview_image_url', 'shorturl'],
];

const KNOWN_NAMES: ReadonlySet<string> = new Set(
  [
    ...[
      URL_NAMES,
      TITLE_NAMES,
      NOTE_NAMES,
      TEXT_NAMES,
      TAG_NAMES,
      FOLDER_NAMES,
      CREATED_NAMES,
      UPDATED_NAMES,
    ],
    ...[...Object.values(FLAG_NAMES), ['highlights', 'status'], IGNORED_NAMES],
  ].flat(),
);

/** Whether a text begins like a table that has a column of urls. */
export const looksLikeCsv = (text: string): boolean =>
  openTable(text).columns.some((name) => URL_NAMES.includes(name));

/** Parses the bookmarks of a table, in order. */
export function parseCsv(file: string): ForeignFile {
  const { separator, columns, text } = openTable(file);
  const isOwnExport = columns.join() === CSV_COLUMNS.join();
  const urlIndex = columns.findIndex((name) => URL_NAMES.includes(name));
  const rows = [...readRows(text, separator)].slice(1).map((cells) => {
    // Only this service's own export has the apostrophes that `readCell` removes.
    const texts = isOwnExport ? cells.map(readCell) : joinSplitCell(cells, urlIndex, separator);
    return Object.fromEntries(texts.map((cell, index) => [columns[index] || `column ${index + 1}`, cell]));
  });
  return readList(rows, findFormat(columns));
}

const WEB_URL = /^https?:\/\//i;

/**
 * Repairs a row whose url is further right than its column, because a program wrote a title with separators and without
 * quotes. Returns other rows unchanged.
 */
function joinSplitCell(cells: string[], urlIndex: number, separator: string): string[] {
  if (WEB_URL.test(cells[urlIndex] ?? '')) return cells;
  const shift = cells.slice(urlIndex).findIndex((cell) => WEB_URL.test(cell));
  if (shift < 0 || urlIndex === 0) return cells;
  const first = urlIndex - 1;
  const joined = cells.slice(first, urlIndex + shift).join(separator);
  return [...cells.slice(0, first), joined, ...cells.slice(urlIndex + shift)];
}

/** Reads objects whose fields have common names in any case, such as `url` and `dateAdded`. */
export const readObjects = (objects: readonly JsonObject[]): ForeignFile =>
  readList(
    objects.map((object) =>
      Object.fromEntries(Object.entries(object).map(([name, value]) => [name.toLowerCase(), value])),
    ),
    'json',
  );

/** Whether an object has a field that is usually called `url`. */
export const hasUrl = (object: JsonObject): boolean =>
  Object.keys(object).some((name) => URL_NAMES.includes(name.toLowerCase()));

function readList(rows: readonly Row[], format: Format): ForeignFile {
  const names = new Set(rows.flatMap((row) => Object.keys(row).filter((name) => !isEmpty(row[name]))));
  const order = rows.map((row) => findOrder(pick(row, CREATED_NAMES))).find(Boolean);
  return {
    format,
    unknownFields: [...names].filter((name) => !KNOWN_NAMES.has(name)),
    bookmarks: rows.map((row) => {
      // Tables made from Pinboard's posts have Pinboard's names. In these tables, `description` is the title.
      const bookmark = 'extended' in row ? fromPinboardRow(row) : fromUsualRow(row);
      const { folders, tags } = readFoldersAndState(format, row);
      return {
        ...bookmark,
        folders,
        tags: [...(bookmark.tags ?? []), ...tags],
        createdAt: readTableDate(bookmark.createdAt, order),
        updatedAt: readTableDate(bookmark.updatedAt, order),
      };
    }),
  };
}

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0);

/** Returns the service whose export has these columns, or `csv` for any other table. */
function findFormat(columns: readonly string[]): Format {
  const has = (...names: string[]) => names.every((name) => columns.includes(name));
  if (has('folder', 'excerpt', 'highlights')) return 'raindrop';
  if (has('time_added', 'status')) return 'pocket';
  if (has('selection', 'folder', 'timestamp')) return 'instapaper';
  return 'csv';
}

/** Matches the number of a day in a spreadsheet, from 1954 to 2119. Its fraction is the time of the day. */
const DAY_NUMBER = /^[2-7]\d{4}(\.\d+)?$/;

/** The number of 1 January 1970 in a spreadsheet. */
const FIRST_DAY = 25_569;
const DAY_MS = 86_400_000;

/** Reads a date of a table. Returns it unchanged if it is not readable. `order` is the order of the other dates. */
function readTableDate(value: unknown, order: DateOrder | undefined): unknown {
  const text = textOf(value);
  if (DAY_NUMBER.test(text)) return new Date(Math.round((Number(text) - FIRST_DAY) * DAY_MS)).toISOString();
  return readDate(value, order) ?? value;
}

const INSTAPAPER_TAGS: Readonly<Record<string, string>> = {
  unread: 'toread',
  archive: 'archived',
  starred: 'favorite',
  liked: 'favorite',
};

const STATUS_TAGS: Readonly<Record<string, string>> = {
  unread: 'toread',
  archive: 'archived',
  archived: 'archived',
};

/** Returns the tag for a row's state, such as `toread` for unread. Instapaper has the state in the column `folder`. */
const stateTagOf = (format: Format, status: string, folder: string): string | undefined =>
  format === 'instapaper' ? INSTAPAPER_TAGS[folder.toLowerCase()] : STATUS_TAGS[status.toLowerCase()];

/** Returns the path of a row's folder, and the tag for its state. A folder of Instapaper can be a state. */
function readFoldersAndState(format: Format, row: Row): { folders: string[][]; tags: string[] } {
  const folder = textOf(pick(row, FOLDER_NAMES));
  const stateTag = stateTagOf(format, textOf(row.status), folder);
  const tags = stateTag === undefined ? [] : [stateTag];
  const hasNoFolder =
    format === 'pocket' ||
    (format === 'raindrop' && folder === 'Unsorted') ||
    (format === 'instapaper' && stateTag !== undefined);
  if (hasNoFolder) return { folders: [], tags };
  // Instapaper has no folders inside folders. In other tables, `folder` is a path, in which a backslash may escape a
  // `/` of a folder's name. If `splitFolders` refuses the path, it is split at each `/`.
  const path = format === 'instapaper' ? [folder] : (splitFolders(folder) ?? folder.split('/'));
  return { folders: [path], tags };
}

/** Reads a list of tag names: an array, JSON text of an array as Instapaper writes it, or names after commas or bars. */
function readTags(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.map(nameOf);
  const text = textOf(value);
  if (text.startsWith('[')) {
    try {
      const names: unknown = JSON.parse(text);
      if (Array.isArray(names)) return names.map(nameOf);
    } catch {
      // The text is not JSON: the bracket belongs to the name of a tag.
    }
  }
  return text.split(/[,|]/);
}

/** Returns the name of a tag that may be an object, such as `{ name: 'a' }` or `{ label: 'a' }`. */
export const nameOf = (tag: unknown): unknown => {
  if (typeof tag !== 'object' || tag === null) return tag;
  if ('name' in tag) return tag.name;
  return 'label' in tag ? tag.label : tag;
};

/** Looks at the named fields of a row, in order. Returns the first one that exists and is not empty. */
const pick = (row: Row, names: readonly string[]): unknown =>
  names.map((name) => row[name]).find((value) => !isEmpty(value)) ?? '';

const paragraphsOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

const flagTags = (row: Row): string[] =>
  Object.entries(FLAG_NAMES)
    .filter(([, names]) => names.some((name) => isSet(row[name])))
    .map(([tag]) => tag);

const fromPinboardRow = (row: Row): ForeignBookmark => ({
  url: pick(row, URL_NAMES),
  title: row.description,
  comment: [row.extended],
  tags: [...textOf(pick(row, ['tags', 'tag'])).split(/\s+/), ...flagTags(row)],
  createdAt: row.time,
});

const fromUsualRow = (row: Row): ForeignBookmark => ({
  url: pick(row, URL_NAMES),
  title: pick(row, TITLE_NAMES),
  comment: [
    ...new Set([...NOTE_NAMES, ...TEXT_NAMES].map((name) => row[name])),
    ...paragraphsOf(row.highlights),
  ],
  tags: [...readTags(pick(row, TAG_NAMES)), ...flagTags(row)],
  createdAt: pick(row, CREATED_NAMES),
  updatedAt: pick(row, UPDATED_NAMES),
});
