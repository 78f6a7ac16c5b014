import type { Context } from '../context.ts';
import type { Notifier } from '../coordination/port.ts';
import type { Principal } from '../domain/tokens.ts';
import { DatabaseUnavailable } from '../store/driver/errors.ts';

/** A statement ends at most this long after its connection was lost, because Postgres cancels statements after 6 s. */
const LATE_COMMIT_MS = 7_000;

/**
 * Runs a write, then calls `notify` to notify the user's polls, unless `hasChanged` says that the write has changed
 * nothing. If the response of the database was lost, the write may
 * have happened, or may still happen. In that case, this function notifies the polls immediately, throws the error of
 * the write, and notifies the polls again after `LATE_COMMIT_MS`.
 */
export async function notifyAfter<Result>(
  { coordination: { notifier, clock } }: Pick<Context, 'coordination'>,
  { userId }: Pick<Principal, 'userId'>,
  notify: (notifier: Notifier, userId: number) => void,
  write: () => Promise<Result>,
  hasChanged: (result: Result) => boolean = () => true,
): Promise<Result> {
  try {
    const result = await write();
    if (hasChanged(result)) notify(notifier, userId);
    return result;
  } catch (error) {
    if (error instanceof DatabaseUnavailable && error.mayHaveRun) {
      notify(notifier, userId);
      clock.after(LATE_COMMIT_MS, () => notify(notifier, userId));
    }
    throw error;
  }
}
