import { describe, expect, test } from 'vitest';
import { addPerson, CookieBrowser, goToCallback, signIn } from './support/cookie-browser.ts';
import { runOn } from './support/database.ts';
import { startService, type TestService } from './support/service.ts';
import { arrive, headingOf, useSignIn, whoIs } from './support/sign-in.ts';

// Tests that people can sign in through the provider, and that signing in opens a session.

const bench = useSignIn();

const sessionsOf = async (email: string) =>
  runOn<{ authenticated_at: Date; app_name: string | null }>(
    bench.service.database.url,
    `select t.authenticated_at, t.app_name from tokens t join users u on u.id = t.user_id where u.email = '${email}'`,
  );

describe('the login', () => {
  test('ends at return_to, with a session of this browser', async () => {
    const { visit, email, subject } = await arrive(bench, bench.service, {}, '?return_to=/settings?tab=1');
    expect([visit.status, visit.headers.get('location'), visit.text]).toEqual([303, '/settings?tab=1', '']);
    expect(email).toBe(bench.provider.people.get(subject)!.email);
  });

  test('ends at / if there is no return_to', async () => {
    expect((await arrive(bench, bench.service)).visit.headers.get('location')).toBe('/');
  });

  test('finds the same account again, even from another browser', async () => {
    const first = await arrive(bench, bench.service);
    await first.browser.post(`${bench.service.origin}/web/api/v1/bookmarks/add`, {
      url: 'https://a.example/',
    });
    const second = await arrive(bench, bench.service, first.subject);
    expect(second.email).toBe(first.email);
    const list = await second.browser.post(`${bench.service.origin}/web/api/v1/bookmarks/list`, {});
    expect(JSON.parse(list.text).bookmarks).toHaveLength(1);
  });

  test('uses the address in the ID token if there is one', async () => {
    const { startProvider } = await import('./support/provider.ts');
    await using provider = await startProvider({ emailInIdToken: true });
    await using service = await startService({
      signIn: { provider: provider.settings({ trustEmail: true }), signUp: 'open', appRedirects: [] },
    });
    const { email } = await arrive({ ...bench, provider }, service, { email: 'token@example.org' });
    expect(email).toBe('token@example.org');
    expect(provider.requests).not.toContain('/me');
  });

  test('can run several times at once in one browser', async () => {
    const browser = new CookieBrowser();
    const subject = addPerson(bench.provider);
    const first = await goToCallback(browser, `${bench.service.origin}/login?return_to=/a`, subject);
    const second = await goToCallback(browser, `${bench.service.origin}/login?return_to=/b`, subject);
    const a = await browser.open(first.callback!);
    expect([a.status, headingOf(a), a.headers.get('location')]).toEqual([303, undefined, '/a']);
    expect((await browser.open(second.callback!)).headers.get('location')).toBe('/b');
  });

  test('is skipped for a signed-in person', async () => {
    const { browser } = await arrive(bench, bench.service);
    const before = bench.provider.requests.length;
    const visit = await browser.open(`${bench.service.origin}/login?return_to=/x`);
    expect([visit.status, visit.headers.get('location')]).toEqual([303, '/x']);
    expect(bench.provider.requests).toHaveLength(before);
  });

  test('leads to an error page if the person cancels', async () => {
    const { visit, email } = await arrive(bench, bench.service, '');
    expect([visit.status, headingOf(visit), email]).toEqual([403, 'You were not signed in', undefined]);
  });
});

test("the login keeps its secret in a cookie of this host, which scripts cannot read and the provider's redirect returns", async () => {
  const options = { signUp: 'open', provider: { trustEmail: true } } as const;
  const secure = await bench.beside({ ...options, config: { publicUrl: 'https://bookmarks.example.org' } });
  const over = async (service: TestService) => {
    const { headers } = await new CookieBrowser().open(`${service.origin}/login`);
    return headers.getSetCookie().map((cookie) => cookie.replace(/=[\w-]{43};/, '=…;'));
  };
  expect(await over(secure)).toEqual(['__Host-login=…; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=600']);
  expect(await over(bench.service)).toEqual(['login=…; Path=/; HttpOnly; SameSite=Lax; Max-Age=600']);
});

