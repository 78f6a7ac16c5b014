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
  const between = columns.reduce((sum, { length }) => sum + Math.max(length, 1), -1);
  let [separator, columnSeparator] = ['\x1f', '\x1e'];
  for (;;) {
    const text = columns.map((column) => column.join(separator)).join(columnSeparator);
    // Separators of their own that a text holds make too many: cheaper to count than to look into each text before.
    if (count(text, separator) + count(text, columnSeparator) === between)
      return { text, columnSeparator, separator };
    [separator, columnSeparator] = [`\x1f${randomUUID()}`, `\x1e${randomUUID()}`];
  }
}

function count(text: string, part: string): number {
  let found = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) found += 1;
  return found;
}

/** An array literal of values that need no quotes: numbers, times, uuids, and null. */
export const plainArray = (values: readonly (string | number | null)[]): string =>
  `{${values.map((value) => value ?? 'null').join(',')}}`;
