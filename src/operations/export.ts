import type { Caller } from '../domain/tokens.ts';
import type { Database } from '../store/database.ts';
import { beginExport, type ExportBounds, type ExportPage, readExportPage } from '../store/export.ts';
import { releaseBytes } from './garbage.ts';

/** Export as a stream (decision 17). */

const PAGE_SIZE = 500;

/** The export cannot go on: the answer breaks off. */
export class ExportBroken extends Error {
  override readonly name = 'ExportBroken';
}

/**
 * Begins an export; throws before the first byte where it cannot. The stream then holds two pages at a time, and no
 * connection while a slow client reads; it throws, and so breaks off, where a `replace` came or the token was revoked.
 */
export async function exportBookmarks(
  database: Database,
  caller: Caller,
): Promise<AsyncIterable<string | Buffer>> {
  const bounds = await beginExport(database, caller);
  return writeExport(database, caller, bounds);
}

async function* writeExport(
  database: Database,
  caller: Caller,
  bounds: ExportBounds,
): AsyncGenerator<string | Buffer> {
  let count = 0;
  yield '{"bookmarks":[';
  for await (const page of oneAhead(readPages(database, caller, bounds))) {
    if (count > 0) yield ',';
    yield page.bookmarks;
    releaseBytes(page.bookmarks.length);
    count += page.count;
  }
  yield `],"exported_at":"${bounds.exportedAt}","count":${count}}`;
}

async function* readPages(
  database: Database,
  caller: Caller,
  bounds: ExportBounds,
): AsyncGenerator<ExportPage, undefined> {
  for (let afterId = 0; afterId < bounds.lastId; ) {
    const page = await readExportPage(database, caller, afterId, bounds, PAGE_SIZE);
    if (page.generation !== bounds.generation)
      throw new ExportBroken('the bookmarks were replaced meanwhile');
    if (page.lastId === null) return;
    yield page;
    afterId = page.lastId;
  }
}

/** The same items, each asked for while the one before it is in use. */
async function* oneAhead<Item>(items: AsyncGenerator<Item, undefined>): AsyncGenerator<Item, undefined> {
  for (let next = items.next(); ; ) {
    const { value, done } = await next;
    if (done) return;
    next = items.next();
    // Who breaks off here never learns how it went.
    next.catch(() => {});
    yield value;
  }
}
