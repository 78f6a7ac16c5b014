import { randomUUID } from 'node:crypto';

/** Many texts as few parameters: what the driver would escape one by one travels in one piece. */

/** Columns of texts as one text: texts are joined by one separator, columns by another. SQL takes them apart again. */
export interface JoinedColumns {
  text: string;
  columnSeparator: string;
  separator: string;
}

/** Joins columns of texts that hold no U+0000. An empty column and one of a single empty text are the same. */
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

/** An array literal of values that need no quotes: numbers, times, uuids; null stays null. */
export const plainArray = (values: readonly (string | number | null)[]): string =>
  `{${values.map((value) => value ?? 'null').join(',')}}`;
