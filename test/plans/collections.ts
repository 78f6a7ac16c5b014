import type { PrincipalKey } from '../../src/store/tokens.ts';

/** One big account among many small ones, and what Postgres's statistics know about them. */

const HASH = Buffer.alloc(32, 7);

/** An account whose query plans are tested. */
export interface Collection {
  owner: PrincipalKey;
  bookmarks: number;
  tags: number;
  /** The ids of the account's bookmarks, in ascending order. */
  ids: number[];
}

export const BIG = { userId: 1, bookmarks: 20_000, tags: 2_000 };
export const SMALL = { users: 3_000, bookmarks: 20, tags: 30 };

/** Describes the account of a user, with its size. */
export const describeCollection = (userId: number, ids: number[]): Collection => ({
  owner: { userId, hash: HASH },
  ...(userId === BIG.userId ? BIG : SMALL),
  ids,
});

/**
 * Returns SQL that creates users, starting with number `first`. Each user has tags, bookmarks with three of these tags,
 * packed texts, and a finished import.
 */
const fillUsers = (first: number, last: number, bookmarks: number, tags: number): string => `
  insert into users (id, email, email_key) select u, u, u from generate_series(${first}, ${last}) u;
  insert into accounts (user_id, is_premium, bookmark_count, tag_count)
  select u, true, ${bookmarks}, ${tags} from generate_series(${first}, ${last}) u;
  insert into tokens (user_id, token_hash, last_four, kind, scope)
  select u, decode(repeat('07', 32), 'hex'), '', 'api', 'write' from generate_series(${first}, ${last}) u;
  insert into invites (code, email, email_key, expires_at)
  select upper(left(md5(u::text), 8)), u, u, now() + interval '1 day' from generate_series(${first}, ${last}) u;
  insert into idempotency_keys (user_id, key, request_hash, response, bytes)
  select u, 'key', '\\x', '', 0 from generate_series(${first}, ${last}) u;
  insert into imports (user_id, id, is_staged, state, result, expires_at)
  select u, gen_random_uuid(), false, 'done', '', now() + interval '1 hour' from generate_series(${first}, ${last}) u;
  insert into tags (user_id, id, name, name_key)
  select u, t + 1, 'Tag/' || t, 'tag/' || t
  from generate_series(${first}, ${last}) u cross join generate_series(0, ${tags - 1}) t;
  insert into bookmarks (
    user_id, created_at, updated_at, url_key, url, title, comment, tag_ids, tags, search_text
  )
  select u, now(), now(), md5(n::text)::uuid, 'https://example.org/' || n, 'Bookmark', '',
    array[n % ${tags} + 1, (n + 1) % ${tags} + 1, (n + 2) % ${tags} + 1],
    '[]', 'https://example.org/' || n || e'\\nbookmark\\n'
  from generate_series(0, ${bookmarks - 1}) n cross join generate_series(${first}, ${last}) u;
  update tags t set bookmark_count = carried.bookmarks
  from (
    select user_id, tag_id, count(*) as bookmarks
    from bookmarks cross join unnest(tag_ids) as tag_id
    where user_id between ${first} and ${last}
    group by user_id, tag_id
  ) carried
  where t.user_id = carried.user_id and t.id = carried.tag_id;
  insert into changes (user_id, kind, object_id, number)
  select user_id, 'bookmark', id, row_number() over (partition by user_id order by id)
  from bookmarks where user_id between ${first} and ${last} and id % 2 = 0;
  update accounts set last_change = 100000 where user_id between ${first} and ${last};
  select pack_texts(u) from generate_series(${first}, ${last}) u`;

const smallOnes = (first: number, last: number): string =>
  fillUsers(first, last, SMALL.bookmarks, SMALL.tags);
const FEW = smallOnes(2, 31);
const OTHERS = smallOnes(32, SMALL.users + 1);
const BIG_ONE = fillUsers(BIG.userId, BIG.userId, BIG.bookmarks, BIG.tags);

/**
 * The statements that fill the two databases. `others` has all accounts except the big one. `all` is a copy of `others`
 * to which the big account is added. `vacuum analyze` runs when only the first few accounts exist. So Postgres has
 * statistics about them, and none about the later accounts.
 */
export const FILLING = { others: [FEW, 'vacuum analyze', OTHERS], all: [BIG_ONE] } as const;

/**
 * Returns statements that remove the statistics, as if the tables had never been analyzed (-1), or had been analyzed
 * only while they were empty (0).
 */
const forgetWith = (rows: -1 | 0): readonly string[] => [
  "delete from pg_statistic where starelid in (select oid from pg_class where relnamespace = 'public'::regnamespace)",
  `update pg_class set reltuples = ${rows}, relpages = 0, relallvisible = 0
  where relnamespace = 'public'::regnamespace and relkind in ('r', 'i')`,
];

/** A state of Postgres's statistics: which database is copied, and which statements then run in the copy. */
export interface Knowledge {
  from: 'others' | 'all';
  steps: readonly string[];
  /**
   * If set, another transaction stays open during the test, as it does during a dump. Postgres then cannot remove
   * deleted rows.
   */
  hasOldSnapshot?: boolean;
}

export const KNOWLEDGE: Readonly<Record<string, Knowledge>> = {
  fresh: { from: 'all', steps: ['analyze'] },
  'from before the big account': { from: 'others', steps: ['analyze', BIG_ONE] },
  'of a handful of other accounts': { from: 'all', steps: [] },
  'of empty tables': { from: 'all', steps: forgetWith(0) },
  missing: { from: 'all', steps: forgetWith(-1) },
  'missing, while another transaction is open': {
    from: 'all',
    steps: forgetWith(-1),
    hasOldSnapshot: true,
  },
};

/**
 * The tables that `FILLING` and the operations write. Autovacuum is off for them, because their statistics must not
 * change during a test.
 */
export const TABLES = [
  'users',
  'accounts',
  'tokens',
  'invites',
  'idempotency_keys',
  'imports',
  'import_batches',
  'tags',
  'bookmarks',
  'search_blocks',
  'search_signatures',
  'changes',
];
