import type { Context } from '../context.ts';
import type { WakeBus } from '../coordination/port.ts';
import type { Caller } from '../domain/tokens.ts';
import { DatabaseUnavailable } from '../store/errors.ts';

/** A statement whose connection was lost may go on for so long: Postgres ends it at 6 s. */
const LATE_COMMIT_MS = 7_000;

/**
 * Runs a write, then wakes the polls that it concerns: `wakePolls` or `wakeChangesPolls`. A write whose response was lost
 * may have happened, or may still happen: it wakes them too, at once and again when it must have ended.
 */
export async function wakeAfter<Result>(
  { coordination: { wakes, clock } }: Context,
  { userId }: Pick<Caller, 'userId'>,
  wake: (wakes: WakeBus, userId: number) => void,
  write: () => Promise<Result>,
): Promise<Result> {
  try {
    const result = await write();
    wake(wakes, userId);
    return result;
  } catch (error) {
    if (error instanceof DatabaseUnavailable && error.mayHaveRun) {
      wake(wakes, userId);
      clock.after(LATE_COMMIT_MS, () => wake(wakes, userId));
    }
    throw error;
  }
}
