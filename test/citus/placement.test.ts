import { beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import type { Database } from '../../src/store/driver/database.ts';
import { openPlaced } from '../../src/store/driver/placed-database.ts';
import { copyShardedDatabase, nodesTemplate, type ShardedDatabase } from '../support/citus.ts';
import { runOn } from '../support/database.ts';
import { startService } from '../support/service.ts';
import { until } from '../support/until.ts';

let database: ShardedDatabase;

beforeAll(async () => {
  database = await copyShardedDatabase(inject('citusUrl')!, inject('citusTemplate')!);
  return () => database.drop();
});

const template = () => nodesTemplate(database.url);

/** Opens a pool to any node and a pool to each node. All pools are closed at the end of the test. */
async function open(nodes = template(), log: string[] = []): Promise<Database> {
  const warn = (facts: { node?: string }) => log.push(facts.node ?? '');
  const placed = await openPlaced({ url: database.url, max: 1, log: { warn } }, nodes);
  onTestFinished(() => placed.close(0));
  return placed;
}

/** Returns the port of the node to which the pool is connected. */
async function portOf(pool: Database): Promise<number> {
  const [row] = await pool.read(
    (sql) => sql<{ port: number }[]>`select current_setting('port')::integer as port`,
  );
  return row!.port;
}

/** Returns the shard that contains a user's rows, and the node that has the shard. */
async function placementOf(userId: number) {
  const [row] = await runOn<{ shard: number; host: string; port: number }>(
    database.url,
    `select shardid as shard, nodename as host, nodeport as port from pg_dist_shard_placement
    where shardid = get_shard_id_for_distribution_column('accounts', ${userId})`,
  );
  return row!;
}

test("each user's queries go to the node with the user's rows", async () => {
  const placed = await open();
  const users = Array.from({ length: 40 }, (_, n) => 1 + n ** 5 * 999_983);
  for (const user of users) expect(await portOf(placed.at(user))).toBe((await placementOf(user)).port);
});

test('an outdated placement still gives correct results, and is refreshed after the rows moved', async () => {
  const log: string[] = [];
  const placed = await open(template(), log);
  const user = 4_711;
  const from = await placementOf(user);
  const to = database.nodes.find(({ group, port }) => group !== 0 && port !== from.port)!;
  await runOn(
    database.url,
    `select citus_move_shard_placement(${from.shard}, '${from.host}', ${from.port}, '${to.host}', ${to.port}, 'block_writes')`,
  );
  const rows = await placed.at(user).read((sql) => sql`select from accounts where user_id = ${user}`);
  expect(rows).toHaveLength(0);
  await until(async () => (await portOf(placed.at(user))) === to.port, 30_000);
  expect(log).toEqual([]);
});

test('a node with an unreachable address is reached through another node, with one warning', async () => {
  const log: string[] = [];
  const placed = await open(`127.0.0.1:1/{host}`, log);
  expect(await portOf(placed.at(1))).toBe(database.nodes[0]!.port);
  expect(new Set(log).size).toBe(log.length);
  expect(log).toHaveLength(database.nodes.filter(({ group }) => group !== 0).length);
});

test('a database that is not distributed uses one pool', async () => {
  const log: string[] = [];
  const warn = (facts: { node?: string }) => log.push(facts.node ?? '');
  const url = new URL(database.url);
  url.pathname = '/postgres';
  const placed = await openPlaced({ url: url.href, max: 1, log: { warn } }, template());
  onTestFinished(() => placed.close(0));
  expect(await portOf(placed.at(1))).toBe(database.nodes[0]!.port);
  expect(log).toEqual(['placement']);
});

test('a replica adds, reads and finds on the nodes of its users', async () => {
  await using service = await startService({}, { database });
  const users = await Promise.all(Array.from({ length: 6 }, () => service.user()));
  for (const user of users) {
    const added = await user.post('/bookmarks/add', {
      url: 'https://example.org/',
      title: 'Here',
      tags: ['a'],
    });
    expect(added.status).toBe(200);
    expect((await user.post('/bookmarks/search', { query: 'here' })).body.total).toBe(1);
    expect((await user.post('/bookmarks/sync', {})).body.bookmarks).toHaveLength(1);
    expect((await user.post('/bookmarks/delete', { id: added.body.id })).status).toBe(200);
    expect((await user.post('/bookmarks/list', {})).body.bookmarks).toEqual([]);
  }
});
