import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { migrate } from '../../src/store/schema/migrations.ts';
import { createDatabase, runOn } from '../support/database.ts';
import { type Fleet, openFleet } from '../support/fleet.ts';
import { findFaults } from '../support/invariants.ts';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { throughPort } from '../support/pool.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { startProxy } from '../support/proxy.ts';
import type { Replica } from '../support/replica.ts';
import type { ApiResponse } from '../support/responses.ts';
import { silentLog } from '../support/silent-log.ts';
import { until } from '../support/until.ts';
import type { Principal } from '../support/users.ts';

// Redis and Postgres become unavailable or slow, or restart, while real processes of the service run (decisions 3, 19
// and 27).

/**
 * This limit is longer than any response may take, and far below a client's timeout. Only a request that hangs exceeds
 * it.
 */
const HANG_MS = 15_000;

/** Returns the response, or fails if it takes too long. */
async function soon(response: Promise<ApiResponse>): Promise<ApiResponse> {
  const hung = AbortSignal.timeout(HANG_MS);
  return Promise.race([
    response,
    new Promise<never>((_, reject) => {
      hung.addEventListener('abort', () => reject(new Error(`no response within ${HANG_MS} ms`)));
    }),
  ]);
}

const expectUnavailable = ({ status, headers, body }: ApiResponse) => {
  expect([status, body.code]).toEqual([503, 'UNAVAILABLE']);
  expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
};

