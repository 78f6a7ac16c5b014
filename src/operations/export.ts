import { Readable } from 'node:stream';
import type { OutboundBacklog } from '../concurrency/held-bytes.ts';
import type { Semaphore } from '../concurrency/semaphore.ts';
import { unavailable } from '../domain/errors.ts';
import type { Principal } from '../domain/tokens.ts';
import { PAGE_BYTES } from '../store/bookmarks.ts';
import type { Database } from '../store/database.ts';
import { beginExport, type ExportBounds, type ExportPage, readExportPage } from '../store/export.ts';

/** Exports all bookmarks of an account. The response is a stream (docs/contract.md, decision 17). */

/** How many bookmarks one statement reads. */
const PAGE_SIZE = 500;

/** The dependencies of an export. */
interface ExportOptions {
  database: Database;
  requestPermits: Semaphore<number>;
  outboundBacklog: OutboundBacklog;
  /** How many milliseconds a page may wait for room in the backlog, and then again for a permit. */
  waitMs: number;
}

/** A page whose bytes count as not yet read by the client, until `release` is called. */
interface HeldPage extends ExportPage {
  release: () => void;
}

type Pages = AsyncGenerator<HeldPage, undefined>;
type NextPage = IteratorResult<HeldPage, undefined>;
type Chunk = string | Buffer;

/**
 * Starts an export, and returns the response as a stream. Throws if the export cannot start. The stream keeps at most
 * two pages in memory. While the stream waits for a slow client, it uses no connection to the database. It is aborted
 * if a `replace` import happens or the token is revoked.
 *
 * Each statement takes a permit of the user. No page is read while the user's clients have too many unread bytes.
 */
export async function exportBookmarks(options: ExportOptions, principal: Principal): Promise<Readable> {
  const bounds = await options.requestPermits.run(principal.userId, () =>
    beginExport(options.database, principal),
  );
  const pages = readPages(options, principal, bounds);
  const first = await pages.next();
  const stream = streamChunks(writeExport(bounds, first, pages));
  // If the stream is closed before it is read, the generator never starts, so its `finally` block does not release the
  // first page. This listener does.
  return stream.once('close', () => first.value?.release());
}

async function* writeExport(bounds: ExportBounds, first: NextPage, pages: Pages): AsyncGenerator<Chunk> {
  let nextPage = Promise.resolve(first);
  let count = 0;
  try {
    yield '{"bookmarks":[';
    for (;;) {
      const { value: page } = await nextPage;
      if (page === undefined) break;
      // Postgres renders the next page while this one is sent.
      nextPage = pages.next();
      // If the stream is destroyed, nothing else handles a rejection of `nextPage`.
      nextPage.catch(() => {});
      yield* writePage(page, count === 0);
      count += page.count;
    }
    yield `],"exported_at":"${bounds.exportedAt}","count":${count}}`;
  } finally {
    // If the stream was destroyed, the page that was read ahead is not sent, so `writePage` does not release it.
    void nextPage.then(({ value: page }) => page?.release()).catch(() => {});
  }
}

function* writePage({ bookmarks, release }: HeldPage, isFirst: boolean): Generator<Chunk> {
  try {
    if (!isFirst) yield ',';
    yield bookmarks;
  } finally {
    // The page was sent, or the stream was destroyed.
    release();
  }
}

/**
 * Returns a stream that takes a chunk only after the previous one was read. So chunks wait only in the socket's buffer.
 */
function streamChunks(chunks: AsyncGenerator<Chunk>): Readable {
  return new Readable({
    objectMode: true,
    highWaterMark: 0,
    read() {
      chunks.next().then(
        ({ value, done }) => this.push(done ? null : value),
        (error: Error) => this.destroy(error),
      );
    },
    destroy(error, done) {
      chunks.return(undefined).then(() => done(error), done);
    },
  });
}

/** Yields the pages of an export. Throws if the bookmarks have been replaced since `bounds` was read. */
async function* readPages(options: ExportOptions, principal: Principal, bounds: ExportBounds): Pages {
  for (let afterId = 0; afterId < bounds.lastId; ) {
    const page = await readPage(options, principal, afterId, bounds);
    if (page.generation !== bounds.generation) {
      page.release();
      throw unavailable('the bookmarks were replaced during the export');
    }
    if (page.lastId === null) return;
    yield page;
    afterId = page.lastId;
  }
}

/** Waits until the user's clients have few enough unread bytes. Then reads a page and counts its bytes as unread. */
async function readPage(
  { database, requestPermits, outboundBacklog, waitMs }: ExportOptions,
  principal: Principal,
  afterId: number,
  bounds: ExportBounds,
): Promise<HeldPage> {
  const { userId } = principal;
  for (;;) {
    const hasRoom = await outboundBacklog.waitForExportRoom(userId, waitMs);
    if (!hasRoom) throw unavailable('earlier responses to this account have not been read yet', 5);
    // Returns undefined if there is no room any more.
    const readIfRoom = async () => {
      // While this request waited for its permit, another request may have taken the room.
      if (!outboundBacklog.hasRoomForExport(userId)) return undefined;
      // Reserves room while the page is read, so that the user's other exports cannot take the same room.
      const releaseReserved = outboundBacklog.hold(userId, PAGE_BYTES);
      try {
        const page = await readExportPage(database, principal, afterId, bounds, PAGE_SIZE);
        return { ...page, release: outboundBacklog.hold(userId, page.bookmarks.length) };
      } finally {
        releaseReserved();
      }
    };
    const page = await requestPermits.run(userId, readIfRoom, waitMs);
    if (page !== undefined) return page;
  }
}
