import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Fleet, openFleet } from './support/fleet.ts';
import { type Replica, runMain } from './support/replica.ts';
import type { ApiResponse } from './support/responses.ts';
import { until } from './support/until.ts';
import type { Principal } from './support/users.ts';

// Many replicas act as one service. The tests start and stop real processes with one Postgres and one Redis.

const entries = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ url: `http://entry/${n}`, tags: ['a', `tag-${n % 3}`] }));

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

  /** Sends a poll of the principal to each replica. Resolves when each replica holds its poll. */
  const holdPolls = async ({ token }: Principal) => {
    const polls = replicas.map((replica) => replica.post('/bookmarks/sync', { wait: true }, token));
    for (const replica of replicas) await replica.untilHeld(1);
    return polls;
  };

  test('admit exactly 100 of 300 simultaneous requests', async () => {
    const { token } = await fleet.user();
    const responses = await Promise.all(
      Array.from({ length: 300 }, (_, n) => replicas[n % 3]!.post('/tags/list', {}, token)),
    );
    // On a busy machine, a replica refuses some requests with 503. If the limiter had already admitted such a request,
    // its response has the limiter's headers.
    const counted = responses.filter(({ headers }) => headers.has('x-ratelimit-limit'));
    const admitted = counted.filter(({ status }) => status !== 429);
    const refused = responses.filter(({ status }) => status === 429);
    expect(admitted).toHaveLength(100);
    expect(responses.filter(({ status }) => ![200, 429, 503].includes(status))).toEqual([]);
    const left = admitted.map((response) => quotaOf(response)[1]!).sort((a, b) => a - b);
    expect(left[0]).toBe(0);
    for (const response of refused) {
      expect(quotaOf(response).slice(0, 2)).toEqual([100, 0]);
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    }
  });

  test('return the remaining quota in each response, with any status', async () => {
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

  test('end held polls on all replicas when one of them adds a bookmark', async () => {
    const principal = await fleet.user();
    const polls = await holdPolls(principal);
    const added = await replicas[1]!.post('/bookmarks/add', { url: 'http://new/' }, principal.token);
    for (const { status, body } of await Promise.all(polls)) {
      expect(status).toBe(200);
      expect(body).toEqual({ bookmarks: [added.body], cursor: added.body.id, has_more: false, waited: true });
    }
  });

  test('end held polls of changes on all replicas when one of them edits, deletes or changes a tag', async () => {
    const { token } = await fleet.user();
    const post = (path: string, body: object) => replicas[1]!.post(path, body, token);
    const { body: added } = await post('/bookmarks/add', { url: 'http://a/', tags: ['old'] });
    const { body: begun } = await post('/bookmarks/changes', {});
    const { body: listed } = await post('/tags/list', {});
    const [tag] = listed.tags;
    let { cursor } = begun;
    for (const [path, body] of [
      ['/bookmarks/edit', { id: added.id, title: 'new' }],
      ['/tags/update', { id: tag.id, name: 'new' }],
      ['/bookmarks/delete', { id: added.id }],
    ] as const) {
      const polls = replicas.map((replica) =>
        replica.post('/bookmarks/changes', { cursor, wait: true }, token),
      );
      for (const replica of replicas) await replica.untilHeld(1);
      expect((await post(path, body)).status).toBe(200);
      const ends = await Promise.all(polls);
      for (const end of ends) expect(end.body).toMatchObject({ waited: true });
      cursor = ends[0]!.body.cursor;
      expect(cursor).not.toBe(begun.cursor);
    }
  });

  const expectEndedBy = async (polls: Promise<ApiResponse>[], revoke: () => Promise<unknown>) => {
    const ends = polls.map(async (poll) => ({ response: await poll, at: performance.now() }));
    await revoke();
    const revokedAt = performance.now();
    for (const { response, at } of await Promise.all(ends)) {
      expect([response.status, response.body.code]).toEqual([401, 'INVALID_TOKEN']);
      // Without the revocation, the polls would end after 25 s.
      expect(at - revokedAt).toBeLessThan(12_000);
    }
  };

  test('end held polls with 401 on all replicas long before their timeouts, after /sessions/revoke-others at one of them', async () => {
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

  test('end held polls with 401 on all replicas long before their timeouts, after a logout at one of them', async () => {
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

  test("end held polls of a token that the operator's command revokes", async () => {
    const principal = await fleet.user();
    const list = (await runMain(['admin', 'token', 'list', '--email', principal.email], fleet.env)) as {
      tokens: { id: string }[];
    };
    const polls = await holdPolls(principal);
    await expectEndedBy(polls, () =>
      runMain(['admin', 'token', 'revoke', '--id', list.tokens[0]!.id], fleet.env),
    );
  });
});

describe.concurrent('a replica that is stopped', () => {
  test('serves for DRAIN_SECONDS, not ready and with its polls held, and exits at once after a second signal', async () => {
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

  test('completes requests in flight, and exits without waiting for idle connections', async () => {
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

  test('completes its running import', async () => {
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
