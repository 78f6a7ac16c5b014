import type { Bench, Plan } from '../harness/bench.ts';
import { issueTokens, PGBENCH_TOKEN_HASH, populate, settle, tokenOf } from '../harness/collections.ts';
import { sampleLoad } from '../harness/load.ts';
import { repeatPgbench, runPsql } from '../harness/programs.ts';
import { startReplica } from '../harness/replica.ts';
import { cpuLineOf, type Line } from '../harness/report.ts';
import { compareSides, type Side } from '../harness/rounds.ts';
import { spreadOf } from '../harness/stats.ts';
import { KINDS } from './growth.ts';
import { range } from './waiters.ts';

/** Compares a database after a year of use with a copy whose rows have been written again in order. */

const TAGS = 20;
const eachOf = ({ quick }: Plan): number => (quick ? 20 : 100);

/**
 * Returns how many changes each user makes in the simulated year: one a week. Each change is an add, an edit, a
 * deletion or a renamed tag.
 */
const changesOf = ({ quick }: Plan): number => (quick ? 5 : 52);

/** The number of users who send requests. All of them have bookmarks that were changed. */
const USERS = 100;

const usersOf = ({ quick }: Plan): number => (quick ? 100 : 2_000);

/**
 * Returns a script that makes one random change for a random user, with the service's own functions. Of 100 changes,
 * about 40 are adds, 30 edits, 25 deletions and 5 renamed tags.
 */
const changeScript = (users: number, lastId: number): string => `
\\set user random(1, ${users})
\\set dice random(1, 100)
\\set n random(1, 1000000000)
\\set low random(1, ${lastId})
\\set tag random(1, ${TAGS - 1})
\\if :dice <= 40
  select outcome from add_bookmark(
    :user, ${PGBENCH_TOKEN_HASH},
    format(
      '{"url":"https://bench.example/added/%1$s","title":"A page that somebody wants to read, number %1$s","comment":"",'
      '"url_key":"%2$s","search_text":"https://bench.example/added/%1$s\\na page that somebody wants to read, number %1$s\\n"}',
      :n::bigint, md5(:n::text)
    )::jsonb,
    array['Tag ' || :tag, 'Tag ' || (:tag::integer + 1)], array['tag ' || :tag, 'tag ' || (:tag::integer + 1)],
    1000000000, 10000, null, null
  );
\\elif :dice <= 95
  select coalesce(
    (select id from bookmarks where user_id = :user and id >= :low order by id limit 1),
    (select max(id) from bookmarks where user_id = :user), 0
  ) as id \\gset
  \\if :dice <= 70
    select outcome from edit_bookmark(
      :user, ${PGBENCH_TOKEN_HASH}, :id, null,
      jsonb_build_object('title', 'Another title, number ' || :n, 'title_line', 'another title, number ' || :n),
      array['Tag ' || :tag], array['tag ' || :tag], 10000, null, null
    );
  \\else
    select outcome from delete_bookmark(:user, ${PGBENCH_TOKEN_HASH}, :id, null, null, null, null);
  \\endif
\\else
  select coalesce(min(id), 0) as tag_id from tags where user_id = :user and name_key = 'tag ' || :tag \\gset
  select outcome from rename_tag(
    :user, ${PGBENCH_TOKEN_HASH}, :tag_id, 'TAG ' || :tag, 'tag ' || :tag, 0, 10000, null, null
  );
\\endif`;

/**
 * Creates users and changes their bookmarks for a simulated year. Autovacuum runs more often than by default, because
 * the simulated year takes only minutes.
 */
async function openAged(plan: Plan): Promise<string> {
  const { environment } = plan;
  const [users, each] = [usersOf(plan), eachOf(plan)];
  return environment.database('aged', async (url) => {
    await populate(url, { firstUser: 1, users, bookmarks: each, tags: TAGS });
    await issueTokens(url, 1, users);
    await settle(url);
    await runPsql(url, "alter system set autovacuum_naptime = '1s'");
    await runPsql(url, 'select pg_reload_conf()');
    const lastId = Math.ceil(users * each * 1.2);
    const script = {
      url,
      folder: environment.folder,
      name: 'year',
      text: changeScript(users, lastId),
      clients: 8,
    };
    await repeatPgbench(script, users * changesOf(plan));
    await runPsql(url, 'alter system reset autovacuum_naptime');
    await runPsql(url, 'select pg_reload_conf()');
    await runPsql(url, 'checkpoint');
  });
}

/** Rewrites the rows of a database in the order in which they were added, as if they had never been changed. */
async function rewriteRows(url: string): Promise<void> {
  await runPsql(
    url,
    `begin;
    create temporary table kept on commit drop as select * from bookmarks order by id;
    truncate bookmarks;
    insert into bookmarks select * from kept order by id;
    commit`,
  );
  await runPsql(url, 'vacuum full accounts');
  await runPsql(url, 'vacuum full tags');
  await runPsql(url, 'vacuum full tokens');
  await runPsql(url, 'vacuum full changes');
  await settle(url);
}

/** Returns how many bytes a bookmark takes on average, in its table and in the table's indexes. */
async function readBytes(url: string): Promise<{ heap: number; indexes: number }> {
  const printed = await runPsql(
    url,
    "select pg_table_size('bookmarks') / count(*), pg_indexes_size('bookmarks') / count(*) from bookmarks",
  );
  const [heap, indexes] = printed.trim().split('|').map(Number);
  return { heap: heap!, indexes: indexes! };
}

async function describeBytes(lived: string, fresh: string): Promise<Line[]> {
  const [ours, theirs] = [await readBytes(lived), await readBytes(fresh)];
  return (['heap', 'indexes'] as const).map((part) => ({
    bench: 'aged',
    what: `${part} of a bookmark`,
    unit: 'bytes',
    service: spreadOf([ours[part]]),
    reference: spreadOf([theirs[part]]),
    ratio: spreadOf([theirs[part] / ours[part]]),
  }));
}

export const aged: Bench = {
  name: 'aged',
  async run(plan) {
    const { environment, effort } = plan;
    const original = await openAged(plan);
    const fresh = await environment.copy(original, 'rewritten');
    await rewriteRows(fresh);
    const lived = await environment.copy(original, 'lived');
    await using ours = await startReplica(environment, lived);
    await using theirs = await startReplica(environment, fresh);
    const lines = await describeBytes(lived, fresh);
    for (const [kind, { connections, ...request }] of Object.entries(KINDS)) {
      const sides = [ours, theirs].map(
        ({ port, pid }, n): Side => ({
          name: n === 0 ? 'aged' : 'the same rows, newly written',
          processes: { api: [pid], postgres: [environment.postgresPid] },
          run: (seconds) =>
            sampleLoad({
              ...request,
              port,
              tokens: range(1, USERS).map((user) => tokenOf(user)),
              connections,
              seconds,
              expectStatus: 200,
            }),
        }),
      );
      const [old, fresher] = await compareSides(sides, effort);
      lines.push(cpuLineOf({ bench: 'aged', what: kind }, old!, fresher!, 0.8));
    }
    return lines;
  },
};
