import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { BookmarkClient, MemoryStore } from '../src/client/index.ts';
import { parseRedisAddress } from '../src/coordination/redis/address.ts';
import { createDatabase, runOn, type TestDatabase } from './support/database.ts';
import { findFaults } from './support/invariants.ts';
import { type RedisServer, startRedis } from './support/redis.ts';
import { startService, type TestService, type TestUser } from './support/service.ts';
import { holdLock, untilBlocked } from './support/sessions.ts';

// Decision 15: a client that stores the returned cursor never misses a bookmark, with any number of writers and
// replicas. So a mirror is right at any time, and a verification finds nothing wrong.

const WRITERS = 16;
const USERS = 3;

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** Three replicas with one database, and the users of the test. */
class Deployment implements AsyncDisposable {
  readonly database: TestDatabase;
  readonly replicas: TestService[];
  readonly users: TestUser[] = [];

  constructor(database: TestDatabase, replicas: TestService[]) {
    this.database = database;
    this.replicas = replicas;
  }

  static async open(): Promise<Deployment> {
    const database = await createDatabase();
    const config = {
      redisAddress: parseRedisAddress(redis.url),
      syncWaitSeconds: 0.5,
      freeBookmarkLimit: 1_000_000,
    };
    const replicas = await Promise.all([1, 2, 3].map(() => startService(config, { database })));
    const deployment = new Deployment(database, replicas);
    for (let n = 0; n < USERS; n++) deployment.users.push(await replicas[0]!.user());
    return deployment;
  }

