import { CsvError, parse } from 'csv-parse/sync';
import { type ForeignBookmark, type ForeignFile, type Format, stringsIn, UnreadableFile } from './entry.ts';
import { splitFolders } from './folders.ts';
import { CSV_COLUMNS, readCell } from './write-csv.ts';

/** Reads CSV with a header: exports of Raindrop, Pocket and Instapaper, and tables with common column names. */

type Row = Record<string, string>;

const URL_COLUMNS = ['url', 'href', 'link', 'uri'];

/** Returns the separator that is most frequent in the header. In some countries, spreadsheets write semicolons. */
function findDelimiter(header: string): string {
  const counts = [',', ';', '\t'].map((delimiter) => [delimiter, header.split(delimiter).length] as const);
  return counts.reduce((most, next) => (next[1] > most[1] ? next : most))[0];
}

/** Finds the separator of a table, and the names of its columns in lower case. */
const readHeader = (text: string): { delimiter: string; columns: string[] } => {
  const [line = ''] = text.split(/\r?\n/, 1);
  const delimiter = findDelimiter(line);
  const columns = line.split(delimiter).map((name) => name.replaceAll('"', '').trim().toLowerCase());
  return { delimiter, columns };
};

/** Whether a text begins like a table that has a column of urls. */
export const looksLikeCsv = (text: string): boolean =>
  readHeader(text).columns.some((name) => URL_COLUMNS.includes(name));

/** Parses the bookmarks of a table, in order. Throws `UnreadableFile` if the text is not valid CSV. */
export function parseCsv(text: string): ForeignFile {
  const { delimiter, columns } = readHeader(text);
  const isOwnExport = columns.join() === CSV_COLUMNS.join();
  let rows: Row[];
  try {
    rows = parse(text, {
      delimiter,
      columns: (names: string[]) => names.map((name) => name.trim().toLowerCase()),
      skip_empty_lines: true,
      relax_column_count: true,
      relax_quotes: true,
      // Only this service's own export has the apostrophes that `readCell` removes.
      ...(isOwnExport && { cast: readCell }),
    });
  } catch (error) {
    if (error instanceof CsvError) throw new UnreadableFile(`the file is not complete CSV: ${error.message}`);
    throw error;
  }
  const format = findFormat(columns);
  // Tables made from Pinboard's posts have Pinboard's column names. In these tables, `description` is the title.
  const fromRow = columns.includes('extended') ? fromPinboardRow : fromUsualRow;
  return {
    format,
    bookmarks: rows.map((row) => {
      const bookmark = fromRow(row);
      const { folders, tags } = readFoldersAndState(format, row);
      return { ...bookmark, folders, tags: [...(bookmark.tags ?? []), ...tags] };
    }),
  };
}

/** Returns the service whose export has these columns, or `csv` for any other table. */
function findFormat(columns: readonly string[]): Format {
  const has = (...names: string[]) => names.every((name) => columns.includes(name));
  if (has('folder', 'excerpt', 'highlights')) return 'raindrop';
  if (has('time_added', 'status')) return 'pocket';
  if (has('selection', 'folder', 'timestamp')) return 'instapaper';
  return 'csv';
}

const INSTAPAPER_TAGS: Readonly<Record<string, string>> = {
  Unread: 'toread',
  Archive: 'archived',
  Starred: 'favorite',
};

const POCKET_TAGS: Readonly<Record<string, string>> = { unread: 'toread', archive: 'archived' };

/** Returns the tag for a row's state, such as `toread` for unread. Instapaper has the state in the column `folder`. */
function stateTagOf(format: Format, status: string, folder: string): string | undefined {
  if (format === 'pocket') return POCKET_TAGS[status];
  return format === 'instapaper' ? INSTAPAPER_TAGS[folder] : undefined;
}

/** Returns the path of a row's folder. If the row has a state, such as unread, returns only the tag for that state. */
function readFoldersAndState(format: Format, row: Row): { folders: string[][]; tags: string[] } {
  const folder = row.folder ?? row.collection ?? '';
  const stateTag = stateTagOf(format, row.status ?? '', folder.trim());
  if (stateTag !== undefined) return { folders: [], tags: [stateTag] };
  const hasNoFolder = format === 'pocket' || (format === 'raindrop' && folder.trim() === 'Unsorted');
  if (hasNoFolder) return { folders: [], tags: [] };
  // Instapaper has no folders inside folders. In other tables, `folder` is a path, in which a backslash may escape a
  // `/` of a folder's name. If `splitFolders` refuses the path, it is split at each `/`.
  const path = format === 'instapaper' ? [folder] : (splitFolders(folder) ?? folder.split('/'));
  return { folders: [path], tags: [] };
}

/** Splits a list of tag names at commas and bars. Also reads a JSON array of names, as Instapaper writes it. */
function splitTags(text: string): string[] {
  if (text.startsWith('[')) {
    try {
      const names: unknown = JSON.parse(text);
      if (Array.isArray(names)) return stringsIn(names);
    } catch {
      // The text is not JSON: the bracket belongs to the name of a tag.
    }
  }
  return text.split(/[,|]/);
}

/** Looks at the named cells of a row, in order. Returns the first one that exists and is not empty. */
const pick = (row: Row, ...names: string[]): string =>
  names.map((name) => row[name]).find((value) => value !== undefined && value !== '') ?? '';

const fromPinboardRow = (row: Row): ForeignBookmark => ({
  url: pick(row, ...URL_COLUMNS),
  title: row.description,
  comment: [row.extended],
  tags: [...pick(row, 'tags', 'tag').split(/\s+/), ...(row.toread === 'yes' ? ['toread'] : [])],
  createdAt: row.time,
});

const fromUsualRow = (row: Row): ForeignBookmark => ({
  url: pick(row, ...URL_COLUMNS),
  title: pick(row, 'title', 'name'),
  comment: [
    pick(row, 'note', 'notes', 'comment'),
    pick(row, 'excerpt', 'description', 'selection'),
    row.highlights,
  ],
  tags: [...splitTags(pick(row, 'tags', 'labels').trim()), ...(row.favorite === 'true' ? ['favorite'] : [])],
  createdAt: pick(row, 'created', 'created_at', 'date_added', 'time_added', 'timestamp', 'date'),
  updatedAt: pick(row, 'updated_at', 'modified', 'date_modified'),
});