describe('Redis under a running service', () => {
  const LIMIT = 12;
  const AWAY = 'Redis is away: this replica limits by itself, waits query the database';
  const SERVES = 'Redis serves: limits, notifications and imports are shared';
  let fleet: Fleet;
  let replicas: Replica[];
  beforeAll(async () => {
    const env = { RATE_LIMIT_REQUESTS: LIMIT, IMPORT_INLINE_BYTES: 0, SYNC_WAIT_SECONDS: 29 };
    fleet = await openFleet({ env });
    await fleet.start('worker');
    replicas = await Promise.all([fleet.start('api'), fleet.start('api')]);
  });
  afterAll(() => fleet[Symbol.asyncDispose]());

  const told = (message: string) =>
    replicas.map(({ log }) => log.filter(({ msg }) => msg === message).length);
  const untilEach = (message: string, counts: number[]) =>
    until(() => told(message).every((count, index) => count >= counts[index]!));
  const plus = (counts: number[]) => counts.map((count) => count + 1);

  /** Sends requests to both replicas at the same time, half of them to each. Returns how many were admitted. */
  const countAdmitted = async (requests: number) => {
    const { token } = await fleet.user();
    const sent = Array.from({ length: requests }, (_, n) => replicas[n % 2]!.post('/tags/list', {}, token));
    const responses = await Promise.all(sent.map(soon));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200, 429]));
    return responses.filter(({ status }) => status === 200).length;
  };
  const expectState = async (state: string, gauge: number) => {
    for (const replica of replicas) {
      const { status, body } = await replica.readiness();
      expect([status, body.redis]).toEqual([200, state]);
      const metrics = await replica.metrics();
      for (const part of ['limits', 'wakes']) {
        expect(metrics.get(`bookmarks_coordination_degraded{part="${part}"}`)).toBe(gauge);
      }
    }
  };
  const expectAlone = async () => {
    await expectState('degraded', 1);
    expect(await countAdmitted(4 * LIMIT)).toBe(2 * LIMIT);
    const user = await fleet.user();
    const poll = replicas[0]!.post('/bookmarks/sync', { wait: true }, user.token);
    await replicas[0]!.untilHeld(1);
    const added = await soon(replicas[1]!.post('/bookmarks/add', { url: 'http://new/' }, user.token));
    expect((await soon(poll)).body.bookmarks).toEqual([added.body]);
    const imported = await soon(
      replicas[0]!.post('/import', { bookmarks: [{ url: 'http://b/' }] }, user.token),
    );
    expect(imported.body).toEqual({ imported: 1, skipped: 0, errors: [] });
  };
  const expectTogether = async () => {
    await expectState('shared', 0);
    expect(await countAdmitted(4 * LIMIT)).toBe(LIMIT);
  };

  const losses: [
    string,
    (redis: Fleet['redis']) => Promise<void>,
    (redis: Fleet['redis']) => Promise<void>,
  ][] = [
    ['killed', (redis) => redis.kill(), (redis) => redis.restart()],
    ['frozen', (redis) => redis.freeze(), (redis) => redis.thaw()],
  ];
  for (const [how, lose, bring] of losses) {
    test(`${how}: each replica serves requests on its own until Redis is back, and logs each change once`, async () => {
      await expectTogether();
      const [away, serves] = [plus(told(AWAY)), plus(told(SERVES))];
      const user = await fleet.user();
      await lose(fleet.redis);
      const first = replicas.map((replica) => replica.post('/tags/list', {}, user.token));
      for (const { status } of await Promise.all(first.map(soon))) expect(status).toBe(200);
      await untilEach(AWAY, away);
      await expectAlone();
      expect(told(AWAY)).toEqual(away);
      await bring(fleet.redis);
      await untilEach(SERVES, serves);
      await expectTogether();
      expect([told(AWAY), told(SERVES)]).toEqual([away, serves]);
    });
  }

  const interruptions: [string, (redis: Fleet['redis']) => Promise<unknown>][] = [
    ['restarted empty', (redis) => redis.restart()],
    [
      'made to drop every connection',
      (redis) =>
        command(redis.url, ['client', 'kill', 'type', 'normal'], ['client', 'kill', 'type', 'pubsub']),
    ],
    ['made to forget its scripts', (redis) => command(redis.url, ['script', 'flush'])],
  ];
  for (const [how, interrupt] of interruptions) {
    test(`${how}: no request fails, a held poll is woken, and replicas share state again automatically`, async () => {
      const user = await fleet.user();
      const poll = replicas[0]!.post('/bookmarks/sync', { wait: true }, user.token);
      await replicas[0]!.untilHeld(1);
      await interrupt(fleet.redis);
      const added = await soon(replicas[1]!.post('/bookmarks/add', { url: 'http://new/' }, user.token));
      expect(added.status).toBe(200);
      expect((await soon(poll)).body.bookmarks).toEqual([added.body]);
      await until(async () => {
        const responses = await Promise.all(replicas.map((replica) => replica.readiness()));
        return responses.every(({ body }) => body.redis === 'shared');
      });
      await expectTogether();
      const { token } = await fleet.user();
      const imported = await soon(replicas[0]!.post('/import', { bookmarks: [{ url: 'http://b/' }] }, token));
      expect(imported.body.imported).toBe(1);
    });
  }
});

async function command(url: string, ...commands: string[][]): Promise<void> {
  const redis = new Redis(url);
  for (const [name, ...args] of commands) await redis.call(name!, ...args);
  redis.disconnect();
}

/** Clients that add, read and import without pause, and the results that they got. */
interface Load {
  /** The urls of adds that returned 200. */
  readonly acknowledged: string[];
  /** The small and large imports. The status is undefined if the connection broke. */
  readonly imports: { user: Principal; urls: string[]; status: number | undefined }[];
  readonly statuses: Map<number, number>;
  stop(): Promise<void>;
}

