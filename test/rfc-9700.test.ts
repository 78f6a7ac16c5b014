import { createHash, randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import postgres from 'postgres';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { PendingUnavailable } from '../src/coordination/port.ts';
import { parseToken } from '../src/domain/tokens.ts';
import { readReturnTo } from '../src/sign-in/return-to.ts';
import { addPerson, CookieBrowser, goToCallback, type Visit } from './support/cookie-browser.ts';
import { startRedis } from './support/redis.ts';
import { startService } from './support/service.ts';
import { type Arrival, arrive, headingOf, useSignIn, whoIs } from './support/sign-in.ts';

// Checks RFC 9700, Best Current Practice for OAuth 2.0 Security, section by section. The service is a client of its
// provider, and a small authorization server for its own apps.

const bench = useSignIn({
  signUp: 'open',
  provider: { trustEmail: true },
  appRedirects: ['https://app.example.org/signed-in', 'org.example.app:/signed-in'],
});

const OVER = 'This sign-in is over';
const REDIRECT = 'http://127.0.0.1:8123/signed-in';

let person: Arrival;
beforeAll(async () => {
  person = await arrive(bench, bench.service);
});

const hash = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');
const verifier = randomBytes(32).toString('base64url');

const askWith = (more: Record<string, string | undefined> = {}): Record<string, string> => {
  const asked = {
    redirect_uri: REDIRECT,
    code_challenge: hash(verifier),
    code_challenge_method: 'S256',
    state: 'state-of-the-app',
    name: 'An app',
    ...more,
  };
  return Object.fromEntries(
    Object.entries(asked).filter((pair): pair is [string, string] => pair[1] !== undefined),
  );
};

const appPage = (parameters: Record<string, string>): string =>
  `${bench.service.origin}/login/app?${new URLSearchParams(parameters)}`;

/** Approves an app. Returns the address to which the browser then goes. */
const approve = async (more: Record<string, string | undefined> = {}, by = person.browser): Promise<URL> => {
  const { status, text } = await by.post(`${bench.service.origin}/web/login/app`, askWith(more));
  if (status !== 200) throw new Error(text);
  return new URL(JSON.parse(text).location);
};

const exchange = (code: string, more: object = {}) =>
  bench.service.post('/auth/exchange', { code, code_verifier: verifier, redirect_uri: REDIRECT, ...more });

const newCode = async (): Promise<string> => (await approve()).searchParams.get('code')!;

/** Goes to the provider and back. Stops before the browser requests the callback. */
const toCallback = async (query = '', browser = new CookieBrowser()) => {
  const { callback } = await goToCallback(
    browser,
    `${bench.service.origin}/login${query}`,
    addPerson(bench.provider),
  );
  return { browser, callback: callback! };
};

const expectOver = async (visit: Visit, browser: CookieBrowser) => {
  expect([visit.status, headingOf(visit), visit.headers.getSetCookie()]).toEqual([400, OVER, []]);
  expect(await whoIs(browser, bench.service)).toBeUndefined();
};

describe('2.1, 4.1: redirects are compared exactly', () => {
  test.each([
    'http://localhost:8123/signed-in',
    'http://127.0.0.1.evil.example:8123/signed-in',
    'http://127.0.0.1:8123@evil.example/',
    'https://app.example.org/signed-in/',
    'https://app.example.org/signed-in?x=1',
    'https://app.example.org.evil.example/signed-in',
    'org.example.app:/other',
    'javascript:alert(1)',
  ])('%s gets no code, and no page with a link to it', async (redirect_uri) => {
    const page = await person.browser.open(appPage(askWith({ redirect_uri })));
    expect([page.status, page.headers.get('location')]).toEqual([400, null]);
    expect(page.text).toContain('redirect_uri: expected');
    expect(page.text).not.toContain('href');
    const approved = await person.browser.post(
      `${bench.service.origin}/web/login/app`,
      askWith({ redirect_uri }),
    );
    expect([approved.status, JSON.parse(approved.text).code]).toEqual([400, 'VALIDATION_ERROR']);
  });

  test('any port of this computer, and each address that the operator configured, is accepted exactly', async () => {
    for (const redirect_uri of [
      'http://[::1]:1/',
      'https://app.example.org/signed-in',
      'org.example.app:/signed-in',
    ])
      expect((await approve({ redirect_uri })).href.startsWith(redirect_uri)).toBe(true);
  });

  test('the service always names one callback at its own origin, whatever Host says', async () => {
    const response = await fetch(`${bench.service.origin}/login`, {
      redirect: 'manual',
      headers: { 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' },
    });
    const to = new URL(response.headers.get('location')!);
    expect(to.searchParams.get('redirect_uri')).toBe(`${bench.service.origin}/login/callback`);
  });
});

describe('2.1.1, 4.8: PKCE with S256 only', () => {
  test('the service sends a new challenge each time', async () => {
    const challenges = await Promise.all(
      [1, 2].map(async () => {
        const visit = await new CookieBrowser().open(`${bench.service.origin}/login`);
        const { searchParams } = new URL(visit.headers.get('location')!);
        expect(searchParams.get('code_challenge_method')).toBe('S256');
        return searchParams.get('code_challenge');
      }),
    );
    expect(challenges[0]).toMatch(/^[\w-]{43}$/);
    expect(challenges[0]).not.toBe(challenges[1]);
  });

  test.each([
    ['plain', { code_challenge_method: 'plain' }, 'code_challenge_method'],
    ['no method', { code_challenge_method: undefined }, 'code_challenge_method'],
    ['no challenge', { code_challenge: undefined }, 'code_challenge'],
    ['a challenge that is not a hash', { code_challenge: 'x'.repeat(42) }, 'code_challenge'],
    ['no state', { state: undefined }, 'state'],
    ['a state of several lines', { state: 'a\nb' }, 'state'],
  ])('an app with %s is refused', async (_what, more, field) => {
    const page = await person.browser.open(appPage(askWith(more)));
    expect(page.status).toBe(400);
    expect(page.text).toContain(`${field}:`);
  });

  test('a code is useless without its verifier, and an attempt uses it up', async () => {
    const code = await newCode();
    const wrong = await exchange(code, { code_verifier: randomBytes(32).toString('base64url') });
    expect([wrong.status, wrong.body.code]).toEqual([404, 'NOT_FOUND']);
    expect((await exchange(code)).status).toBe(404);
  });

  test('the challenge is not accepted as the verifier', async () => {
    expect((await exchange(await newCode(), { code_verifier: hash(verifier) })).status).toBe(404);
  });
});

describe('4.5: a code is used once, by the app that it was created for', () => {
  test('the first exchange gets the session, the second one nothing', async () => {
    const code = await newCode();
    const first = await exchange(code);
    expect([first.status, first.body.user.email]).toEqual([200, person.email]);
    expect((await bench.service.post('/user/profile', {}, { token: first.body.token })).status).toBe(200);
    expect((await exchange(code)).body).toEqual({ error: 'the code does not exist', code: 'NOT_FOUND' });
  });

  test('a second use ends the session of the first use and its held polls, at once', async () => {
    const code = await newCode();
    const { token } = (await exchange(code)).body;
    const poll = bench.service.post('/bookmarks/sync', { wait: true }, { token });
    await expect.poll(() => bench.service.context.coordination.notifier.held).toBe(1);
    expect((await exchange(code, { code_verifier: 'x'.repeat(43) })).status).toBe(404);
    expect((await poll).status).toBe(401);
    expect((await bench.service.post('/user/profile', {}, { token })).status).toBe(401);
    expect((await exchange(code)).status).toBe(404);
    expect(await whoIs(person.browser, bench.service)).toBe(person.email);
  });

  test('a code whose use cannot be recorded leaves no session', async () => {
    const { context } = bench.service;
    const code = await newCode();
    const keep = vi
      .spyOn(context.coordination.pending, 'keep')
      .mockRejectedValueOnce(new PendingUnavailable('the connection was lost'));
    onTestFinished(() => keep.mockRestore());
    const count = () => context.database.sql`select count(*)::int as count from tokens`;
    const before = await count();
    expect((await exchange(code)).body.code).toBe('UNAVAILABLE');
    expect(await count()).toEqual(before);
  });

  test('if Postgres does not revoke the session in time, the next use revokes it', async () => {
    const { sql } = bench.service.context.database;
    const code = await newCode();
    const { token } = (await exchange(code)).body;
    const locker = postgres(bench.service.database.url, { max: 1 });
    await locker.begin(async (held) => {
      await held`select from tokens where app_name is not null for update`;
      expect((await exchange(code)).body.code).toBe('UNAVAILABLE');
    });
    await locker.end();
    expect((await bench.service.post('/user/profile', {}, { token })).status).toBe(200);
    expect((await exchange(code)).status).toBe(404);
    expect((await bench.service.post('/user/profile', {}, { token })).status).toBe(401);
    expect(await sql`select from tokens where token_hash = ${parseToken(token)!.hash}`).toEqual([]);
  });

  test('an invented code revokes nothing', async () => {
    const { token } = (await exchange(await newCode())).body;
    expect((await exchange('x'.repeat(43))).status).toBe(404);
    expect((await bench.service.post('/user/profile', {}, { token })).status).toBe(200);
  });

  test('at most one of many simultaneous exchanges succeeds, and its session ends', async () => {
    for (let round = 0; round < 10; round += 1) {
      const code = (await approve({ name: 'An app at once' })).searchParams.get('code')!;
      const tries = await Promise.all(Array.from({ length: 4 }, () => exchange(code)));
      const opened = tries.filter(({ status }) => status === 200);
      expect(opened.length).toBeLessThanOrEqual(1);
      expect(tries.filter(({ status }) => status === 404)).toHaveLength(4 - opened.length);
    }
    const left = await bench.service.context.database.sql`
      select app_name from tokens where app_name = 'An app at once'`;
    expect(left).toEqual([]);
  });

  test('another redirect address gets no session', async () => {
    expect((await exchange(await newCode(), { redirect_uri: `${REDIRECT}/` })).status).toBe(404);
  });

  test('a code is useless if the session that approved it has ended', async () => {
    const { browser } = await arrive(bench, bench.service);
    const code = (await approve({}, browser)).searchParams.get('code')!;
    await browser.post(`${bench.service.origin}/web/logout`, {});
    expect((await exchange(code)).status).toBe(404);
  });

  test('a code is useless if its session was revoked by another session or with the account', async () => {
    const { subject, browser } = await arrive(bench, bench.service);
    const other = await arrive(bench, bench.service, subject);
    const code = (await approve({}, browser)).searchParams.get('code')!;
    const { text } = await other.browser.post(
      `${bench.service.origin}/web/api/v1/sessions/revoke-others`,
      {},
    );
    expect(JSON.parse(text)).toEqual({ revoked: 1 });
    expect((await exchange(code)).status).toBe(404);
    const later = (await approve({}, other.browser)).searchParams.get('code')!;
    await bench.service.context.database.sql`select delete_user(${other.email!})`;
    expect((await exchange(later)).status).toBe(404);
  });

  test("a callback needs the provider's code, our state and the browser's cookie, and works once", async () => {
    const { browser, callback } = await toCallback();
    expect((await browser.open(callback)).status).toBe(303);
    const again = await browser.open(callback);
    expect([again.status, headingOf(again)]).toEqual([400, OVER]);
  });

  test('a code from another login signs nobody in', async () => {
    const [mine, theirs] = [await toCallback(), await toCallback()];
    mine.callback.searchParams.set('code', theirs.callback.searchParams.get('code')!);
    await expectOver(await mine.browser.open(mine.callback), mine.browser);
  });
});

describe('4.4: mix-up', () => {
  test.each([
    ['names another issuer', (url: URL) => url.searchParams.set('iss', 'https://evil.example')],
    ['names no issuer, although the provider always does', (url: URL) => url.searchParams.delete('iss')],
    ['names two issuers', (url: URL) => url.searchParams.append('iss', 'https://evil.example')],
  ])('a callback that %s signs nobody in, and its code goes nowhere', async (_what, change) => {
    const { browser, callback } = await toCallback();
    change(callback);
    const before = bench.provider.requests.filter((path) => path === '/token').length;
    await expectOver(await browser.open(callback), browser);
    expect(bench.provider.requests.filter((path) => path === '/token')).toHaveLength(before);
  });

  test("an app's response names this service too", async () => {
    expect((await approve()).searchParams.get('iss')).toBe(bench.service.origin);
  });
});

describe('4.7: CSRF', () => {
  test("a callback without the browser's cookie signs nobody in, and the login stays usable in its own browser", async () => {
    const { browser, callback } = await toCallback();
    const victim = new CookieBrowser();
    await expectOver(await victim.open(callback), victim);
    expect((await browser.open(callback)).status).toBe(303);
  });

  test("a callback with the cookie of another browser's login signs nobody in either", async () => {
    const attacker = await toCallback();
    const victim = await toCallback();
    await expectOver(await victim.browser.open(attacker.callback), victim.browser);
  });

  test.each([['state'], ['code']])('a callback without %s signs nobody in', async (name) => {
    const { browser, callback } = await toCallback();
    callback.searchParams.delete(name);
    const visit = await browser.open(callback);
    expect(visit.status).toBeGreaterThanOrEqual(400);
    expect(await whoIs(browser, bench.service)).toBeUndefined();
  });

  test.each(['/web/login/app', '/web/login/link', '/web/logout'])(
    '%s refuses requests from other pages',
    async (path) => {
      const { browser } = await arrive(bench, bench.service);
      for (const headers of [
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { 'content-type': 'text/plain' },
      ]) {
        const { status } = await browser.post(bench.service.origin + path, askWith(), headers);
        expect([400, 403]).toContain(status);
      }
      expect((await browser.open(bench.service.origin + path)).status).toBe(404);
      expect(await whoIs(browser, bench.service)).toBeDefined();
    },
  );

  test('opening /login and /login/app changes nothing for a signed-in person', async () => {
    const { browser, email } = await arrive(bench, bench.service);
    const cookies = new Map(browser.cookies);
    await browser.open(`${bench.service.origin}/login`);
    await browser.open(appPage(askWith()));
    expect(browser.cookies).toEqual(cookies);
    expect(await whoIs(browser, bench.service)).toBe(email);
  });
});

describe('4.7: session fixation', () => {
  test('each login creates a new session, whatever cookie the request had', async () => {
    const { browser, callback } = await toCallback();
    browser.cookies.set('session', person.browser.cookies.get('session')!);
    await browser.open(callback);
    expect(browser.cookies.get('session')).not.toBe(person.browser.cookies.get('session'));
    expect(await whoIs(browser, bench.service)).not.toBe(person.email);
    person = await arrive(bench, bench.service);
  });
});

describe('4.11: open redirects', () => {
  test.each([
    ...['//evil.example', '/\\evil.example', '\\\\evil.example', '/%2fevil.example', '/%5Cevil.example'],
    ...[
      '/%2F%2Fevil.example',
      '/.//evil.example',
      '/x/..//evil.example',
      '/\t/evil.example',
      '/\n/evil.example',
    ],
    ...[
      ' //evil.example',
      'https://evil.example',
      'https:evil.example',
      'javascript:alert(1)',
      'evil.example',
    ],
    ...['@evil.example', '', '/ü', `/${'x'.repeat(3_000)}`],
  ])('return_to=%j is refused', (text) => {
    expect(readReturnTo(text)).toBeUndefined();
  });

  test.each(['//evil.example', ''])('/login and linking refuse return_to=%j', async (text) => {
    const visit = await new CookieBrowser().open(
      `${bench.service.origin}/login?return_to=${encodeURIComponent(text)}`,
    );
    expect([visit.status, visit.headers.get('location')]).toEqual([400, null]);
    const linked = await person.browser.post(`${bench.service.origin}/web/login/link`, { return_to: text });
    expect(linked.status).toBe(400);
  });

  test('a repeated return_to is refused', async () => {
    const visit = await new CookieBrowser().open(
      `${bench.service.origin}/login?return_to=/&return_to=//evil.example`,
    );
    expect(visit.status).toBe(400);
  });

  test.each(['/', '/settings', '/a?b=c#d', '/login/app?redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2F'])(
    'return_to=%s is accepted, because it stays on this origin',
    (text) => {
      expect(readReturnTo(text)).toBe(text);
    },
  );
});

describe('4.2: nothing leaks', () => {
  const isPrivate = ({ headers }: Visit) => {
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('cache-control')).toBe('no-store');
  };

  test('nothing leaks through Referer headers, caches or frames, from pages or redirects', async () => {
    const { browser, callback } = await toCallback();
    const way = [
      await browser.open(`${bench.service.origin}/login`),
      await browser.open(callback),
      await browser.open(callback),
      await browser.open(appPage(askWith())),
      await browser.open(appPage({})),
      await new CookieBrowser().open(appPage(askWith())),
    ];
    way.forEach(isPrivate);
    for (const page of way.filter(({ status }) => status !== 303)) {
      const policy = page.headers.get('content-security-policy')!;
      for (const rule of [
        "default-src 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
      ])
        expect(policy).toContain(rule);
      expect(policy).not.toContain('unsafe');
      expect(page.headers.get('access-control-allow-origin')).toBeNull();
    }
  });

  test('nothing leaks through logs: they contain no query of a callback, code, state or cookie', async () => {
    const lines: string[] = [];
    const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
    await using service = await startService(
      { signIn: bench.service.context.config.signIn },
      { database: bench.service.database, log: log as never },
    );
    const browser = new CookieBrowser();
    const { callback } = await goToCallback(
      browser,
      `${service.origin}/login?return_to=/secret-place`,
      addPerson(bench.provider),
    );
    for (const address of [callback!, callback!, `${service.origin}/login/callback/?code=hidden-code`])
      await browser.open(address);
    const text = lines.join('');
    expect(text).toContain('/login/callback');
    for (const hidden of [
      callback!.searchParams.get('code')!,
      callback!.searchParams.get('state')!,
      'hidden-code',
      'secret-place',
      ...browser.secrets,
    ])
      expect(text).not.toContain(hidden);
  });

  test("the provider's tokens are stored nowhere", async () => {
    const { text } = await person.browser.open(
      `${bench.service.origin}/login/app?${new URLSearchParams(askWith())}`,
    );
    expect(text).not.toMatch(/eyJ[\w-]+\./);
    expect([...person.browser.cookies.keys()].sort()).toContain('session');
  });
});

describe('2.1.2, 2.4: only the code flow', () => {
  test.each([
    ['id_token', 503],
    ['response', 400],
  ])('a callback with %s signs nobody in', async (name, status) => {
    const { browser, callback } = await toCallback();
    callback.searchParams.set(name, 'x');
    expect((await browser.open(callback)).status).toBe(status);
    expect(await whoIs(browser, bench.service)).toBeUndefined();
  });
});

describe('4.15: the person approves each app', () => {
  test("the page shows the app's name as text, its address, and the account whose bookmarks it requests", async () => {
    const page = await person.browser.open(appPage(askWith({ name: '<b>App</b> & "co"' })));
    expect([page.status, headingOf(page)]).toEqual([
      200,
      'Let “&lt;b&gt;App&lt;/b&gt; &amp; &quot;co&quot;” use your bookmarks?',
    ]);
    expect(page.text).toContain(person.email);
    expect(page.text).toContain(REDIRECT);
    expect(page.text).not.toContain('<b>App');
  });

  test.each(['', ' ', 'x'.repeat(61), 'two\nlines', 'turned \u202e round', 'zero\u200bwidth'])(
    '%j is refused as the name of an app',
    async (name) => {
      expect((await person.browser.open(appPage(askWith({ name })))).status).toBe(400);
    },
  );

  test('an approval is not remembered: the next request asks again', async () => {
    await exchange(await newCode());
    expect(headingOf(await person.browser.open(appPage(askWith())))).toContain('An app');
  });

  test('declining leads back to the app with access_denied and no code', async () => {
    const page = await person.browser.open(appPage(askWith()));
    const to = new URL(/href="([^"]+)">Decline/.exec(page.text)![1]!.replaceAll('&amp;', '&'));
    expect(to.origin + to.pathname).toBe(REDIRECT);
    expect(Object.fromEntries(to.searchParams)).toEqual({
      error: 'access_denied',
      state: 'state-of-the-app',
      iss: bench.service.origin,
    });
  });

  test("the app's session has the app's name, ends like any other, and keeps the time when the person authenticated", async () => {
    const { body } = await exchange(await newCode());
    const { sql } = bench.service.context.database;
    const rows = await sql<{ app_name: string | null; authenticated_at: Date }[]>`
      select app_name, authenticated_at from tokens where user_id = ${body.user.id} and app_name is not null`;
    expect(rows.at(-1)).toEqual({ app_name: 'An app', authenticated_at: new Date(0) });
    await bench.service.post('/logout', {}, { token: body.token });
    expect((await bench.service.post('/user/profile', {}, { token: body.token })).status).toBe(401);
  });

  test('an API token cannot approve an app', async () => {
    const user = await bench.service.user();
    const headers = { origin: bench.service.origin, cookie: `session=${user.token}` };
    const { status } = await new CookieBrowser().post(
      `${bench.service.origin}/web/login/app`,
      askWith(),
      headers,
    );
    expect(status).toBe(401);
  });
});

