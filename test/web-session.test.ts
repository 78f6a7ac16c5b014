import { request as httpRequest } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { Config } from '../src/config.ts';
import { parseToken } from '../src/domain/tokens.ts';
import { newBrowser, setCookieOf, type TestBrowser } from './support/browser-session.ts';
import { createSession } from './support/create-session.ts';
import { startService, type TestService, useService, useUser } from './support/service.ts';
import { until } from './support/until.ts';

// Tests of the session cookie, which is valid only under `/web/` and only with the exact `Origin`.

const service = useService();
const user = useUser(service);

const PUBLIC = 'https://bookmarks.example.org';
const HELD = { syncWaitSeconds: 20 };

const startPublic = (config: Partial<Config> = {}) =>
  startService({ publicUrl: PUBLIC, ...config }, { database: service.database });

const holds = (of: TestService) => expect.poll(() => of.context.coordination.notifier.held);

describe('logging in with an invite', () => {
  test('sets the cookie and returns no token', async () => {
    const browser = newBrowser(service.origin);
    const code = await service.invite('Web@example.org');
    const response = await browser.post('/web/login/invite', { code });
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ user: { id: expect.any(Number), email: 'Web@example.org' } });
    const [pair, ...attributes] = setCookieOf(response).split('; ');
    expect(parseToken(pair!.replace(/^session=/, ''))).toMatchObject({ kind: 'session' });
    expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=31536000', 'Path=/', 'SameSite=Lax']);
    expect((await browser.post('/web/api/v1/user/profile')).body.email).toBe('Web@example.org');
  });

  test('over TLS the cookie is __Host-session and Secure', async () => {
    await using secure = await startPublic();
    const browser = newBrowser(secure.origin, PUBLIC);
    const response = await browser.post('/web/login/invite', {
      code: await service.invite('tls@example.org'),
    });
    expect(setCookieOf(response)).toMatch(
      /^__Host-session=bks_\d+_[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=\d+$/,
    );
    expect((await browser.post('/web/api/v1/user/profile')).body.email).toBe('tls@example.org');
    const plain = { cookie: browser.cookie!.replace('__Host-', '') };
    expect((await browser.post('/web/api/v1/user/profile', {}, plain)).status).toBe(401);
  });

  test('creates a new session each time, and never continues the one in the request', async () => {
    const browser = newBrowser(service.origin);
    await browser.login(await service.invite('fixed@example.org'));
    const first = browser.cookie;
    await browser.login(await service.invite('fixed@example.org'));
    expect(browser.cookie).not.toBe(first);
  });

  test('refuses what /auth/invite refuses, without setting a cookie, within the same limit', async () => {
    await using limited = await startService({ rateLimitRequests: 3 }, { database: service.database });
    const browser = newBrowser(limited.origin);
    for (const [body, code] of [
      [{ code: 'UNKNOWN0' }, 'NOT_FOUND'],
      [{ code: 'x' }, 'VALIDATION_ERROR'],
    ] as const) {
      const response = await browser.post('/web/login/invite', body);
      expect([response.body.code, response.headers.get('set-cookie')]).toEqual([code, null]);
    }
    expect((await limited.post('/auth/invite', { code: 'UNKNOWN0' })).body.code).toBe('NOT_FOUND');
    expect((await browser.post('/web/login/invite', { code: 'UNKNOWN0' })).body.code).toBe('RATE_LIMITED');
  });
});