function startLoad(
  replicas: readonly Replica[],
  user: Principal,
  importers: readonly Principal[],
  name: string,
): Load {
  const acknowledged: string[] = [];
  const imports: Load['imports'] = [];
  const statuses = new Map<number, number>();
  let isDone = false;
  const repeat = async (step: (n: number) => Promise<ApiResponse>) => {
    for (let n = 0; !isDone; n += 1) {
      const response = await soon(step(n));
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      if (response.status === 200) continue;
      expectUnavailable(response);
      await sleep(50);
    }
  };
  const clients = replicas.flatMap((replica, at) =>
    [0, 1].flatMap((client) => [
      repeat(async (n) => {
        const url = `http://${name}/${at}/${client}/${n}`;
        const response = await replica.post('/bookmarks/add', { url, tags: ['load'] }, user.token);
        if (response.status === 200) acknowledged.push(url);
        return response;
      }),
      repeat(async () => {
        const response = await replica.post('/bookmarks/list', { limit: 20 }, user.token);
        if (response.status === 200)
          expect(response.body.bookmarks.every(({ tags }: { tags: unknown[] }) => tags.length === 1)).toBe(
            true,
          );
        return response;
      }),
      repeat(() => replica.post('/user/profile', {}, user.token)),
    ]),
  );
  const importAll = async (replica: Replica, importer: Principal) => {
    for (let n = 0; !isDone; n += 1) {
      const urls = Array.from({ length: n % 2 ? 1 : 40 }, (_, k) => `http://${name}/${n}/${k}`);
      const body = { bookmarks: urls.map((url) => ({ url })) };
      const status = await replica.post('/import', body, importer.token).then(
        (response) => response.status,
        () => undefined,
      );
      imports.push({ user: importer, urls, status });
      if (status !== 200) await sleep(50);
    }
  };
  clients.push(...importers.map((importer, n) => importAll(replicas[n % replicas.length]!, importer)));
  const all = Promise.all(clients);
  all.catch(() => {});
  return {
    acknowledged,
    imports,
    statuses,
    async stop() {
      isDone = true;
      await all;
    },
  };
}

