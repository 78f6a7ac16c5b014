import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Fleet, openFleet } from './support/fleet.ts';
import { startHaproxy } from './support/haproxy.ts';
import { findFaults } from './support/invariants.ts';
import { findFreePort } from './support/ports.ts';
import { post } from './support/post.ts';
import { type Replica, runMain } from './support/replica.ts';
import type { ApiResponse } from './support/responses.ts';
import { until } from './support/until.ts';
import type { Caller } from './support/users.ts';

// Many replicas, one service: real processes over one Postgres and one Redis, and what happens when they come and go.

/** Settles with the response, and with nothing where the connection broke off instead. */
const orBroken = (response: Promise<ApiResponse>): Promise<ApiResponse | undefined> =>
  response.catch(() => undefined);

const entries = (count: number, name = 'entry') =>
  Array.from({ length: count }, (_, n) => ({ url: `http://${name}/${n}`, tags: ['a', `tag-${n % 3}`] }));

const quotaOf = ({ headers }: ApiResponse) =>
  ['limit', 'remaining', 'reset'].map((name) => Number(headers.get(`x-ratelimit-${name}`) ?? Number.NaN));

describe('three replicas', () => {
  let fleet: Fleet;
  let replicas: Replica[];
  beforeAll(async () => {
    fleet = await openFleet({ env: { RATE_LIMIT_REQUESTS: 100, SYNC_WAIT_SECONDS: 25 } });
    replicas = await Promise.all([1, 2, 3].map(() => fleet.start('api')));
  });
  afterAll(() => fleet[Symbol.asyncDispose]());

  /** A poll of the caller at each replica, once they are held. */
  const holdPolls = async ({ token }: Caller) => {
    const polls = replicas.map((replica) => replica.post('/bookmarks/sync', { wait: true }, token));
    for (const replica of replicas) await replica.untilHeld(1);
    return polls;
  };

  test('of 300 requests sent to them at once exactly 100 are admitted', async () => {
    const { token } = await fleet.user();
    const responses = await Promise.all(
      Array.from({ length: 300 }, (_, n) => replicas[n % 3]!.post('/tags/list', {}, token)),
    );
    const admitted = responses.filter(({ status }) => status === 200);
    const refused = responses.filter(({ status }) => status === 429);
    expect([admitted.length, refused.length]).toEqual([100, 200]);
    const left = admitted.map((response) => quotaOf(response)[1]!).sort((a, b) => a - b);
    expect(left[0]).toBe(0);
    for (const response of refused) {
      expect(quotaOf(response).slice(0, 2)).toEqual([100, 0]);
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    }
  });

  test('each response tells what is left, whichever replica gives it and whatever its status', async () => {
    const { token } = await fleet.user({ scope: 'read' });
    const requests: [string, unknown, number][] = [
      ['/tags/list', {}, 200],
      ['/bookmarks/search', { page: 0 }, 400],
      ['/bookmarks/add', { url: 'http://a/' }, 403],
      ['/bookmarks/list', { cursor: 'nonsense' }, 400],
      ['/bookmarks/search', '{', 400],
    ];
    for (const [n, [path, body, status]] of requests.entries()) {
      const response = await replicas[n % 3]!.post(path, body, token);
      const [limit, remaining, reset] = quotaOf(response);
      expect([response.status, limit, remaining]).toEqual([status, 100, 99 - n]);
      expect(reset! * 1_000).toBeGreaterThan(Date.now());
    }
    const writer = await fleet.user();
    const missing = await replicas[0]!.post('/bookmarks/delete', { id: 1 }, writer.token);
    expect([missing.status, quotaOf(missing)[1]]).toEqual([404, 99]);
    const unknown = await replicas[0]!.post('/nowhere', {}, token);
    expect([unknown.status, unknown.headers.get('x-ratelimit-limit')]).toEqual([404, null]);
  });

  test('a bookmark added at one replica ends the polls held by all', async () => {
    const caller = await fleet.user();
    const polls = await holdPolls(caller);
    const added = await replicas[1]!.post('/bookmarks/add', { url: 'http://new/' }, caller.token);
    for (const { status, body } of await Promise.all(polls)) {
      expect(status).toBe(200);
      expect(body).toEqual({ bookmarks: [added.body], cursor: added.body.id, has_more: false, waited: true });
    }
  });

  const expectEndedBy = async (polls: Promise<ApiResponse>[], revoke: () => Promise<unknown>) => {
    const ends = polls.map(async (poll) => ({ response: await poll, at: performance.now() }));
    await revoke();
    const revokedAt = performance.now();
    for (const { response, at } of await Promise.all(ends)) {
      expect([response.status, response.body.code]).toEqual([401, 'INVALID_TOKEN']);
      expect(at - revokedAt).toBeLessThan(1_000);
    }
  };

  test('/sessions/revoke-others at one replica ends the polls held by all with 401 within a second', async () => {
    const { email } = await fleet.user();
    const open = async () => {
      const invite = await runMain(['admin', 'invite', 'create', '--email', email], fleet.env);
      return (await replicas[0]!.post('/auth/invite', invite as object, 'none')).body;
    };
    const [ended, own] = [await open(), await open()];
    const polls = await holdPolls({ id: ended.user.id, email, token: ended.token });
    await expectEndedBy(polls, () => replicas[2]!.post('/sessions/revoke-others', {}, own.token));
    for (const replica of replicas) {
      expect((await replica.post('/tags/list', {}, ended.token)).status).toBe(401);
      expect((await replica.post('/tags/list', {}, own.token)).status).toBe(200);
    }
  });

  test('a logout at one replica ends the polls held by all with 401 within a second', async () => {
    const { email } = await fleet.user();
    const invite = (await runMain(['admin', 'invite', 'create', '--email', email], fleet.env)) as {
      code: string;
    };
    const { body } = await replicas[0]!.post('/auth/invite', { code: invite.code }, 'none');
    const polls = await holdPolls({ id: body.user.id, email, token: body.token });
    await expectEndedBy(polls, () => replicas[2]!.post('/logout', {}, body.token));
    for (const replica of replicas) {
      expect((await replica.post('/tags/list', {}, body.token)).status).toBe(401);
    }
  });

  test("the operator's command that revokes a token ends its polls on every replica", async () => {
    const caller = await fleet.user();
    const list = (await runMain(['admin', 'token', 'list', '--email', caller.email], fleet.env)) as {
      tokens: { id: string }[];
    };
    const polls = await holdPolls(caller);
    await expectEndedBy(polls, () =>
      runMain(['admin', 'token', 'revoke', '--id', list.tokens[0]!.id], fleet.env),
    );
  });
});

