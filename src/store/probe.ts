import { MAX_ID } from '../domain/fields.ts';
import { PAGE_BYTES } from './bookmarks.ts';
import { DatabaseUnavailable, type UnavailableReason } from './errors.ts';
import { type DatabaseOptions, openDatabase } from './open-database.ts';
import { tokenIsValid } from './tokens.ts';

/** With a longer one a scrape, or a probe of Kubernetes, would come too late. */
const DEADLINE_MS = 1_000;

/** A check within this time after another one has that one's result. */
const FRESH_MS = 1_000;

/** `reachable`; why the database does not serve; `failed` where it refuses the statement for a reason that nobody foresaw. */
export type DatabaseState = 'reachable' | UnavailableReason | 'failed';

/** Reads as requests do, for a user who does not exist. */
const NOBODY = { userId: 0, hash: Buffer.alloc(32) };

/** Checks whether the database serves reads, on a connection of its own, so that no check waits behind requests. */
export interface DatabaseProbe {
  /** How the database responds now, or responded a second ago; takes 1 s at most. */
  check(): Promise<DatabaseState>;
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
  let last: { promise: Promise<DatabaseState>; endedAt: number } | undefined;
  const ask = async () => {
    const state = await database
      .read(
        (sql) => sql`
          select ${tokenIsValid(sql, NOBODY)}, page.count
          from read_page(
            p_user_id => ${NOBODY.userId}, p_after => 0, p_last => ${MAX_ID}, p_limit => 1,
            p_bytes => ${PAGE_BYTES}
          ) page`,
      )
      .then(
        (): DatabaseState => 'reachable',
        (error: unknown) => (error instanceof DatabaseUnavailable ? error.reason : 'failed'),
      );
    if (last) last.endedAt = performance.now();
    return state;
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