describe('the session cookie', () => {
  test('works for all routes of the API under /web/api/v1, except /auth/', async () => {
    const browser = newBrowser(service.origin);
    await browser.login(await service.invite('routes@example.org'));
    const added = await browser.post('/web/api/v1/bookmarks/add', { url: 'https://example.org/' });
    expect(added.body).toMatchObject({ url: 'https://example.org/' });
    const imported = await browser.post('/web/api/v1/import', { bookmarks: [{ url: 'https://b.example/' }] });
    expect(imported.body).toMatchObject({ imported: 1 });
    expect((await browser.post('/web/api/v1/export')).body.count).toBe(2);
    for (const path of ['/web/api/v1/auth/invite', '/web/auth/invite', '/web/bookmarks/list', '/web/api/v1'])
      expect((await browser.post(path)).status, path).toBe(404);
  });

  test('is ignored under /api/v1', async () => {
    const browser = newBrowser(service.origin);
    await browser.login(await service.invite('api@example.org'));
    expect((await browser.post('/api/v1/user/profile')).status).toBe(401);
    const authorization = `Bearer ${user.token}`;
    const response = await browser.post('/api/v1/user/profile', {}, { authorization });
    expect(response.body.email).toBe(user.email);
  });

  test('the Authorization header is ignored under /web/', async () => {
    const browser = newBrowser(service.origin);
    const authorization = `Bearer ${user.token}`;
    expect((await browser.post('/web/api/v1/user/profile', {}, { authorization })).status).toBe(401);
    await browser.login(await service.invite('ignored@example.org'));
    const response = await browser.post('/web/api/v1/user/profile', {}, { authorization });
    expect(response.body.email).toBe('ignored@example.org');
  });

  test('the session counts as one token under both prefixes', async () => {
    await using limited = await startService({ rateLimitRequests: 4 }, { database: service.database });
    const browser = newBrowser(limited.origin);
    await browser.login(await service.invite('counted@example.org'));
    const token = browser.cookie!.split('=')[1]!;
    for (let i = 0; i < 2; i++) {
      expect((await browser.post('/web/api/v1/user/profile')).status).toBe(200);
      expect((await limited.post('/user/profile', {}, { token })).status).toBe(200);
    }
    const refused = await browser.post('/web/api/v1/user/profile');
    expect([refused.status, refused.headers.get('x-ratelimit-remaining')]).toEqual([429, '0']);
    expect(refused.headers.get('set-cookie')).toBeNull();
  });

  test('without a public url, nothing exists under /web/', async () => {
    await using open = await startService({ host: '0.0.0.0' }, { database: service.database });
    for (const path of ['/web/login/invite', '/web/logout', '/web/api/v1/user/profile'])
      expect((await newBrowser(open.origin).post(path)).status, path).toBe(404);
  });
});

