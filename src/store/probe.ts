import type { DatabaseOptions } from './open-database.ts';
import { openDatabase } from './open-database.ts';

/** With a longer one a scrape, or a probe of Kubernetes, would come too late. */
const DEADLINE_MS = 1_000;

/** A check within this time after another one has that one's result. */
const FRESH_MS = 1_000;

/** Checks whether the database responds, on a connection of its own, so that no check waits behind requests. */
export interface DatabaseProbe {
  /** Whether the database responds now, or responded a second ago; takes 1 s at most. */
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
