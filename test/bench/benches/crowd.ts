import type { Plan } from '../harness/bench.ts';
import { issueTokens, populate, settle } from '../harness/collections.ts';
import { runPsql } from '../harness/programs.ts';

/** Creates many users who have few bookmarks each and who poll like sync clients. */

export const crowdOf = ({ quick }: Plan) => (quick ? 200 : 10_000);

/** The number of polls that one token may hold. */
const WAITS_PER_TOKEN = 16;

/** The number of users besides the crowd. Each has enough tokens to hold as many polls as the crowd has users. */
const USERS_WITH_MANY_TOKENS = 3;

export const tokensForAll = (plan: Plan): number => Math.ceil(crowdOf(plan) / WAITS_PER_TOKEN);

/**
 * Creates the crowd, whose ids start at 1 and who have one token each, and then the users with many tokens. In the
 * schema `naive`, the table of bookmarks is empty.
 */
export function openCrowd(plan: Plan, bookmarksOfEach: number): Promise<string> {
  const users = crowdOf(plan);
  return plan.environment.database(`crowd_${bookmarksOfEach}`, async (url) => {
    await populate(url, { firstUser: 1, users, bookmarks: bookmarksOfEach, tags: 10 });
    await populate(url, { firstUser: users + 1, users: USERS_WITH_MANY_TOKENS, bookmarks: 2, tags: 10 });
    await issueTokens(url, 1, users);
    await issueTokens(url, users + 1, USERS_WITH_MANY_TOKENS, tokensForAll(plan));
    await runPsql(
      url,
      `create schema naive;
      create table naive.bookmarks (
        id bigserial primary key, user_id bigint not null references users, url text not null, title text not null,
        comment text not null, created_at timestamptz not null default now(), updated_at timestamptz not null default now()
      );
      create index on naive.bookmarks (user_id, id)`,
    );
    await settle(url);
  });
}

/** Returns the id of the last bookmark, for use as a cursor. No user has a bookmark after it. */
export async function readLastId(url: string): Promise<number> {
  return Number(await runPsql(url, 'select max(id) from bookmarks'));
}