describe('floods', () => {
  test('pages are limited by address, separately from invites, and a page says so', async () => {
    await using small = await startService(
      { signIn: bench.service.context.config.signIn, rateLimitRequests: 2 },
      { database: bench.service.database },
    );
    const browser = new CookieBrowser();
    for (const path of ['/login?return_to=x', '/login/callback?state=x'])
      expect((await browser.open(small.origin + path)).status).toBe(400);
    const limited = await browser.open(`${small.origin}/login/app`);
    expect([limited.status, headingOf(limited)]).toEqual([429, 'Too many attempts']);
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await small.post('/auth/invite', { code: 'UNKNOWN0' })).status).toBe(404);
    expect(
      (
        await small.post('/auth/exchange', {
          code: 'x'.repeat(43),
          code_verifier: verifier,
          redirect_uri: REDIRECT,
        })
      ).status,
    ).toBe(404);
    expect((await small.post('/auth/invite', { code: 'UNKNOWN0' })).status).toBe(429);
  });
});

describe('several replicas', () => {
  test('a login works once on any replica; without Redis nobody can sign in, but existing sessions work', async () => {
    await using redis = await startRedis();
    const config = {
      redisAddress: { kind: 'servers' as const, urls: [redis.url] },
      publicUrl: 'http://127.0.0.1:1',
      signIn: bench.service.context.config.signIn,
    };
    const { database } = bench.service;
    await using a = await startService(config, { database });
    await using b = await startService(config, { database });
    const browser = new CookieBrowser();
    const { callback } = await goToCallback(browser, `${a.origin}/login`, addPerson(bench.provider));
    expect(callback!.origin).toBe('http://127.0.0.1:1');
    const query = callback!.pathname + callback!.search;
    expect((await browser.open(b.origin + query)).status).toBe(303);
    for (const each of [a, b]) expect((await browser.open(each.origin + query)).status).toBe(400);

    const headers = { origin: 'http://127.0.0.1:1' };
    const approved = await browser.post(`${a.origin}/web/login/app`, askWith(), headers);
    const code = new URL(JSON.parse(approved.text).location).searchParams.get('code')!;
    const body = { code, code_verifier: verifier, redirect_uri: REDIRECT };
    // The names and values in Redis are of no use to somebody who reads them.
    const client = new Redis(redis.url);
    const names = await client.keys('*');
    const kept = String([names, ...(await Promise.all(names.map((name) => client.dumpBuffer(name))))]);
    client.disconnect();
    expect(names.some((name) => name.includes(':pending}:codes:'))).toBe(true);
    for (const secret of [code, verifier, browser.cookies.get('session')!, browser.cookies.get('login')!])
      expect(kept).not.toContain(secret);
    const { token } = (await b.post('/auth/exchange', body)).body;
    expect((await a.post('/user/profile', {}, { token })).status).toBe(200);
    // The same code is presented again, at another replica.
    expect((await a.post('/auth/exchange', body)).status).toBe(404);
    for (const each of [a, b]) expect((await each.post('/user/profile', {}, { token })).status).toBe(401);

    const open = await goToCallback(new CookieBrowser(), `${a.origin}/login`, addPerson(bench.provider));
    await redis.kill();
    await expect.poll(() => a.context.coordination.state).toBe('degraded');
    for (const path of ['/login?fresh=true', open.callback!.pathname + open.callback!.search]) {
      const visit = await browser.open(a.origin + path);
      expect([visit.status, headingOf(visit)]).toEqual([503, 'Signing in is not possible at the moment']);
    }
    expect((await a.post('/auth/exchange', body)).body.code).toBe('UNAVAILABLE');
    expect((await browser.post(`${a.origin}/web/login/app`, askWith(), headers)).status).toBe(503);
    expect((await browser.post(`${a.origin}/web/api/v1/user/profile`, {}, headers)).status).toBe(200);
  });
});
