import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { parseToken } from '../src/domain/tokens.ts';
import { issueDeviceCode } from '../src/sign-in/device-codes.ts';
import { newBrowser } from './support/browser-session.ts';
import { runCommand } from './support/cli.ts';
import { makeFolder } from './support/folders.ts';
import { startRedis } from './support/redis.ts';
import { runDir } from './support/run.ts';
import { startService, useService } from './support/service.ts';
import { newEmail } from './support/users.ts';

// A signed-in page creates a code, and another device signs in with this code.

const service = useService();

/** Opens a page and signs in as a new user. */
async function openPage(of = service, pageOrigin = of.origin) {
  const email = newEmail();
  const page = newBrowser(of.origin, pageOrigin);
  await page.login(await of.invite(email));
  const makeCode = async (): Promise<string> => (await page.post('/web/login/device')).body.code;
  return { email, page, makeCode, token: page.cookie!.split('=')[1]! };
}

const codeOf = async (code: string, of = service) => (await of.post('/auth/device', { code })).body.code;

test('a code opens one session of the same account on another device', async () => {
  const { email, page, token } = await openPage();
  const { body } = await page.post('/web/login/device');
  expect(body).toEqual({
    code: expect.stringMatching(/^[A-HJ-NP-Z2-9]{12}$/),
    link: `${service.origin}/#code=${body.code}`,
    expires_in_seconds: 300,
    qr: { size: expect.any(Number), path: expect.stringMatching(/^(M\d+ \d+h1v1h-1z)+$/) },
  });
  const device = newBrowser(service.origin);
  const { sql } = service.context.database;
  await sql`update tokens set authenticated_at = 'epoch' where last_four = ${token.slice(-4)}`;
  expect((await device.loginByDevice(body.code)).body.user.email).toBe(email);
  expect((await device.post('/web/api/v1/user/profile')).body.email).toBe(email);
  const { sessions } = (await device.post('/web/api/v1/sessions/list')).body;
  expect(sessions).toMatchObject([{ is_current: false }, { is_current: true, app_name: null }]);
  // The new session inherits the time of the last login, so a code is no new proof of identity.
  const [made] = await sql`select authenticated_at from tokens where id = ${sessions[1].id}`;
  expect(made!.authenticated_at).toEqual(new Date(0));
  expect(await codeOf(body.code)).toBe('NOT_FOUND');
});

test('a code that many clients present at once signs in one of them', async () => {
  const { page, makeCode } = await openPage();
  const code = await makeCode();
  const statuses = await Promise.all(
    Array.from({ length: 20 }, async () => (await service.post('/auth/device', { code })).status),
  );
  expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  expect((await page.post('/web/api/v1/sessions/list')).body.sessions).toHaveLength(2);
});

test('of codes that a page creates at once, exactly one works, whatever order a device tries them in', async () => {
  for (const order of [
    [0, 1, 2, 3],
    [3, 2, 1, 0],
  ]) {
    const { page, token } = await openPage();
    const { pending } = service.context.coordination;
    const codes = await Promise.all(order.map(() => issueDeviceCode(pending, parseToken(token)!)));
    const outcomes = [];
    for (const at of order) outcomes.push(await codeOf(codes[at]!));
    expect(outcomes.toSorted()).toEqual(['NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND', undefined]);
    expect((await page.post('/web/api/v1/sessions/list')).body.sessions).toHaveLength(2);
  }
});

test('bookmarks login accepts the code in the form that the page shows', async () => {
  const { email, makeCode } = await openPage();
  const env = { BOOKMARKS_URL: service.origin, XDG_CONFIG_HOME: makeFolder('device-code', runDir()) };
  const code = (await makeCode()).replace(/(.{4})(?=.)/g, '$1-').toLowerCase();
  expect(await runCommand(['login', code], { env })).toMatchObject({
    code: 0,
    out: expect.stringContaining(`Logged in as ${email}`),
  });
  expect((await runCommand(['sessions'], { env })).out).toContain('Bookmarks CLI (this one)');
});

describe('an invalid code', () => {
  test.each(['/web/logout', '/web/api/v1/sessions/revoke-others', '/web/login/device'])(
    'has no effect after %s on the page that created it',
    async (path) => {
      const { page, makeCode } = await openPage();
      const code = await makeCode();
      expect((await page.post(path)).status).toBe(200);
      expect(await codeOf(code)).toBe('NOT_FOUND');
    },
  );

  test("has no effect if another session revoked the page's session, or if the account was deleted", async () => {
    const { email, page, makeCode } = await openPage();
    const other = newBrowser(service.origin);
    await other.loginByDevice(await makeCode());
    const code = await makeCode();
    await other.post('/web/api/v1/sessions/revoke-others');
    expect(await codeOf(code)).toBe('NOT_FOUND');
    expect((await page.post('/web/login/device')).status).toBe(401);
    const last = (await other.post('/web/login/device')).body.code;
    expect((await other.post('/web/api/v1/account/delete', { confirm: email })).status).toBe(200);
    expect(await codeOf(last)).toBe('NOT_FOUND');
  });

  test('has no effect with the e-mail address of another account, and leaves no session', async () => {
    const { email, page, makeCode } = await openPage();
    const code = await makeCode();
    const exchange = (given: string) => service.post('/auth/device', { code, email: given });
    expect((await exchange('other@example.org')).body.code).toBe('NOT_FOUND');
    expect((await exchange(email)).body.code).toBe('NOT_FOUND');
    expect((await page.post('/web/api/v1/sessions/list')).body.sessions).toHaveLength(1);
    const again = { code: await makeCode(), email: email.toUpperCase() };
    expect((await service.post('/auth/device', again)).status).toBe(200);
  });

  test('has no effect after five minutes', async () => {
    await using own = await startService({}, { database: service.database });
    const { clock } = own.context.coordination;
    const now = clock.now.bind(clock);
    let passedMs = 0;
    const spy = vi.spyOn(clock, 'now').mockImplementation(() => now() + passedMs);
    onTestFinished(() => void spy.mockRestore());
    const pages = await Promise.all(Array.from({ length: 3 }, () => openPage(own)));
    const [early, ended, late] = await Promise.all(pages.map(({ makeCode }) => makeCode()));
    passedMs = 290_000;
    expect((await own.post('/auth/device', { code: early })).status).toBe(200);
    // When a page signs out, its code ends. Without the sign-out, the code would be valid for a few more seconds.
    expect((await pages[1]!.page.post('/web/logout')).status).toBe(200);
    expect(await codeOf(ended!, own)).toBe('NOT_FOUND');
    passedMs = 300_000;
    expect(await codeOf(late!, own)).toBe('NOT_FOUND');
  });
});

