import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ApiError, BookmarkClient, MemoryStore, type SyncBatch } from '../src/client/index.ts';
import { DEFAULT_WAITS, longestImport } from '../src/domain/waits.ts';
import { CLIENT_MARGIN_SECONDS } from '../src/http/client-timeouts.ts';
import { FakeService, hang, json, lose, type Received, refusal, turn } from './support/fake-service.ts';

/** Tests of the client with a clock that only the tests advance. */

const PROFILE = { email: 'a@example.org', is_premium: false, created_at: '2026-01-01T00:00:00.000Z' };
const bookmark = (id: number) => ({
  id,
  url: `https://example.org/${id}`,
  title: '',
  comment: '',
  tags: [],
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
});
const quota = (remaining: number, resetInSeconds: number) => ({
  date: new Date(1_800_000_000_000).toUTCString(),
  'x-ratelimit-limit': '100',
  'x-ratelimit-remaining': String(remaining),
  'x-ratelimit-reset': String(1_800_000_000 + resetInSeconds),
});
const failure = async (promise: Promise<unknown>): Promise<ApiError> => {
  const error = await promise.then(
    () => new Error('it succeeded'),
    (reason) => reason,
  );
  expect(error).toBeInstanceOf(ApiError);
  return error;
};

describe('waits', () => {
  test('the client obeys a 429: it sends the request again after Retry-After, and not before', async () => {
    const fake = new FakeService(
      refusal('RATE_LIMITED', 429, { 'retry-after': '7', ...quota(0, 7) }),
      json(PROFILE),
    );
    expect(await fake.run(fake.client().profile())).toEqual(PROFILE);
    expect(fake.gapsMs[0]).toBeGreaterThanOrEqual(7_000);
    expect(fake.gapsMs[0]).toBeLessThanOrEqual(7_010);
  });

  test('a wait that the service names is extended by up to a tenth, and never shortened', async () => {
    const fake = new FakeService(refusal('RATE_LIMITED', 429, { 'retry-after': '10' }), json(PROFILE));
    await fake.run(fake.client({ random: () => 0.999 }).profile());
    expect(fake.gapsMs[0]).toBeGreaterThanOrEqual(10_900);
    expect(fake.gapsMs[0]).toBeLessThanOrEqual(11_010);
  });

  test('a write is also sent again after a 429, because the service refused it without executing it', async () => {
    const fake = new FakeService(
      refusal('RATE_LIMITED', 429, { 'retry-after': '1' }),
      json({ deleted: true }),
    );
    await fake.run(fake.client().deleteBookmark(1));
    expect(fake.received).toHaveLength(2);
  });

  test('the next request waits if the quota is used up', async () => {
    const fake = new FakeService(json(PROFILE, 200, quota(0, 12)), json(PROFILE));
    const client = fake.client();
    await fake.run(client.profile());
    await fake.run(client.profile());
    expect(fake.gapsMs[0]).toBeGreaterThanOrEqual(12_000);
    expect(fake.gapsMs[0]).toBeLessThanOrEqual(12_010);
  });

  test('many requests that wait for quota are sent one by one, as the sliding window allows them', async () => {
    const back = () => json(PROFILE, 200, quota(0, 5));
    const fake = new FakeService(back(), back(), back(), back());
    const client = fake.client();
    await fake.run(client.profile());
    await fake.run(Promise.all([client.profile(), client.profile(), client.profile()]));
    expect(fake.gapsMs.every((gapMs) => gapMs >= 900)).toBe(true);
  });

  test('requests sent at once count against the quota in the last response', async () => {
    const fake = new FakeService(
      json(PROFILE, 200, quota(2, 30)),
      ...[1, 2, 3].map(() => json(PROFILE, 200, quota(0, 30))),
    );
    const client = fake.client();
    await fake.run(client.profile());
    await fake.run(Promise.all([client.profile(), client.profile(), client.profile()]));
    expect(fake.gapsMs.slice(0, 2).every((gapMs) => gapMs < 100)).toBe(true);
    expect(fake.gapsMs[2]).toBeGreaterThanOrEqual(29_000);
  });

  test('requests in progress count first against the quota that a response reports', async () => {
    const fake = new FakeService(json(PROFILE, 200, quota(1, 30)), hang, json(PROFILE));
    const client = fake.client();
    const controller = new AbortController();
    const [first, second] = [client.profile(), client.profile({ signal: controller.signal })];
    await fake.run(first);
    await fake.run(client.profile());
    expect(fake.gapsMs[1]).toBeGreaterThanOrEqual(29_000);
    controller.abort();
    await expect(second).rejects.toThrow();
  });

  test('the later pages of a new copy leave 40 requests to others, which do not wait for them', async () => {
    const page = (cursor: string, remaining: number, more = true) =>
      json(
        {
          reset: false,
          bookmarks: [],
          deleted: [],
          tags: [],
          deleted_tags: [],
          cursor,
          has_more: more,
          waited: false,
        },
        200,
        { ...quota(remaining, 60), 'x-ratelimit-limit': '100' },
      );
    const fake = new FakeService(
      page('a', 42),
      page('b', 41),
      page('c', 40),
      json(PROFILE, 200, quota(39, 50)),
      json(PROFILE, 200, quota(38, 50)),
      page('d', 100, false),
    );
    const client = fake.client();
    const beganMs = fake.clock.now();
    const filling = fake.run(client.collection(new MemoryStore()).sync());
    for (let turns = 0; turns < 50; turns += 1) await turn();
    expect(fake.received).toHaveLength(3);
    await fake.run(client.profile());
    await fake.run(client.profile());
    const otherMs = fake.received[4]!.atMs;
    await filling;
    expect(otherMs - beganMs).toBeLessThan(1_000);
    expect(fake.received.at(-1)!.path).toBe('/bookmarks/changes');
    expect(fake.received.at(-1)!.atMs - beganMs).toBeGreaterThanOrEqual(50_000);
  });

  test('the response of a poll does not restore its quota of half a minute ago', async () => {
    let endPoll = (_: Response) => {};
    const poll = new Promise<Response>((resolve) => {
      endPoll = resolve;
    });
    const fake = new FakeService(
      () => poll,
      json(PROFILE, 200, quota(0, 20)),
      json(PROFILE, 200, quota(10, 20)),
    );
    const client = fake.client();
    const polled = client.syncBookmarks({ cursor: 0, wait: true });
    await fake.run(client.profile());
    endPoll(json({ bookmarks: [], cursor: 0, has_more: false, waited: true }, 200, quota(50, 0)));
    await fake.run(polled);
    await fake.run(client.profile());
    expect(fake.gapsMs[1]).toBeGreaterThanOrEqual(20_000);
  });

  test.each([
    ['least', 0, [150, 300, 600, 1_200]],
    ['most', 0.999_999, [300, 600, 1_200, 2_400]],
  ])('back-off doubles, and half of it is random: %s', async (_name, random, gapsMs) => {
    const fail = () => refusal('INTERNAL_ERROR', 500);
    const fake = new FakeService(fail(), fail(), fail(), fail(), json(PROFILE));
    await fake.run(fake.client({ random: () => random }).profile());
    for (const [i, gapMs] of fake.gapsMs.entries())
      expect(Math.abs(gapMs - gapsMs[i]!)).toBeLessThanOrEqual(10);
  });

  test('back-off grows to 20 s, and the client stops retrying two minutes after the first failure', async () => {
    const fake = new FakeService(...Array.from({ length: 50 }, () => refusal('UNAVAILABLE', 503)));
    const error = await failure(fake.run(fake.client({ random: () => 0.999_999 }).profile()));
    expect(error.code).toBe('UNAVAILABLE');
    expect(Math.max(...fake.gapsMs)).toBeLessThanOrEqual(20_010);
    const spentMs = fake.received.at(-1)!.atMs - fake.received[0]!.atMs;
    expect(spentMs).toBeGreaterThan(90_000);
    expect(spentMs).toBeLessThanOrEqual(120_000);
  });

  test('after a 503 with Retry-After, the client waits at least that long', async () => {
    const fake = new FakeService(refusal('UNAVAILABLE', 503, { 'retry-after': '5' }), json(PROFILE));
    await fake.run(fake.client().profile());
    expect(fake.gapsMs[0]).toBeGreaterThanOrEqual(5_000);
  });

  test('a short Retry-After of repeated failures does not keep the waits short', async () => {
    const replies = Array.from({ length: 100 }, () => refusal('UNAVAILABLE', 503, { 'retry-after': '1' }));
    const fake = new FakeService(...replies);
    await failure(fake.run(fake.client({ random: () => 0.999_999 }).profile()));
    expect(fake.gapsMs[0]).toBeGreaterThanOrEqual(1_000);
    expect(Math.max(...fake.gapsMs)).toBeGreaterThan(10_000);
  });

  test('each wait before a retry is reported', async () => {
    const told: unknown[] = [];
    const fake = new FakeService(refusal('UNAVAILABLE', 503), lose('ECONNRESET'), json(PROFILE));
    const onRetry = ({ error, failures, path, waitMs }: { error: ApiError } & Record<string, unknown>) =>
      told.push([path, error.code, failures, waitMs]);
    await fake.run(fake.client({ onRetry: onRetry as never }).profile());
    expect(told).toEqual([
      ['/user/profile', 'UNAVAILABLE', 1, 150],
      ['/user/profile', 'CONNECTION_LOST', 2, 300],
    ]);
  });
});

