import { randomBytes } from 'node:crypto';
import { migrate } from '../../src/store/schema/migrations.ts';
import { runOn, type TestDatabase, withDatabase } from './run-on.ts';
import { silentLog } from './silent-log.ts';

/** A node of a Citus cluster. */
export interface CitusNode {
  group: number;
  host: string;
  port: number;
  /** The url of a database on this node. */
  url: string;
}

/** Returns the nodes that a coordinator's database knows, the coordinator first. */
export async function findNodes(coordinatorUrl: string): Promise<CitusNode[]> {
  const rows = await runOn<{ group: number; host: string; port: number }>(
    coordinatorUrl,
    `select groupid as group, nodename as host, nodeport as port
    from pg_dist_node
    where noderole = 'primary' and isactive
    order by groupid`,
  );
  return rows.map((node) => ({ ...node, url: onNode(coordinatorUrl, node) }));
}

/** Returns the url of the same database on another node. */
function onNode(url: string, { host, port }: { host: string; port: number }): string {
  const changed = new URL(url);
  changed.host = `${host}:${port}`;
  return changed.href;
}

/** Returns the value of `DATABASE_NODES` for a database whose nodes are reached at their own addresses. */
export const nodesTemplate = (url: string): string => `{host}:{port}${new URL(url).pathname}`;

/** A database that exists on all nodes of a cluster. */
export interface ShardedDatabase extends TestDatabase {
  nodes: CitusNode[];
}

/** Creates a database without tables on all nodes of a cluster. The nodes know each other. */
export async function createEmptyShardedDatabase(coordinatorUrl: string): Promise<ShardedDatabase> {
  const database = await createOnAllNodes(coordinatorUrl, 'template1');
  for (const { url } of database.nodes) await runOn(url, 'create extension citus');
  const [coordinator, ...workers] = database.nodes;
  await runOn(
    database.url,
    [
      `select citus_set_coordinator_host('${coordinator!.host}', ${coordinator!.port})`,
      ...workers.map(({ host, port }) => `select citus_add_node('${host}', ${port})`),
    ].join(';'),
  );
  return database;
}

async function createOnAllNodes(coordinatorUrl: string, template: string): Promise<ShardedDatabase> {
  const name = `bookmark_test_${randomBytes(6).toString('hex')}`;
  const clusterNodes = await findNodes(coordinatorUrl);
  await Promise.all(
    clusterNodes.map(({ url }) => runOn(url, `create database ${name} template ${template}`)),
  );
  const drop = async () => {
    // A killed replica may have left a prepared transaction. The database cannot be dropped until the node that runs
    // the transaction ends it.
    for (const { url } of nodes) await runOn(url, 'select recover_prepared_transactions()').catch(() => {});
    for (const { url } of clusterNodes) await runOn(url, `drop database if exists ${name} with (force)`);
  };
  const nodes = clusterNodes.map((node) => ({ ...node, url: withDatabase(node.url, name) }));
  return { url: withDatabase(coordinatorUrl, name), name, nodes, drop, [Symbol.asyncDispose]: drop };
}

/** Eight shards, so that each of two workers has four. More shards would only take longer to create. */
const SHARD_COUNT = 8;

/** Creates a database on all nodes of a cluster, and migrates it. */
export async function createShardedDatabase(coordinatorUrl: string): Promise<ShardedDatabase> {
  const database = await createEmptyShardedDatabase(coordinatorUrl);
  await runOn(database.url, `alter database ${database.name} set citus.shard_count = ${SHARD_COUNT}`);
  await migrate({ url: database.url, log: silentLog, sharding: 'citus' });
  return database;
}

/**
 * Creates a migrated database on all nodes of a cluster, as a template for copies. Nobody can connect to it, not even
 * Citus' own daemons, because Postgres copies a database only while nobody is connected to it.
 */
export async function makeShardedTemplate(coordinatorUrl: string): Promise<ShardedDatabase> {
  const database = await createShardedDatabase(coordinatorUrl);
  for (const node of await findNodes(coordinatorUrl)) {
    await runOn(node.url, `alter database ${database.name} allow_connections false`);
    await runOn(
      node.url,
      `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '${database.name}'`,
    );
  }
  return database;
}

/**
 * Copies the template on each node. A copy takes a tenth of the time that a new database takes. The copy includes what
 * the nodes know about each other and about their shards, because that knowledge does not depend on the database's
 * name. A database's settings are not copied, so `migrate` sets them.
 */
export async function copyShardedDatabase(
  coordinatorUrl: string,
  template: string,
): Promise<ShardedDatabase> {
  const database = await createOnAllNodes(coordinatorUrl, template);
  await migrate({ url: database.url });
  return database;
}

/** Calls `run` while a node refuses all connections to the database. To the service, the node is down. */
export async function withNodeClosed(node: CitusNode, run: () => Promise<void>): Promise<void> {
  const database = new URL(node.url).pathname.slice(1);
  const adminUrl = withDatabase(node.url, 'postgres');
  const allow = (isAllowed: boolean) =>
    runOn(adminUrl, `alter database ${database} allow_connections ${isAllowed}`);
  await allow(false);
  try {
    await runOn(
      adminUrl,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}'`,
    );
    await run();
  } finally {
    await allow(true);
  }
}

/** Returns the node that has a user's rows. */
export async function nodeOf({ url, nodes }: ShardedDatabase, { id }: { id: number }): Promise<CitusNode> {
  const address = await addressOf(url, id);
  return nodes.find(({ host, port }) => `${host}:${port}` === address)!;
}

/** Returns the host and port of the node that has a user's rows. */
export async function addressOf(url: string, userId: number): Promise<string> {
  const [row] = await runOn<{ address: string }>(
    url,
    `select nodename || ':' || nodeport as address from pg_dist_shard_placement
    where shardid = get_shard_id_for_distribution_column('accounts', ${userId})`,
  );
  return row!.address;
}
