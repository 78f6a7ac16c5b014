import { setTimeout as sleep } from 'node:timers/promises';
import { type Bookmark, BookmarkClient } from '../../src/client/index.ts';
import { type Journal, type Look, nowMs } from './journal.ts';
import type { Random } from './random.ts';
import { recordFetch } from './recorded-fetch.ts';

export interface ReaderOptions {
  user: number;
  origin: string;
  token: string;
  journal: Journal;
  draw: Random;
  pauseMs: number;
  /** The function that sends the reader's requests. A test may use it to corrupt the responses. */
  fetch?: typeof fetch | undefined;
}

/** Reads all of a user's bookmarks again and again, by export or by list, and journals each result. */
export async function readAgainAndAgain(options: ReaderOptions, signal: AbortSignal): Promise<void> {
  const { origin, token, journal, draw, pauseMs } = options;
  const recorded = recordFetch(journal, token, options.fetch);
  const client = new BookmarkClient({ baseUrl: `${origin}/api/v1`, token, fetch: recorded.fetch });
  while (!signal.aborted) {
    await sleep(draw.integer(pauseMs / 2, pauseMs * 1.5), undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    const source = draw.pick(['export', 'list'] as const);
    // The client does not retry, so the response belongs to the one request that was sent.
    const sentMs = nowMs();
    const look = await readOnce(client, source).catch(() => undefined);
    if (look !== undefined) journal.looks.push(describe(options.user, source, sentMs, look));
  }
}

interface Read {
  bookmarks: Bookmark[];
  count: number;
}

async function readOnce(client: BookmarkClient, source: Look['source']): Promise<Read | undefined> {
  if (source === 'export') return client.exportBookmarks({ retryForMs: 0 });
  const { bookmarks, has_more: hasMore } = await client.listBookmarks({ limit: 500 }, { retryForMs: 0 });
  return hasMore ? undefined : { bookmarks, count: bookmarks.length };
}

const describe = (
  user: number,
  source: Look['source'],
  sentMs: number,
  { bookmarks, count }: Read,
): Look => ({
  source,
  user,
  sentMs,
  endMs: nowMs(),
  count,
  ids: bookmarks.map(({ id }) => id),
  urls: bookmarks.map(({ url }) => url),
});