  #pickReplica(): TestService {
    return this.replicas[Math.floor(Math.random() * this.replicas.length)]!;
  }

  /** Sends a request of the user to a random replica. */
  post(user: TestUser, path: string, body: unknown) {
    return this.#pickReplica().post(path, body, { token: user.token });
  }

  /** Returns a client that sends each request to a random replica. */
  client({ token }: TestUser): BookmarkClient {
    const baseUrl = 'http://replica.test';
    const send: typeof fetch = (input, init) =>
      fetch(String(input).replace(baseUrl, this.#pickReplica().origin), init);
    return new BookmarkClient({ baseUrl, token, fetch: send });
  }

  async [Symbol.asyncDispose]() {
    for (const replica of this.replicas) await replica[Symbol.asyncDispose]();
    await this.database.drop();
  }
}

const url = (name: string) => `https://example.org/${name}`;

/**
 * Runs one of many writers. It adds a bookmark for each user in turn. Half of the time, it writes three bookmarks
 * instead, in a batch or by an import.
 */
async function write(
  deployment: Deployment,
  writer: number,
  operations: number,
  tags: string[],
): Promise<void> {
  for (let n = 0; n < operations; n++) {
    const user = deployment.users[(writer + n) % USERS]!;
    const name = `${writer}/${n}`;
    const three = [1, 2, 3].map((entry) => ({ url: url(`${name}/${entry}`), tags }));
    const requests: [path: string, body: object][] = [
      ['/bookmarks/add', { url: url(name) }],
      ['/bookmarks/batch', { operations: three.map((bookmark) => ({ do: 'add', ...bookmark })) }],
      ['/bookmarks/add', { url: url(name) }],
      ['/import', { bookmarks: three }],
    ];
    const { status } = await deployment.post(user, ...requests[n % requests.length]!);
    expect(status).toBe(200);
  }
}

/** Follows the cursor until the writers have ended and nothing is new. Returns the ids in the order of arrival. */
async function follow(
  deployment: Deployment,
  user: TestUser,
  wait: object,
  writers: { ended: boolean },
  start = 0,
): Promise<number[]> {
  const ids: number[] = [];
  for (let cursor = start; ; ) {
    const { ended } = writers;
    const { status, body } = await deployment.post(user, '/bookmarks/sync', { cursor, limit: 7, ...wait });
    expect(status).toBe(200);
    ids.push(...body.bookmarks.map(({ id }: { id: number }) => id));
    expect(body.cursor).toBe(ids.at(-1) ?? start);
    cursor = body.cursor;
    if (ended && body.bookmarks.length === 0) return ids;
  }
}

/**
 * Mirrors and verifies until the writers have ended. Expects that a verification finds nothing wrong, also while the
 * copy lags behind. Returns the ids in the copy.
 */
async function mirror(
  deployment: Deployment,
  user: TestUser,
  writers: { ended: boolean },
): Promise<number[]> {
  const store = new MemoryStore();
  const copy = deployment.client(user).mirror({ store, follow: false });
  for (;;) {
    const { ended } = writers;
    for await (const _ of copy) expect(await copy.verify()).toEqual([]);
    expect(await copy.verify()).toEqual([]);
    if (ended) return [...store.bookmarks()].map(({ id }) => id);
  }
}

interface Followed {
  /** For each reader, the ids that the reader received. */
  given: number[][];
  /** The ids that the user has at the end. */
  stored: number[];
}

async function race(deployment: Deployment, operations: number, tags: string[]): Promise<Followed[]> {
  const writers = { ended: false };
  const readers = deployment.users.map((user) =>
    Promise.all([
      follow(deployment, user, { wait: true }, writers),
      follow(deployment, user, { wait: false }, writers),
      follow(deployment, user, { wait_seconds: 1 }, writers),
      mirror(deployment, user, writers),
    ]),
  );
  const writing = Array.from({ length: WRITERS }, (_, writer) => write(deployment, writer, operations, tags));
  const written = Promise.all(writing).finally(() => {
    writers.ended = true;
  });
  const [given] = await Promise.all([Promise.all(readers), written]);
  const rows = await runOn<{ user_id: string; ids: string[] }>(
    deployment.database.url,
    'select user_id, array_agg(id order by id) as ids from bookmarks group by user_id',
  );
  return deployment.users.map((user, index) => ({
    given: given[index]!,
    stored: rows.find(({ user_id }) => Number(user_id) === user.id)!.ids.map(Number),
  }));
}

test('with 16 writers over three replicas, readers receive every bookmark once, in the order of ids', async () => {
  await using deployment = await Deployment.open();
  for (const { given, stored } of await race(deployment, 36, ['tag 1', 'tag 2'])) {
    expect(stored.length).toBe((WRITERS * 36 * 2) / USERS);
    for (const ids of given) expect(ids).toEqual(stored);
  }
  expect(await findFaults(deployment.database.url)).toEqual([]);
});

/** The key of the advisory lock at which the first writer waits. */
const GATE = 1;
/**
 * SQL that runs before a writer's commit. The first writer waits here for the advisory lock, and the others continue.
 * So the first writer takes the lowest ids, but commits after all writers that began later.
 */
const WAIT_AT_GATE = `if not exists (
    select from pg_locks join pg_database d on d.oid = database
    where locktype = 'advisory' and not granted and datname = current_database()
  ) then
    perform pg_advisory_xact_lock(${GATE});
  end if;`;

/**
 * For each function that writes bookmarks, a pattern for the statement that updates the account's count of bookmarks.
 * This statement also locks the account's row.
 */
const COUNT_BY_FUNCTION = {
  add_bookmark: /update accounts set bookmark_count = bookmark_count \+ 1[^;]*;/,
  import_bookmarks: /update accounts\s+set bookmark_count = v_new_count [^;]*;/,
};

/** Changes the definition of a SQL function. */
async function rewrite(databaseUrl: string, name: string, change: (definition: string) => string) {
  const [{ definition }] = (await runOn<{ definition: string }>(
    databaseUrl,
    `select pg_get_functiondef('${name}'::regproc) as definition`,
  )) as [{ definition: string }];
  await runOn(databaseUrl, change(definition));
}

const withoutLock = (definition: string) => definition.replace('lock_account(', 'token_is_valid(');

/**
 * Changes a function so that it takes ids before it locks the account's row. Concurrent writers then commit in any
 * order.
 */
const lockTooLate = (databaseUrl: string, name: keyof typeof COUNT_BY_FUNCTION) =>
  rewrite(databaseUrl, name, (definition) => {
    const [count] = COUNT_BY_FUNCTION[name].exec(definition) ?? [];
    expect(count).toBeDefined();
    const changed = withoutLock(definition)
      .replace(count!, () => 'perform 1;')
      .replace(/for no key update;/, () => ';')
      .replace(/\nend;?\s*\$function\$/, (end) => `\n${WAIT_AT_GATE}\n${count}${end}`);
    expect(changed).toContain(WAIT_AT_GATE);
    return changed;
  });

type Writing = keyof typeof COUNT_BY_FUNCTION | 'write_batch';
const WRITES: Record<Writing, (n: number) => [path: string, body: object]> = {
  add_bookmark: (n) => ['/bookmarks/add', { url: url(`${n}`) }],
  import_bookmarks: (n) => ['/import', { bookmarks: [{ url: url(`${n}`) }] }],
  write_batch: (n) => ['/bookmarks/batch', { operations: [{ do: 'add', url: url(`${n}`) }] }],
};

// Locks can be observed only on a single server.
test
  .runIf(inject('citusUrl') === undefined)
  .for(['add_bookmark', 'import_bookmarks', 'write_batch'] as const)(
  'without the lock in %s, a reader misses the bookmark that was written first and committed last, and a verification finds it',
  async (name) => {
    await using deployment = await Deployment.open();
    const { database, replicas, users } = deployment;
    const user = users[0]!;
    await lockTooLate(database.url, name === 'write_batch' ? 'add_bookmark' : name);
    if (name === 'write_batch') await rewrite(database.url, name, withoutLock);
    await using gate = await holdLock(database.url, `select pg_advisory_xact_lock(${GATE})`);
    // The second write goes to another replica, because a replica runs only one import or batch of a user at a time.
    const writeAt = (replica: number) =>
      replicas[replica]!.post(...WRITES[name](replica), { token: user.token });
    const first = writeAt(0);
    await untilBlocked(database.url, name);
    await writeAt(1);
    const { cursor } = (await deployment.post(user, '/bookmarks/sync', {})).body;
    const store = new MemoryStore();
    const copy = deployment.client(user).mirror({ store, follow: false });
    await Array.fromAsync(copy);
    await gate.release();
    expect((await first).status).toBe(200);
    const ended = { ended: true };
    const [missed, later] = await follow(deployment, user, { wait: true }, ended);
    expect(later).toBe(cursor);
    expect(await follow(deployment, user, { wait: true }, ended, cursor)).toEqual([]);
    await Array.fromAsync(copy);
    expect(store.size).toBe(1);
    expect(await copy.verify()).toEqual([{ kind: 'lost', bookmark: missed }]);
    expect([...store.bookmarks()].map(({ id }) => id)).toEqual([missed, later]);
  },
);
