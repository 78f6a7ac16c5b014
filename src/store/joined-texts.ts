import { randomUUID } from 'node:crypto';

/** Sends many texts as few parameters: the driver would escape each text by itself. */

/**
 * Columns of texts as one text. One separator stands between texts, another between columns; SQL splits them again.
 */
export interface JoinedColumns {
  text: string;
  columnSeparator: string;
  separator: string;
}

/** Joins columns of texts without U+0000. An empty column and a column of one empty text are the same. */
export function joinColumns(columns: readonly (readonly string[])[]): JoinedColumns {
  const separator = separatorFor(columns, '\x1f');
  const columnSeparator = separatorFor(columns, '\x1e');
  return {
    text: columns.map((texts) => texts.join(separator)).join(columnSeparator),
    columnSeparator,
    separator,
  };
}

/** A separator that occurs in none of the texts. */
function separatorFor(columns: readonly (readonly string[])[], usual: string): string {
  let separator = usual;
  const occurs = (text: string) => text.includes(separator);
  while (columns.some((texts) => texts.some(occurs))) separator = `${usual}${randomUUID()}`;
  return separator;
}

/** An array literal of values that need no quotes: numbers, times, uuids, and null. */
export const plainArray = (values: readonly (string | number | null)[]): string =>
  `{${values.map((value) => value ?? 'null').join(',')}}`;
