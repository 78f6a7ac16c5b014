import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BookmarkClient, MemoryStore, type MirrorBatch } from '../../src/client/index.ts';
import { SqliteStore } from '../../src/client/sqlite-store.ts';
import { type Collection, type Journal, type Mirror, nowMs } from './journal.ts';
import type { Random } from './random.ts';
import { type RecordedFetch, recordFetch } from './recorded-fetch.ts';

export interface MirrorOptions {
  name: string;
  user: number;
  origin: string;
  token: string;
  journal: Journal;
  draw: Random;
  store: Mirror['store'];
  /** The folder of the mirror's file, if it has one. */
  folder: string;
}

/** A mirror restarts after a random time in this range, like a program that its user restarts. */
const LIFE_MS = { min: 2_000, max: 40_000 };

/** The minimum time between two entries in the journal that contain the mirror's whole content. */
const LOOK_MS = 8_000;

/** The time limit for catching up after the last write and the last fault. */
const LAST_CATCH_UP_MS = 60_000;

type Store = MemoryStore | SqliteStore;

/**
 * Mirrors a user's collection until the signal aborts. From time to time, restarts the mirror from its file, from its
 * copy in memory, or from nothing. Finally catches up, journals the mirror's content, and verifies it.
 */
export async function mirror(options: MirrorOptions, signal: AbortSignal): Promise<void> {
  const { name, user, journal, draw, store: kind } = options;
  const one: Mirror = {
    name,
    user,
    store: kind,
    receipts: [],
    pages: 0,
    resets: 0,
    restarts: 0,
    copy: undefined,
  };
  journal.mirrors.push(one);
  let held: MemoryStore | undefined;
  const open = (): Store => {
    if (kind === 'sqlite') return new SqliteStore(join(options.folder, `${name}.db`));
    if (held === undefined || draw.chance(0.3)) held = new MemoryStore();
    return held;
  };
  while (!signal.aborted) {
    const life = AbortSignal.any([signal, AbortSignal.timeout(draw.integer(LIFE_MS.min, LIFE_MS.max))]);
    await runOnce(options, one, open(), { signal: life });
    if (!life.aborted) await sleep(1_000);
    one.restarts += 1;
  }
  const last = held ?? open();
  await runOnce(options, one, last, { signal: AbortSignal.timeout(LAST_CATCH_UP_MS), follow: false });
}

/** Runs a mirror once. With `follow: false`, ends when the mirror is up to date, journals its copy and verifies it. */
async function runOnce(
  { name, user, origin, token, journal }: MirrorOptions,
  one: Mirror,
  store: Store,
  options: { signal: AbortSignal; follow?: boolean },
): Promise<void> {
  const recorded = recordFetch(journal, token);
  const client = new BookmarkClient({ baseUrl: `${origin}/api/v1`, token, fetch: recorded.fetch });
  let lookedMs = nowMs();
  try {
    for await (const batch of client.mirror({ store, ...options })) {
      noteBatch(one, batch, recorded);
      if (!batch.isCaughtUp || nowMs() < lookedMs + LOOK_MS) continue;
      lookedMs = nowMs();
      journal.looks.push(describeLook(user, store, recorded.last!.sentMs));
    }
    if (options.follow !== false) return;
    one.copy = readCopy(store);
    const faults = await client.mirror({ store, ...options }).verify();
    if (faults.length > 0) journal.surprises.push(`${name} was wrong: ${JSON.stringify(faults)}`);
  } catch (error) {
    if (!options.signal.aborted) journal.surprises.push(`${name} could not mirror: ${String(error)}`);
  } finally {
    if (store instanceof SqliteStore) store[Symbol.dispose]();
  }
}

function noteBatch(
  one: Mirror,
  { reset, bookmarks, deleted, tags }: MirrorBatch,
  { last }: RecordedFetch,
): void {
  one.pages += 1;
  if (reset) one.resets += 1;
  const [atMs, askedMs] = [nowMs(), last!.sentMs];
  const changes = [
    ...deleted.map((id) => `deleted ${id}`),
    ...bookmarks.map(({ title }) => `title ${title}`),
    ...tags.map((tag) => `tag ${tag.name}`),
  ];
  for (const change of changes) one.receipts.push({ change, atMs, askedMs });
}

const describeLook = (user: number, store: Store, sentMs: number) => {
  const bookmarks = [...store.bookmarks()];
  return {
    source: 'mirror' as const,
    user,
    sentMs,
    endMs: nowMs(),
    count: store.size,
    ids: bookmarks.map(({ id }) => id),
    urls: bookmarks.map(({ url }) => url),
  };
};

const readCopy = (store: Store): Collection => ({ bookmarks: [...store.bookmarks()], tags: store.tags() });