test('10,000 clients that go away leave no poll, no connection and no memory behind', {
  timeout: 120_000,
}, async () => {
  await using fleet = await openFleet({ env: { SYNC_WAIT_SECONDS: 30 } });
  const replica = await fleet.start('api', {
    NODE_OPTIONS: '--expose-gc --import=./test/support/report-heap.ts',
  });
  const users = await Promise.all(Array.from({ length: 625 }, () => fleet.user()));
  const comeAndGo = async (each: number) => {
    const sockets = await sendPolls(replica.origin, users, each);
    await replica.untilHeld(each * users.length);
    for (const socket of sockets) socket.resetAndDestroy();
    await replica.untilHeld(0);
    return measureHeap(replica);
  };
  const before = await replica.metrics();
  // As many: what the first ones have the process keep for good is no leak.
  const warm = await comeAndGo(16);
  const after10000 = await comeAndGo(16);
  // A leak of one closure a poll would be 10,000 times some hundred bytes.
  expect(after10000 - warm).toBeLessThan(1_000_000);
  const after = await replica.metrics();
  for (const name of ['process_open_fds', 'nodejs_active_handles_total', 'nodejs_active_requests_total']) {
    expect(after.get(name)! - before.get(name)!, name).toBeLessThan(50);
  }
});

async function sendPolls(origin: string, users: Caller[], each: number): Promise<Socket[]> {
  const { hostname, port } = new URL(origin);
  const body = '{"wait":true}';
  const sockets: Socket[] = [];
  for (const { token } of users) {
    const request =
      `POST /api/v1/bookmarks/sync HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n` +
      `Authorization: Bearer ${token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const opened = Array.from({ length: each }, () => connect(Number(port), hostname));
    await Promise.all(opened.map((socket) => once(socket, 'connect')));
    for (const socket of opened) socket.write(request);
    sockets.push(...opened);
  }
  return sockets;
}

/** Bytes in use on the replica's heap after a collection. */
async function measureHeap(replica: Replica): Promise<number> {
  const known = replica.log.length;
  replica.signal('SIGUSR2');
  const line = await until(() => replica.log.slice(known).find(({ msg }) => msg === 'heap'));
  return line.usedBytes as number;
}

test('three replicas behind a balancer are restarted in turn under load, and no request fails', {
  timeout: 90_000,
}, async () => {
  await using fleet = await openFleet({ env: { DRAIN_SECONDS: 1, SYNC_WAIT_SECONDS: 1 } });
  const ports = [await findFreePort(), await findFreePort(), await findFreePort()];
  const startAt = (port: number) => fleet.start('all', { PORT: port });
  const replicas = await Promise.all(ports.map(startAt));
  await using balancer = await startHaproxy(ports);
  const users = await Promise.all(Array.from({ length: 4 }, () => fleet.user({ premium: true })));
  await until(async () => (await fetch(`${balancer.origin}/readyz`)).ok);

  const ask = (user: Caller, path: string, body: unknown) =>
    post(balancer.origin, path, body, { token: user.token });
  const failures: string[] = [];
  let isDone = false;
  const added = new Map(users.map((user) => [user, [] as string[]]));
  const repeat = async (step: (n: number) => Promise<ApiResponse>) => {
    for (let n = 0; !isDone; n += 1) {
      await step(n).then(
        ({ status, text }) => status === 200 || failures.push(`${status} ${text}`),
        (error: unknown) => failures.push(String(error)),
      );
    }
  };
  const clients = users.flatMap((user, name) => [
    repeat(async (n) => {
      const response = await ask(user, '/bookmarks/add', { url: `http://user-${name}/${n}` });
      if (response.status === 200) added.get(user)!.push(response.body.url);
      return response;
    }),
    repeat(() => ask(user, '/bookmarks/search', { query: 'user' })),
    repeat((n) => ask(user, '/bookmarks/sync', { cursor: n % 2 ? Number.MAX_SAFE_INTEGER : 0, wait: true })),
    repeat((n) =>
      ask(user, '/import', { bookmarks: [{ url: 'http://a/' }, { url: `http://import-${name}/${n}` }] }),
    ),
  ]);
  for (const [index, port] of ports.entries()) {
    expect(await replicas[index]!.stop()).toBe(0);
    const heir = await startAt(port);
    replicas[index] = heir;
    await until(() => heir.log.some(({ route }) => String(route).startsWith('/api/')));
  }
  isDone = true;
  await Promise.all(clients);
  expect(failures).toEqual([]);
  for (const [user, urls] of added) {
    expect((await fleet.urls(user)).filter((url) => url.startsWith('http://user-'))).toEqual(urls);
  }
  expect(await findFaults(fleet.databaseUrl)).toEqual([]);
});