describe('only safe requests are retried', () => {
  const lost = [
    ['a lost connection', lose('ECONNRESET')],
    ['a 500', () => refusal('INTERNAL_ERROR', 500)],
    ['a 503', () => refusal('UNAVAILABLE', 503)],
    ["a proxy's 502", () => new Response('<h1>Bad Gateway</h1>', { status: 502 })],
    ['half a response', () => new Response('{"email":"a@exa')],
  ] as const;

  test.each(lost)('reads are retried after %s', async (_name, reply) => {
    const fake = new FakeService(reply, json(PROFILE));
    expect(await fake.run(fake.client().profile())).toEqual(PROFILE);
  });

  test.each(lost)(
    'writes are retried with the same key and the same bytes after %s',
    async (_name, reply) => {
      for (const send of [
        (client: ReturnType<FakeService['client']>) => client.addBookmark({ url: 'https://example.org/' }),
        (client: ReturnType<FakeService['client']>) => client.createTag({ name: 'a' }),
        (client: ReturnType<FakeService['client']>) => client.editBookmark({ id: 1, title: 'a' }),
        (client: ReturnType<FakeService['client']>) => client.deleteBookmark(1),
        (client: ReturnType<FakeService['client']>) => client.renameTag({ id: 1, name: 'a' }),
        (client: ReturnType<FakeService['client']>) => client.deleteTag(1),
        (client: ReturnType<FakeService['client']>) => client.mergeTags({ id: 1, into_id: 2 }),
        (client: ReturnType<FakeService['client']>) =>
          client.importBookmarks({ bookmarks: [], mode: 'replace' }),
        (client: ReturnType<FakeService['client']>) => client.importBookmarks({ bookmarks: [] }),
      ]) {
        const fake = new FakeService(reply, json({ done: true }));
        await fake.run(send(fake.client()) as Promise<unknown>);
        const keys = fake.received.map(({ headers }) => headers.get('idempotency-key'));
        expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
        expect(keys[1]).toBe(keys[0]);
        expect(fake.received[1]!.text).toBe(fake.received[0]!.text);
      }
    },
  );

  test.each(lost)(
    'revocations, logouts and exchanges of invites are not retried after %s',
    async (_name, reply) => {
      for (const send of [
        (client: ReturnType<FakeService['client']>) => client.revokeToken(1),
        (client: ReturnType<FakeService['client']>) => client.logout(),
        (client: ReturnType<FakeService['client']>) => client.exchangeInvite('ABCD1234'),
      ]) {
        const fake = new FakeService(reply);
        await failure(fake.run(send(fake.client()) as Promise<unknown>));
        expect(fake.received).toHaveLength(1);
      }
    },
  );

  test('a revocation is retried if the caller gives a key', async () => {
    const fake = new FakeService(lose('ECONNRESET'), json({ revoked: true }));
    await fake.run(fake.client().revokeToken(1, { idempotencyKey: 'mine' }));
    expect(fake.received.map(({ headers }) => headers.get('idempotency-key'))).toEqual(['mine', 'mine']);
  });

  test('any request that was never sent is retried', async () => {
    const fake = new FakeService(lose('ECONNREFUSED'), lose('ENOTFOUND'), json({ deleted: true }));
    await fake.run(fake.client().deleteBookmark(1));
    expect(fake.received).toHaveLength(3);
  });

  test.each([
    ['VALIDATION_ERROR', 400],
    ['INVALID_TOKEN', 401],
    ['PERMISSION_DENIED', 403],
    ['LIMIT_EXCEEDED', 403],
    ['NOT_FOUND', 404],
    ['CONFLICT', 409],
  ])('%s is final and not retried', async (code, status) => {
    const fake = new FakeService(refusal(code, status));
    const error = await failure(fake.run(fake.client().profile()));
    expect([error.code, error.status]).toEqual([code, status]);
  });

  test('two calls have different keys, and the client uses a key that the caller gives', async () => {
    const fake = new FakeService(json(bookmark(1)), json(bookmark(2)), json(bookmark(3)));
    const client = fake.client();
    await fake.run(client.addBookmark({ url: 'https://example.org/' }));
    await fake.run(client.addBookmark({ url: 'https://example.org/' }));
    await fake.run(client.addBookmark({ url: 'https://example.org/' }, { idempotencyKey: 'my-key' }));
    const keys = fake.received.map(({ headers }) => headers.get('idempotency-key'));
    expect(new Set(keys).size).toBe(3);
    expect(keys[2]).toBe('my-key');
  });

  test('reads carry no key, and exchanges of invites carry no token', async () => {
    const fake = new FakeService(json(PROFILE), json({ token: 'bks_1_x', user: { id: 1, email: 'a@b' } }));
    const client = fake.client();
    await fake.run(client.profile());
    await fake.run(client.exchangeInvite('ABCD1234'));
    expect(fake.received[0]!.headers.has('idempotency-key')).toBe(false);
    expect(fake.received[0]!.headers.get('authorization')).toBe('Bearer bka_1_token');
    expect(fake.received[1]!.headers.has('authorization')).toBe(false);
  });

  test('nothing is retried if the caller disables retries', async () => {
    const fake = new FakeService(refusal('UNAVAILABLE', 503, { 'retry-after': '1' }));
    const error = await failure(fake.run(fake.client({ retryForMs: 0 }).profile()));
    expect([error.code, error.status, error.retryAfterSeconds]).toEqual(['UNAVAILABLE', 503, 1]);
  });
});

