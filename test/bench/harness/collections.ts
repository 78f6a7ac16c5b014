import { createHash } from 'node:crypto';
import { formatToken } from '../../../src/domain/tokens.ts';
import { openDatabase } from '../../../src/store/driver/open.ts';
import { buildNextFilters, findPendingFilters } from '../../../src/store/sweep.ts';
import { makeRandom, makeTexts, type SampleText } from '../../support/texts.ts';
import { runPsql } from './programs.ts';

/** Creates users in Postgres. Their bookmarks come from a few thousand sample texts. Every run gets the same rows. */

/** Consecutive users with equal collections. */
export interface Population {
  firstUser: number;
  users: number;
  /** The number of bookmarks per user. */
  bookmarks: number;
  /** The number of tags per user. Each bookmark carries three of them. */
  tags: number;
  /** Whether the last tenth of the tags is below `Work`: `Work/Tag 300` instead of `Tag 300`. */
  hasPaths?: boolean;
}

/** A word in about an eighth of the texts. */
export const COMMON_WORD = 'server';
/** A word in about a fifth of the texts, independently of `COMMON_WORD`. */
export const SECOND_WORD = 'reading';
/** A word in one of a thousand texts. */
export const RARE_WORD = 'quixotic';

const SAMPLES = 4_000;

/**
 * Returns the sample texts, which are the same in every run. They are the texts of `makeTexts`. Some of them also
 * contain words to search for.
 */
export function makeSamples(count = SAMPLES): SampleText[] {
  const next = makeTexts(4);
  const random = makeRandom(5);
  return Array.from({ length: count }, (_, n) => {
    const text = next();
    const words = [
      random() < 0.125 ? ` ${COMMON_WORD}` : '',
      random() < 0.2 ? ` ${SECOND_WORD}` : '',
      n % 1_000 === 7 ? ` ${RARE_WORD}` : '',
    ].join('');
    return { ...text, comment: text.comment + words };
  });
}

/** Loads the sample texts that `populate` draws from. */
export async function loadSamples(url: string): Promise<void> {
  await runPsql(
    url,
    'create schema bench; create table bench.samples (n integer primary key, url text, title text, comment text)',
  );
  const rows = makeSamples().map(({ url, title, comment }, n) => `${n}\t${url}\t${title}\t${comment}\n`);
  await runPsql(url, 'copy bench.samples from stdin', rows);
}

/**
 * Creates premium users with bookmarks. The rows are stored in the same order as if the users had taken turns to add
 * bookmarks.
 */
export async function populate(url: string, population: Population): Promise<void> {
  const { firstUser, users, bookmarks, tags, hasPaths = false } = population;
  const last = firstUser + users - 1;
  const nameOf = (number: string) =>
    `case when ${hasPaths} and ${number} > ${tags - tags / 10} then 'Work/' else '' end || 'Tag ' || ${number}`;
  await runPsql(
    url,
    `begin;
    insert into users (id, email, email_key)
    select u, 'user' || u || '@bench.example', 'user' || u || '@bench.example' from generate_series(${firstUser}, ${last}) u;
    insert into accounts (user_id, is_premium, bookmark_count, tag_count)
    select u, true, ${bookmarks}, ${tags} from generate_series(${firstUser}, ${last}) u;
    insert into tags (user_id, name, name_key)
    select u, ${nameOf('t')}, lower(${nameOf('t')}) from generate_series(${firstUser}, ${last}) u, generate_series(1, ${tags}) t;
    create temporary table sets on commit drop as
    select u, s, array_agg(t.id order by t.name_key) as ids,
      '[' || string_agg('{"id":' || t.id || ',"name":"' || t.name || '"}', ',' order by t.name_key) || ']' as tags
    from generate_series(${firstUser}, ${last}) u, generate_series(0, ${tags - 1}) s,
      lateral (select distinct lower(${nameOf(`(1 + n % ${tags})`)}) as key from unnest(array[s, s * 7 + 1, s * 11 + 2]) n) wanted
    join tags t on t.name_key = wanted.key
    where t.user_id = u
    group by u, s;
    create index on sets (u, s);
    insert into bookmarks (user_id, url_key, created_at, updated_at, search_text, tag_ids, url, title, comment, tags)
    select u, md5(b.url || '?' || g)::uuid, at, at,
      lower(b.url || '?' || g || e'\\n' || b.title || e'\\n' || b.comment),
      sets.ids, b.url || '?' || g, b.title, b.comment, sets.tags
    from generate_series(0, ${bookmarks - 1}) g
    cross join generate_series(${firstUser}, ${last}) u
    join bench.samples b on b.n = (g::bigint * 7919 + u) % ${SAMPLES}
    join sets using (u)
    cross join lateral (select timestamptz '2024-01-01Z' + g * interval '61.234 s' as at) times
    where sets.s = g % ${tags}
    order by g, u;
    update tags t set bookmark_count = c.n
    from (
      select user_id, unnest(tag_ids) as id, count(*) as n from bookmarks
      where user_id between ${firstUser} and ${last} group by 1, 2
    ) c
    where t.user_id = c.user_id and t.id = c.id;
    select pack_texts(u) from generate_series(${firstUser}, ${last}) u;
    select setval('users_id_seq', greatest(${last}, (select last_value from users_id_seq)));
    commit`,
  );
}

