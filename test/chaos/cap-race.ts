import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, BookmarkClient } from '../../src/client/index.ts';
import { beginCall, settleCall } from './calls.ts';
import { type Asked, type Journal, type Limits, nowMs } from './journal.ts';
import { recordFetch } from './recorded-fetch.ts';

export interface CapRaceOptions {
  user: number;
  /** The adds use these tokens in turn. */
  tokens: readonly string[];
  origin: string;
  journal: Journal;
  limits: Limits;
}

/** The number of free places when a race starts, and the number of adds beyond the free places. */
const ROOM = 5;
const EXCESS = 5;

/** The pause between two races, long enough for the limiter to admit all requests. */
const PAUSE_MS = 4_000;

/**
 * Makes adds of one user compete for the last free places below the limit of bookmarks. First fills the account, and
 * then runs races until `signal` is aborted. A race sends more simultaneous adds than there are free places, and then
 * deletes some bookmarks. Calls `onFirst` after the adds of the first race.
 */
export async function raceAtCap(
  options: CapRaceOptions,
  onFirst: () => void,
  signal: AbortSignal,
): Promise<void> {
  const { user, tokens, origin, journal, limits } = options;
  const open = (n: number) => {
    const token = tokens[n % tokens.length]!;
    const recorded = recordFetch(journal, token);
    const client = new BookmarkClient({ baseUrl: `${origin}/api/v1`, token, fetch: recorded.fetch });
    return { recorded, client, token };
  };
  let made = 0;
  const make = (): Asked => {
    made += 1;
    return { url: `https://chaos.example/cap/${made}`, title: `cap ${made}`, comment: '', tags: [] };
  };
  const fill = async () => {
    const { recorded, client } = open(0);
    const entries = Array.from({ length: limits.bookmarks - ROOM }, make);
    const call = beginCall(journal, user, {
      ...{ kind: 'import', mode: 'merge', entries, invalid: 0, repeated: [], crashes: 0 },
      result: undefined as { imported: number; skipped: number; errors: number } | undefined,
    });
    await settleCall(recorded, call, async () => {
      const { imported, skipped, errors } = await client.importBookmarks({ bookmarks: entries });
      call.result = { imported, skipped, errors: errors.length };
    });
  };
  /** Returns the ids of the account's bookmarks, or undefined if the request failed. */
  const look = async (n: number): Promise<number[] | undefined> => {
    const sentMs = nowMs();
    const seen = await open(n)
      .client.exportBookmarks({ retryForMs: 0 })
      .catch(() => undefined);
    if (seen === undefined) return undefined;
    const ids = seen.bookmarks.map(({ id }) => id);
    const urls = seen.bookmarks.map(({ url }) => url);
    journal.looks.push({ source: 'export', user, sentMs, endMs: nowMs(), count: seen.count, ids, urls });
    return ids;
  };
  const add = async (n: number) => {
    const asked = make();
    const { recorded, token } = open(n);
    const call = beginCall(journal, user, {
      ...{ kind: 'add', ...asked, isKeyed: false, id: undefined as number | undefined },
    });
    await settleCall(recorded, call, async () => {
      const response = await recorded.fetch(`${origin}/api/v1/bookmarks/add`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify(asked),
        signal: AbortSignal.timeout(30_000),
      });
      const body = await response.json();
      if (!response.ok)
        throw new ApiError('refused', { code: body.code, status: response.status, requestId: '' });
      call.id = body.id;
    });
  };
  const remove = async (race: number, ids: number[]) => {
    const { recorded, client } = open(0);
    const call = beginCall(journal, user, { kind: 'delete', ids });
    await settleCall(recorded, call, () => client.deleteBookmarks({ ids, trash: race % 2 === 0 }));
  };
  await fill();
  for (let race = 0; !signal.aborted; race += 1) {
    const held = await look(race);
    const room = held === undefined ? 0 : Math.max(0, limits.bookmarks - held.length);
    await Promise.all(Array.from({ length: Math.min(3 * ROOM, room) + EXCESS }, (_, n) => add(n)));
    if (race === 0) onFirst();
    const full = await look(race);
    if (full !== undefined && full.length > limits.bookmarks - ROOM)
      await remove(race, full.slice(limits.bookmarks - ROOM - full.length));
    await sleep(PAUSE_MS, undefined, { signal }).catch(() => {});
  }
}
