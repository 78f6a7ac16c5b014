import type { Bookmark } from '../domain/resources.ts';

/**
 * Writes CSV (RFC 4180): Raindrop's columns, which importers of Raindrop and Pocket's successors know, and
 * `updated_at`. Tags stand between commas; those with a comma, a bar or a bracket at the start make the cell a JSON array.
 */

/** Spreadsheets run a cell that begins so. Quotes before it count too, so that one can be taken off again. */
const FORMULA = /^'*[=+\-@]/;

function formatCell(text: string): string {
  const inert = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]|^\s|\s$/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}

/** The text that `writeCsvRow` made this cell of. */
export const readCell = (cell: string): string =>
  cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell;

/** A row with its line break. */
export const writeCsvRow = (cells: readonly string[]): string => `${cells.map(formatCell).join(',')}\r\n`;

export const CSV_COLUMNS = ['url', 'title', 'note', 'tags', 'created', 'updated_at'];

export const CSV_HEAD = writeCsvRow(CSV_COLUMNS);

function formatTags(names: readonly string[]): string {
  const isPlain = !names.some((name) => /[,|]|^\[/.test(name));
  return isPlain ? names.join(',') : JSON.stringify(names);
}

export const formatCsv = ({ url, title, comment, tags, created_at, updated_at }: Bookmark): string =>
  writeCsvRow([url, title, comment, formatTags(tags.map(({ name }) => name)), created_at, updated_at]);
