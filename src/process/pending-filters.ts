import { setImmediate } from 'node:timers/promises';
import type { Context } from '../context.ts';
import { buildNextFilters, findPendingFilters } from '../store/sweep.ts';

/**
 * Builds the Bloom filters of blocks written since the last run. Until then searches read these blocks completely.
 */

/** After this time the builder goes on to the next group of users, even if some users still have pending blocks. */
const FIND_AGAIN_MS = 1_000;

/** The number of users in a group. */
const FOUND_TOGETHER = 1_000;

/**
 * How far the builder is. The next group begins after the user `after`, even if the work for that user failed. 0 begins
 * a new round.
 */
export interface Round {
  after: number;
  readonly foundTogether: number;
}

export const beginRound = (foundTogether = FOUND_TOGETHER): Round => ({ after: 0, foundTogether });

/**
 * Builds the filters of all users. A round goes through the users in groups, by ascending id. It repeats the round
 * until nothing is pending. A user whose work never ends or always fails does not block the others, because the next
 * group has higher ids.
 */
export async function buildPendingFilters(context: Context, round = beginRound()): Promise<void> {
  let isLeft: boolean;
  do {
    isLeft = false;
    do {
      if (await serveNextUsers(context, round)) isLeft = true;
    } while (round.after > 0 && !context.lifecycle.draining);
  } while (isLeft && !context.lifecycle.draining);
}

/**
 * Builds filters for the next group of users, for about a second. It builds a batch of blocks for each user in turn.
 * Resolves to whether blocks are left.
 */
async function serveNextUsers({ database, lifecycle }: Context, round: Round): Promise<boolean> {
  const found = await findPendingFilters(database, round.after, round.foundTogether);
  round.after = found.length < round.foundTogether ? 0 : (found.at(-1) ?? 0);
  const findAgainAt = performance.now() + FIND_AGAIN_MS;
  let users = startAnywhere(found);
  while (users.length > 0 && performance.now() < findAgainAt) {
    const unfinished: number[] = [];
    for (const userId of users) {
      if (lifecycle.draining) return false;
      if (await buildNextFilters(database, userId)) unfinished.push(userId);
    }
    users = unfinished;
    // Lets the event loop serve requests between batches.
    await setImmediate();
  }
  return users.length > 0;
}

/** Rotates the list by a random amount, so that replicas with the same users rarely work on the same one. */
function startAnywhere(users: readonly number[]): number[] {
  const start = Math.floor(Math.random() * users.length);
  return [...users.slice(start), ...users.slice(0, start)];
}
