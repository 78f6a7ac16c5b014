import { beforeAll, expect, inject, test } from 'vitest';
import { copyShardedDatabase, type ShardedDatabase, withNodeClosed } from '../support/citus.ts';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { startService, type TestService } from '../support/service.ts';

// Replicas can use any node. Their url lists all nodes, or a pooler for each node.

let database: ShardedDatabase;

beforeAll(async () => {
  database = await copyShardedDatabase(inject('citusUrl')!, inject('citusTemplate')!);
  return database.drop;
});

/** Joins the hosts of several urls into one url. */
function joinHosts(urls: readonly string[]): string {
  const [first] = urls as [string];
  return `${first.replace(new URL(first).host, urls.map((url) => new URL(url).host).join(','))}?load_balance_hosts=random`;
}

async function useAll(service: TestService, users: readonly { token: string }[]): Promise<number[]> {
  const statuses: number[] = [];
  for (const [n, { token }] of users.entries()) {
    const add = await service.post('/bookmarks/add', { url: `https://example.org/${n}` }, { token });
    const list = await service.post('/bookmarks/list', {}, { token });
    statuses.push(add.status, list.status);
  }
  return statuses;
}

test('a replica with the urls of all nodes uses the others when one is down', async () => {
  const url = joinHosts(database.nodes.map((node) => node.url));
  await using service = await startService({ databaseNodes: undefined }, { database: { ...database, url } });
  const users = await Promise.all(Array.from({ length: 10 }, () => service.user()));
  expect(new Set(await useAll(service, users))).toEqual(new Set([200]));
  for (const node of database.nodes.slice(1)) {
    await withNodeClosed(node, async () => {
      // For each lost connection to that node, one request fails. The pool then opens another connection.
      await expect
        .poll(async () => (await useAll(service, users)).filter((status) => status === 200).length)
        .toBeGreaterThan(1);
      const [first, second] = [await useAll(service, users), await useAll(service, users)];
      expect(second).toEqual(first);
      expect(new Set(first)).toEqual(new Set([200, 503]));
    });
    await expect.poll(async () => new Set(await useAll(service, users))).toEqual(new Set([200]));
  }
});

test('replicas work through a PgBouncer for each node, without prepared statements', async () => {
  const poolers = await Promise.all(database.nodes.map(({ url }) => startPgBouncer(url)));
  const url = joinHosts(poolers);
  const config = { databaseNodes: undefined, databasePrepare: false, importInlineBytes: 0 };
  await using service = await startService(config, { database: { ...database, url } });
  const users = await Promise.all(Array.from({ length: 10 }, () => service.user()));
  expect(new Set(await useAll(service, users))).toEqual(new Set([200]));
  const [user] = users as [(typeof users)[0]];
  const imported = await user.post('/import', { bookmarks: [{ url: 'https://example.org/imported' }] });
  expect([imported.status, imported.body.imported]).toEqual([200, 1]);
  expect((await user.post('/bookmarks/search', { query: 'imported' })).body.total).toBe(1);
});
