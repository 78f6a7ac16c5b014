import { beforeAll, expect, test } from 'vitest';
import { BookmarkClient, type Clock, MemoryStore } from '../../src/client/index.ts';
import { SqliteStore } from '../../src/client/sqlite-store.ts';
import type { Bookmark, BookmarkTag } from '../../src/domain/resources.ts';
import { migrate } from '../../src/store/schema/migrations.ts';
import { runOn } from '../support/database.ts';
import { type Fleet, openFleet } from '../support/fleet.ts';
import { findFaults } from '../support/invariants.ts';
import { provide } from '../support/programs.ts';
import { type FaultyProxy, startProxy } from '../support/proxy.ts';
import type { Replica } from '../support/replica.ts';
import { REPLICATING, type SystemPostgres, startSystemPostgres } from '../support/system-postgres.ts';
import { until } from '../support/until.ts';
import type { Principal } from '../support/users.ts';

/**
 * A standby lags behind a primary and replaces it when the primary is lost. Clients have already seen data that the
 * standby never received.
 */

type Store = MemoryStore | SqliteStore;

const contentOf = (store: Store) => ({ bookmarks: [...store.bookmarks()], tags: store.tags() });

/** Sends a request until it succeeds, as a client does during a failover. Any other response must be 503. */
async function send(replica: Replica, { token }: Principal, path: string, body: object = {}) {
  return until(async () => {
    const response = await replica.post(path, body, token);
    expect([200, 503], `${path}: ${JSON.stringify(response.body)}`).toContain(response.status);
    return response.status === 200 && response.body;
  });
}

/** Returns the data that the service shows to a user. */
async function show(
  replica: Replica,
  user: Principal,
): Promise<{ bookmarks: Bookmark[]; tags: BookmarkTag[] }> {
  const { bookmarks } = await send(replica, user, '/export');
  const { tags } = await send(replica, user, '/tags/list');
  return { bookmarks, tags: tags.map(({ id, name }: BookmarkTag) => ({ id, name })) };
}

/** Returns the largest ids and revisions that were used so far. */
async function readHeights(url: string): Promise<{ bookmark: number; tag: number; change: number }> {
  const [row] = await runOn<{ bookmark: number; tag: number; change: number }>(
    url,
    `select (select max(id) from bookmarks)::float8 as bookmark, (select max(id) from tags)::float8 as tag,
      (select max(last_change) from accounts)::float8 as change`,
  );
  return row!;
}

/** Adds, edits and deletes bookmarks, and changes tags, so that revisions and ids of every kind increase. */
async function writeAll(replica: Replica, user: Principal, name: string): Promise<Bookmark[]> {
  const add = (n: number): Promise<Bookmark> =>
    send(replica, user, '/bookmarks/add', { url: `https://example.org/${name}/${n}`, tags: [`${name} tag`] });
  const added = [await add(1), await add(2), await add(3), await add(4)];
  const [first, second, third] = added.map(({ id }) => id);
  await send(replica, user, '/bookmarks/edit', { id: first, title: `edited ${name}` });
  await send(replica, user, '/bookmarks/delete', { id: second });
  await send(replica, user, '/bookmarks/edit', { ids: [first, third], add_tags: [`${name} other`] });
  const { tags } = await send(replica, user, '/tags/list');
  await send(replica, user, '/tags/update', { id: tags[0].id, name: `${name} renamed` });
  return added;
}

/**
 * The databases of a service: a primary and a standby. Replicas connect through a proxy that can point to either
 * database.
 */
interface Pair extends AsyncDisposable {
  postgres: SystemPostgres;
  database: string;
  standby: Awaited<ReturnType<SystemPostgres['createStandby']>>;
  proxy: FaultyProxy;
  fleet: Fleet;
  replica: Replica;
}

async function openPair(): Promise<Pair> {
  await using opened = new AsyncDisposableStack();
  const postgres = opened.use(await startSystemPostgres(REPLICATING));
  const database = await postgres.createDatabase('source');
  await migrate({ url: database });
  const standby = opened.use(await postgres.createStandby());
  const proxy = opened.use(await startProxy(database));
  const through = Object.assign(new URL(database), { port: String(proxy.port) }).href;
  const fleet = opened.use(await openFleet({ databaseUrl: through }));
  const replica = await fleet.start('all', { SYNC_WAIT_SECONDS: 2 });
  const closing = opened.move();
  return {
    ...{ postgres, database, standby, proxy, fleet, replica },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** Kills the primary, points the proxy to the standby, and promotes the standby. */
async function failOver({ postgres, database, standby, proxy }: Pair): Promise<void> {
  await postgres.kill();
  proxy.retarget(standby.urlOf(database));
  proxy.cut('reset');
  await standby.promote();
}

/** Shortens the client's pauses between retries, because the full pauses would take longer than the test. */
const clock: Clock = {
  now: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, Math.min(delayMs, 100));
    return () => clearTimeout(timer);
  },
};

const clientOf = ({ origin }: Replica, { token }: Principal) =>
  new BookmarkClient({ baseUrl: `${origin}/api/v1`, token, clock });

/** Starts to follow the user's bookmarks with `sync`, and collects the bookmarks that it returns. */
function startFollower(replica: Replica, user: Principal) {
  const controller = new AbortController();
  const got: Bookmark[] = [];
  const following = (async () => {
    for await (const { bookmarks } of clientOf(replica, user).sync({ signal: controller.signal }))
      got.push(...bookmarks);
  })();
  following.catch(() => {});
  return { got, end: () => controller.abort() };
}