/** Copies users' bookmarks into tables of a straightforward design, in which tags have tables of their own. */
export async function copyToNaive(url: string, firstUser: number, lastUser: number): Promise<void> {
  const theirs = `where user_id between ${firstUser} and ${lastUser}`;
  await runPsql(
    url,
    `create schema naive;
    create table naive.tags (id bigserial primary key, user_id bigint not null references users, name text not null, unique (user_id, name));
    create table naive.bookmarks (
      id bigserial primary key, user_id bigint not null references users, url text not null, title text not null,
      comment text not null, created_at timestamptz not null default now(), updated_at timestamptz not null default now()
    );
    insert into naive.tags select id, user_id, name from tags ${theirs};
    insert into naive.bookmarks select id, user_id, url, title, comment, created_at, updated_at from bookmarks ${theirs} order by id;
    create index on naive.bookmarks (user_id, id);
    create table naive.bookmark_tags (
      bookmark_id bigint references naive.bookmarks on delete cascade,
      tag_id bigint references naive.tags on delete cascade
    );
    insert into naive.bookmark_tags select id, unnest(tag_ids) from bookmarks ${theirs} order by id;
    alter table naive.bookmark_tags add primary key (bookmark_id, tag_id);
    create index on naive.bookmark_tags (tag_id);
    select setval('naive.bookmarks_id_seq', (select max(id) from naive.bookmarks));`,
  );
}

const sha256 = (text: string) => createHash('sha256').update(text).digest();

/** Returns one of the API tokens that `issueTokens` created for a user. `number` counts from 0. */
export function tokenOf(user: number, number = 0): string {
  return formatToken('api', user, secretOf(user, number));
}

const secretOf = (user: number, number: number) => sha256(`bench ${user} ${number}`).toString('base64url');

/** SQL that computes a hash from the user's id. `issueTokens` also stores a token with this hash for each user. */
export const PGBENCH_TOKEN_HASH = "decode(lpad(to_hex(:user::bigint), 64, '0'), 'hex')";

/** Issues tokens with scope write to consecutive users. */
export async function issueTokens(url: string, firstUser: number, users: number, perUser = 1): Promise<void> {
  function* rows() {
    for (let user = firstUser; user < firstUser + users; user += 1) {
      yield `${user}\t\\\\x${user.toString(16).padStart(64, '0')}\tapi\twrite\n`;
      for (let n = 0; n < perUser; n += 1) {
        yield `${user}\t\\\\x${sha256(secretOf(user, n)).toString('hex')}\tapi\twrite\n`;
      }
    }
  }
  await runPsql(url, 'copy tokens (user_id, token_hash, kind, scope) from stdin', rows());
}

/**
 * Immediately does what sweeps and autovacuum would do over time: builds Bloom filters, updates statistics and the
 * visibility map, and empties the pending list of the tags' index.
 */
export async function settle(url: string): Promise<void> {
  await signAll(url);
  await runPsql(url, 'vacuum analyze');
  await runPsql(url, 'checkpoint');
}

async function signAll(url: string): Promise<void> {
  const database = await openDatabase({ url, max: 1 });
  try {
    const find = () => findPendingFilters(database, 0, 1_000);
    for (let users = await find(); users.length > 0; users = await find()) {
      for (const user of users) while (await buildNextFilters(database, user));
    }
  } finally {
    await database.close();
  }
}
