import { randomBytes } from 'node:crypto';
import { migrate } from '../../src/store/migrations.ts';
import { runOn, type TestDatabase, withDatabase } from './run-on.ts';
import { silentLog } from './silent-log.ts';

/** A node of a Citus cluster. */
export interface CitusNode {
  group: number;
  host: string;
  port: number;
  /** The url of a database on it. */
  url: string;
}

/** The nodes that a coordinator's database knows, the coordinator first. */
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

/** The url of the same database on another node. */
export function onNode(url: string, { host, port }: { host: string; port: number }): string {
  const changed = new URL(url);
  changed.host = `${host}:${port}`;
  return changed.href;
}

/** An empty database on all nodes of a cluster, which know each other, without tables. */
export async function createEmptyShardedDatabase(
  coordinatorUrl: string,
): Promise<TestDatabase & { nodes: CitusNode[] }> {
  const name = `bookmark_test_${randomBytes(6).toString('hex')}`;
  const found = await findNodes(coordinatorUrl);
  await Promise.all(
    found.map(async (node) => {
      await runOn(node.url, `create database ${name}`);
      await runOn(withDatabase(node.url, name), 'create extension citus');
    }),
  );
  const url = withDatabase(coordinatorUrl, name);
  const [coordinator, ...workers] = found;
  await runOn(
    url,
    [
      `select citus_set_coordinator_host('${coordinator!.host}', ${coordinator!.port})`,
      ...workers.map(({ host, port }) => `select citus_add_node('${host}', ${port})`),
    ].join(';'),
  );
  const drop = async () => {
    for (const node of found) await runOn(node.url, `drop database if exists ${name} with (force)`);
  };
  const nodes = found.map((node) => ({ ...node, url: withDatabase(node.url, name) }));
  return { url, name, nodes, drop, [Symbol.asyncDispose]: drop };
}

/** Eight shards, so that each of two workers has four: more would only take longer to make. */
const SHARD_COUNT = 8;

/** A migrated, empty database on all nodes of a cluster that nobody else uses. */
export async function createShardedDatabase(
  coordinatorUrl: string,
): Promise<TestDatabase & { nodes: CitusNode[] }> {
  const database = await createEmptyShardedDatabase(coordinatorUrl);
  await runOn(database.url, `alter database ${database.name} set citus.shard_count = ${SHARD_COUNT}`);
  await migrate({ url: database.url, log: silentLog, sharding: 'citus' });
  return database;
}
