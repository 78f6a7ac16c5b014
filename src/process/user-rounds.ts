import { setImmediate } from 'node:timers/promises';
import type { Context } from '../context.ts';
import type { Database } from '../store/database.ts';

/** After this time a round goes on to more users, even if some still have work. */
const FIND_AGAIN_MS = 1_000;

/** The number of users found at a time. */
const FOUND_TOGETHER = 1_000;

/** Work that a sweep does per user. */
export interface UserWork {
  /** Finds at most `limit` users with work, with ids above `after`, in ascending order. */
  find(database: Database, after: number, limit: number): Promise<number[]>;
  /** Does a batch of a user's work. Resolves to whether more is left. */
  doBatch(context: Context, userId: number): Promise<boolean>;
}

/**
 * The progress of a sweep: the last user that it found. It continues after that user, even if that user's work
 * failed.
 */
export interface Round {
  after: number;
  readonly foundTogether: number;
}

export const beginRound = (foundTogether = FOUND_TOGETHER): Round => ({ after: 0, foundTogether });

/**
 * Does the work of all users, a group at a time. Repeats the round until nothing is left. Users whose work never ends
 * or always fails do not block the others, because each group continues at higher ids.
 */
export async function serveInTurn(context: Context, work: UserWork, round: Round): Promise<void> {
  const { lifecycle } = context;
  let isLeft: boolean;
  do {
    isLeft = false;
    do {
      if (await serveNext(context, work, round)) isLeft = true;
    } while (round.after > 0 && !lifecycle.draining);
  } while (isLeft && !lifecycle.draining);
}

/**
 * Serves the next group of users for about a second, each user at least once. Resolves to whether they have work
 * left.
 */
async function serveNext(context: Context, work: UserWork, round: Round): Promise<boolean> {
  const found = await work.find(context.database, round.after, round.foundTogether);
  round.after = found.length < round.foundTogether ? 0 : found.at(-1)!;
  const findAgainAt = performance.now() + FIND_AGAIN_MS;
  let users = startAnywhere(found);
  while (users.length > 0 && performance.now() < findAgainAt) {
    users = await serveEach(context, work, users);
    // Lets the event loop serve requests between batches.
    await setImmediate();
  }
  return users.length > 0;
}

/** Does a batch for each user. Returns the users with more work; none while the process drains. */
async function serveEach(context: Context, work: UserWork, users: readonly number[]): Promise<number[]> {
  const unfinished: number[] = [];
  for (const userId of users) {
    if (context.lifecycle.draining) return [];
    if (await work.doBatch(context, userId)) unfinished.push(userId);
  }
  return unfinished;
}

/** Rotates the list by a random amount, so that replicas with the same users rarely work on the same one. */
function startAnywhere(users: readonly number[]): number[] {
  const start = Math.floor(Math.random() * users.length);
  return [...users.slice(start), ...users.slice(0, start)];
}