describe('Postgres under a running service', () => {
  let postgres: PostgresServer;
  let fleet: Fleet;
  let replicas: Replica[];
  beforeAll(async () => {
    postgres = await startPostgres({ max_connections: 60 });
    await migrate({ url: postgres.url, log: silentLog });
    fleet = await openFleet({ databaseUrl: postgres.url, env: { IMPORT_INLINE_BYTES: 500 } });
    replicas = await Promise.all([fleet.start('all'), fleet.start('all')]);
  });
  afterAll(async () => {
    await fleet?.[Symbol.asyncDispose]();
    await postgres?.stop();
  });

  const premium = () => fleet.user({ premium: true });
  const count = ({ statuses }: Load, status: number) => statuses.get(status) ?? 0;
  const untilMore = async (load: Load, status: number, more: number) => {
    const enough = count(load, status) + more;
    await until(() => count(load, status) >= enough);
  };
  /**
   * Checks that an import with status 200 is stored completely, and that one with another status is not stored at all.
   * Without a response, both are possible.
   */
  const expectWholeOrNot = async ({ imports }: Load) => {
    await until(async () => (await fleet.sql`select from imports where state = 'queued'`).length === 0);
    for (const user of new Set(imports.map((each) => each.user))) {
      const urls = await fleet.urls(user);
      expect(new Set(urls).size).toBe(urls.length);
      const kept = new Set(urls);
      for (const each of imports.filter((one) => one.user === user)) {
        const found = each.urls.filter((url) => kept.has(url)).length;
        if (each.status === undefined) expect([0, each.urls.length]).toContain(found);
        else
          expect([each.status, found]).toEqual(
            each.status === 200 ? [200, each.urls.length] : [each.status, 0],
          );
        expect([200, 429, 503, undefined]).toContain(each.status);
      }
    }
  };
  /** Checks that every add that returned 200 is stored exactly once, and that the service works. */
  const expectKept = async (load: Load, user: Principal) => {
    const faults = replicas.flatMap(({ log }) => log.filter(({ msg }) => msg === 'request failed'));
    expect(faults).toEqual([]);
    const urls = await fleet.urls(user);
    expect(new Set(urls).size).toBe(urls.length);
    const kept = new Set(urls);
    expect(load.acknowledged.filter((url) => !kept.has(url))).toEqual([]);
    await expectWholeOrNot(load);
    expect(await findFaults(fleet.databaseUrl)).toEqual([]);
    for (const replica of replicas) {
      expect((await replica.post('/bookmarks/search', { per_page: 1 }, user.token)).body.total).toBe(
        urls.length,
      );
      expect((await replica.readiness()).status).toBe(200);
    }
  };

  test('killed and restarted: requests get 503 but never 500, and no acknowledged add is lost', async () => {
    const user = await premium();
    const load = startLoad(replicas, user, [await premium(), await premium()], 'killed');
    await untilMore(load, 200, 100);
    await postgres.kill();
    await untilMore(load, 503, 20);
    // The replica stays ready, because clients can do more with its 503 in JSON than with a gateway's 503.
    const readiness = await replicas[0]!.readiness();
    expect([readiness.status, readiness.body.database]).toEqual([200, 'unreachable']);
    await postgres.restart();
    await untilMore(load, 200, 100);
    await load.stop();
    await expectKept(load, user);
  });

  test('backends terminated at random: requests get 503 or a result but never 500, and no acknowledged add is lost', async () => {
    const user = await premium();
    const load = startLoad(replicas, user, [await premium(), await premium()], 'terminated');
    for (let kill = 0; kill < 60; kill += 1) {
      await untilMore(load, 200, 3);
      await fleet.sql`
        select pg_terminate_backend(pid) from (
          select pid from pg_stat_activity where application_name like 'bookmark-service%' order by random() limit 2
        ) backends`;
    }
    await untilMore(load, 200, 50);
    await load.stop();
    await expectKept(load, user);
  });

  test('frozen: every operation gets 503 within 10 s, and correct responses when it runs again', async () => {
    const [user, stranger] = [await fleet.user(), await fleet.user()];
    await replicas[0]!.post('/bookmarks/add', { url: 'http://before/' }, user.token);
    await postgres.freeze();
    const requests: [string, object, Principal][] = [
      ['/bookmarks/add', { url: 'http://while/' }, user],
      ['/bookmarks/edit', { id: 1, title: 'a' }, user],
      ['/bookmarks/search', {}, user],
      ['/bookmarks/list', {}, user],
      ['/bookmarks/sync', {}, user],
      ['/bookmarks/sync', { cursor: 1, wait: true }, user],
      ['/tags/create', { name: 'a' }, user],
      ['/export', {}, user],
      ['/user/profile', {}, stranger],
      ['/auth/invite', { code: 'ABCDEFGH' }, stranger],
    ];
    const sent = replicas.flatMap((replica) =>
      requests.map(([path, body, { token }]) => replica.post(path, body, token)),
    );
    for (const response of await Promise.all(sent.map(soon))) expectUnavailable(response);
    for (const replica of replicas) {
      expect(await replica.readiness()).toMatchObject({ status: 200, body: { database: 'unreachable' } });
      expect((await fetch(`${replica.origin}/livez`)).status).toBe(200);
    }
    await postgres.thaw();
    for (const replica of replicas) {
      await until(async () => (await replica.readiness()).body.database === 'reachable');
      const { body } = await replica.post('/bookmarks/list', {}, user.token);
      expect(body.bookmarks[0].url).toBe('http://before/');
    }
    expect(await findFaults(fleet.databaseUrl)).toEqual([]);
  });

  const whileBothFrozen = async (run: () => Promise<void>) => {
    await Promise.all([postgres.freeze(), fleet.redis.freeze()]);
    try {
      await run();
    } finally {
      await postgres.thaw();
      await fleet.redis.thaw();
    }
  };

  test('frozen with Redis: a token that has used up its limit is refused from memory', async () => {
    const strict = await fleet.start('api', { RATE_LIMIT_REQUESTS: 1 });
    const { token } = await fleet.user();
    expect((await strict.post('/tags/list', {}, token)).status).toBe(200);
    expect((await strict.post('/tags/list', {}, token)).status).toBe(429);
    await whileBothFrozen(async () => {
      for (let n = 0; n < 20; n += 1) {
        const response = await soon(strict.post('/tags/list', {}, token));
        expect([response.status, response.body.code]).toEqual([429, 'RATE_LIMITED']);
      }
    });
  });

  test('frozen with Redis: a replica that shuts down answers its polls and exits', async () => {
    const replica = await fleet.start('all');
    const { token } = await fleet.user();
    const poll = replica.post('/bookmarks/sync', { wait: true }, token);
    await replica.post('/tags/list', {}, token);
    await whileBothFrozen(async () => {
      const ended = replica.stop();
      // The poll returns an unchanged page, or 503 if it was checking the database at that moment.
      expect([200, 503]).toContain((await soon(poll)).status);
      expect(await ended).toBe(0);
    });
  });
});

