import { setTimeout as sleep } from 'node:timers/promises';
import { migrate } from '../../src/store/migrations.ts';
import { createShardedDatabase } from '../support/citus.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { sendSignal } from '../support/processes.ts';
import { runOn } from '../support/run-on.ts';
import { silentLog } from '../support/silent-log.ts';
import type { Random } from './random.ts';

/** The ways that a node of the database ends at once; neither writes down what is in memory. */
export type Crash = 'SIGQUIT' | 'SIGKILL';

/** A Postgres alone, or the nodes of a cluster, each to be hurt. */
export interface DatabaseNodes extends AsyncDisposable {
  /** The database on each node; through each of them all rows are there. The first one is the coordinator's. */
  urls: readonly string[];
  /** Ends a node at once; resolves when it takes connections again. */
  crash(url: string, how: Crash, draw: Random): Promise<void>;
  /** Moves rows between the nodes while they are written, where there are several. */
  moveRows: ((draw: Random) => Promise<void>) | undefined;
}

/**
 * fsync is off: a killed Postgres has lost nothing that it wrote, for the system's cache stays; only a machine that
 * loses its power would differ.
 */
const POSTGRES_SETTINGS = { max_connections: 200, shared_buffers: '128MB' };

/** Starts a Postgres, or makes a database on the cluster of this coordinator; its schema is there when this resolves. */
export async function openDatabaseNodes(citusUrl: string | undefined): Promise<DatabaseNodes> {
  if (citusUrl !== undefined) return openCluster(citusUrl);
  const server = await startPostgres(POSTGRES_SETTINGS);
  await migrate({ url: server.url, log: silentLog });
  return {
    urls: [server.url],
    crash: (_url, how, draw) => crashServer(server, how, draw),
    moveRows: undefined,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

async function crashServer(server: PostgresServer, how: Crash, draw: Random): Promise<void> {
  if (how === 'SIGQUIT') sendSignal(server.pid, 'SIGQUIT');
  else await server.kill();
  await sleep(draw.integer(0, 500));
  await server.restart();
}

async function openCluster(citusUrl: string): Promise<DatabaseNodes> {
  const database = await createShardedDatabase(citusUrl);
  const workers = database.nodes.filter(({ group }) => group !== 0);
  return {
    urls: database.nodes.map(({ url }) => url),
    crash: crashNode,
    moveRows: (draw) => moveRows(database.url, workers, draw),
    async [Symbol.asyncDispose]() {
      await untilOpen(database.url);
      await stopRebalance(database.url);
      await database.drop();
    },
  };
}

/**
 * Whoever is a superuser can have a backend killed. Postgres then ends all others at once, and recovers from its log, as it
 * does after its own death.
 */
async function crashNode(url: string, how: Crash): Promise<void> {
  await runOn(
    url,
    `do $$ begin execute format($f$copy (select 1) to program 'kill -%s %s'$f$, '${how.slice(3)}', pg_backend_pid()); end $$`,
  ).catch(() => {});
  await untilOpen(url);
}

async function untilOpen(url: string): Promise<void> {
  for (;;) {
    const isOpen = await runOn(url, 'select 1').then(
      () => true,
      () => false,
    );
    if (isOpen) return;
    await sleep(100);
  }
}

/** Moves the shard of some users to another worker, and has the rebalancer bring as many back. */
async function moveRows(
  url: string,
  workers: readonly { host: string; port: number }[],
  draw: Random,
): Promise<void> {
  const placements = await runOn<{ shard: string; host: string; port: number }>(
    url,
    `select shardid as shard, nodename as host, nodeport as port
    from pg_dist_shard_placement
    where shardid in (select shardid from pg_dist_shard where logicalrelid = 'accounts'::regclass)
    order by shardid`,
  );
  const { shard, host, port } = draw.pick(placements);
  const to = draw.pick(workers.filter((worker) => worker.host !== host || worker.port !== port));
  await runOn(
    url,
    `select citus_move_shard_placement(${shard}, '${host}', ${port}, '${to.host}', ${to.port}, 'force_logical')`,
  );
  await rebalance(url);
}

/** Has the rebalancer spread the rows evenly while they are written; resolves when it is done. */
export async function rebalance(url: string): Promise<void> {
  await stopRebalance(url);
  await runOn(url, "select citus_rebalance_start(shard_transfer_mode := 'force_logical')");
  await runOn(url, 'select citus_rebalance_wait()');
}

/** One that a crash has interrupted goes on by itself: it stands in the way of the next one. */
async function stopRebalance(url: string): Promise<void> {
  await runOn(url, 'select citus_rebalance_stop()').catch(() => {});
}
