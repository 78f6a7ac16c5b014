import type { Bench, Plan } from '../harness/bench.ts';
import { COMMON_WORD, RARE_WORD, SECOND_WORD } from '../harness/collections.ts';
import { measureLatency, sampleLoad } from '../harness/load.ts';
import { pgbenchSide } from '../harness/programs.ts';
import { openReplica, type Replica } from '../harness/replica.ts';
import { type Line, lineOf } from '../harness/report.ts';
import { compareSides, ratioOf, type Side } from '../harness/rounds.ts';
import { HUNDRED_THOUSAND, openCollection, TEN_THOUSAND, tokensOf } from './collection.ts';

/** Searches large collections. */

interface Search {
  what: string;
  body: {
    query?: string;
    tag?: string;
    tag_under?: string;
    without_phrases?: string[];
    any?: { phrases: string[] }[];
  };
}

const SEARCHES: readonly Search[] = [
  { what: 'common word', body: { query: COMMON_WORD } },
  { what: 'rare word', body: { query: RARE_WORD } },
  { what: 'no match', body: { query: 'zzyzx' } },
  { what: 'tag', body: { tag: 'tag 7' } },
  { what: 'under a tag', body: { tag_under: 'Work' } },
  { what: 'two words', body: { query: `${COMMON_WORD} ${SECOND_WORD}` } },
  { what: 'word without another', body: { query: COMMON_WORD, without_phrases: [SECOND_WORD] } },
  { what: 'all without a word', body: { without_phrases: [COMMON_WORD] } },
  { what: 'either of two words', body: { any: [{ phrases: [COMMON_WORD] }, { phrases: [RARE_WORD] }] } },
];

const SIZES = [
  { user: TEN_THOUSAND, what: '10,000', clients: 4 },
  { user: HUNDRED_THOUSAND, what: '100,000', clients: 2 },
];

/** Returns a straightforward SQL query for a page of 50 matches and their total number. */
function scriptOf(
  user: number,
  { query, tag, tag_under, without_phrases = [], any }: Search['body'],
): string {
  const contains = (word: string) =>
    `(url ilike '%${word}%' or title ilike '%${word}%' or comment ilike '%${word}%')`;
  const words = (query ?? '').split(' ').filter(Boolean);
  const conditions = [
    ...words.map((word) => `and ${contains(word)}`),
    ...without_phrases.map((word) => `and not ${contains(word)}`),
    ...(any === undefined
      ? []
      : [`and (${any.flatMap(({ phrases }) => phrases.map(contains)).join(' or ')})`]),
  ];
  const name = tag ?? tag_under;
  const names = `t.name ilike '${name}'${tag_under === undefined ? '' : ` or t.name ilike '${name}/%'`}`;
  const tagged = `and exists (
    select from naive.bookmark_tags bt join naive.tags t on t.id = bt.tag_id
    where bt.bookmark_id = b.id and (${names})
  )`;
  return `select id, url, title, comment, created_at, updated_at, count(*) over () as total
    from naive.bookmarks b where user_id = ${user} ${conditions.join(' ')} ${name === undefined ? '' : tagged}
    order by id desc limit 50;`;
}

async function runSearch(
  plan: Plan,
  url: string,
  replica: Replica,
  { user, what, clients }: (typeof SIZES)[number],
  search: Search,
): Promise<Line> {
  const { folder, postgresPid } = plan.environment;
  const job = {
    port: replica.port,
    path: '/api/v1/bookmarks/search',
    bodies: [JSON.stringify(search.body)],
    tokens: tokensOf(user),
    connections: clients,
    expectStatus: 200,
  };
  const service: Side = {
    name: 'search',
    processes: { api: [replica.pid], postgres: [postgresPid] },
    run: (seconds) => sampleLoad({ ...job, seconds }),
    latency: (perSecond, seconds) => measureLatency({ ...job, perSecond, seconds }),
  };
  const script = { url, folder, name: 'search', text: scriptOf(user, search.body), clients };
  const ilike = pgbenchSide('pgbench, ilike on three columns', script, { postgres: [postgresPid] });
  const effort = {
    ...plan.effort,
    seconds: plan.effort.seconds / 2,
    warmUpSeconds: plan.effort.warmUpSeconds / 4,
  };
  const [ours, theirs] = await compareSides([service, ilike], effort);
  const ratio = ratioOf(ours!, theirs!);
  const line = lineOf({ bench: 'search', what: `${search.what}, ${what}` }, ours!, theirs!, ratio, 5);
  if (user === TEN_THOUSAND) return line;
  return { ...line, mark: { text: 'p99 ≤ 100 ms', reached: ours!.latency!.p99.median <= 100 } };
}

export const search: Bench = {
  name: 'search',
  async run(plan) {
    const url = await openCollection(plan);
    await using replica = await openReplica(plan, url);
    const lines: Line[] = [];
    for (const size of plan.quick ? SIZES.slice(-1) : SIZES) {
      for (const each of SEARCHES) lines.push(await runSearch(plan, url, replica, size, each));
    }
    return lines;
  },
};
