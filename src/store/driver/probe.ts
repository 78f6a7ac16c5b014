import { MAX_ID } from '../../domain/fields.ts';
import { PAGE_BYTES } from '../bookmarks.ts';
import { DatabaseUnavailable, type UnavailableReason } from './errors.ts';
import { type DatabaseOptions, openDatabase } from './open.ts';

/** The time limit of a check. A longer check would exceed the time limits of metrics scrapes and Kubernetes probes. */
const DEADLINE_MS = 1_000;

/** For this long after a check, `check` returns the result of that check. */
const FRESH_MS = 1_000;

/** `reachable`, or the reason why the database cannot serve, or `failed` after an unexpected error. */
export type DatabaseState = 'reachable' | UnavailableReason | 'failed';

/** A check makes the same read as a request for a page, but for this user, who does not exist. */
const NOBODY = { userId: 0, hash: Buffer.alloc(32) };

/**
 * Checks whether the database serves reads. The probe has its own connection, so that a check never waits behind
 * requests.
 */
export interface DatabaseProbe {
  /** Returns the result of the last check. Makes a new check if that result is more than 1 s old. Takes at most 1 s. */
  check(): Promise<DatabaseState>;
  close(): Promise<void>;
}

/** Opens a probe. Rejects with `DatabaseUnavailable` if it cannot connect. */
export async function openProbe(options: Pick<DatabaseOptions, 'url' | 'prepare'>): Promise<DatabaseProbe> {
  const database = await openDatabase({
    ...options,
    application: 'bookmark-service probe',
    max: 1,
    deadlineMs: DEADLINE_MS,
    waitMs: DEADLINE_MS,
  });
  let last: Promise<DatabaseState> | undefined;
  let freshUntil = 0;
  const startCheck = () =>
    database
      .read(
        (sql) => sql`
          select page.count
          from read_page(
            p_user_id => ${NOBODY.userId}, p_after => 0, p_last => ${MAX_ID}, p_limit => 1,
            p_bytes => ${PAGE_BYTES}, p_token_hash => ${NOBODY.hash}
          ) page`,
      )
      .then(
        (): DatabaseState => 'reachable',
        (error: unknown) => (error instanceof DatabaseUnavailable ? error.reason : 'failed'),
      )
      .finally(() => {
        freshUntil = performance.now() + FRESH_MS;
      });
  return {
    check() {
      if (last === undefined || performance.now() > freshUntil) {
        // While this check runs, every call waits for its result.
        freshUntil = Number.POSITIVE_INFINITY;
        last = startCheck();
      }
      return last;
    },
    close: () => database.close(0),
  };
}
