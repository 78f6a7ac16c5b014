import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { STATUS_BY_CODE } from '../src/http/error-responses.ts';
import { describeError } from '../src/observability/log.ts';
import { runOn } from './support/database.ts';
import { startProxy } from './support/proxy.ts';
import { startService, useService, useUser } from './support/service.ts';

// Section 7 of docs/contract.md and decision 3: the codes, their statuses, and faults that the client did not cause.

const service = useService({ freeBookmarkLimit: 1, rateLimitRequests: 100 });
const user = useUser(service);

const URL = 'https://example.org/';

test('the codes and statuses are those of section 7 and of decisions 3 and 43', () => {
  expect(STATUS_BY_CODE).toEqual({
    INVALID_TOKEN: 401,
    ACCOUNT_SUSPENDED: 401,
    PERMISSION_DENIED: 403,
    VALIDATION_ERROR: 400,
    NOT_FOUND: 404,
    RATE_LIMITED: 429,
    LIMIT_EXCEEDED: 403,
    CONFLICT: 409,
    INTERNAL_ERROR: 500,
    UNAVAILABLE: 503,
  });
});

test('each condition has its own code, and an error contains only error and code', async () => {
  const reader = await service.token(user.id, 'read');
  await user.post('/bookmarks/add', { url: URL });
  const responses = {
    INVALID_TOKEN: await service.post('/user/profile', {}),
    PERMISSION_DENIED: await service.post('/bookmarks/add', { url: URL }, { token: reader }),
    VALIDATION_ERROR: await user.post('/bookmarks/add', {}),
    NOT_FOUND: await user.post('/bookmarks/delete', { id: 1_000_000 }),
    LIMIT_EXCEEDED: await user.post('/bookmarks/add', { url: URL }),
  };
  for (const [code, { status, body, headers }] of Object.entries(responses)) {
    expect(body).toEqual({ error: expect.stringMatching(/\w/), code });
    expect(status).toBe(STATUS_BY_CODE[code as keyof typeof STATUS_BY_CODE]);
    expect(headers.get('retry-after')).toBeNull();
  }
});