describe('requests that another page could send', () => {
  const PATHS = ['/web/login/invite', '/web/logout', '/web/api/v1/user/profile', '/web/api/v1/import'];

  test.each(PATHS)('%s requires the exact Origin, before any other check', async (path) => {
    await using secure = await startPublic({ corsOrigins: ['https://app.example.org'] });
    const browser = newBrowser(secure.origin, PUBLIC);
    await browser.login(await service.invite('origin@example.org'));
    for (const origin of [
      '',
      'null',
      `${PUBLIC}/`,
      `${PUBLIC}:443`,
      'http://bookmarks.example.org',
      'https://evil.example.org',
      'https://bookmarks.example.org.evil.example',
      'https://app.example.org',
      secure.origin,
    ]) {
      const response = await browser.post(path, {}, { origin });
      expect([response.status, response.body.code], origin).toEqual([403, 'PERMISSION_DENIED']);
      expect(response.body.error).toBe(`Origin: expected ${PUBLIC}`);
      expect(response.headers.get('x-ratelimit-limit')).toBeNull();
      expect(response.headers.get('set-cookie')).toBeNull();
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
    }
  });

  test('an Origin that is absent or repeated is refused', async () => {
    const send = (origins: string[]) =>
      new Promise<number>((resolve, reject) => {
        const headers = [
          'host',
          'localhost',
          'content-type',
          'application/json',
          ...origins.flatMap((each) => ['origin', each]),
        ];
        const sent = httpRequest(`${service.origin}/web/logout`, { method: 'POST', headers });
        sent.once('response', (response) => resolve(response.resume().statusCode!)).once('error', reject);
        sent.end('{}');
      });
    expect(await send([])).toBe(403);
    expect(await send(['https://evil.example.org', service.origin])).toBe(403);
    expect(await send([service.origin, 'https://evil.example.org'])).toBe(403);
    expect(await send([service.origin, service.origin])).toBe(403);
    expect(await send([service.origin])).toBe(401);
  });

  test.each(PATHS)('%s requires Content-Type: application/json', async (path) => {
    const browser = newBrowser(service.origin);
    await browser.login(await service.invite('type@example.org'));
    for (const type of [
      'text/plain',
      'text/plain; application/json',
      'application/x-www-form-urlencoded',
      'application/jsonp',
      '',
    ]) {
      const response = await browser.post(path, '{}', { 'content-type': type });
      expect([response.status, response.body.error], type).toEqual([
        400,
        'Content-Type: expected application/json',
      ]);
    }
    const typed = await browser.post(
      '/web/api/v1/user/profile',
      {},
      { 'content-type': 'Application/JSON; a=b' },
    );
    expect(typed.status).toBe(200);
  });

  test('get no CORS headers, even for origins that the API allows', async () => {
    const origin = 'https://app.example.org';
    await using open = await startService({ corsOrigins: [origin] }, { database: service.database });
    const ask = { origin, 'access-control-request-method': 'POST' };
    const asked = await fetch(`${open.origin}/web/api/v1/user/profile`, { method: 'OPTIONS', headers: ask });
    const slashes = await fetch(`${open.origin}//web//api/v1/user/profile`, {
      method: 'OPTIONS',
      headers: ask,
    });
    const browser = newBrowser(open.origin);
    const own = await browser.login(await service.invite('cors@example.org'));
    expect([asked.status, slashes.status]).toEqual([404, 404]);
    for (const { headers } of [asked, slashes, own, await browser.post('/web/api/v1/user/profile')])
      expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  test('with another method than POST are NOT_FOUND', async () => {
    for (const method of ['GET', 'PUT', 'DELETE', 'HEAD'])
      expect((await fetch(`${service.origin}/web/logout`, { method })).status).toBe(404);
  });
});

describe('an invalid session cookie', () => {
  test('is INVALID_TOKEN, whatever it contains, and the response deletes it', async () => {
    const browser = newBrowser(service.origin);
    await browser.login(await service.invite('junk@example.org'));
    const token = browser.cookie!.split('=')[1]!;
    for (const cookie of [
      'session=',
      'session==',
      'session=junk',
      `session=${user.token}`,
      `session="${token}"`,
      `session=${encodeURIComponent(token)}%20`,
      `session=${token.replace('bks_', '%62ks_')}`,
      `session=${token}; session=${token}`,
      `session=x;session=${token}`,
      `session=${token}x`,
      `session=${token}, a=b`,
      `session=${'x'.repeat(8_000)}`,
      `a=${'x'.repeat(8_000)}; session=%`,
      `session=\u00ff\u00fe`,
      `session=${token.toUpperCase()}`,
    ]) {
      const response = await browser.post('/web/api/v1/user/profile', {}, { cookie });
      expect([response.status, response.body.code], cookie).toEqual([401, 'INVALID_TOKEN']);
      expect(setCookieOf(response)).toBe('session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0');
    }
  });

  test('a request without a session clears no cookie, because another request may just have opened one', async () => {
    const browser = newBrowser(service.origin);
    const token = (await service.session()).token;
    for (const cookie of [
      '',
      'a=b',
      `Session=${token}`,
      `xsession=${token}`,
      'session',
      ';;;=;',
      'a'.repeat(8_192),
    ]) {
      const response = await browser.post('/web/api/v1/user/profile', {}, { cookie });
      expect([response.status, response.headers.get('set-cookie')], cookie).toEqual([401, null]);
    }
  });

  test('a held poll whose session ends clears no cookie, because the browser may have a new session', async () => {
    const browser = newBrowser(service.origin);
    await browser.login(await service.invite('held@example.org'));
    const old = browser.cookie!;
    const poll = browser
      .post('/web/api/v1/bookmarks/changes', { from: 'now' })
      .then(({ body: { cursor } }) =>
        browser.post('/web/api/v1/bookmarks/changes', { cursor, wait: true }, { cookie: old }),
      );
    await until(() => service.context.coordination.notifier.held === 1);
    await browser.login(await service.invite('held@example.org'));
    await browser.post('/web/api/v1/sessions/revoke-others');
    const { status, headers } = await poll;
    expect([status, headers.get('set-cookie')]).toEqual([401, null]);
  });

  test('a valid session cookie is found among many other cookies', async () => {
    const browser = newBrowser(service.origin);
    await browser.login(await service.invite('many@example.org'));
    const others = Array.from({ length: 300 }, (_, n) => `c${n}=%00%zz${n}`).join('; ');
    const cookie = `${others};${browser.cookie}  ;xsession=1;=;`;
    expect((await browser.post('/web/api/v1/user/profile', {}, { cookie })).status).toBe(200);
  });
});

describe('logging out', () => {
  test('ends the session under both prefixes, and deletes the cookie', async () => {
    const browser = newBrowser(service.origin);
    await browser.login(await service.invite('out@example.org'));
    const { cookie } = browser;
    const ended = await browser.post('/web/logout');
    expect(ended.body).toEqual({ logged_out: true, message: 'the session has ended' });
    expect(setCookieOf(ended)).toContain('session=; ');
    expect(browser.cookie).toBeUndefined();
    const after = await browser.post('/web/api/v1/user/profile', {}, { cookie: cookie! });
    expect([after.status, setCookieOf(after)]).toEqual([401, expect.stringContaining('Max-Age=0')]);
    const token = cookie!.split('=')[1]!;
    expect((await service.post('/user/profile', {}, { token })).status).toBe(401);
    expect((await browser.post('/web/logout', {}, { cookie: cookie! })).status).toBe(401);
  });

  test.each([
    ['/web/api/v1/logout', async () => ({})],
    ['/web/api/v1/account/delete', async () => ({ confirm: 'ends@example.org' })],
    [
      '/web/api/v1/sessions/revoke',
      async (browser: TestBrowser) => {
        const { body } = await browser.post('/web/api/v1/sessions/list');
        return { id: body.sessions.find((each: { is_current: boolean }) => each.is_current).id };
      },
    ],
  ])('%s also makes the browser delete the cookie at once', async (path, makeBody) => {
    const browser = newBrowser(service.origin);
    await browser.login(await service.invite('ends@example.org'));
    const ended = await browser.post(path, await makeBody(browser));
    expect([ended.status, setCookieOf(ended)]).toEqual([
      200,
      'session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0',
    ]);
    expect(browser.cookie).toBeUndefined();
  });

  test('a request that ends another session, no session, or a session of the API deletes no cookie', async () => {
    const browser = newBrowser(service.origin);
    await browser.login(await service.invite('stays@example.org'));
    const other = newBrowser(service.origin);
    await other.login(await service.invite('stays@example.org'));
    const { sessions } = (await browser.post('/web/api/v1/sessions/list')).body;
    const { id } = sessions.find((each: { is_current: boolean }) => !each.is_current);
    const responses = [
      await browser.post('/web/api/v1/sessions/revoke', { id }),
      await browser.post('/web/api/v1/sessions/revoke', { id }),
      await browser.post('/web/api/v1/account/delete', { confirm: 'other@example.org' }),
      await (await service.session()).post('/logout'),
    ];
    expect(responses.map(({ status }) => status)).toEqual([200, 404, 400, 200]);
    for (const { headers } of responses) expect(headers.getSetCookie()).toEqual([]);
    expect((await browser.post('/web/api/v1/user/profile')).status).toBe(200);
  });

  test("ends the session's held polls on another replica", async () => {
    await using other = await startService(HELD, { database: service.database });
    const browser = newBrowser(other.origin);
    await browser.login(await service.invite('held@example.org'));
    const poll = browser.post('/web/api/v1/bookmarks/sync', { wait: true });
    await holds(other).toBe(1);
    await browser.post('/web/logout');
    expect((await poll).body.code).toBe('INVALID_TOKEN');
  });
});

describe('createSession', () => {
  test('opens a session for an app, with the time when the person authenticated', async () => {
    const { sql } = service.context.database;
    const owner = await service.session();
    const authenticatedAt = new Date('2026-01-02T03:04:05.678Z');
    const token = await createSession(service.context.database, {
      userId: owner.id,
      appName: 'An app',
      authenticatedAt,
      days: 7,
    });
    expect((await service.post('/user/profile', {}, { token })).body.email).toBe(owner.email);
    const { hash } = parseToken(token)!;
    const [row] = await sql`
      select kind, scope, app_name, authenticated_at, last_four, extract(day from expires_at - now()) as days
      from tokens where user_id = ${owner.id} and token_hash = ${hash}`;
    expect(row).toMatchObject({
      kind: 'session',
      scope: 'write',
      app_name: 'An app',
      last_four: token.slice(-4),
    });
    expect(row!.authenticated_at).toEqual(authenticatedAt);
    expect(Number(row!.days)).toBe(6);
  });

  test('replaces a sign-in time in the future with the current time', async () => {
    const owner = await service.session();
    const authenticatedAt = new Date(Date.now() + 86_400_000);
    await createSession(service.context.database, {
      userId: owner.id,
      appName: null,
      authenticatedAt,
      days: 7,
    });
    const [row] = await service.context.database.sql`
      select max(authenticated_at) <= now() as past from tokens where user_id = ${owner.id}`;
    expect(row!.past).toBe(true);
  });

  test('throws INVALID_TOKEN for a deleted user', async () => {
    const options = { userId: 987_654_321, appName: null, authenticatedAt: null, days: 90 };
    await expect(createSession(service.context.database, options)).rejects.toMatchObject({
      code: 'INVALID_TOKEN',
    });
  });

  test('ends the least recently used sessions above 100', async () => {
    const { database } = service.context;
    const owner = await service.session();
    await database.sql`
      insert into tokens (user_id, token_hash, last_four, kind, scope, last_used_at)
      select ${owner.id}, sha256(n::text::bytea), 'abcd', 'session', 'write', now() - n * interval '1 minute'
      from generate_series(1, 99) n`;
    const options = { userId: owner.id, appName: null, authenticatedAt: null, days: 90 };
    const token = await createSession(database, options);
    const [row] = await database.sql`
      select count(*)::int as sessions, max(now() - last_used_at) < interval '98.5 minutes' as recent
      from tokens where user_id = ${owner.id} and kind = 'session'`;
    expect(row).toMatchObject({ sessions: 100, recent: true });
    for (const each of [token, owner.token])
      expect((await service.post('/user/profile', {}, { token: each })).status).toBe(200);
  });
});
