import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { parseRedisAddress } from '../../src/coordination/redis/address.ts';
import {
  type CitusNode,
  copyShardedDatabase,
  nodeOf,
  type ShardedDatabase,
  withNodeClosed,
} from '../support/citus.ts';
import { runOn } from '../support/database.ts';
import { startRedis } from '../support/redis.ts';
import { startService, type TestService, type TestUser } from '../support/service.ts';

let database: ShardedDatabase;
let coordinator: TestService;
let worker: TestService;

/** Starts two replicas that share one Redis. One replica connects to the coordinator, the other to a worker node. */
beforeAll(async () => {
  database = await copyShardedDatabase(inject('citusUrl')!, inject('citusTemplate')!);
  const redis = await startRedis();
  const redisAddress = parseRedisAddress(redis.url);
  const config = { redisAddress, freeBookmarkLimit: 1_000_000, syncWaitSeconds: 1 };
  coordinator = await startService(config, { database });
  worker = await startService(config, { database: { ...database, url: database.nodes[1]!.url } });
  return async () => {
    await worker[Symbol.asyncDispose]();
    await coordinator[Symbol.asyncDispose]();
    await redis.stop();
    await database.drop();
  };
});

const otherThan = (node: CitusNode): CitusNode =>
  database.nodes.find(({ group }) => group !== 0 && group !== node.group)!;

/**
 * The error for a move that begins too early. Citus refuses a move until it has dropped the remains of the previous
 * move. It drops them when no statement uses them.
 */
const IS_LEFT = /leftover from the previous move could not be cleaned up/;

/** Moves the shard of a user's rows to the other worker node while clients write. */
async function move(user: { id: number }): Promise<void> {
  const from = await nodeOf(database, user);
  const to = otherThan(from);
  const moved = await runOn(
    database.url,
    `select citus_move_shard_placement(
      get_shard_id_for_distribution_column('accounts', ${user.id}),
      '${from.host}', ${from.port}, '${to.host}', ${to.port}, 'force_logical'
    )`,
  ).catch((error: unknown) => {
    if (!IS_LEFT.test(String(error))) throw error;
  });
  if (moved === undefined) {
    await sleep(500);
    await move(user);
  }
}

test("a user's ids increase even after the rows move to a node with lower sequences", async () => {
  const user = await coordinator.user();
  const ahead = `select raise_sequence(name::regclass, min_id_now() + 1000000000) from unnest(array['bookmarks_id_seq', 'tags_id_seq']) name`;
  const add = async (service: TestService, tag: string) => {
    const body = { url: 'https://example.org/', tags: [tag] };
    return (await service.post('/bookmarks/add', body, { token: user.token })).body;
  };
  await add(coordinator, 'first');
  await runOn((await nodeOf(database, user)).url, ahead);
  const early = await add(coordinator, 'second');
  // A new id is also higher than the ids of deleted bookmarks, because no id is used again.
  const deleted = await add(coordinator, 'third');
  await coordinator.post('/bookmarks/delete', { id: deleted.id }, { token: user.token });
  await move(user);
  const late = await add(worker, 'fourth');
  expect(late.id).toBeGreaterThan(deleted.id);
  expect(late.tags[0].id).toBeGreaterThan(deleted.tags[0].id);
  expect(early.id).toBeLessThan(deleted.id);
  expect(late.id).toBeLessThan(Number.MAX_SAFE_INTEGER);
  const { body } = await coordinator.post('/bookmarks/sync', { cursor: early.id }, { token: user.token });
  expect(body.bookmarks).toMatchObject([{ id: late.id }]);
});

test('ids of all users on all nodes are different', async () => {
  const users = await Promise.all(Array.from({ length: 12 }, () => worker.user()));
  const ids = await Promise.all(
    users.flatMap(({ token }) =>
      Array.from({ length: 10 }, async (_, n) => {
        const body = { url: `https://example.org/${n}` };
        return (await coordinator.post('/bookmarks/add', body, { token })).body.id as number;
      }),
    ),
  );
  expect(new Set(users.map(({ id }) => id)).size).toBe(users.length);
  expect(new Set(ids).size).toBe(ids.length);
});

