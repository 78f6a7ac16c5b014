import type { Bench, Plan } from '../harness/bench.ts';
import { copyToNaive, issueTokens, populate, settle, tokenOf } from '../harness/collections.ts';
import { sampleLoad } from '../harness/load.ts';
import { runPsql } from '../harness/programs.ts';
import { openReference, openReplica } from '../harness/replica.ts';
import { cpuLineOf, type Line } from '../harness/report.ts';
import { compareSides, type Side } from '../harness/rounds.ts';

/** Edits and deletes single bookmarks of 64 users. Each request changes another bookmark. */

const CONNECTIONS = 8;
const USERS = 64;

/** More requests than any machine sends in a second. The table has enough bookmarks for all rounds of one side. */
const MOST_PER_SECOND = 5_000;

interface Change {
  name: string;
  what: string;
  /** The members of the request's body besides `id`. */
  fields: object;
  /** The lowest ratio of CPU times that is good enough. */
  mark: number;
}

/** Creates bookmarks for one benchmark, the same ones for the service and in the schema `naive`. */
async function openBookmarks({ environment, effort, quick }: Plan, name: string): Promise<string> {
  const seconds = effort.rounds * effort.seconds + effort.warmUpSeconds;
  const each = quick ? 40 : Math.ceil((seconds * MOST_PER_SECOND) / USERS);
  return environment.database(name, async (url) => {
    await populate(url, { firstUser: 1, users: USERS, bookmarks: each, tags: 20 });
    await issueTokens(url, 1, USERS);
    await copyToNaive(url, 1, USERS);
    await settle(url);
  });
}

const changeOne = ({ name, what, fields, mark }: Change): Bench => ({
  name,
  async run(plan): Promise<Line[]> {
    const url = await openBookmarks(plan, name);
    const rows = (await runPsql(url, `select id, user_id from bookmarks order by md5(id::text)`))
      .trim()
      .split('\n');
    const bookmarks = rows.map((row) => row.split('|').map(Number) as [id: number, user: number]);
    await using replica = await openReplica(plan, url);
    await using reference = await openReference(plan, url);
    const { postgresPid, redis } = plan.environment;
    /** A side of the comparison. Each of its runs continues with the bookmarks after those of the run before. */
    const makeSide = (
      side: Omit<Side, 'run'>,
      port: number,
      requestOf: (id: number, user: number) => Request,
    ): Side => {
      let next = 0;
      return {
        ...side,
        run: async (seconds) => {
          const most = Math.ceil(seconds * MOST_PER_SECOND);
          const requests = bookmarks.slice(next, next + most).map(([id, user]) => requestOf(id, user));
          const job = {
            port,
            path: name,
            bodies: [],
            tokens: [],
            connections: CONNECTIONS,
            expectStatus: 200,
          };
          const sample = await sampleLoad({ ...job, requests, seconds });
          next += sample.operations;
          return sample;
        },
      };
    };
    const service = makeSide(
      { name, processes: { api: [replica.pid], postgres: [postgresPid], redis: [redis.pid] } },
      replica.port,
      (id, user) => ({
        path: `/api/v1/bookmarks/${name}`,
        body: JSON.stringify({ id, ...fields }),
        token: tokenOf(user),
      }),
    );
    const naive = makeSide(
      { name: `bare Fastify, one ${name}`, processes: { api: [reference.pid], postgres: [postgresPid] } },
      reference.port,
      (id, user) => ({ path: `/${name}`, body: JSON.stringify({ user, id, ...fields }), token: '' }),
    );
    const [ours, theirs] = await compareSides([service, naive], plan.effort);
    return [cpuLineOf({ bench: name, what }, ours!, theirs!, mark)];
  },
});

interface Request {
  path: string;
  body: string;
  token: string;
}

export const edit = changeOne({
  name: 'edit',
  what: 'a new title, 64 users',
  fields: { title: 'A title that somebody likes better' },
  mark: 0.3,
});

export const deleteBookmarks = changeOne({
  name: 'delete',
  what: 'one bookmark to the trash, 64 users',
  fields: { trash: true },
  mark: 0.3,
});
