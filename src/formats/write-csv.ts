import type { Bookmark } from '../domain/resources.ts';

/**
 * Writes CSV (RFC 4180): Raindrop's columns, which importers of Raindrop and Pocket's successors know, and
 * `updated_at`. Tags stand between commas; those with a comma, a bar or a bracket at the start make the cell a JSON array.
 */

const cell = (text: string): string =>
  /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

/** A row with its line break. */
export const writeCsvRow = (cells: readonly string[]): string => `${cells.map(cell).join(',')}\r\n`;

export const CSV_HEAD = writeCsvRow(['url', 'title', 'note', 'tags', 'created', 'updated_at']);

function formatTags(names: readonly string[]): string {
  const isPlain = !names.some((name) => /[,|]|^\[/.test(name));
  return isPlain ? names.join(',') : JSON.stringify(names);
}

export const formatCsv = ({ url, title, comment, tags, created_at, updated_at }: Bookmark): string =>
  writeCsvRow([url, title, comment, formatTags(tags.map(({ name }) => name)), created_at, updated_at]);
