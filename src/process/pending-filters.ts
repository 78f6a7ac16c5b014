import { setImmediate } from 'node:timers/promises';
import type { Context } from '../context.ts';
import { buildNextFilters, findPendingFilters } from '../store/sweep.ts';

/**
 * Builds a Bloom filter for each block of search texts that has none yet. If a block has no filter, a search must read
 * all of its texts.
 */

/**
 * The time for one group of users. After this time, the next group begins, even if blocks of this group still have no
 * filter.
 */
const GROUP_MS = 1_000;

/** The number of users in a group. */
const USERS_PER_GROUP = 1_000;

/** A round goes through all users who have blocks without a filter, in groups, by ascending user id. */
export interface Round {
  /**
   * The highest user id of the previous group, or 0 at the start of a round. The next group has higher ids, even if the
   * work for the previous group failed.
   */
  after: number;
  readonly usersPerGroup: number;
}

export const beginRound = (usersPerGroup = USERS_PER_GROUP): Round => ({ after: 0, usersPerGroup });

/**
 * Builds the filters of all users. Repeats rounds until every block has a filter, or until the process drains. A user
 * whose work never ends or always fails does not block other users, because each round goes on to the next group.
 */
export async function buildPendingFilters(
  context: Pick<Context, 'database' | 'lifecycle'>,
  round = beginRound(),
): Promise<void> {
  let hasPending = true;
  while (hasPending && !context.lifecycle.draining) {
    hasPending = false;
    // One round. After its last group, `after` is 0 again.
    do {
      if (await serveNextUsers(context, round)) hasPending = true;
    } while (round.after > 0 && !context.lifecycle.draining);
  }
}

/**
 * Builds filters for the next group of users, for about a second. Builds a batch of filters for each user in turn.
 * Resolves with true if some blocks of the group still have no filter. Resolves with false if all have a filter, or if
 * the process drains.
 */
async function serveNextUsers(
  { database, lifecycle }: Pick<Context, 'database' | 'lifecycle'>,
  round: Round,
): Promise<boolean> {
  const group = await findPendingFilters(database, round.after, round.usersPerGroup);
  const isLastGroup = group.length < round.usersPerGroup;
  round.after = isLastGroup ? 0 : (group.at(-1) ?? 0);
  const endAt = performance.now() + GROUP_MS;
  let users = rotateRandomly(group);
  while (users.length > 0 && performance.now() < endAt) {
    const unfinished: number[] = [];
    for (const userId of users) {
      if (lifecycle.draining) return false;
      if (await buildNextFilters(database, userId)) unfinished.push(userId);
    }
    users = unfinished;
    // Let the event loop serve requests before the next batches.
    await setImmediate();
  }
  return users.length > 0;
}

/** Rotates the list by a random amount, so that two replicas rarely work on the same user at the same time. */
function rotateRandomly(users: readonly number[]): number[] {
  const start = Math.floor(Math.random() * users.length);
  return [...users.slice(start), ...users.slice(0, start)];
}
