import { formatCursor } from '../../../src/routes/cursor.ts';
import type { Bench, Plan } from '../harness/bench.ts';
import { sampleLoad } from '../harness/load.ts';
import { runPsql } from '../harness/programs.ts';
import { openReference, openReplica } from '../harness/replica.ts';
import { lineOf } from '../harness/report.ts';
import { compareSides, ratioOf, type Side } from '../harness/rounds.ts';
import { openCollection, TEN_THOUSAND, tokensOf } from './collection.ts';

/** Reads pages of a collection of 10,000 bookmarks, from many positions. */

const CONNECTIONS = 8;

interface PageBench {
  name: string;
  limit: number;
  path: string;
  bodyOf(afterId: number): object;
}

/** Returns cursors that are spread over the collection. A full page follows each of them. */
async function readStarts(url: string, limit: number): Promise<number[]> {
  const ids = await runPsql(
    url,
    `select id from (
      select id, row_number() over (order by id) as place, count(*) over () as n
      from bookmarks where user_id = ${TEN_THOUSAND}
    ) b where place < n - ${limit} and place % 97 = 1`,
  );
  return ids.trim().split('\n').map(Number);
}

const pageBench = ({ name, limit, path, bodyOf }: PageBench): Bench => ({
  name,
  async run(plan: Plan) {
    const url = await openCollection(plan);
    const starts = await readStarts(url, limit);
    await using replica = await openReplica(plan, url);
    await using reference = await openReference(plan, url);
    const { postgresPid, redis } = plan.environment;
    const load = { connections: CONNECTIONS, expectStatus: 200 };
    const service: Side = {
      name,
      processes: { api: [replica.pid], postgres: [postgresPid], redis: [redis.pid] },
      run: (seconds) =>
        sampleLoad({
          ...load,
          port: replica.port,
          path,
          bodies: starts.map((id) => JSON.stringify(bodyOf(id))),
          tokens: tokensOf(TEN_THOUSAND),
          seconds,
        }),
    };
    const naive: Side = {
      name: 'bare Fastify, tags joined, rows to objects',
      processes: { api: [reference.pid], postgres: [postgresPid] },
      run: (seconds) =>
        sampleLoad({
          ...load,
          port: reference.port,
          path: '/list',
          bodies: starts.map((cursor) => JSON.stringify({ user: TEN_THOUSAND, cursor, limit })),
          tokens: [],
          seconds,
        }),
    };
    const [ours, theirs] = await compareSides([service, naive], plan.effort);
    return [lineOf({ bench: name, what: `pages of ${limit}` }, ours!, theirs!, ratioOf(ours!, theirs!), 1.8)];
  },
});

const listBody = (limit: number) => (id: number) => ({ limit, cursor: formatCursor(TEN_THOUSAND, id) });
const LIST = '/api/v1/bookmarks/list';

export const list = pageBench({ name: 'list', limit: 100, path: LIST, bodyOf: listBody(100) });
export const list500 = pageBench({ name: 'list500', limit: 500, path: LIST, bodyOf: listBody(500) });
export const sync100 = pageBench({
  name: 'sync100',
  limit: 100,
  path: '/api/v1/bookmarks/sync',
  bodyOf: (cursor) => ({ cursor, limit: 100 }),
});
