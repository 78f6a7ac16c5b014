import type { Bookmark } from '../domain/resources.ts';
import { toLine } from './display-text.ts';
import type { Table } from './table.ts';

/** Makes a table with one line per bookmark. */
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
