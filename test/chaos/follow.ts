import { setTimeout as sleep } from 'node:timers/promises';
import { BookmarkClient } from '../../src/client/index.ts';
import { type Follower, type Journal, nowMs } from './journal.ts';
import type { Random } from './random.ts';
import { recordFetch } from './recorded-fetch.ts';

export interface FollowerOptions {
  name: string;
  user: number;
  origin: string;
  token: string;
  journal: Journal;
  draw: Random;
}

/** After a random time in this range, a follower starts again from its stored cursor, like a restarted program. */
const LIFE_MS = { min: 5_000, max: 60_000 };

/** Follows a user until the signal aborts, and journals each received bookmark. */
export async function follow(options: FollowerOptions, signal: AbortSignal): Promise<void> {
  const { name, user, origin, token, journal, draw } = options;
  const follower: Follower = { name, user, receipts: [], restarts: 0 };
  journal.followers.push(follower);
  let cursor: string | undefined;
  while (!signal.aborted) {
    const recorded = recordFetch(journal, token);
    const client = new BookmarkClient({ baseUrl: `${origin}/api/v1`, token, fetch: recorded.fetch });
    const life = AbortSignal.any([signal, AbortSignal.timeout(draw.integer(LIFE_MS.min, LIFE_MS.max))]);
    try {
      for await (const batch of client.sync({ cursor, signal: life })) {
        const atMs = nowMs();
        const askedMs = recorded.last!.sentMs;
        for (const { id, url } of batch.bookmarks) follower.receipts.push({ id, url, atMs, askedMs });
        cursor = batch.cursor;
      }
    } catch (error) {
      if (!life.aborted) journal.surprises.push(`${name} could not follow: ${String(error)}`);
      if (!life.aborted) await sleep(1_000);
    }
    follower.restarts += 1;
  }
}
