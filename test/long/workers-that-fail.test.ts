import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, test } from 'vitest';
import { openDatabase } from '../../src/store/driver/open.ts';
import { claimImport } from '../../src/store/import-leases.ts';
import { addressOf } from '../support/citus.ts';
import { type Fleet, openFleet } from '../support/fleet.ts';
import { findFaults } from '../support/invariants.ts';
import { findFreePort } from '../support/ports.ts';
import { type Replica, scrape } from '../support/replica.ts';
import type { ApiResponse } from '../support/responses.ts';
import type { Backend } from '../support/sessions.ts';
import { until } from '../support/until.ts';
import type { Principal } from '../support/users.ts';

// Tests large imports with real processes. Each process may crash, hang or be stopped at any moment (decision 21).

/** Resolves with the response, or with undefined if the connection broke. */
const orBroken = (response: Promise<ApiResponse>): Promise<ApiResponse | undefined> =>
  response.catch(() => undefined);

/**
 * Creates users whose rows are on the same node, for tests of a limit that each node has. Without sharding there is
 * only one node.
 */
async function usersOfOneNode(fleet: Fleet, count: number): Promise<Principal[]> {
  const byNode = new Map<string, Principal[]>();
  for (;;) {
    const user = await fleet.user();
    const node = inject('citusUrl') === undefined ? '' : await addressOf(fleet.databaseUrl, user.id);
    const users = [...(byNode.get(node) ?? []), user];
    if (users.length === count) return users;
    byNode.set(node, users);
  }
}

/** Tries to claim a user's only import, as another worker would. */
async function claimFor(fleet: Fleet, { id: userId }: Principal) {
  const [row] = await fleet.sql<{ id: string }[]>`select id from imports where user_id = ${userId}`;
  const database = await openDatabase({ url: fleet.databaseUrl, max: 1 });
  const claim = await claimImport(database, { userId, id: row!.id, leaseId: randomUUID() });
  await database.close(0);
  return claim;
}

const entries = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ url: `http://entry/${n}`, tags: ['a', `tag-${n % 3}`] }));

/** An import whose worker waits at a stage, where a test makes it fail. */
interface Scene {
  fleet: Fleet;
  api: Replica;
  user: Principal;
  /** The worker that runs the import. */
  doomed: Replica;
  /** The session of Postgres in which the worker's statement waits. */
  backend: Backend;
  /** Lets the statement continue. */
  release(): Promise<void>;
}

/** Locks that hold a worker at a stage one after the other, each with a text of the statement that waits for it. */
type Holds = readonly { lock: (user: Principal) => string; statement: string }[];

/** Holds the transaction of an import after it has locked the account and the import's row. */
const HOLD_TAGS = 'lock table tags in exclusive mode';
const lockTable = (table: string) => () => `lock table ${table} in access exclusive mode`;
const CLAIM: Holds = [{ lock: lockTable('import_batches'), statement: 'from claim_import(' }];
const BODY: Holds = [{ lock: lockTable('import_chunks'), statement: 'from import_chunks' }];
const BATCH: Holds = [
  ...BODY,
  { lock: lockTable('import_batches'), statement: 'insert into import_batches' },
];
const TRANSACTION: Holds = [{ lock: () => HOLD_TAGS, statement: 'from import_bookmarks(' }];

const killAndRollBack = async ({ fleet, doomed, backend, release }: Scene) => {
  await Promise.all([doomed.kill(), fleet.start('worker')]);
  await backend.end();
  await release();
};

/** Where a worker fails, and how. Afterwards, the import has happened once, and its request gets the result. */
const failures: Record<string, { holds: Holds; fail: (scene: Scene) => Promise<unknown> }> = {
  'killed while it claims the import': { holds: CLAIM, fail: killAndRollBack },
  'killed while it reads the body': { holds: BODY, fail: killAndRollBack },
  'killed while it stores a batch': { holds: BATCH, fail: killAndRollBack },
  'killed during its transaction, which Postgres rolls back': { holds: TRANSACTION, fail: killAndRollBack },
  'killed during its transaction, which Postgres still commits': {
    holds: TRANSACTION,
    fail: async ({ fleet, doomed, release }) => {
      await Promise.all([doomed.kill(), fleet.start('worker')]);
      await release();
    },
  },
  'killed right after its transaction': {
    holds: TRANSACTION,
    fail: async ({ fleet, api, user, doomed, release }) => {
      const poll = api.post('/bookmarks/sync', { wait: true }, user.token);
      await doomed.freeze();
      await release();
      await until(async () => (await fleet.imports(user))[0] === 'done');
      await doomed.kill();
      // The replica that answers the import also notifies the poll, long before the poll would time out.
      const told = Promise.race([poll, sleep(15_000)]);
      expect((await told)?.body.bookmarks).toHaveLength(50);
      await fleet.start('worker');
    },
  },
  'killed during its transaction while Redis restarts empty': {
    holds: TRANSACTION,
    fail: async (scene) => Promise.all([scene.fleet.redis.restart(), killAndRollBack(scene)]),
  },
  'stopped while the import takes too long': {
    holds: TRANSACTION,
    fail: async ({ fleet, doomed, backend, release }) => {
      const ended = doomed.stop();
      await fleet.start('worker');
      expect(await ended).toBe(0);
      await backend.end();
      await release();
    },
  },
  'frozen during its transaction, in which no second worker runs the import': {
    holds: TRANSACTION,
    fail: async ({ fleet, user, doomed, release }) => {
      await Promise.all([doomed.freeze(), fleet.start('worker')]);
      const isOver = async () =>
        (await fleet.sql`select from imports where user_id = ${user.id} and lease_until < now()`).length > 0;
      await until(isOver);
      expect(await fleet.blocked('from import_bookmarks(')).toHaveLength(1);
      expect(await claimFor(fleet, user)).toMatchObject({ outcome: 'queued', attempts: 1 });
      doomed.thaw();
      await release();
    },
  },
};