test('ending all other sessions during an exchange leaves no other session', async () => {
  for (let round = 0; round < 10; round += 1) {
    const { page, makeCode } = await openPage();
    const code = await makeCode();
    await Promise.all([
      service.post('/auth/device', { code }),
      page.post('/web/api/v1/sessions/revoke-others'),
    ]);
    expect((await page.post('/web/api/v1/sessions/list')).body.sessions).toHaveLength(1);
  }
});

test('wrong codes count towards the same limit as wrong invite codes', async () => {
  await using strict = await startService({ inviteFailuresPerMinute: 2 }, { database: service.database });
  const { makeCode } = await openPage(strict);
  const right = await makeCode();
  // Beyond the limit of two, the network has one try.
  for (let i = 0; i < 3; i += 1) expect(await codeOf('AAAABBBBCCCC', strict)).toBe('NOT_FOUND');
  expect(await codeOf(right, strict)).toBe('RATE_LIMITED');
});

test('only a page of the service can create a code, with its session', async () => {
  const { page, token } = await openPage();
  expect((await service.post('/login/device', {}, { token })).status).toBe(404);
  expect((await newBrowser(service.origin).post('/web/login/device')).status).toBe(401);
  const foreign = await page.post('/web/login/device', {}, { origin: 'https://evil.example' });
  expect(foreign.body.code).toBe('PERMISSION_DENIED');
});

test('a code that one replica created works at another one; without Redis no code works', async () => {
  await using redis = await startRedis();
  const publicUrl = 'http://127.0.0.1:1';
  const config = { redisAddress: { kind: 'servers' as const, urls: [redis.url] }, publicUrl };
  await using a = await startService(config, { database: service.database });
  await using b = await startService(config, { database: service.database });
  const { page, makeCode } = await openPage(a, publicUrl);
  const code = await makeCode();
  const client = new Redis(redis.url);
  const names = await client.keys('*');
  const kept = String([names, ...(await Promise.all(names.map((name) => client.dumpBuffer(name))))]);
  client.disconnect();
  expect(names.some((name) => name.includes(':pending}:deviceCodes:'))).toBe(true);
  expect(kept).not.toContain(code);
  expect((await b.post('/auth/device', { code })).status).toBe(200);
  expect(await codeOf(code, a)).toBe('NOT_FOUND');
  const last = await makeCode();
  await redis.kill();
  await expect.poll(() => a.context.coordination.state).toBe('degraded');
  expect(await codeOf(last, a)).toBe('UNAVAILABLE');
  expect((await page.post('/web/login/device')).status).toBe(503);
  expect((await page.post('/web/api/v1/sessions/revoke-others')).body).toEqual({ revoked: 1 });
});

test('each kind of code works only at its own endpoints', async () => {
  const { makeCode } = await openPage();
  const code = await makeCode();
  const invite = await service.invite(newEmail());
  const browser = newBrowser(service.origin);
  const error = (length: number) => ({
    code: 'VALIDATION_ERROR',
    error: `code: expected ${length} characters, A to Z and 0 to 9`,
  });
  expect((await service.post('/auth/invite', { code })).body).toEqual(error(8));
  expect((await browser.post('/web/login/invite', { code })).body).toEqual(error(8));
  expect((await service.post('/auth/device', { code: invite })).body).toEqual(error(12));
  expect((await browser.post('/web/login/device/exchange', { code: invite })).body).toEqual(error(12));
  expect(browser.cookie).toBeUndefined();
  expect((await browser.loginByDevice(code)).body).toEqual({
    user: { id: expect.any(Number), email: expect.any(String) },
  });
  expect(browser.cookie).toBeDefined();
});

test('exchanges are limited by client address, like those of invites', async () => {
  await using strict = await startService({ rateLimitRequests: 2 }, { database: service.database });
  const browser = newBrowser(strict.origin);
  const paths = ['/auth/device', '/auth/invite'];
  for (const path of paths)
    expect((await strict.post(path, { code: 'AAAABBBBCCCC' })).headers.get('x-ratelimit-limit')).toBe('2');
  const refused = await browser.post('/web/login/device/exchange', { code: 'AAAABBBBCCCC' });
  expect(refused.body.code).toBe('RATE_LIMITED');
});
