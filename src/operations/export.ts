import { Readable } from 'node:stream';
import type { OutboundBacklog } from '../concurrency/outbound-backlog.ts';
import type { Semaphore } from '../concurrency/semaphore.ts';
import { unavailable } from '../domain/errors.ts';
import type { Principal } from '../domain/tokens.ts';
import { PAGE_BYTES } from '../store/bookmarks.ts';
import type { Database } from '../store/database.ts';
import { beginExport, type ExportBounds, type ExportPage, readExportPage } from '../store/export.ts';

/** Export as a stream (decision 17). */

const PAGE_SIZE = 500;

/** What an export works with. */
interface ExportOptions {
  database: Database;
  requestPermits: Semaphore<number>;
  outboundBacklog: OutboundBacklog;
  /** How long it waits for a permit, and for room, before it gives up. */
  waitMs: number;
}

/** A page that counts as unsent until it is released. */
interface HeldPage extends ExportPage {
  release: () => void;
}

type Pages = AsyncGenerator<HeldPage, undefined>;
type NextPage = IteratorResult<HeldPage, undefined>;
type Piece = string | Buffer;

/**
 * Begins an export; throws before the first byte where it cannot. The stream then holds two pages at a time, and no
 * connection while a slow client reads; it throws, and so breaks off, where a `replace` came or the token was revoked.
 * Each statement takes a permit of the user, and none is made while too much of what the user was sent is unread.
 */
export async function exportBookmarks(options: ExportOptions, principal: Principal): Promise<Readable> {
  const bounds = await options.requestPermits.run(principal.userId, () =>
    beginExport(options.database, principal),
  );
  const pages = readPages(options, principal, bounds);
  const first = await pages.next();
  const stream = streamPieces(writeExport(bounds, first, pages));
  // A generator that was never begun ends without its `finally`.
  return stream.once('close', () => first.value?.release());
}

async function* writeExport(bounds: ExportBounds, first: NextPage, pages: Pages): AsyncGenerator<Piece> {
  let next = Promise.resolve(first);
  let count = 0;
  try {
    yield '{"bookmarks":[';
    for (;;) {
      const { value: page } = await next;
      if (page === undefined) break;
      // Postgres renders the next page while this one goes out.
      next = pages.next();
      next.catch(() => {});
      yield* writePage(page, count > 0);
      count += page.count;
    }
    yield `],"exported_at":"${bounds.exportedAt}","count":${count}}`;
  } finally {
    void next.then(({ value: page }) => page?.release()).catch(() => {});
  }
}

function* writePage({ bookmarks, release }: HeldPage, isLater: boolean): Generator<Piece> {
  try {
    if (isLater) yield ',';
    yield bookmarks;
  } finally {
    // It has gone out, or never will.
    release();
  }
}

/** A stream that asks for a piece only once the one before it has been taken, but for what a socket buffers. */
function streamPieces(pieces: AsyncGenerator<Piece>): Readable {
  return new Readable({
    objectMode: true,
    highWaterMark: 0,
    read() {
      pieces.next().then(
        ({ value, done }) => this.push(done ? null : value),
        (error: Error) => this.destroy(error),
      );
    },
    destroy(error, done) {
      pieces.return(undefined).then(() => done(error), done);
    },
  });
}

async function* readPages(options: ExportOptions, principal: Principal, bounds: ExportBounds): Pages {
  for (let afterId = 0; afterId < bounds.lastId; ) {
    const page = await readPage(options, principal, afterId, bounds);
    if (page.generation !== bounds.generation) {
      page.release();
      throw unavailable('the bookmarks were replaced meanwhile');
    }
    if (page.lastId === null) return;
    yield page;
    afterId = page.lastId;
  }
}

/** Reads a page once there is room for it, and counts it. */
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
    const read = async () => {
      // Others may have taken the room meanwhile.
      if (!outboundBacklog.hasRoomForExport(userId)) return undefined;
      // Counts the page while it is read, so that other exports of the user see that its room is taken.
      const release = outboundBacklog.hold(userId, PAGE_BYTES);
      try {
        const page = await readExportPage(database, principal, afterId, bounds, PAGE_SIZE);
        return { ...page, release: outboundBacklog.hold(userId, page.bookmarks.length) };
      } finally {
        release();
      }
    };
    const page = await requestPermits.run(userId, read, waitMs);
    if (page !== undefined) return page;
  }
}
