import type { DatabaseOptions } from './open-database.ts';
import { openDatabase } from './open-database.ts';

/** Longer, and a scrape or a probe of Kubernetes would be late. */
const DEADLINE_MS = 1_000;

/** Whoever asks within this time of a check that has ended is given its result. */
const FRESH_MS = 1_000;

/** Asks the database whether it responds, on one connection of its own: requests that wait for theirs hold up no probe. */
export interface DatabaseProbe {
  /** Whether the database responds now, or did a second ago; within 1 s. */
  check(): Promise<boolean>;
  close(): Promise<void>;
}

/** Opens a probe; rejects with `DatabaseUnavailable` where no connection can be made. */
export async function openProbe(options: Pick<DatabaseOptions, 'url' | 'prepare'>): Promise<DatabaseProbe> {
  const database = await openDatabase({
    ...options,
    application: 'bookmark-service probe',
    max: 1,
    deadlineMs: DEADLINE_MS,
    waitMs: DEADLINE_MS,
  });
  let last: { promise: Promise<boolean>; endedAt: number } | undefined;
  const ask = async () => {
    const isReachable = await database
      .read((sql) => sql`select 1`)
      .then(
        () => true,
        () => false,
      );
    if (last) last.endedAt = performance.now();
    return isReachable;
  };
  return {
    check() {
      if (last === undefined || performance.now() - last.endedAt > FRESH_MS)
        last = { promise: ask(), endedAt: Number.POSITIVE_INFINITY };
      return last.promise;
    },
    close: () => database.close(0),
  };
}
