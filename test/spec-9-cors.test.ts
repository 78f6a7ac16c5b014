import { describe, expect, test } from 'vitest';
import { startService, useService, useUser } from './support/service.ts';

// Decision 30: browser extensions and web apps as clients. Section 9: the version is in the base address.

const ORIGIN = 'https://app.example.org';
const EXTENSION = 'chrome-extension://abcdefghijklmnop';
const PROFILE = '/user/profile';

const service = useService({ corsOrigins: [ORIGIN, EXTENSION], rateLimitRequests: 50, compatLinkding: true });
const user = useUser(service);

const preflight = (path: string, headers: Record<string, string>, of = service) =>
  fetch(`${of.origin}/api/v1${path}`, { method: 'OPTIONS', headers });
const listOf = (headers: Headers, name: string) =>
  (headers.get(name) ?? '').toLowerCase().split(/,\s*/).filter(Boolean).sort();

const ASK = {
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization,content-type,x-request-id',
};

describe('CORS (decision 30)', () => {
  test.each([ORIGIN, EXTENSION])(
    'a preflight from %s gets a response, without a token and without counting towards a limit',
    async (origin) => {
      for (let i = 0; i < 60; i++) {
        const response = await preflight(PROFILE, { origin, ...ASK });
        expect(response.status).toBe(204);
        expect(await response.text()).toBe('');
        expect(response.headers.get('access-control-allow-origin')).toBe(origin);
        expect(listOf(response.headers, 'access-control-allow-methods')).toContain('post');
        expect(listOf(response.headers, 'access-control-allow-headers')).toEqual(
          expect.arrayContaining(['authorization', 'content-type', 'x-request-id']),
        );
        expect(Number(response.headers.get('access-control-max-age'))).toBeGreaterThan(0);
        expect(response.headers.get('access-control-allow-credentials')).toBeNull();
        expect(listOf(response.headers, 'vary')).toContain('origin');
      }
    },
  );

  test.each(['/mcp', '/compat/linkding/api/bookmarks/1/'])(
    'a preflight for %s allows the methods and headers of its protocol',
    async (path) => {
      const response = await fetch(`${service.origin}${path}`, {
        method: 'OPTIONS',
        headers: { origin: ORIGIN, ...ASK, 'access-control-request-method': 'PATCH' },
      });
      expect(response.status).toBe(204);
      expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
      expect(listOf(response.headers, 'access-control-allow-methods')).toEqual(
        expect.arrayContaining(['get', 'post', 'put', 'patch', 'delete']),
      );
      expect(listOf(response.headers, 'access-control-allow-headers')).toEqual(
        expect.arrayContaining([
          'mcp-protocol-version',
          'mcp-session-id',
          'mcp-method',
          'mcp-name',
          'last-event-id',
        ]),
      );
    },
  );

  test.each([
    ['/mcp', { method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' }, 200],
    ['/compat/linkding/api/bookmarks/?limit=1', {}, 200],
    ['/compat/linkding/api/bookmarks/1/', { method: 'PATCH', body: '{"unread":true}' }, 404],
    ['/compat/linkding/api/bookmarks/1/', { method: 'DELETE' }, 404],
  ])('an allowed origin can use %s, and others cannot read the response', async (path, request, status) => {
    const send = (origin: string) =>
      fetch(service.origin + path, {
        ...request,
        headers: { origin, authorization: `Bearer ${user.token}`, 'content-type': 'application/json' },
      });
    const response = await send(ORIGIN);
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([status, ORIGIN]);
    expect(listOf(response.headers, 'access-control-expose-headers')).toContain('x-request-id');
    const other = await send('https://evil.example.org');
    expect(other.headers.get('access-control-allow-origin')).toBeNull();
    expect(other.status).toBe(path === '/mcp' ? 403 : status);
  });

  test("a preflight's response has an X-Request-Id, taken from the request or generated", async () => {
    const made = await preflight(PROFILE, { origin: ORIGIN, ...ASK });
    expect(made.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    const taken = await preflight(PROFILE, { origin: ORIGIN, ...ASK, 'x-request-id': 'mine' });
    expect(taken.headers.get('x-request-id')).toBe('mine');
  });

  test('an allowed origin can read responses, the limit headers, Retry-After and X-Request-Id', async () => {
    for (const origin of [ORIGIN, EXTENSION]) {
      const responses = [
        await user.post(PROFILE, {}, { headers: { origin } }),
        await user.post('/bookmarks/add', '{"broken', { headers: { origin } }),
        await service.post(PROFILE, {}, { headers: { origin } }),
        await user.post('/unknown', {}, { headers: { origin } }),
        await user.post('/export', {}, { headers: { origin } }),
        await service.post('/auth/invite', { code: 'UNKNOWN0' }, { headers: { origin } }),
      ];
      expect(responses.map(({ status }) => status)).toEqual([200, 400, 401, 404, 200, 404]);
      for (const { headers } of responses) {
        expect(headers.get('access-control-allow-origin')).toBe(origin);
        expect(listOf(headers, 'access-control-expose-headers')).toEqual(
          expect.arrayContaining([
            'retry-after',
            'x-retry-after-ms',
            'x-ratelimit-limit',
            'x-ratelimit-remaining',
            'x-ratelimit-reset',
            'x-ratelimit-scope',
            'x-request-id',
          ]),
        );
        expect(listOf(headers, 'vary')).toContain('origin');
      }
    }
  });

  test('an allowed origin can read a 429', async () => {
    const other = await service.user();
    const headers = { origin: ORIGIN };
    for (let i = 0; i < 50; i++) await other.post(PROFILE, {}, { headers });
    const refused = await other.post(PROFILE, {}, { headers });
    expect(refused.status).toBe(429);
    expect(refused.headers.get('access-control-allow-origin')).toBe(ORIGIN);
  });

  test.each([
    'https://evil.example.org',
    'https://app.example.org.evil.example',
    'http://app.example.org',
    'https://app.example.org:8443',
    'null',
  ])('the origin %s is not allowed', async (origin) => {
    const asked = await preflight(PROFILE, { origin, ...ASK });
    expect(asked.headers.get('access-control-allow-origin')).toBeNull();
    const { headers } = await user.post(PROFILE, {}, { headers: { origin } });
    expect(headers.get('access-control-allow-origin')).toBeNull();
  });

  test('a request without an origin gets the usual response', async () => {
    const response = await user.post(PROFILE);
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  test('OPTIONS that is not a preflight is NOT_FOUND with a regular error body', async () => {
    for (const headers of [{}, { origin: ORIGIN }, { 'access-control-request-method': 'POST' }]) {
      const response = await service.post(PROFILE, '', { method: 'OPTIONS', body: null, headers });
      expect([response.status, response.body.code]).toEqual([404, 'NOT_FOUND']);
    }
  });

  test('by default no origin is allowed, and a preflight is NOT_FOUND', async () => {
    await using closed = await startService();
    const response = await preflight(PROFILE, { origin: ORIGIN, ...ASK }, closed);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ code: 'NOT_FOUND' });
    const { headers } = await closed.post(PROFILE, {}, { headers: { origin: ORIGIN } });
    expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  });
});

test('the base address contains the version: /api/v1 (section 9)', async () => {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${user.token}` };
  const send = (path: string) => fetch(service.origin + path, { method: 'POST', body: '{}', headers });
  expect((await send('/api/v1/user/profile')).status).toBe(200);
  for (const path of ['/user/profile', '/v1/user/profile', '/api/user/profile', '/api/v2/user/profile']) {
    expect((await send(path)).status).toBe(404);
  }
});
