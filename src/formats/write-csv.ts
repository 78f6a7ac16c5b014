import type { Bookmark } from '../domain/resources.ts';

/**
 * Writes CSV (RFC 4180). The columns are `updated_at` and those of Raindrop, which many importers know. Commas
 * separate tags. If a tag contains a comma or a bar, or begins with a bracket, the cell of the tags is a JSON array.
 */

/**
 * Matches the places of a text where a spreadsheet could find a formula: at the beginning, and after a character at
 * which some spreadsheets split cells and rows, whatever quotes are around it. An apostrophe in front of the formula
 * prevents that. The pattern also matches formulas that already have apostrophes, so that reading removes exactly the
 * added one. The quotes are those that a spreadsheet could take for the beginning of a quoted cell.
 */
const FORMULA = /(?<=^|[;\t\r\n])(?<guards>'*)(?="*[=+\-@＝＋－＠])/g;

/** Matches what `FORMULA` matches, if it has an apostrophe. */
const GUARDED_FORMULA = /(?<=^|[;\t\r\n])'(?<guards>'*)(?="*[=+\-@＝＋－＠])/g;

function formatCell(text: string): string {
  const safe = text.replace(FORMULA, "'$<guards>");
  const needsQuotes = /[",;\t\r\n]|^\s|\s$/.test(safe);
  return needsQuotes ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Turns a cell of the parsed CSV back into the text that `writeCsvRow` was given. */
export const readCell = (cell: string): string => cell.replace(GUARDED_FORMULA, '$<guards>');

/** Formats a row, including its line break. */
export const writeCsvRow = (cells: readonly string[]): string => `${cells.map(formatCell).join(',')}\r\n`;

/** The byte order mark at the start of a CSV file. Without it, spreadsheets do not read the file as UTF-8. */
const BYTE_ORDER_MARK = '\ufeff';

/** Formats the first row of a file, which names the columns. */
export const writeCsvHead = (columns: readonly string[]): string => BYTE_ORDER_MARK + writeCsvRow(columns);

export const CSV_COLUMNS = ['url', 'title', 'note', 'tags', 'created', 'updated_at'];

export const CSV_HEAD = writeCsvHead(CSV_COLUMNS);

function formatTags(names: readonly string[]): string {
  const isPlain = !names.some((name) => /[,|]|^\[/.test(name));
  return isPlain ? names.join(',') : JSON.stringify(names);
}

export const formatCsv = ({ url, title, comment, tags, created_at, updated_at }: Bookmark): string =>
  writeCsvRow([url, title, comment, formatTags(tags.map(({ name }) => name)), created_at, updated_at]);
