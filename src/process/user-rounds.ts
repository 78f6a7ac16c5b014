import { setImmediate } from 'node:timers/promises';
import type { Context } from '../context.ts';
import type { Database } from '../store/database.ts';

/** How often users are looked for while some are at work. */
const FIND_AGAIN_MS = 1_000;

/** Users that are found at a time. */
const FOUND_TOGETHER = 1_000;

/** What a sweep does for each of some users. */
export interface UserWork {
  /** At most `limit` users for whom there is work, with ids above `after`, in the order of ids. */
  find(database: Database, after: number, limit: number): Promise<number[]>;
  /** Does a batch of a user's work; resolves to whether more of it is left. */
  doBatch(context: Context, userId: number): Promise<boolean>;
}

/** How far a sweep has come: to the last user that it found. It goes on behind that one, also where it failed there. */
export interface Round {
  after: number;
  readonly foundTogether: number;
}

export const beginRound = (foundTogether = FOUND_TOGETHER): Round => ({ after: 0, foundTogether });

/**
 * Does the work of all users, some at a time, round after round until one leaves nothing. However many users there are whose
 * work never ends, or fails: those with higher ids are found next.
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

/** Serves the next users of the round, each at least once, for a second or so; resolves to whether work of them is left. */
async function serveNext(context: Context, work: UserWork, round: Round): Promise<boolean> {
  const found = await work.find(context.database, round.after, round.foundTogether);
  round.after = found.length < round.foundTogether ? 0 : found.at(-1)!;
  const findAgainAt = performance.now() + FIND_AGAIN_MS;
  let users = startAnywhere(found);
  while (users.length > 0 && performance.now() < findAgainAt) {
    users = await serveEach(context, work, users);
    // Batches of one user must not keep this process from its requests.
    await setImmediate();
  }
  return users.length > 0;
}

/** Does a batch of each user; returns the users of whom more is left, none while this process drains. */
async function serveEach(context: Context, work: UserWork, users: readonly number[]): Promise<number[]> {
  const unfinished: number[] = [];
  for (const userId of users) {
    if (context.lifecycle.draining) return [];
    if (await work.doBatch(context, userId)) unfinished.push(userId);
  }
  return unfinished;
}

/** The same users from any of them on: replicas that have found them at the same time seldom meet at one. */
function startAnywhere(users: readonly number[]): number[] {
  const start = Math.floor(Math.random() * users.length);
  return [...users.slice(start), ...users.slice(0, start)];
}
