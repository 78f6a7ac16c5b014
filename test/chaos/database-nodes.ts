import { setTimeout as sleep } from 'node:timers/promises';
import { migrate } from '../../src/store/schema/migrations.ts';
import { createShardedDatabase } from '../support/citus.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { runOn } from '../support/run-on.ts';
import { silentLog } from '../support/silent-log.ts';
import type { Random } from './random.ts';

/** The ways to end a node immediately. With either of them, Postgres does not write its memory to disk. */
export type Crash = 'SIGQUIT' | 'SIGKILL';

/** One Postgres, or the nodes of a cluster. */
export interface DatabaseNodes extends AsyncDisposable {
  /**
   * The url of the database on each node. All rows are visible through each node. The first node is the coordinator.
   */
  urls: readonly string[];
  /**
   * Ends a node immediately. The node starts again by itself or is restarted. Resolves when it accepts connections
   * again.
   */
  crash(url: string, how: Crash, draw: Random): Promise<void>;
  /** Moves rows between nodes during writes. Undefined if there is only one node. */
  moveRows: ((draw: Random) => Promise<void>) | undefined;
}

/**
 * fsync is off. A killed Postgres loses nothing anyway, because the operating system keeps the written data in its
 * cache. Only a power failure would lose data.
 */
const POSTGRES_SETTINGS = { max_connections: 200, shared_buffers: '128MB' };

/**
 * Starts a Postgres. If `citusUrl` is set, creates a database on the cluster with the coordinator at this url instead.
 * Resolves when the schema exists.
 */
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
  await server.crash(how);
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
 * Makes a node crash by killing one of its backends, which a superuser can do. Postgres then ends all other backends
 * and recovers from its log.
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

/** Moves the shard of some users to another node, and then lets the rebalancer even out the shards. */
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

/** Lets the rebalancer spread the rows evenly during writes. Resolves when the rows are spread. */
async function rebalance(url: string): Promise<void> {
  await stopRebalance(url);
  await runOn(url, "select citus_rebalance_start(shard_transfer_mode := 'force_logical')");
  await runOn(url, 'select citus_rebalance_wait()');
}

/** Stops any rebalance that is under way. After a crash, the interrupted rebalance would resume and block a new one. */
async function stopRebalance(url: string): Promise<void> {
  await runOn(url, 'select citus_rebalance_stop()').catch(() => {});
}