describe.concurrent('a replica that is told to end', { timeout: 120_000 }, () => {
  test('serves on for DRAIN_SECONDS, not ready and with its polls held; told again, it ends at once', async () => {
    await using fleet = await openFleet();
    const replica = await fleet.start('all', { DRAIN_SECONDS: 60 });
    const user = await fleet.user();
    const poll = replica.post('/bookmarks/sync', { wait: true }, user.token);
    await replica.untilHeld(1);
    expect((await replica.readiness()).status).toBe(200);
    const ended = replica.stop();
    await replica.untilLogged('draining');
    const readiness = await replica.readiness();
    expect([readiness.status, readiness.body.reasons]).toEqual([503, ['draining']]);
    expect((await fetch(`${replica.origin}/livez`)).status).toBe(200);
    const added = await replica.post('/bookmarks/add', { url: 'http://a/' }, user.token);
    expect([added.status, added.headers.get('connection')]).toEqual([200, 'close']);
    expect((await poll).body).toMatchObject({ bookmarks: [{ id: added.body.id }], waited: true });
    const broken = replica.post('/bookmarks/sync', { cursor: added.body.id, wait: true }, user.token);
    const rejected = expect(broken).rejects.toThrow();
    await replica.untilHeld(1);
    replica.signal('SIGTERM');
    expect(await ended).toBe(130);
    await rejected;
  });

  test('lets requests in flight finish, and ends without waiting for idle connections', async () => {
    await using fleet = await openFleet();
    const [replica, user] = [await fleet.start('all'), await fleet.user()];
    const { hostname, port } = new URL(replica.origin);
    const idle = connect(Number(port), hostname);
    await once(idle, 'connect');
    await using account = await fleet.holdAccount(user);
    const added = replica.post('/bookmarks/add', { url: 'http://late/' }, user.token);
    await fleet.untilBlocked('add_bookmark');
    const ended = replica.stop();
    await replica.untilLogged('draining');
    await until(() => takesNoConnections(Number(port)));
    await account.release();
    expect((await added).status).toBe(200);
    expect(await ended).toBe(0);
    expect(replica.log.at(-1)?.msg).toBe('closed');
  });

  test('finishes the import at work', async () => {
    await using fleet = await openFleet({ env: { IMPORT_INLINE_BYTES: 0 } });
    const [api, worker] = await Promise.all([fleet.start('api'), fleet.start('worker')]);
    const user = await fleet.user();
    await using account = await fleet.holdAccount(user);
    const response = api.post('/import', { bookmarks: entries(3) }, user.token);
    await fleet.untilBlocked('from import_bookmarks(');
    const ended = worker.stop();
    await worker.untilLogged('draining');
    await account.release();
    expect((await response).body.imported).toBe(3);
    expect(await ended).toBe(0);
    expect(await fleet.jobs()).toEqual([]);
  });

  test('gives back an import that takes too long, and another does it', async () => {
    await using fleet = await openFleet({ env: { IMPORT_INLINE_BYTES: 0 } });
    const [api, worker] = await Promise.all([fleet.start('api'), fleet.start('worker')]);
    const user = await fleet.user();
    await using account = await fleet.holdAccount(user);
    const response = api.post('/import', { bookmarks: entries(3) }, user.token);
    const backend = await fleet.untilBlocked('from import_bookmarks(');
    const ended = worker.stop();
    const heir = await fleet.start('worker');
    expect(await ended).toBe(0);
    await fleet.sql`select pg_terminate_backend(${backend})`;
    await account.release();
    expect((await response).body.imported).toBe(3);
    expect(await heir.stop()).toBe(0);
    expect(await fleet.urls(user)).toHaveLength(3);
  });
});