describe('invalid options', () => {
  test.each([
    ['a token with a line break', { token: 'bks_1_a\nb' }, 'token: '],
    ['a token with letters beyond ASCII', { token: 'bks_1_ä' }, 'token: '],
    ['an empty token', { token: '' }, 'token: '],
    ['a base url without a scheme', { baseUrl: 'bookmarks.example.org' }, 'baseUrl: '],
    ['a base url with another scheme', { baseUrl: 'ftp://bookmarks.example.org' }, 'baseUrl: '],
    ['a user in the url', { baseUrl: 'https://ann:secret@bookmarks.example.org/api/v1' }, 'baseUrl: '],
    ['a query in the url', { baseUrl: 'https://bookmarks.example.org/api/v1?a=1' }, 'baseUrl: '],
  ])('%s is refused at once, with a message that names the option', (_, options, name) => {
    const create = () => new BookmarkClient({ baseUrl: 'https://bookmarks.example.org/api/v1', ...options });
    expect(create).toThrow(TypeError);
    expect(create).toThrow(name);
    expect(create).not.toThrow('secret');
  });

  test.each([
    ['https://bookmarks.example.org', 'https://bookmarks.example.org/api/v1'],
    ['https://Bookmarks.example.org:443/', 'https://bookmarks.example.org/api/v1'],
    ['http://[::1]:3000', 'http://[::1]:3000/api/v1'],
    ['https://example.org/api/v1/', 'https://example.org/api/v1'],
    ['https://example.org/bookmarks//', 'https://example.org/bookmarks'],
  ])('the base url %s stands for %s', async (baseUrl, base) => {
    const urls: string[] = [];
    const send: typeof fetch = async (url) => {
      urls.push(String(url));
      return json(PROFILE);
    };
    await new BookmarkClient({ baseUrl, fetch: send }).profile();
    expect(urls).toEqual([`${base}/user/profile`]);
  });

  test('a redirect is not followed, so that no code or token goes to another server', async () => {
    const received: string[] = [];
    const listen = async (respond: RequestListener) => {
      const server = createServer(respond).listen(0, '127.0.0.1');
      onTestFinished(() => void server.close());
      await once(server, 'listening');
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    };
    const elsewhere = await listen((request, response) => {
      received.push(request.url!);
      response.end('{}');
    });
    const service = await listen((_, response) => response.writeHead(307, { location: elsewhere }).end());
    const client = new BookmarkClient({ baseUrl: `${service}/api/v1`, token: 'bks_1_a' });
    expect(await failure(client.exchangeInvite('AAAAAAAA'))).toMatchObject({ code: 'UNEXPECTED_ANSWER' });
    expect(await failure(client.profile())).toMatchObject({ code: 'UNEXPECTED_ANSWER' });
    expect(received).toEqual([]);
  });
});

