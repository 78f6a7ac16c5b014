import { randomUUID } from 'node:crypto';

/** Many texts as few parameters: what the driver would escape one by one travels in one piece. */

/** Columns of texts, each joined by a separator that occurs in none of them. SQL takes them apart again. */
export interface JoinedTexts {
  separator: string;
  columns: string[];
}

/** Joins columns of texts that hold no U+0000. An empty column and one of a single empty text are the same. */
export function joinTexts(columns: readonly (readonly string[])[]): JoinedTexts {
  let separator = '\x1f';
  const occurs = (text: string) => text.includes(separator);
  while (columns.some((texts) => texts.some(occurs))) separator = `\x1f${randomUUID()}`;
  return { separator, columns: columns.map((texts) => texts.join(separator)) };
}

/** An array literal of values that need no quotes: numbers, times, uuids; null stays null. */
export const plainArray = (values: readonly (string | number | null)[]): string =>
  `{${values.map((value) => value ?? 'null').join(',')}}`;