/** Starts to mirror the user's bookmarks into the store. The returned `end` stops the mirror. */
function startMirror(replica: Replica, user: Principal, store: Store) {
  const controller = new AbortController();
  const mirroring = (async () => {
    for await (const _ of clientOf(replica, user).mirror({ store, signal: controller.signal }));
  })();
  mirroring.catch(() => {});
  return { store, end: () => controller.abort() };
}

async function catchUp(replica: Replica, user: Principal, store: Store): Promise<number> {
  let resets = 0;
  for await (const { reset } of clientOf(replica, user).mirror({ store, follow: false }))
    resets += Number(reset);
  return resets;
}

const idsOf = (bookmarks: readonly { id: number }[]): number[] => bookmarks.map(({ id }) => id);

// Installing the package may take a minute or two.
beforeAll(() => provide('postgresql'));

// Replicas can reach a standby before its promotion, for example through a proxy or a DNS name.
test('a standby that is not promoted yet causes 503 and no 500, and everything works after the promotion', async () => {
  await using pair = await openPair();
  const { postgres, database, standby, proxy, fleet, replica } = pair;
  const user = await fleet.user();
  await writeAll(replica, user, 'received');
  const store = new MemoryStore();
  await catchUp(replica, user, store);
  const cursor = (await store.readCursor())!;
  await standby.untilCaughtUp();
  await postgres.kill();
  proxy.retarget(standby.urlOf(database));
  proxy.cut('reset');

  const requests: [string, object][] = [
    ['/bookmarks/list', {}],
    ['/bookmarks/sync', { cursor: 1 }],
    ['/bookmarks/sync', { cursor: 2 ** 52, wait: true }],
    ['/bookmarks/changes', {}],
    ['/bookmarks/changes', { cursor }],
    ['/bookmarks/changes', { cursor, wait: true }],
    ['/bookmarks/changes', { from: 'now' }],
    ['/bookmarks/search', { query: 'received' }],
    ['/bookmarks/add', { url: 'https://example.org/refused' }],
    ['/tags/create', { name: 'refused' }],
    ['/import', { bookmarks: [{ url: 'https://example.org/refused' }] }],
    ['/import', { mode: 'replace', bookmarks: [] }],
  ];
  for (const [path, body] of [...requests, ...requests]) {
    const { status, headers } = await replica.post(path, body, user.token);
    expect([200, 503], path).toContain(status);
    if (status === 503) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  }
  await standby.promote();
  await writeAll(replica, user, 'later');
  await catchUp(replica, user, store);
  expect(contentOf(store)).toEqual(await show(replica, user));
  expect(await findFaults(standby.urlOf(database))).toEqual([]);
});

test('a standby that lags is promoted under a running service: followers and mirrors miss nothing', async () => {
  await using pair = await openPair();
  const { database, standby, fleet, replica } = pair;
  const user = await fleet.user();
  const follower = startFollower(replica, user);
  using sqlite = new SqliteStore(':memory:');
  const mirrors = [startMirror(replica, user, new MemoryStore()), startMirror(replica, user, sqlite)];
  const away = new MemoryStore();
  const behind = new MemoryStore();

  const received = await writeAll(replica, user, 'received');
  await catchUp(replica, user, behind);
  const oldCursor = received[1]!.id;
  await standby.untilCaughtUp();
  await standby.disconnect();

  const lost = await writeAll(replica, user, 'lost');
  const before = await show(replica, user);
  await catchUp(replica, user, away);
  for (const { store } of mirrors) await expect.poll(() => contentOf(store)).toEqual(before);
  await expect.poll(() => follower.got.at(-1)?.id).toBe(lost.at(-1)!.id);
  const heights = await readHeights(database);

  await failOver(pair);
  const added = await writeAll(replica, user, 'later');
  expect(Math.min(...idsOf(added))).toBeGreaterThan(heights.bookmark);
  const after = await readHeights(standby.urlOf(database));
  expect(after.change).toBeGreaterThan(heights.change);
  const shown = await show(replica, user);
  const tagsBefore = new Set(idsOf(before.tags));
  for (const { id } of shown.tags) if (!tagsBefore.has(id)) expect(id).toBeGreaterThan(heights.tag);

  // Data that the standby never received is gone. All data that was written later exists.
  expect(idsOf(shown.bookmarks).filter((id) => idsOf(lost).includes(id))).toEqual([]);
  const wanted = idsOf(shown.bookmarks).filter((id) => id > heights.bookmark);
  expect(wanted).toEqual(idsOf(added.filter((_one, n) => n !== 1)));
  await expect.poll(() => idsOf(follower.got)).toEqual(expect.arrayContaining(wanted));
  const got = idsOf(follower.got);
  expect(got).toEqual([...new Set(got)].sort((left, right) => left - right));
  const { bookmarks: rest } = await send(replica, user, '/bookmarks/sync', { cursor: oldCursor });
  expect(idsOf(rest)).toEqual(idsOf(shown.bookmarks).filter((id) => id > oldCursor));
  // The new revisions are higher than those that the mirror knew. Only the epoch tells the mirror that the promoted
  // standby lacks changes that the mirror's copy contains.
  expect(await catchUp(replica, user, away)).toBe(1);
  expect(await catchUp(replica, user, behind)).toBe(1);
  for (const store of [away, behind]) expect(contentOf(store)).toEqual(shown);
  for (const { store } of mirrors) await expect.poll(() => contentOf(store)).toEqual(shown);

  for (const one of [follower, ...mirrors]) one.end();
  expect(await findFaults(standby.urlOf(database))).toEqual([]);
});
