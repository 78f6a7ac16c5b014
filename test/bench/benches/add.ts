import { type Bench, copyForWrites, type Plan } from '../harness/bench.ts';
import { PGBENCH_TOKEN_HASH } from '../harness/collections.ts';
import { sampleLoad } from '../harness/load.ts';
import { pgbenchSide } from '../harness/programs.ts';
import { openReference, openReplica, type Replica } from '../harness/replica.ts';
import { type Line, lineOf } from '../harness/report.ts';
import { compareSides, ratioOf, type Side } from '../harness/rounds.ts';
import { ADDING, openCollection, tokensOf, usersFrom } from './collection.ts';

/** Adds bookmarks with two tags for 64 users. */

const CLIENTS = 32;
const USERS = usersFrom(ADDING.first, ADDING.count);

/** The number of adds in a batch. */
const BATCH = 100;

const bodyOf = (n: number) => ({
  url: `https://bench.example/added/${n}`,
  title: `A page that somebody wants to read, number ${n}`,
  comment: 'Something was said about it, and this is where it was said at some length.',
});

const tagged = (n: number) => ({ ...bodyOf(n), tags: [`Tag ${1 + (n % 49)}`, `Tag ${2 + (n % 49)}`] });

/** Calls the SQL function that the service calls for an add, with typical values. */
const ADD_SCRIPT = `
\\set user random(${ADDING.first}, ${ADDING.first + ADDING.count - 1})
\\set n random(1, 1000000000)
\\set tag random(1, 49)
select outcome, bookmark from add_bookmark(
  :user, ${PGBENCH_TOKEN_HASH},
  format(
    '{"url":"https://bench.example/added/%1$s","title":"A page that somebody wants to read, number %1$s",'
    '"comment":"Something was said about it, and this is where it was said at some length.","url_key":"%2$s",'
    '"search_text":"https://bench.example/added/%1$s\\na page that somebody wants to read, number %1$s'
    '\\nsomething was said about it, and this is where it was said at some length."}',
    :n::bigint, md5(:n::text)
  )::jsonb,
  array['Tag ' || :tag, 'Tag ' || (:tag::integer + 1)], array['tag ' || :tag, 'tag ' || (:tag::integer + 1)],
  1000000000, 10000, null, null
);`;

function serviceSide(plan: Plan, replica: Replica, connections: number): Side {
  const { postgresPid, redis } = plan.environment;
  return {
    name: 'add',
    processes: { api: [replica.pid], postgres: [postgresPid], redis: [redis.pid] },
    run: (seconds) =>
      sampleLoad({
        port: replica.port,
        path: '/api/v1/bookmarks/add',
        bodies: Array.from({ length: 997 }, (_, n) => JSON.stringify(tagged(n))),
        tokens: USERS.flatMap(tokensOf),
        connections,
        seconds,
        expectStatus: 200,
      }),
  };
}

/** Sends adds in batches over one connection. The batches are atomic, so a refused add is an unexpected response. */
function batchSide(plan: Plan, replica: Replica): Side {
  const operations = Array.from({ length: BATCH }, (_, n) => ({ do: 'add', ...tagged(n) }));
  return {
    ...serviceSide(plan, replica, 1),
    name: 'add, in batches',
    run: async (seconds) => {
      const sent = await sampleLoad({
        port: replica.port,
        path: '/api/v1/bookmarks/batch',
        bodies: [JSON.stringify({ operations, atomic: true })],
        tokens: USERS.flatMap(tokensOf),
        connections: 1,
        seconds,
        expectStatus: 200,
      });
      return { ...sent, rate: sent.rate * BATCH, operations: sent.operations * BATCH };
    },
  };
}

function naiveSide(plan: Plan, reference: Replica, connections: number): Side {
  return {
    name: 'bare Fastify, one insert without tags',
    processes: { api: [reference.pid], postgres: [plan.environment.postgresPid] },
    run: (seconds) =>
      sampleLoad({
        port: reference.port,
        path: '/add',
        bodies: Array.from({ length: 997 }, (_, n) =>
          JSON.stringify({ ...bodyOf(n), user: USERS[n % USERS.length] }),
        ),
        tokens: [],
        connections,
        seconds,
        expectStatus: 200,
      }),
  };
}

export const add: Bench = {
  name: 'add',
  async run(plan): Promise<Line[]> {
    const { environment, effort } = plan;
    const original = await openCollection(plan);
    const url = await copyForWrites(plan, original, 'adding');
    await using replica = await openReplica(plan, url);
    await using reference = await openReference(plan, url);
    const pgbench = pgbenchSide(
      'pgbench, the same statement',
      { url, folder: environment.folder, name: 'add', text: ADD_SCRIPT, clients: 10 },
      { postgres: [environment.postgresPid] },
    );
    const [ours, theirs] = await compareSides([serviceSide(plan, replica, CLIENTS), pgbench], effort);
    const [few, naive] = await compareSides(
      [serviceSide(plan, replica, 8), naiveSide(plan, reference, 8)],
      effort,
    );
    const [batched, single] = await compareSides(
      [batchSide(plan, replica), serviceSide(plan, replica, 1)],
      effort,
    );
    const postgres = ours!.cpuMicros.postgres!;
    return [
      lineOf({ bench: 'add', what: '2 tags, 64 users' }, ours!, theirs!, ratioOf(ours!, theirs!), 0.6),
      {
        bench: 'add',
        what: '2 tags, 64 users: CPU of postgres',
        unit: 'µs',
        service: postgres,
        mark: { text: '≤ 300 µs', reached: postgres.median <= 300 },
      },
      lineOf(
        { bench: 'add', what: 'compared with a bare insert, 8 clients' },
        few!,
        naive!,
        ratioOf(few!, naive!),
        1.01,
      ),
      lineOf(
        { bench: 'add', what: `in batches of ${BATCH}, compared with single adds, 1 connection` },
        batched!,
        single!,
        ratioOf(batched!, single!),
      ),
    ];
  },
};