describe('the session', () => {
  test("replaces the browser's previous session, which is revoked", async () => {
    const { browser, subject } = await arrive(bench, bench.service);
    const old = new Map(browser.cookies);
    await browser.visit(`${bench.service.origin}/login?fresh=true`);
    const again = await signIn(browser, `${bench.service.origin}/login?fresh=true`, subject);
    expect(again.status).toBe(303);
    expect(await whoIs(browser, bench.service)).toBeDefined();
    const thief = new CookieBrowser();
    for (const [name, value] of old) thief.cookies.set(name, value);
    expect(await whoIs(thief, bench.service)).toBeUndefined();
  });

  test('records when the person authenticated only if the provider reports it', async () => {
    const { email, subject } = await arrive(bench, bench.service);
    expect((await sessionsOf(email!)).map(({ authenticated_at }) => authenticated_at.getTime())).toEqual([0]);
    await arrive(bench, bench.service, subject, '?fresh=true');
    const times = (await sessionsOf(email!)).map(({ authenticated_at }) => authenticated_at.getTime());
    expect(Math.max(...times)).toBeGreaterThan(Date.now() - 60_000);
  });
});

describe("a confirmation of one's identity", () => {
  test('makes the provider ask again if the login there is old, and records the time', async () => {
    const { browser, email } = await arrive(bench, bench.service);
    const visit = await browser.visit(`${bench.service.origin}/login?fresh=true&return_to=/settings`);
    expect(browser.trail.find((each) => each.includes('max_age=900'))).toBeDefined();
    expect(visit.headers.get('location') ?? visit.url.pathname).toMatch(/settings/);
    expect(await whoIs(browser, bench.service)).toBe(email);
  });

  test('is refused if the provider reports no time, or an old one', async () => {
    const { subject } = await arrive(bench, bench.service);
    for (const auth_time of [undefined, Math.floor(Date.now() / 1_000) - 1_200, 'now']) {
      bench.provider.faults = { claims: (claims) => ({ ...claims, auth_time }) };
      const { visit, email } = await arrive(bench, bench.service, subject, '?fresh=true');
      bench.provider.faults = {};
      expect([visit.status, email]).toEqual([503, undefined]);
    }
  });

  test('by another person changes nothing', async () => {
    const ann = await arrive(bench, bench.service);
    const bob = await arrive(bench, bench.service);
    // Signs the browser out at the provider, so that the provider asks again who the person is.
    for (const name of [...ann.browser.cookies.keys()])
      if (name.startsWith('_')) ann.browser.cookies.delete(name);
    const visit = await signIn(ann.browser, `${bench.service.origin}/login?fresh=true`, bob.subject);
    expect([visit.status, headingOf(visit)]).toEqual([403, 'You signed in as another person']);
    expect(await whoIs(ann.browser, bench.service)).toBe(ann.email);
  });

  test('by a new person creates no account', async () => {
    const ann = await arrive(bench, bench.service);
    for (const name of [...ann.browser.cookies.keys()])
      if (name.startsWith('_')) ann.browser.cookies.delete(name);
    const subject = addPerson(bench.provider, { email: 'nobody-yet@example.org' });
    const visit = await signIn(ann.browser, `${bench.service.origin}/login?fresh=true`, subject);
    expect(visit.status).toBe(403);
    const made = await runOn(
      bench.service.database.url,
      "select 1 from users where email = 'nobody-yet@example.org'",
    );
    expect(made).toEqual([]);
  });
});

describe('without a provider', () => {
  test('/login asks for an invite, and there is no callback', async () => {
    await using plain = await startService({}, { database: bench.service.database });
    const browser = new CookieBrowser();
    const page = await browser.open(`${plain.origin}/login?return_to=/x`);
    expect([page.status, headingOf(page)]).toEqual([200, 'Sign in']);
    expect(page.text).toContain('data-to="/web/login/invite"');
    expect(page.text).not.toContain('Continue with');
    expect((await browser.open(`${plain.origin}/login/callback?code=x&state=y`)).status).toBe(404);
  });

  test('a service without a public url has no pages', async () => {
    await using hidden = await startService({ host: '0.0.0.0' }, { database: bench.service.database });
    const { port } = new URL(hidden.origin);
    expect((await fetch(`http://127.0.0.1:${port}/login`)).status).toBe(404);
  });
});
