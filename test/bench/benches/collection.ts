import type { Plan } from '../harness/bench.ts';
import { copyToNaive, issueTokens, populate, settle, tokenOf } from '../harness/collections.ts';

/** The database that most benchmarks read, created once per run. The schema `naive` contains the same bookmarks. */

/** The ids of the users with 10,000 and with 100,000 bookmarks, and of the users to whom benchmarks add bookmarks. */
export const TEN_THOUSAND = 1;
export const HUNDRED_THOUSAND = 2;
export const ADDING = { first: 101, count: 64 };

/**
 * Each of these users has this many tokens. With fewer, a token could exceed its limit of 100,000 requests a minute.
 */
const TOKENS_PER_USER = 20;

/** Returns how many bookmarks the two large collections have. */
export const sizesOf = ({ quick }: Plan) =>
  quick ? { ten: 700, hundred: 1_500 } : { ten: 10_000, hundred: 100_000 };

/** Creates the database on the first call. Returns the database's url. */
export function openCollection(plan: Plan): Promise<string> {
  const { ten, hundred } = sizesOf(plan);
  return plan.environment.database('collection', async (url) => {
    await populate(url, { firstUser: TEN_THOUSAND, users: 1, bookmarks: ten, tags: 300, hasPaths: true });
    await populate(url, {
      firstUser: HUNDRED_THOUSAND,
      users: 1,
      bookmarks: hundred,
      tags: 1_000,
      hasPaths: true,
    });
    await populate(url, { firstUser: ADDING.first, users: ADDING.count, bookmarks: 100, tags: 50 });
    await issueTokens(url, TEN_THOUSAND, 2, TOKENS_PER_USER);
    await issueTokens(url, ADDING.first, ADDING.count, TOKENS_PER_USER);
    await copyToNaive(url, TEN_THOUSAND, ADDING.first + ADDING.count);
    await settle(url);
  });
}

/** Returns all tokens of a user. */
export const tokensOf = (user: number): string[] =>
  Array.from({ length: TOKENS_PER_USER }, (_, number) => tokenOf(user, number));

/** Returns consecutive ids, starting with `first`. */
export const usersFrom = (first: number, count: number): number[] =>
  Array.from({ length: count }, (_, n) => first + n);
