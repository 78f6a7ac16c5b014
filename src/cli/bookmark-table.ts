import type { Bookmark } from '../domain/resources.ts';
import { toLine } from './display-text.ts';
import type { Table } from './table.ts';
import type { Terminal } from './terminal.ts';

/** Returns a table with one row for each bookmark. */
export const bookmarkTable = (bookmarks: readonly Bookmark[]): Table => ({
  columns: [
    { name: 'ID' },
    { name: 'ADDED' },
    { name: 'TITLE', isFlexible: true, isMain: true },
    { name: 'URL', isFlexible: true },
    { name: 'TAGS', isFlexible: true },
  ],
  rows: bookmarks.map(({ id, created_at, title, url, tags }) => [
    String(id),
    created_at.slice(0, 10),
    toLine(title),
    toLine(url),
    toLine(tags.map(({ name }) => name).join(', ')),
  ]),
});

/**
 * Prints the first `limit` bookmarks of the pages, as one JSON object or one table. Prints each page as it arrives. If
 * there are no bookmarks, prints the message in `none` as a note, except with `--json`.
 */
export async function printPages<Each extends Bookmark>(
  terminal: Terminal,
  pages: AsyncIterable<Each[]>,
  toTable: (bookmarks: Each[]) => Table,
  { limit, none }: { limit: number; none: string },
): Promise<void> {
  if (terminal.isJson) await terminal.write('{"bookmarks":[');
  let count = 0;
  for await (const wholePage of pages) {
    const page = wholePage.slice(0, limit - count);
    const separator = count === 0 ? '' : ',';
    if (terminal.isJson)
      await terminal.write(separator + page.map((bookmark) => JSON.stringify(bookmark)).join(','));
    else await terminal.table(toTable(page), { header: count === 0 });
    count += page.length;
    if (count >= limit) break;
  }
  if (terminal.isJson) await terminal.write(']}\n');
  else if (count === 0) terminal.note(none);
}