describe.concurrent('an import whose worker fails', () => {
  // The errors are longer than a batch may be.
  const invalid = Array.from({ length: 300 }, (_, n) => ({ url: `nonsense-${n}-${'x'.repeat(200)}` }));
  const body = { bookmarks: [...entries(50), { url: 'http://entry/0' }, ...invalid] };
  const counts = { imported: 50, skipped: 1 };

  const expectWhole = async (fleet: Fleet, user: Principal, response: ApiResponse) => {
    expect(response.status).toBe(200);
    expect(response.body).toMatchObject(counts);
    expect(response.body.errors.map(({ index }: { index: number }) => index)).toEqual(
      invalid.map((_, n) => 51 + n),
    );
    expect(await fleet.urls(user)).toEqual(entries(50).map(({ url }) => url));
    const kept = await fleet.sql`select state, result from imports where user_id = ${user.id}`;
    expect(kept).toEqual([{ state: 'done', result: JSON.stringify(counts) }]);
    expect(await findFaults(fleet.databaseUrl)).toEqual([]);
  };
  const openWithApi = async (env = {}) => {
    const fleet = await openFleet({ env: { IMPORT_INLINE_BYTES: 0, ...env } });
    return { fleet, api: await fleet.start('api'), user: await fleet.user() };
  };
  /** Checks the result of an import, and checks it again when no job is left. */
  const expectOnce = async (fleet: Fleet, user: Principal, response: ApiResponse) => {
    await expectWhole(fleet, user, response);
    await until(async () => (await fleet.jobs()).length === 0);
    await expectWhole(fleet, user, response);
  };

  test.each(Object.entries(failures))('because it is %s, happens once', async (_, { holds, fail }) => {
    const { fleet, api, user } = await openWithApi();
    await using _fleet = fleet;
    const response = api.post('/import', body, user.token);
    await until(async () => (await fleet.imports(user))[0] === 'queued');
    let hold = await fleet.hold(holds[0]!.lock(user));
    const doomed = await fleet.start('worker');
    let backend = await fleet.untilBlocked(holds[0]!.statement);
    for (const { lock, statement } of holds.slice(1)) {
      const next = await fleet.hold(lock(user));
      await hold.release();
      hold = next;
      backend = await fleet.untilBlocked(statement);
    }
    await fail({ fleet, api, user, doomed, backend, release: () => hold.release() });
    await expectOnce(fleet, user, await response);
  });

  test('is still run if Redis restarts empty while it is queued', async () => {
    const { fleet, api, user } = await openWithApi();
    await using _ = fleet;
    const response = api.post('/import', body, user.token);
    await until(async () => (await fleet.jobs()).length === 1);
    await Promise.all([fleet.redis.restart(), fleet.start('worker')]);
    await expectOnce(fleet, user, await response);
  });

  test('three times is given up, counted, logged with its id, and listed by BullMQ with its code', async () => {
    const { fleet, api, user } = await openWithApi();
    await using _ = fleet;
    const response = api.post('/import', body, user.token);
    await until(async () => (await fleet.imports(user))[0] === 'queued');
    const account = await fleet.holdAccount(user);
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const doomed = await fleet.start('worker');
      const backend = await fleet.untilBlocked('from import_bookmarks(');
      await doomed.kill();
      await backend.end();
      await fleet.sql`update imports set lease_until = now() where lease_until is not null`;
    }
    await account.release();
    const port = await findFreePort();
    const last = await fleet.start('worker', { METRICS_PORT: port });
    expect(await response).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
    const [row] = await fleet.sql`select id, state from imports where user_id = ${user.id}`;
    expect(row!.state).toBe('cancelled');
    const line = await last.untilLogged('import given up: all its attempts failed');
    expect(line).toMatchObject({ importId: row!.id, user: user.id, attempts: 3 });
    expect((await scrape(port)).get('bookmarks_import_jobs_total{state="given_up"}')).toBe(1);
    expect(await fleet.urls(user)).toEqual([]);
    await until(async () => (await fleet.jobs('failed')).length === 1);
    const [job] = await fleet.jobs('failed');
    expect(job).toMatchObject({ data: { id: `${user.id}-${row!.id}` }, failedReason: 'UNAVAILABLE' });
  });
});

