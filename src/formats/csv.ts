import { CsvError, parse } from 'csv-parse/sync';
import { type ForeignBookmark, type Format, UnreadableFile } from './entry.ts';

/** CSV with a header: Raindrop's export, and other tables with usual names of columns. */

type Row = Record<string, string>;

export interface CsvFile {
  format: Format;
  bookmarks: ForeignBookmark[];
}

const URL_COLUMNS = ['url', 'href', 'link', 'uri'];

/** Spreadsheets write semicolons in some countries. */
function findDelimiter(header: string): string {
  const counts = [',', ';', '\t'].map((delimiter) => [delimiter, header.split(delimiter).length] as const);
  return counts.reduce((most, next) => (next[1] > most[1] ? next : most))[0];
}

const readHeader = (text: string): { line: string; columns: string[] } => {
  const line = text.split(/\r?\n/, 1)[0] ?? '';
  const delimiter = findDelimiter(line);
  return {
    line,
    columns: line.split(delimiter).map((name) => name.replaceAll('"', '').trim().toLowerCase()),
  };
};

/** Whether a text begins like a table with a column of urls. */
export const looksLikeCsv = (text: string): boolean =>
  readHeader(text).columns.some((name) => URL_COLUMNS.includes(name));

/** The bookmarks of a table, in its order. Throws `UnreadableFile` where the text is no table. */
export function parseCsv(text: string, { foldersAsTags }: { foldersAsTags: boolean }): CsvFile {
  const { line, columns } = readHeader(text);
  let rows: Row[];
  try {
    rows = parse(text, {
      delimiter: findDelimiter(line),
      columns: (names: string[]) => names.map((name) => name.trim().toLowerCase()),
      skip_empty_lines: true,
      relax_column_count: true,
      relax_quotes: true,
    });
  } catch (error) {
    if (error instanceof CsvError) throw new UnreadableFile(`the file is no whole CSV: ${error.message}`);
    throw error;
  }
  const isRaindrop = ['folder', 'excerpt', 'highlights'].every((name) => columns.includes(name));
  // Tables made from Pinboard's posts keep its names of columns; the title is in `description`.
  const fromRow = columns.includes('extended') ? fromPinboardRow : fromUsualRow;
  return {
    format: isRaindrop ? 'raindrop' : 'csv',
    bookmarks: rows.map((row) => {
      const folders = foldersAsTags ? (row.folder ?? row.collection ?? '').split('/') : [];
      const named = folders.filter((folder) => !(isRaindrop && folder.trim() === 'Unsorted'));
      const bookmark = fromRow(row);
      return { ...bookmark, tags: [...named, ...(bookmark.tags ?? [])] };
    }),
  };
}

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
  tags: [...pick(row, 'tags', 'labels').split(/[,|]/), ...(row.favorite === 'true' ? ['favorite'] : [])],
  createdAt: pick(row, 'created', 'created_at', 'date_added', 'time_added', 'timestamp', 'date'),
  updatedAt: pick(row, 'updated_at', 'modified', 'date_modified'),
});