describe('errors', () => {
  test('have the message of the service, and the id under which the service logged the request', async () => {
    const fake = new FakeService(refusal('LIMIT_EXCEEDED', 403, { 'x-request-id': 'from-the-service' }));
    const error = await failure(fake.run(fake.client().addBookmark({ url: 'https://example.org/' })));
    expect(error.message).toBe('as the service words LIMIT_EXCEEDED');
    expect(error.requestId).toBe('from-the-service');
  });

  test('the error of a lost connection has the id that was sent, which differs for each attempt', async () => {
    const fake = new FakeService(lose('ECONNRESET'), lose('ECONNRESET'));
    const error = await failure(fake.run(fake.client({ retryForMs: 200 }).profile()));
    expect(error).toMatchObject({ code: 'CONNECTION_LOST', status: 0 });
    const ids = fake.received.map(({ headers }) => headers.get('x-request-id'));
    expect(ids[1]).toBe(error.requestId);
    expect(ids[0]).not.toBe(ids[1]);
    expect((error.cause as Error).message).toBe('fetch failed');
  });

  test('an error that does not come from the service is reported as such', async () => {
    const fake = new FakeService(new Response('not here', { status: 418 }));
    const error = await failure(fake.run(fake.client().profile()));
    expect(error).toMatchObject({
      code: 'UNEXPECTED_ANSWER',
      message: 'http://service/api/v1/user/profile: unexpected response with status 418',
    });
  });

  test.each([
    ['another server', new Response('not here', { status: 404 })],
    ['the service', json({ error: 'the path does not exist', code: 'NOT_FOUND' }, 404)],
  ])('a path that %s does not know is named, and never taken for a missing bookmark', async (_, response) => {
    const fake = new FakeService(response);
    expect(await failure(fake.run(fake.client().deleteBookmark(7)))).toMatchObject({
      code: 'UNEXPECTED_ANSWER',
      status: 404,
      message: 'http://service/api/v1/bookmarks/delete: the path does not exist',
    });
  });
});