test('without Postgres, an import that can neither complete nor be cancelled has its connection closed', async () => {
  await using postgres = await startPostgres({ max_connections: 60 });
  await migrate({ url: postgres.url, log: silentLog });
  await using fleet = await openFleet({
    databaseUrl: postgres.url,
    env: { IMPORT_INLINE_BYTES: 0, IMPORT_WAIT_SECONDS: 1 },
  });
  const [api, user] = [await fleet.start('api'), await fleet.user()];
  const broken = expect(api.post('/import', { bookmarks: [] }, user.token)).rejects.toThrow('fetch failed');
  await until(async () => (await fleet.imports(user))[0] === 'queued');
  await postgres.kill();
  await broken;
  await api.untilLogged('import ended without a response');
  await postgres.restart();
  await until(async () => (await api.readiness()).body.database === 'reachable');
});

describe.concurrent('statements that Postgres answers late or never', () => {
  const open = async (env = {}) => {
    const fleet = await openFleet({ env });
    return { fleet, api: await fleet.start('api'), user: await fleet.user() };
  };

  test('a statement beyond statement_timeout gets 503 and changes nothing', async () => {
    const { fleet, api, user } = await open();
    await using _ = fleet;
    await runOn(fleet.databaseUrl, SLOW_INSERTS);
    expectUnavailable(await soon(api.post('/bookmarks/add', { url: 'http://slow/' }, user.token)));
    expect((await api.post('/bookmarks/add', { url: 'http://quick/' }, user.token)).status).toBe(200);
    expect(await fleet.urls(user)).toEqual(['http://quick/']);
  });

  test('a lock wait beyond lock_timeout gets 503, and other users notice nothing', async () => {
    const { fleet, api, user } = await open();
    await using _ = fleet;
    const other = await fleet.user();
    await using account = await fleet.holdAccount(user);
    const blocked = api.post('/bookmarks/add', { url: 'http://a/' }, user.token);
    await fleet.untilBlocked('add_bookmark');
    expect((await api.post('/bookmarks/add', { url: 'http://b/' }, other.token)).status).toBe(200);
    expectUnavailable(await soon(blocked));
    await account.release();
    expect((await api.post('/bookmarks/add', { url: 'http://c/' }, user.token)).status).toBe(200);
    expect(await fleet.urls(user)).toEqual(['http://c/']);
  });

  test('requests that get no connection in time get 503 and change nothing', async () => {
    const { fleet, api, user } = await open({ DATABASE_POOL_SIZE: 1 });
    await using _ = fleet;
    await runOn(fleet.databaseUrl, SLOW_INSERTS);
    const responses = Array.from({ length: 5 }, () =>
      api.post('/bookmarks/add', { url: 'http://slow/' }, user.token),
    );
    for (const response of await Promise.all(responses.map(soon))) expectUnavailable(response);
    expect((await api.post('/bookmarks/add', { url: 'http://quick/' }, user.token)).status).toBe(200);
    expect(await fleet.urls(user)).toEqual(['http://quick/']);
  });

  test('a read that loses its connection is retried on another, a write is not', async () => {
    const { fleet, api, user } = await open();
    await using _ = fleet;
    await api.post('/bookmarks/add', { url: 'http://a/' }, user.token);
    await using table = await fleet.hold('lock table bookmarks in access exclusive mode');
    const read = api.post('/bookmarks/search', {}, user.token);
    const reading = await fleet.untilBlocked('read_newest');
    const write = api.post('/bookmarks/add', { url: 'http://b/' }, user.token);
    const writing = await fleet.untilBlocked('add_bookmark');
    await Promise.all([reading.end(), writing.end()]);
    expectUnavailable(await soon(write));
    await table.release();
    const { status, body } = await soon(read);
    expect([status, body.total]).toEqual([200, 1]);
    expect(await fleet.urls(user)).toEqual(['http://a/']);
  });

  const openThroughProxy = async (env = {}) => {
    const stack = new AsyncDisposableStack();
    const database = stack.use(await createDatabase());
    const proxy = stack.use(await startProxy(database.url));
    const fleet = stack.use(await openFleet({ databaseUrl: database.url, env }));
    const api = await fleet.start('api', { DATABASE_URL: throughPort(database.url, proxy.port), ...env });
    return { stack, proxy, fleet, api, user: await fleet.user() };
  };

  /**
   * Starts a poll at another replica, and an add that waits for the account's lock. The add's database connection goes
   * through the proxy.
   */
  const openWaitingAdd = async () => {
    const opened = await openThroughProxy({ SYNC_WAIT_SECONDS: 29 });
    const { stack, fleet, api, user } = opened;
    const other = await fleet.start('api');
    const poll = other.post('/bookmarks/sync', { wait: true }, user.token);
    await other.untilHeld(1);
    const account = stack.use(await fleet.holdAccount(user));
    const add = api.post('/bookmarks/add', { url: 'http://a/' }, user.token);
    await fleet.untilBlocked('add_bookmark');
    return { ...opened, account, add, poll };
  };

  /** Starts a small import that waits for the account's lock. Then stalls the import's connection to the database. */
  const openStalledImport = async () => {
    const opened = await openThroughProxy();
    const { stack, proxy, fleet, api, user } = opened;
    const account = stack.use(await fleet.holdAccount(user));
    const response = api.post('/import', { bookmarks: [{ url: 'http://a/' }] }, user.token);
    await fleet.untilBlocked('from import_bookmarks(');
    proxy.stall();
    return { ...opened, account, response };
  };

  test('a committed add wakes the polls even if its response is lost', async () => {
    const { stack, proxy, fleet, user, account, add, poll } = await openWaitingAdd();
    await using _ = stack;
    proxy.stall();
    await account.release();
    await until(async () => (await fleet.urls(user)).length === 1);
    proxy.cut('reset');
    expectUnavailable(await soon(add));
    expect((await soon(poll)).body.bookmarks).toMatchObject([{ url: 'http://a/' }]);
  });

  test('an add that commits after its response was lost still wakes the polls', async () => {
    const { stack, proxy, account, add, poll } = await openWaitingAdd();
    await using _ = stack;
    proxy.stall();
    proxy.cut('reset');
    expectUnavailable(await soon(add));
    await account.release();
    expect((await soon(poll)).body.bookmarks).toMatchObject([{ url: 'http://a/' }]);
  });

  test('a committed small import whose response is lost returns its result', async () => {
    const { stack, proxy, fleet, user, account, response } = await openStalledImport();
    await using _ = stack;
    await account.release();
    await until(async () => (await fleet.imports(user))[0] === 'done');
    proxy.cut('reset');
    expect((await soon(response)).body).toEqual({ imported: 1, skipped: 0, errors: [] });
    expect(await fleet.urls(user)).toEqual(['http://a/']);
  });

  test('a small import that loses its connection while running gets 503 and never takes effect', async () => {
    const { stack, proxy, fleet, api, user, account, response } = await openStalledImport();
    await using _ = stack;
    proxy.cut('reset');
    expectUnavailable(await soon(response));
    // A small import is never staged, so no staged import was cancelled.
    expect((await api.metrics()).get('bookmarks_import_jobs_total{state="cancelled"}')).toBe(0);
    await account.release();
    // The import's backend still runs. The replica has already recorded the import as cancelled, so the backend rolls
    // its writes back.
    await until(async () => {
      const [row] = await fleet.sql`
        select count(*)::int as running from pg_stat_activity
        where datname = current_database() and state = 'active' and query like '%from import_bookmarks(%'
          and pid <> pg_backend_pid()`;
      return row!.running === 0;
    });
    expect([await fleet.urls(user), await fleet.imports(user)]).toEqual([[], ['cancelled']]);
  });

  test('a large import whose start is lost gets 503 and does not block the next one', async () => {
    const { stack, proxy, fleet, api, user } = await openThroughProxy({ IMPORT_INLINE_BYTES: 0 });
    await using _ = stack;
    await using lock = await fleet.hold("select pg_advisory_xact_lock(hashtextextended('imports.bytes', 0))");
    const response = api.post('/import', { bookmarks: [] }, user.token);
    await fleet.untilBlocked('from begin_import(');
    proxy.stall();
    await lock.release();
    await until(async () => (await fleet.imports(user))[0] === 'receiving');
    proxy.cut('reset');
    expectUnavailable(await soon(response));
    await fleet.start('worker');
    expect((await soon(api.post('/import', { bookmarks: [] }, user.token))).status).toBe(200);
  });
});

