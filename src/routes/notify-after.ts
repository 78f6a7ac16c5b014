import type { Context } from '../context.ts';
import type { Notifier } from '../coordination/port.ts';
import type { Principal } from '../domain/tokens.ts';
import { DatabaseUnavailable } from '../store/errors.ts';

/** A statement whose connection was lost may go on for so long: Postgres ends it at 6 s. */
const LATE_COMMIT_MS = 7_000;

/**
 * Runs a write, then notifier the polls that it concerns: `notifyPolls` or `notifyChangesPolls`. A write whose response was lost
 * may have happened, or may still happen: it notifier them too, at once and again when it must have ended.
 */
export async function notifyAfter<Result>(
  { coordination: { notifier, clock } }: Context,
  { userId }: Pick<Principal, 'userId'>,
  notify: (notifier: Notifier, userId: number) => void,
  write: () => Promise<Result>,
): Promise<Result> {
  try {
    const result = await write();
    notify(notifier, userId);
    return result;
  } catch (error) {
    if (error instanceof DatabaseUnavailable && error.mayHaveRun) {
      notify(notifier, userId);
      clock.after(LATE_COMMIT_MS, () => notify(notifier, userId));
    }
    throw error;
  }
}
