import { MAX_ID } from '../../../src/domain/fields.ts';
import { openDatabase } from '../../../src/store/driver/open.ts';
import { migrate } from '../../../src/store/schema/migrations.ts';
import { createShardedDatabase, nodesTemplate } from '../../support/citus.ts';
import { post } from '../../support/post.ts';
import { runOn, withDatabase } from '../../support/run-on.ts';
import { silentLog } from '../../support/silent-log.ts';
import { createPrincipal } from '../../support/users.ts';
import type { Bench, Plan } from '../harness/bench.ts';
import { makeSamples } from '../harness/collections.ts';
import { sampleLoad } from '../harness/load.ts';
import { type Replica, startReplica } from '../harness/replica.ts';
import { cpuLineOf, type Line } from '../harness/report.ts';
import { compareSides, type Side } from '../harness/rounds.ts';

/**
 * Measures what an operation of one user costs the nodes of a Citus cluster, compared with one Postgres. The one
 * Postgres is a database without the Citus extension, on the coordinator's own server. The replica queries each user's
 * node directly. `TEST_CITUS_URL` is the url of the coordinator. All nodes must run on this machine.
 */

const CONNECTIONS = 4;
const USERS = 16;

interface Operation {
  what: string;
  path: string;
  bodyOf(n: number): object;
  /** The lowest accepted ratio of the CPU time of one Postgres to that of all nodes together. */
  mark: number;
}

const OPERATIONS: readonly Operation[] = [
  {
    what: 'add with 2 tags',
    path: 'add',
    bodyOf: (n) => ({ url: `https://bench.example/${n}`, title: `Page ${n}`, tags: [`t${n % 9}`, 'read'] }),
    mark: 0.45,
  },
  { what: 'page of 50', path: 'list', bodyOf: () => ({ limit: 50 }), mark: 0.45 },
  { what: 'sync, a page of 100', path: 'sync', bodyOf: () => ({ cursor: 0, limit: 100 }), mark: 0.45 },
  { what: 'sync, nothing new', path: 'sync', bodyOf: () => ({ cursor: MAX_ID }), mark: 0.33 },
  { what: 'search for a word', path: 'search', bodyOf: () => ({ query: 'server' }), mark: 0.45 },
];

/** A replica and its database, which has users with bookmarks. */
interface Deployment {
  replica: Replica;
  tokens: string[];
  /** The process ids of the Postgres servers of all nodes. */
  postgres: number[];
}

async function openDeployment(
  { environment, quick }: Plan,
  url: string,
  nodes: readonly string[],
  settings: Record<string, string>,
  stack: AsyncDisposableStack,
): Promise<Deployment> {
  const database = await openDatabase({ url, max: 2 });
  const principals = await Promise.all(
    Array.from({ length: USERS }, (_, n) =>
      createPrincipal(database, { email: `user-${n}@bench.example`, premium: true }),
    ),
  );
  await database.close();
  const replica = stack.use(await startReplica(environment, url, settings));
  const tokens = principals.map(({ token }) => token);
  const bookmarks = makeSamples(quick ? 100 : 500).map((sample, n) => ({
    ...{ ...sample, url: `${sample.url}?${n}` },
    tags: [`t${n % 20}`],
  }));
  for (const token of tokens)
    await post(`http://127.0.0.1:${replica.port}`, '/import', { bookmarks }, { token });
  const pids = nodes.map((node) =>
    runOn<{ pid: number }>(node, "select split_part(pg_read_file('postmaster.pid'), e'\\n', 1)::int as pid"),
  );
  return { replica, tokens, postgres: (await Promise.all(pids)).map(([row]) => row!.pid) };
}

const sideOf = ({ replica, tokens, postgres }: Deployment, { path, bodyOf }: Operation): Side => ({
  name: path,
  processes: { postgres },
  run: (seconds) =>
    sampleLoad({
      port: replica.port,
      path: `/api/v1/bookmarks/${path}`,
      bodies: Array.from({ length: 997 }, (_, n) => JSON.stringify(bodyOf(n))),
      ...{ tokens, connections: CONNECTIONS, seconds, expectStatus: 200 },
    }),
});

async function openPlain(coordinatorUrl: string, stack: AsyncDisposableStack): Promise<string> {
  const name = `bookmark_bench_${process.pid}`;
  await runOn(coordinatorUrl, `create database ${name}`);
  stack.defer(async () => {
    await runOn(coordinatorUrl, `drop database ${name} with (force)`);
  });
  const url = withDatabase(coordinatorUrl, name);
  await migrate({ url, log: silentLog });
  return url;
}

export const sharded: Bench = {
  name: 'sharded',
  async run(plan): Promise<Line[]> {
    const coordinatorUrl = process.env.TEST_CITUS_URL;
    if (!coordinatorUrl) {
      console.error('sharded: not run, as TEST_CITUS_URL names no coordinator');
      return [];
    }
    await using stack = new AsyncDisposableStack();
    const plainUrl = await openPlain(coordinatorUrl, stack);
    const cluster = stack.use(await createShardedDatabase(coordinatorUrl));
    const plain = await openDeployment(plan, plainUrl, [plainUrl], {}, stack);
    const nodes = cluster.nodes.map(({ url }) => url);
    const settings = { DATABASE_NODES: nodesTemplate(cluster.url) };
    const spread = await openDeployment(plan, cluster.url, nodes, settings, stack);
    const lines: Line[] = [];
    for (const operation of OPERATIONS) {
      const [ours, theirs] = await compareSides(
        [sideOf(spread, operation), sideOf(plain, operation)],
        plan.effort,
      );
      lines.push(cpuLineOf({ bench: 'sharded', what: operation.what }, ours!, theirs!, operation.mark));
    }
    return lines;
  },
};