/**
 * Adds bookmarks through both replicas in turn until the signal aborts. Returns the ids of acknowledged adds and the
 * number of refused ones.
 */
async function keepAdding(user: TestUser, stop: AbortSignal): Promise<{ ids: number[]; refused: number }> {
  const ids: number[] = [];
  let refused = 0;
  for (let n = 0; !stop.aborted; n += 1) {
    const service = n % 2 === 0 ? coordinator : worker;
    const body = { url: `https://example.org/${n}`, tags: [`t${n % 5}`] };
    const response = await service.post('/bookmarks/add', body, { token: user.token });
    if (response.status === 200) ids.push(response.body.id);
    else {
      expect(response.status).toBe(503);
      refused += 1;
    }
    await sleep(5);
  }
  return { ids, refused };
}

/**
 * Follows the user with `sync` until the signal aborts, and then reads what is left. Returns the ids in the order in
 * which they were received.
 */
async function follow(service: TestService, user: TestUser, stop: AbortSignal): Promise<number[]> {
  const ids: number[] = [];
  for (let cursor = 0; ; ) {
    const isLast = stop.aborted;
    const { status, body } = await service.post(
      '/bookmarks/sync',
      { cursor, wait: !isLast },
      { token: user.token },
    );
    if (status === 503) {
      await sleep(20);
      continue;
    }
    ids.push(...body.bookmarks.map(({ id }: { id: number }) => id));
    cursor = body.cursor;
    if (isLast && !body.has_more) return ids;
  }
}

test('rows move while clients write and follow: no acknowledged write is lost, and followers receive each bookmark once', async () => {
  const users = await Promise.all([1, 2, 3].map(() => coordinator.user()));
  const starts = await Promise.all(
    users.map(async (user) => (await user.post('/bookmarks/changes', {})).body.cursor),
  );
  const [stop, end] = [new AbortController(), new AbortController()];
  onTestFinished(() => {
    stop.abort();
    end.abort();
  });
  const writers = users.map((user) => keepAdding(user, stop.signal));
  const followers = users.map((user, n) => follow(n % 2 ? coordinator : worker, user, end.signal));
  for (const user of [...users, users[0]!]) await move(user);
  stop.abort();
  const added = await Promise.all(writers);
  end.abort();
  const seen = await Promise.all(followers);
  for (const [n, user] of users.entries()) {
    expect(added[n]!.ids.length).toBeGreaterThan(10);
    const { body } = await user.post('/export', {});
    const stored = body.bookmarks.map(({ id }: { id: number }) => id);
    expect(added[n]!.ids.filter((id) => !stored.includes(id))).toEqual([]);
    expect(seen[n]).toEqual(seen[n]!.toSorted((a, b) => a - b));
    expect(new Set(seen[n])).toEqual(new Set(stored));
    const changes = await user.post('/bookmarks/changes', { cursor: starts[n] });
    expect(changes.body.reset).toBe(false);
  }
});

test('requests of users on a worker node that is down fail with 503, and other users are not affected', async () => {
  const users = await Promise.all(Array.from({ length: 12 }, () => coordinator.user()));
  const nodes = await Promise.all(users.map((user) => nodeOf(database, user)));
  const down = database.nodes[2]!;
  await withNodeClosed(down, async () => {
    for (const [n, { token }] of users.entries()) {
      const isDown = nodes[n] === down;
      for (const service of [coordinator, worker]) {
        const add = await service.post('/bookmarks/add', { url: 'https://example.org/' }, { token });
        const list = await service.post('/bookmarks/list', {}, { token });
        const entries = { bookmarks: [{ url: 'https://example.org/imported' }], mode: 'merge' };
        const imported = await service.post('/import', entries, { token });
        expect([add.status, list.status, imported.status], `user ${n}`).toEqual(
          isDown ? [503, 503, 503] : [200, 200, 200],
        );
      }
    }
    expect(new Set(nodes).size).toBe(2);
  });
  for (const { token } of users)
    expect((await coordinator.post('/bookmarks/list', {}, { token })).status).toBe(200);
});