const takesNoConnections = async (port: number): Promise<boolean> => {
  const socket = connect(port, '127.0.0.1');
  const refused = await once(socket, 'connect').then(
    () => false,
    () => true,
  );
  socket.destroy();
  return refused;
};

describe.concurrent('an import whose worker fails', { timeout: 120_000 }, () => {
  const body = { bookmarks: [...entries(50), { url: 'http://entry/0' }, { url: 'nonsense' }] };
  const counts = { imported: 50, skipped: 1 };

  const expectWhole = async (fleet: Fleet, user: Caller, response: ApiResponse) => {
    expect(response.status).toBe(200);
    expect(response.body).toMatchObject({ ...counts, errors: [{ index: 51, url: 'nonsense' }] });
    expect(await fleet.urls(user)).toEqual(entries(50).map(({ url }) => url));
    const kept = await fleet.sql`select state, result from imports where user_id = ${user.id}`;
    expect(kept).toEqual([{ state: 'done', result: JSON.stringify(counts) }]);
    expect(await findFaults(fleet.databaseUrl)).toEqual([]);
  };
  const openWithApi = async (env = {}) => {
    const fleet = await openFleet({ env: { IMPORT_INLINE_BYTES: 0, ...env } });
    return { fleet, api: await fleet.start('api'), user: await fleet.user() };
  };

  test('before its transaction is done by another, and the same request is answered', async () => {
    const { fleet, api, user } = await openWithApi();
    await using _ = fleet;
    const response = api.post('/import', body, user.token);
    await until(async () => (await fleet.imports(user))[0] === 'queued');
    const chunks = await fleet.hold('lock table import_chunks in access exclusive mode');
    const doomed = await fleet.start('worker');
    await fleet.untilBlocked('from import_chunks');
    await Promise.all([doomed.kill(), fleet.start('worker')]);
    await chunks.release();
    await expectWhole(fleet, user, await response);
  });

  test('in its transaction, which is lost with it, is done by another', async () => {
    const { fleet, api, user } = await openWithApi();
    await using _ = fleet;
    const [doomed, account] = [await fleet.start('worker'), await fleet.holdAccount(user)];
    const response = api.post('/import', body, user.token);
    const backend = await fleet.untilBlocked('from import_bookmarks(');
    await Promise.all([doomed.kill(), fleet.start('worker')]);
    await fleet.sql`select pg_terminate_backend(${backend})`;
    await account.release();
    await expectWhole(fleet, user, await response);
  });

  test('in its transaction, which Postgres still commits, is answered with its result', async () => {
    const { fleet, api, user } = await openWithApi();
    await using _ = fleet;
    const [doomed, account] = [await fleet.start('worker'), await fleet.holdAccount(user)];
    const response = api.post('/import', body, user.token);
    await fleet.untilBlocked('from import_bookmarks(');
    await Promise.all([doomed.kill(), fleet.start('worker')]);
    await account.release();
    await expectWhole(fleet, user, await response);
    await until(async () => (await fleet.jobs()).length === 0);
    await expectWhole(fleet, user, await response);
  });

  test('right after its transaction, before it could tell anybody, is answered and not done again', async () => {
    const { fleet, api, user } = await openWithApi();
    await using _ = fleet;
    const [doomed, account] = [await fleet.start('worker'), await fleet.holdAccount(user)];
    const poll = api.post('/bookmarks/sync', { wait: true }, user.token);
    const response = api.post('/import', body, user.token);
    await fleet.untilBlocked('from import_bookmarks(');
    await doomed.freeze();
    await account.release();
    await until(async () => (await fleet.imports(user))[0] === 'done');
    await doomed.kill();
    await expectWhole(fleet, user, await response);
    // Told by the replica that answers, long before the poll would end by itself.
    const told = Promise.race([poll, sleep(15_000)]);
    expect((await told)?.body.bookmarks).toHaveLength(50);
    await fleet.start('worker');
    await until(async () => (await fleet.jobs()).length === 0);
    await expectWhole(fleet, user, await response);
  });

  test('with Redis restarted empty while it is queued is done all the same', async () => {
    const { fleet, api, user } = await openWithApi();
    await using _ = fleet;
    const response = api.post('/import', body, user.token);
    await until(async () => (await fleet.jobs()).length === 1);
    await Promise.all([fleet.redis.restart(), fleet.start('worker')]);
    await expectWhole(fleet, user, await response);
  });

  test('killed in its transaction, with Redis restarted empty, is done by another', async () => {
    const { fleet, api, user } = await openWithApi();
    await using _ = fleet;
    const [doomed, account] = [await fleet.start('worker'), await fleet.holdAccount(user)];
    const response = api.post('/import', body, user.token);
    const backend = await fleet.untilBlocked('from import_bookmarks(');
    await Promise.all([doomed.kill(), fleet.redis.restart(), fleet.start('worker')]);
    await fleet.sql`select pg_terminate_backend(${backend})`;
    await account.release();
    await expectWhole(fleet, user, await response);
  });

  test('by hanging in its transaction is not run by a second one beside it, and done once', async () => {
    const { fleet, api, user } = await openWithApi();
    await using _ = fleet;
    const [hung, account] = [await fleet.start('worker'), await fleet.holdAccount(user)];
    const response = api.post('/import', body, user.token);
    await fleet.untilBlocked('from import_bookmarks(');
    await Promise.all([hung.freeze(), fleet.start('worker')]);
    const isOver = async () =>
      (await fleet.sql`select from imports where user_id = ${user.id} and lease_until < now()`).length > 0;
    await until(isOver);
    const running = await fleet.sql`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%from import_bookmarks(%'
        and pid <> pg_backend_pid()`;
    expect(running).toHaveLength(1);
    hung.thaw();
    await account.release();
    await expectWhole(fleet, user, await response);
    await until(async () => (await fleet.jobs()).length === 0);
    await expectWhole(fleet, user, await response);
  });
});