/** SQL that makes an insert of `http://slow/` exceed statement_timeout. */
const SLOW_INSERTS = `
  create function be_slow() returns trigger language plpgsql as
    $$ begin perform pg_sleep(60); return new; end $$;
  create trigger be_slow before insert on bookmarks for each row
    when (new.url = 'http://slow/') execute function be_slow()`;

test('the whole service works through PgBouncer 1.18 in transaction mode without prepared statements', async () => {
  await using database = await createDatabase();
  const pooled = await startPgBouncer(database.url);
  await using fleet = await openFleet({
    databaseUrl: database.url,
    env: { DATABASE_URL: pooled, DATABASE_PREPARE: 'false', IMPORT_INLINE_BYTES: 2_000 },
  });
  const [one, two] = [await fleet.start('all'), await fleet.start('all')];
  const user = await fleet.user();
  const ask = (replica: Replica, path: string, body: object) => soon(replica.post(path, body, user.token));
  const first = (await ask(one, '/bookmarks/add', { url: 'http://first/', tags: ['a'] })).body;
  expect((await ask(two, '/bookmarks/search', { query: 'first', tag: 'A' })).body.bookmarks).toEqual([first]);
  const small = { bookmarks: [{ url: 'http://first/' }, { url: 'http://small/', tags: ['a', 'b'] }] };
  expect((await ask(one, '/import', small)).body).toEqual({ imported: 1, skipped: 1, errors: [] });
  const large = { bookmarks: Array.from({ length: 500 }, (_, n) => ({ url: `http://large/${n}` })) };
  expect((await ask(two, '/import', large)).body).toEqual({ imported: 500, skipped: 0, errors: [] });
  const all = (await ask(one, '/export', {})).body;
  expect([all.count, all.bookmarks.length]).toEqual([502, 502]);
  const { cursor } = (await ask(two, '/bookmarks/sync', { cursor: all.bookmarks.at(-2).id })).body;
  const poll = ask(two, '/bookmarks/sync', { cursor, wait: true });
  const latest = (await ask(one, '/bookmarks/add', { url: 'http://latest/' })).body;
  expect((await poll).body.bookmarks).toEqual([latest]);
  const responses = await Promise.all(
    Array.from({ length: 200 }, (_, n) =>
      n % 2
        ? ask(one, '/bookmarks/list', { limit: 5 })
        : ask(two, '/bookmarks/add', { url: `http://many/${n}` }),
    ),
  );
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
  expect((await ask(one, '/bookmarks/search', { query: 'many' })).body.total).toBe(100);
  expect(await findFaults(database.url)).toEqual([]);
});