describe("faults that are not the client's (decision 3)", () => {
  /** Makes a log whose lines tests can read. */
  function openLines() {
    const lines: string[] = [];
    const log = pino(
      { level: 'info', serializers: { err: describeError } },
      { write: (line: string) => void lines.push(line) },
    );
    return { log, lines };
  }

  test('INTERNAL_ERROR 500 reveals nothing about the fault', async () => {
    await using broken = await startService();
    const owner = await broken.user();
    await owner.post('/user/profile');
    await broken.context.database.sql`alter table bookmarks rename column url_key to url_key_gone`;
    for (const [path, body] of [
      ['/bookmarks/add', { url: `${URL}secret`, title: 'secret' }],
      ['/import', { bookmarks: [{ url: `${URL}secret` }] }],
    ] as const) {
      const { status, body: error, text, headers } = await owner.post(path, body);
      expect([status, error.code]).toEqual([500, 'INTERNAL_ERROR']);
      expect(headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/);
      expect(text).not.toMatch(/secret|url_key|column|bookmarks|select|postgres|\.ts/i);
    }
  });

  test('UNAVAILABLE 503 has Retry-After if the database cannot be reached', async () => {
    await using proxy = await startProxy(service.database.url);
    const url = new globalThis.URL(service.database.url);
    url.host = `127.0.0.1:${proxy.port}`;
    await using cut = await startService({}, { database: { ...service.database, url: url.href } });
    expect((await cut.post('/user/profile', {}, { token: user.token })).status).toBe(200);
    proxy.reception = 'close';
    proxy.cut('reset');
    for (const [path, body] of [
      ['/user/profile', {}],
      ['/bookmarks/add', { url: URL }],
      ['/bookmarks/sync', { wait: true }],
      ['/export', {}],
    ] as const) {
      const response = await cut.post(path, body, { token: user.token });
      expect([response.status, response.body.code], path).toEqual([503, 'UNAVAILABLE']);
      expect(['1', '2', '3', '4', '5']).toContain(response.headers.get('retry-after'));
      expect(response.text).not.toMatch(/ECONN|127\.0\.0\.1|postgres/i);
      expect(response.headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/);
    }
    const readiness = await fetch(`${cut.origin}/readyz`);
    expect([readiness.status, (await readiness.json()).database]).toEqual([200, 'unreachable']);
    expect((await fetch(`${cut.origin}/livez`)).status).toBe(200);
    proxy.release();
    expect((await cut.post('/user/profile', {}, { token: user.token })).status).toBe(200);
  });

  test('UNAVAILABLE 503 has a random Retry-After from 1 to 5 s, so that clients do not return at the same time', async () => {
    await using proxy = await startProxy(service.database.url);
    const url = new globalThis.URL(service.database.url);
    url.host = `127.0.0.1:${proxy.port}`;
    await using cut = await startService({}, { database: { ...service.database, url: url.href } });
    proxy.reception = 'close';
    proxy.cut('reset');
    const drawn = new Set<string | null>();
    // The probability that one of the five values is missing from 80 responses is one in ten million.
    for (let n = 0; n < 80; n += 1) {
      const { status, headers } = await cut.post('/user/profile', {}, { token: user.token });
      expect(status).toBe(503);
      drawn.add(headers.get('retry-after'));
    }
    expect([...drawn].sort()).toEqual(['1', '2', '3', '4', '5']);
  });

  test('an unavailable database causes one log line per request, with the reason and without a stack', async () => {
    const { log, lines } = openLines();
    await using service = await startService({}, { log });
    const owner = await service.user();
    await using proxy = await startProxy(service.database.url);
    const url = new globalThis.URL(service.database.url);
    url.host = `127.0.0.1:${proxy.port}`;
    await using cut = await startService({}, { database: { ...service.database, url: url.href }, log });
    proxy.reception = 'close';
    proxy.cut('reset');
    lines.length = 0;
    const { status } = await cut.post('/bookmarks/list', {}, { token: owner.token });
    expect(status).toBe(503);
    const told = lines.map((line) => JSON.parse(line)).filter(({ reqId }) => reqId !== undefined);
    expect(told).toEqual([
      expect.objectContaining({
        msg: 'request',
        level: 40,
        status: 503,
        unserved: expect.stringMatching(/^database unavailable: /),
      }),
    ]);
    expect(told[0].err).toBeUndefined();
  });

  test('a 404 is logged with its truncated path, without its query and without anything that resembles a token', async () => {
    const { log, lines } = openLines();
    await using service = await startService({}, { log });
    const owner = await service.user();
    await service.post(`/bookmark/${owner.token}?secret=1`, {});
    await service.post(`/${'x'.repeat(3_000)}`, {});
    const requests = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
    const paths = requests.map(({ path }) => path);
    expect(paths[0]).toBe('/api/v1/bookmark/…');
    expect(paths[1]).toHaveLength(200);
  });

  test('the log contains the request, route, status, duration and user, but no token, body or row value', async () => {
    const { log, lines } = openLines();
    await using logged = await startService({}, { log });
    const owner = await logged.session('private@example.org');
    const secret = owner.token.split(/_\d+_/)[1]!;
    const code = await logged.invite('other@example.org');
    await owner.post(
      '/bookmarks/add',
      { url: `${URL}private`, title: 'private', tags: ['private'] },
      { headers: { 'x-request-id': 'the-request' } },
    );
    await owner.post('/bookmarks/search', { query: 'private', tag: 'private' });
    await owner.post('/bookmarks/add', { url: 'private' });
    await owner.post('/import', '{"private');
    await logged.post('/auth/invite', { code });
    await runOn(
      logged.database.url,
      `create function tell() returns trigger language plpgsql as $$ begin raise 'no %', new.title; end $$;
      create trigger tell before insert on bookmarks for each row execute function tell()`,
    );
    const failed = await owner.post('/bookmarks/add', { url: URL, title: 'private two' });
    expect(failed.body.code).toBe('INTERNAL_ERROR');

    const text = lines.join('');
    for (const hidden of [owner.token, secret, 'private', code, 'Bearer']) expect(text).not.toContain(hidden);
    const entry = lines.map((line) => JSON.parse(line)).find(({ reqId }) => reqId === 'the-request');
    expect(entry).toMatchObject({
      route: '/api/v1/bookmarks/add',
      status: 200,
      ms: expect.any(Number),
      user: owner.id,
    });
    expect(text).toContain('"code":"P0001"');
  });
});