describe.concurrent('an import that waits', () => {
  const open = (env = {}) => openFleet({ env: { IMPORT_INLINE_BYTES: 0, ...env } });
  const replace = { bookmarks: entries(3), mode: 'replace' };

  /**
   * Starts a worker, which handles everything that is queued. Checks that afterwards only the bookmark `kept` exists.
   */
  const expectNeverRuns = async (fleet: Fleet, user: Principal, kept: string) => {
    const worker = await fleet.start('worker');
    await until(async () => (await fleet.jobs()).length === 0);
    await worker.kill();
    expect(await fleet.imports(user)).toEqual(['cancelled']);
    expect(await fleet.urls(user)).toEqual([kept]);
    expect(await findFaults(fleet.databaseUrl)).toEqual([]);
  };
  const expectUnavailable = ({ status, headers, body }: ApiResponse) => {
    expect([status, body.code]).toEqual([503, 'UNAVAILABLE']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  };

  test('longer than IMPORT_WAIT_SECONDS gets 503 and never runs, by its job or by a sweep', async () => {
    await using fleet = await open();
    const [hasty, patient] = [await fleet.start('api', { IMPORT_WAIT_SECONDS: 2 }), await fleet.start('api')];
    const [user, other] = [await fleet.user(), await fleet.user()];
    expectUnavailable(await hasty.post('/import', replace, user.token));
    expect(await fleet.jobs()).toHaveLength(1);
    await hasty.post('/bookmarks/add', { url: 'http://kept/' }, user.token);
    await expectNeverRuns(fleet, user, 'http://kept/');
    // The job of this import is lost, so only a sweep can find the import.
    const swept = patient.post('/import', replace, other.token);
    await until(async () => (await fleet.jobs()).length === 1);
    await Promise.all([fleet.redis.restart(), fleet.start('worker')]);
    expect((await swept).body.imported).toBe(3);
    expect([await fleet.imports(user), await fleet.urls(user)]).toEqual([['cancelled'], ['http://kept/']]);
  });

  test('on a replica that is killed still runs', async () => {
    await using fleet = await open();
    const [api, user] = [await fleet.start('api'), await fleet.user()];
    const response = orBroken(api.post('/import', replace, user.token));
    await until(async () => (await fleet.imports(user))[0] === 'queued');
    await api.kill();
    expect(await response).toBeUndefined();
    await fleet.start('worker');
    await until(async () => (await fleet.imports(user))[0] === 'done');
    expect(await fleet.urls(user)).toHaveLength(3);
  });

  test('on a replica that shuts down gets 503 before it exits, and never runs', async () => {
    await using fleet = await open();
    const [api, user] = [await fleet.start('api'), await fleet.user()];
    await api.post('/bookmarks/add', { url: 'http://kept/' }, user.token);
    const response = api.post('/import', replace, user.token);
    await until(async () => (await fleet.imports(user))[0] === 'queued');
    const ended = api.stop();
    expectUnavailable(await response);
    expect(await ended).toBe(0);
    await expectNeverRuns(fleet, user, 'http://kept/');
  });

  test('on a replica that shuts down returns its result if a worker finishes it in time', async () => {
    await using fleet = await open();
    const [api, user] = [await fleet.start('api'), await fleet.user()];
    await fleet.start('worker');
    await using account = await fleet.holdAccount(user);
    const response = api.post('/import', replace, user.token);
    await fleet.untilBlocked('from import_bookmarks(');
    const ended = api.stop();
    await api.untilLogged('draining');
    await account.release();
    expect((await response).body).toEqual({ imported: 3, skipped: 0, errors: [] });
    expect((await response).headers.get('connection')).toBe('close');
    expect(await ended).toBe(0);
  });

  test('and finishes while it is being cancelled returns its result', async () => {
    await using fleet = await open();
    const [api, user] = [await fleet.start('api'), await fleet.user()];
    await fleet.start('worker');
    await using tags = await fleet.hold(HOLD_TAGS);
    const response = api.post('/import', replace, user.token);
    await fleet.untilBlocked('from import_bookmarks(');
    // The replica shuts down, so it tries to cancel the import. But the import's transaction has already locked the row.
    const ended = api.stop();
    await fleet.untilBlocked('select end_import(');
    await tags.release();
    expect((await response).body).toEqual({ imported: 3, skipped: 0, errors: [] });
    expect(await ended).toBe(0);
  });

  test('and whose client has disconnected still runs', async () => {
    await using fleet = await open();
    const [api, user] = [await fleet.start('api'), await fleet.user()];
    const client = new AbortController();
    const response = orBroken(api.post('/import', replace, user.token, { signal: client.signal }));
    await until(async () => (await fleet.imports(user))[0] === 'queued');
    client.abort();
    expect(await response).toBeUndefined();
    await fleet.start('worker');
    await until(async () => (await fleet.imports(user))[0] === 'done');
    expect(await fleet.urls(user)).toHaveLength(3);
  });

  test('blocks further large imports of its user, and of everybody beyond the limit of staged bytes', async () => {
    const text = JSON.stringify(replace);
    await using fleet = await open({ IMPORT_STAGED_BYTES: 2 * text.length });
    const [one, two] = await Promise.all([fleet.start('api'), fleet.start('api')]);
    const [ann, ben, cid] = await usersOfOneNode(fleet, 3);
    const first = one!.post('/import', text, ann!.token);
    await until(async () => (await fleet.imports(ann!))[0] === 'queued');
    const again = await two!.post('/import', text, ann!.token);
    expect([again.status, again.body.code]).toEqual([429, 'RATE_LIMITED']);
    expect(Number(again.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    const second = two!.post('/import', text, ben!.token);
    await until(async () => (await fleet.imports(ben!))[0] === 'queued');
    expectUnavailable(await one!.post('/import', text, cid!.token));
    await fleet.start('worker');
    for (const response of await Promise.all([first, second])) expect(response.body.imported).toBe(3);
    expect((await one!.post('/import', text, cid!.token)).body.imported).toBe(3);
    expect((await two!.post('/import', text, ann!.token)).body.imported).toBe(3);
  });

  test('and is not valid JSON or not an import is refused by a worker and frees its place', async () => {
    await using fleet = await open();
    const [api, user] = [await fleet.start('api'), await fleet.user()];
    await fleet.start('worker');
    const broken = await api.post('/import', '{"bookmarks":[', user.token);
    expect([broken.status, broken.body.code]).toEqual([400, 'VALIDATION_ERROR']);
    const wrong = await api.post('/import', { bookmarks: {} }, user.token);
    expect([wrong.status, wrong.body.error]).toEqual([400, expect.stringContaining('bookmarks')]);
    expect(await fleet.imports(user)).toEqual(['done', 'done']);
    await until(async () => (await fleet.jobs('failed')).length === 2);
    for (const { failedReason } of await fleet.jobs('failed')) expect(failedReason).toBe('VALIDATION_ERROR');
  });

  /** Announces a body of three megabytes and sends two of them. Resolves when a part of the body is staged. */
  const beginUpload = async (fleet: Fleet, replica: Replica, user: Principal): Promise<Socket> => {
    const { hostname, port } = new URL(replica.origin);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    socket.write(
      `POST /api/v1/import HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n` +
        `Authorization: Bearer ${user.token}\r\nContent-Length: 3000000\r\n\r\n{"bookmarks":[${`"${'x'.repeat(20)}",`.repeat(80_000)}`,
    );
    await until(
      async () => (await fleet.sql`select from import_chunks where user_id = ${user.id}`).length > 0,
    );
    expect(await fleet.imports(user)).toEqual(['receiving']);
    return socket;
  };

  test('for bytes that never arrive is never queued and frees its place at once', async () => {
    await using fleet = await open();
    const [api, user] = [await fleet.start('all'), await fleet.user()];
    const socket = await beginUpload(fleet, api, user);
    socket.resetAndDestroy();
    await until(async () => (await fleet.imports(user))[0] === 'cancelled');
    expect((await api.post('/import', replace, user.token)).body.imported).toBe(3);
    expect(await fleet.imports(user)).toEqual(['cancelled', 'done']);
  });

  test('for bytes at a replica that is killed is never queued and frees its place after a minute', async () => {
    await using fleet = await open();
    const [doomed, api, user] = [await fleet.start('api'), await fleet.start('all'), await fleet.user()];
    await beginUpload(fleet, doomed, user);
    await doomed.kill();
    expect((await api.post('/import', replace, user.token)).status).toBe(429);
    await fleet.sql`update imports set expires_at = now()`;
    await until(async () => (await fleet.imports(user)).length === 0, 15_000);
    expect((await api.post('/import', replace, user.token)).body.imported).toBe(3);
  });
});