describe('timeouts', () => {
  /** Returns the time in ms after which a request without a response fails. */
  const timeoutOf = async (send: (client: ReturnType<FakeService['client']>) => Promise<unknown>) => {
    const fake = new FakeService(hang);
    const beganMs = fake.clock.now();
    const error = await failure(fake.run(send(fake.client({ retryForMs: 0 }))));
    expect(error.code).toBe('TIMEOUT');
    return fake.clock.now() - beganMs;
  };

  test('a request ends 30 s after the last byte was sent or received', async () => {
    expect(await timeoutOf((client) => client.profile())).toBeCloseTo(30_000, -2);
    expect(await timeoutOf((client) => client.syncBookmarks({ cursor: 0 }))).toBeCloseTo(30_000, -2);
  });

  test('polls and imports have a longer timeout, because the service may hold them', async () => {
    expect(await timeoutOf((client) => client.syncBookmarks({ wait: true }))).toBeCloseTo(60_000, -2);
    expect(await timeoutOf((client) => client.readChanges({ wait: true }))).toBeCloseTo(60_000, -2);
    expect(await timeoutOf((client) => client.readChanges({ wait_seconds: 5 }))).toBeCloseTo(35_000, -2);
    expect(await timeoutOf((client) => client.importBookmarks({ bookmarks: [] }))).toBeCloseTo(
      (longestImport(DEFAULT_WAITS) + CLIENT_MARGIN_SECONDS) * 1_000,
      -2,
    );
  });

  test('a slow response is accepted as long as bytes arrive', async () => {
    let send: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        send = controller;
      },
    });
    const fake = new FakeService((_, signal) => {
      signal.addEventListener('abort', () => send.error(signal.reason));
      return new Response(body);
    });
    const response = fake.client().exportBookmarks();
    const text = JSON.stringify({ bookmarks: [], exported_at: '', count: 0 });
    for (const character of text) {
      send!.enqueue(new TextEncoder().encode(character));
      await turn();
      fake.clock.advance(29_000);
    }
    send!.close();
    expect(await fake.run(response)).toEqual(JSON.parse(text));
  });

  test("an abort ends a request, a back-off and a wait for quota at once, with the caller's reason", async () => {
    const reason = new Error('enough');
    // The third element is the number of calls that the test makes. The test aborts the last of these calls.
    const scenes: [string, FakeService, number][] = [
      ['request', new FakeService(hang), 1],
      ['back-off', new FakeService(refusal('UNAVAILABLE', 503, { 'retry-after': '100' })), 1],
      ['quota', new FakeService(json(PROFILE, 200, quota(0, 50))), 2],
    ];
    for (const [, fake, calls] of scenes) {
      const client = fake.client();
      if (calls === 2) await fake.run(client.profile());
      const controller = new AbortController();
      const end = client.profile({ signal: controller.signal });
      end.catch(() => {});
      await turn();
      fake.clock.advance(1_000);
      await turn();
      controller.abort(reason);
      await expect(end).rejects.toBe(reason);
      expect(fake.clock.timers).toBe(0);
    }
  });

  test('a signal that is already aborted prevents sending', async () => {
    const fake = new FakeService();
    await expect(fake.client().profile({ signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow('no');
    expect(fake.received).toHaveLength(0);
  });

  test('a thousand requests leave no timer and no listener', async () => {
    const fake = new FakeService(...Array.from({ length: 1_000 }, () => json(PROFILE)));
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    };
    const client = fake.client();
    await fake.run(Promise.all(Array.from({ length: 1_000 }, () => client.profile({ signal }))));
    expect(fake.clock.timers).toBe(0);
    expect(listeners).toBe(0);
  });
});