describe.concurrent('an import that waits', { timeout: 120_000 }, () => {
  const open = (env = {}) => openFleet({ env: { IMPORT_INLINE_BYTES: 0, ...env } });
  const replace = { bookmarks: entries(3), mode: 'replace' };

  /** Has a worker, which starts now, look at all that is queued; then nothing but the bookmark is there. */
  const expectNeverRuns = async (fleet: Fleet, user: Caller, kept: string) => {
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

  test('longer than IMPORT_WAIT_SECONDS is answered with 503 and never runs, by its job or by a sweep', async () => {
    await using fleet = await open();
    const [hasty, patient] = [await fleet.start('api', { IMPORT_WAIT_SECONDS: 2 }), await fleet.start('api')];
    const [user, other] = [await fleet.user(), await fleet.user()];
    expectUnavailable(await hasty.post('/import', replace, user.token));
    expect(await fleet.jobs()).toHaveLength(1);
    await hasty.post('/bookmarks/add', { url: 'http://kept/' }, user.token);
    await expectNeverRuns(fleet, user, 'http://kept/');
    // Without their jobs, only a sweep finds imports.
    const swept = patient.post('/import', replace, other.token);
    await until(async () => (await fleet.jobs()).length === 1);
    await Promise.all([fleet.redis.restart(), fleet.start('worker')]);
    expect((await swept).body.imported).toBe(3);
    expect([await fleet.imports(user), await fleet.urls(user)]).toEqual([['cancelled'], ['http://kept/']]);
  });

  test('on a replica that is killed is done all the same', async () => {
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

  test('on a replica that must end is answered with 503 before it ends, and never runs', async () => {
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

  test('on a replica that must end is answered with its result where a worker still does it', async () => {
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

  test('and is done in the moment that it is given up is answered with its result', async () => {
    await using fleet = await open({ IMPORT_WAIT_SECONDS: 2 });
    const [api, user] = [await fleet.start('api'), await fleet.user()];
    await fleet.start('worker', { IMPORT_WAIT_SECONDS: 60 });
    await using account = await fleet.holdAccount(user);
    const response = api.post('/import', replace, user.token);
    await fleet.untilBlocked('insert into imports as i');
    await account.release();
    expect((await response).body).toEqual({ imported: 3, skipped: 0, errors: [] });
  });

  test('and whose client has gone is done all the same', async () => {
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

  test('holds back further large ones of its user, and of all beyond the cap of staged bytes', async () => {
    const text = JSON.stringify(replace);
    await using fleet = await open({ IMPORT_STAGED_BYTES: 2 * text.length });
    const [one, two] = await Promise.all([fleet.start('api'), fleet.start('api')]);
    const [ann, ben, cid] = [await fleet.user(), await fleet.user(), await fleet.user()];
    const first = one!.post('/import', text, ann.token);
    await until(async () => (await fleet.imports(ann))[0] === 'queued');
    const again = await two!.post('/import', text, ann.token);
    expect([again.status, again.body.code]).toEqual([429, 'RATE_LIMITED']);
    expect(Number(again.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    const second = two!.post('/import', text, ben.token);
    await until(async () => (await fleet.imports(ben))[0] === 'queued');
    expectUnavailable(await one!.post('/import', text, cid.token));
    await fleet.start('worker');
    for (const response of await Promise.all([first, second])) expect(response.body.imported).toBe(3);
    expect((await one!.post('/import', text, cid.token)).body.imported).toBe(3);
    expect((await two!.post('/import', text, ann.token)).body.imported).toBe(3);
  });

  test('and is no JSON, or no import, is refused as it arrives and frees its place', async () => {
    await using fleet = await open();
    const [api, user] = [await fleet.start('api'), await fleet.user()];
    await fleet.start('worker');
    const broken = await api.post('/import', '{"bookmarks":[', user.token);
    expect([broken.status, broken.body.code]).toEqual([400, 'VALIDATION_ERROR']);
    const wrong = await api.post('/import', { bookmarks: {} }, user.token);
    expect([wrong.status, wrong.body.error]).toEqual([400, expect.stringContaining('bookmarks')]);
    expect(await fleet.imports(user)).toEqual(['cancelled', 'cancelled']);
  });

  /** Sends two of three announced megabytes; resolves once some of them are staged. */
  const beginUpload = async (fleet: Fleet, replica: Replica, user: Caller): Promise<Socket> => {
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

  test('for the rest of its bytes, which never come, is never queued and frees its place at once', async () => {
    await using fleet = await open();
    const [api, user] = [await fleet.start('all'), await fleet.user()];
    const socket = await beginUpload(fleet, api, user);
    socket.resetAndDestroy();
    await until(async () => (await fleet.imports(user))[0] === 'cancelled');
    expect((await api.post('/import', replace, user.token)).body.imported).toBe(3);
    expect(await fleet.imports(user)).toEqual(['cancelled', 'done']);
  });

  test('for its bytes on a replica that is killed is never queued and frees its place after a minute', async () => {
    await using fleet = await open();
    const [doomed, api, user] = [await fleet.start('api'), await fleet.start('all'), await fleet.user()];
    await beginUpload(fleet, doomed, user);
    await doomed.kill();
    expect((await api.post('/import', replace, user.token)).status).toBe(429);
    await fleet.sql`update imports set touched_at = touched_at - interval '1 minute'`;
    await until(async () => (await fleet.imports(user)).length === 0, 15_000);
    expect((await api.post('/import', replace, user.token)).body.imported).toBe(3);
  });
});
