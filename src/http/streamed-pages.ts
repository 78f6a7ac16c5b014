import { Readable } from 'node:stream';
import { unavailable } from '../domain/errors.ts';
import type { OutboundBacklog } from '../flow/held-bytes.ts';
import type { Semaphore } from '../flow/semaphore.ts';
import { PAGE_BYTES } from '../store/bookmarks.ts';

/** Streams a long response page by page, so that it needs little memory (docs/contract.md, decisions 17 and 32). */

/** The dependencies of a streamed response. */
interface StreamOptions {
  requestPermits: Semaphore<number>;
  outboundBacklog: OutboundBacklog;
  /** How many milliseconds a page may wait for room in the backlog, and then again for a permit. */
  waitMs: number;
}

type Chunk = string | Buffer;

/** The pages of a response. Each page is sent as its chunks, one after the other. */
export type Pages = AsyncGenerator<readonly Chunk[], void>;

/** A page whose bytes count as not yet read by the client, until `release` is called. */
interface HeldPage {
  chunks: readonly Chunk[];
  release: () => void;
}

type HeldPages = AsyncGenerator<HeldPage, void>;
type NextPage = IteratorResult<HeldPage, void>;

/**
 * Reads the first page, and returns the response as a stream. Throws if the first page cannot be read. The stream keeps
 * at most two pages in memory. While it waits for a slow client, it reads no page.
 *
 * Each step of `pages` takes a permit of the user. No page is read while the user's clients have too many unread bytes.
 */
export async function streamPages(options: StreamOptions, userId: number, pages: Pages): Promise<Readable> {
  const heldPages = holdPages(options, userId, pages);
  const first = await heldPages.next();
  const stream = streamChunks(writePages(first, heldPages));
  // If the stream is closed before it is read, the generator never starts, so its `finally` block does not release the
  // first page. This listener does.
  return stream.once('close', () => first.value?.release());
}

async function* writePages(first: NextPage, pages: HeldPages): AsyncGenerator<Chunk> {
  let nextPage = Promise.resolve(first);
  try {
    for (;;) {
      const { value: page } = await nextPage;
      if (page === undefined) return;
      // The next page is read while this one is sent.
      nextPage = pages.next();
      // If the stream is destroyed, nothing else handles a rejection of `nextPage`.
      nextPage.catch(() => {});
      yield* writePage(page);
    }
  } finally {
    // If the stream was destroyed, the page that was read ahead is not sent, so `writePage` does not release it.
    void nextPage.then(({ value: page }) => page?.release()).catch(() => {});
  }
}

function* writePage({ chunks, release }: HeldPage): Generator<Chunk> {
  try {
    yield* chunks;
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

async function* holdPages(options: StreamOptions, userId: number, pages: Pages): HeldPages {
  for (;;) {
    const page = await readPage(options, userId, pages);
    if (page === undefined) return;
    yield page;
  }
}

/**
 * Waits until the user's clients have few enough unread bytes. Then reads a page and counts its bytes as unread. Returns
 * undefined after the last page.
 */
async function readPage(
  { requestPermits, outboundBacklog, waitMs }: StreamOptions,
  userId: number,
  pages: Pages,
): Promise<HeldPage | undefined> {
  for (;;) {
    const hasRoom = await outboundBacklog.waitForPageRoom(userId, waitMs);
    if (!hasRoom) throw unavailable('earlier responses to this account have not been read yet', 5);
    // Returns undefined if there is no room any more.
    const readIfRoom = async () => {
      // While this request waited for its permit, another request may have taken the room.
      if (!outboundBacklog.hasRoomForPage(userId)) return undefined;
      // Reserves room while the page is read, so that the user's other streams cannot take the same room.
      const releaseReserved = outboundBacklog.hold(userId, PAGE_BYTES);
      try {
        const { value: chunks = [], done } = await pages.next();
        const bytes = chunks.reduce((sum, { length }) => sum + length, 0);
        return { chunks, release: outboundBacklog.hold(userId, bytes), isLast: done };
      } finally {
        releaseReserved();
      }
    };
    const page = await requestPermits.run(userId, readIfRoom, waitMs);
    if (page !== undefined) return page.isLast ? undefined : page;
  }
}