describe('sync', () => {
  const empty = (cursor: number, waited: boolean) => json({ bookmarks: [], cursor, has_more: false, waited });
  const page = (ids: number[], hasMore = false) =>
    json({ bookmarks: ids.map(bookmark), cursor: ids.at(-1)!, has_more: hasMore, waited: false });
  const asked = ({ path, body }: Received) => `${path} ${body.cursor ?? '-'}`;

  test('catches up by the list, continues by sync from the last id, and then waits', async () => {
    const fake = new FakeService(
      json({ bookmarks: [1, 2].map(bookmark), has_more: true, next_cursor: 'abc' }),
      json({ bookmarks: [5].map(bookmark), has_more: false }),
      page([7, 8]),
    );
    const batches: SyncBatch[] = [];
    for await (const batch of fake.client().sync()) {
      batches.push(batch);
      if (batches.length === 3) break;
    }
    expect(batches.map(({ cursor, isCaughtUp }) => [cursor, isCaughtUp])).toEqual([
      ['2.abc', false],
      ['5', true],
      ['8', true],
    ]);
    expect(fake.received.map(asked)).toEqual([
      '/bookmarks/list -',
      '/bookmarks/list abc',
      '/bookmarks/sync 5',
    ]);
    expect(fake.received[0]!.body.limit).toBe(500);
    expect(fake.received[2]!.body).toEqual({ cursor: 5, limit: 100, wait: true });
  });

  test.each([
    ['in the middle of the list', '2.abc', '/bookmarks/list abc'],
    ['after the list', '5', '/bookmarks/sync 5'],
    ['at a given id', 5, '/bookmarks/sync 5'],
  ])('continues from its cursor: %s', async (_name, cursor, first) => {
    const fake = new FakeService((request) =>
      request.path === '/bookmarks/list' ? json({ bookmarks: [bookmark(9)], has_more: false }) : page([9]),
    );
    const { value } = await fake.client().sync({ cursor }).next();
    expect(value?.bookmarks[0]?.id).toBe(9);
    expect(fake.received.map(asked)).toEqual([first]);
  });

  test('waits from cursor 0 for an account without bookmarks', async () => {
    const fake = new FakeService(json({ bookmarks: [], has_more: false }), empty(0, true), page([1]));
    const next = fake.client().sync().next();
    const { value } = await fake.run(next);
    expect(value).toMatchObject({ cursor: '1', isCaughtUp: true });
    expect(fake.received.map(asked)).toEqual(['/bookmarks/list -', '/bookmarks/sync 0', '/bookmarks/sync 0']);
  });

  test('pauses a second if the service did not hold the poll', async () => {
    const fake = new FakeService(empty(3, false), empty(3, false), page([4]));
    await fake.run(fake.client().sync({ cursor: 3 }).next());
    for (const gapMs of fake.gapsMs) expect(gapMs).toBeGreaterThanOrEqual(1_000);
  });

  test('pauses even if the network is slow', async () => {
    const fake: FakeService = new FakeService(
      async () => {
        fake.clock.advance(2_000);
        return empty(3, false);
      },
      page([4]),
    );
    await fake.run(fake.client().sync({ cursor: 3 }).next());
    expect(fake.gapsMs[0]).toBeGreaterThanOrEqual(3_000);
  });

  test('does not loop if a draining replica responds to all polls at once', async () => {
    const fake = new FakeService(empty(3, true), empty(3, true), page([4]));
    await fake.run(fake.client().sync({ cursor: 3 }).next());
    for (const gapMs of fake.gapsMs) expect(gapMs).toBeGreaterThanOrEqual(1_000);
  });

  test('waits as long as a draining replica asks, but at most a minute', async () => {
    const asking = (retryAfterMs: number) => async () => {
      fake.clock.advance(20_000);
      const body = { bookmarks: [], cursor: 3, has_more: false, waited: true };
      return Response.json(body, { headers: { 'x-retry-after-ms': String(retryAfterMs) } });
    };
    const fake: FakeService = new FakeService(asking(7_000), asking(10 ** 12), page([4]));
    await fake.run(fake.client().sync({ cursor: 3 }).next());
    expect(fake.gapsMs).toEqual([27_000, 80_000]);
  });

  test('polls again at once after a held poll', async () => {
    const fake: FakeService = new FakeService(
      async () => {
        fake.clock.advance(29_000);
        return empty(3, true);
      },
      page([4]),
    );
    await fake.run(fake.client().sync({ cursor: 3 }).next());
    expect(fake.gapsMs[0]).toBeLessThan(29_100);
  });

  test('survives an hour of failures without losing its position', async () => {
    const failures = Array.from({ length: 200 }, (_, i) =>
      i % 3 === 0
        ? lose('ECONNREFUSED')
        : i % 3 === 1
          ? refusal('INTERNAL_ERROR', 500)
          : new Response('', { status: 502 }),
    );
    const fake = new FakeService(...failures, page([4]));
    const { value } = await fake.run(
      fake
        .client({ random: () => 0.99 })
        .sync({ cursor: 3 })
        .next(),
      {
        stepMs: 500,
        limitMs: 7_200_000,
      },
    );
    expect(value?.cursor).toBe('4');
    expect(fake.received.every(({ body }) => body.cursor === 3)).toBe(true);
    expect(fake.received.at(-1)!.atMs - fake.received[0]!.atMs).toBeGreaterThan(3_000_000);
  });

  test.each([
    ['INVALID_TOKEN', 401],
    ['PERMISSION_DENIED', 403],
    ['VALIDATION_ERROR', 400],
  ])('ends with %s', async (code, status) => {
    const fake = new FakeService(refusal(code, status));
    expect((await failure(fake.run(fake.client().sync({ cursor: 3 }).next()))).code).toBe(code);
  });

  test('with following disabled, ends when it is up to date', async () => {
    const fake = new FakeService(
      json({ bookmarks: [bookmark(1)], has_more: false }),
      page([2], true),
      page([3]),
    );
    const ids: number[] = [];
    for await (const { bookmarks } of fake.client().sync({ follow: false })) {
      ids.push(...bookmarks.map(({ id }) => id));
    }
    expect(ids).toEqual([1, 2, 3]);
    expect(fake.received.at(-1)!.body.wait).toBe(false);
  });

  test("ends at an abort with the caller's reason, and leaves no timer", async () => {
    const fake = new FakeService(hang);
    const controller = new AbortController();
    const next = fake.client().sync({ cursor: 3, signal: controller.signal }).next();
    await turn();
    controller.abort(new Error('closing'));
    await expect(next).rejects.toThrow('closing');
    expect(fake.clock.timers).toBe(0);
  });

  test('refuses a cursor that the client did not return', async () => {
    await expect(new FakeService().client().sync({ cursor: 'abc' }).next()).rejects.toThrow(TypeError);
  });
});

describe('an export stream', () => {
  const read = async (text: string) => {
    const fake = new FakeService(new Response(text));
    let got = '';
    for await (const chunk of fake.client().exportStream()) got += new TextDecoder().decode(chunk);
    return got;
  };
  const end = '],"exported_at":"2026-01-01T00:00:00.000Z","count":1}';

  test('returns the bytes unchanged', async () => {
    const text = `{"bookmarks":[${JSON.stringify(bookmark(1))}${end}`;
    expect(await read(text)).toBe(text);
  });

  test.each([`{"bookmarks":[`, `{"bookmarks":[{}${end.slice(0, -1)}`, ''])(
    'fails if it ends early: %s',
    async (text) => {
      expect((await failure(read(text))).code).toBe('CONNECTION_LOST');
    },
  );
});
