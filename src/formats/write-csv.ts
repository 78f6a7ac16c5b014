import type { Bookmark } from '../domain/resources.ts';

/**
 * Writes CSV (RFC 4180). The columns are `updated_at` and those of Raindrop, which many importers know. Commas
 * separate tags. If a tag contains a comma or a bar, or begins with a bracket, the cell of the tags is a JSON array.
 */

/**
 * Matches a text that a spreadsheet would run as a formula. An apostrophe in front of the text prevents that. The
 * pattern also matches formulas that already begin with apostrophes, so that reading removes only the added one.
 */
const FORMULA = /^'*[=+\-@]/;

function formatCell(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  const needsQuotes = /[",\r\n]|^\s|\s$/.test(safe);
  return needsQuotes ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Turns a cell of the parsed CSV back into the text that `writeCsvRow` was given. */
export const readCell = (cell: string): string =>
  cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell;

/** Formats a row, including its line break. */
export const writeCsvRow = (cells: readonly string[]): string => `${cells.map(formatCell).join(',')}\r\n`;

export const CSV_COLUMNS = ['url', 'title', 'note', 'tags', 'created', 'updated_at'];

export const CSV_HEAD = writeCsvRow(CSV_COLUMNS);

function formatTags(names: readonly string[]): string {
  const isPlain = !names.some((name) => /[,|]|^\[/.test(name));
  return isPlain ? names.join(',') : JSON.stringify(names);
}

export const formatCsv = ({ url, title, comment, tags, created_at, updated_at }: Bookmark): string =>
  writeCsvRow([url, title, comment, formatTags(tags.map(({ name }) => name)), created_at, updated_at]);
