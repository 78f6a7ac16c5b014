import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { Provider } from '../src/sign-in/provider.ts';
import { SIGN_IN_OUTCOMES } from '../src/sign-in/sign-in-error.ts';
import { CookieBrowser, goToCallback } from './support/cookie-browser.ts';
import { findFreePort } from './support/ports.ts';
import { CLIENT_SECRET, type Faults, startProvider } from './support/provider.ts';
import { scrape } from './support/replica.ts';
import { startService } from './support/service.ts';
import { arrive, headingOf, useSignIn, whoIs } from './support/sign-in.ts';

// Each fault of the provider leads to an error page and is counted. It signs nobody in, and it affects nothing else.

const bench = useSignIn();

const DISTRUSTED = 'Test Accounts sent an invalid response';
const AWAY = 'Test Accounts cannot be reached';
const SLOW = 'Test Accounts takes too long to respond';
const NOT_ACCEPTED = 'Test Accounts does not accept this service';

const changed = (more: Record<string, unknown>): Faults => ({ claims: (claims) => ({ ...claims, ...more }) });
const at = (path: string, response: NonNullable<Faults['responses']>[string]): Faults => ({
  responses: { [path]: response },
});

const NOW = Math.floor(Date.now() / 1_000);

describe('a callback signs nobody in if its ID token is invalid', () => {
  test.each<[string, Faults]>([
    ['because it is of another issuer', changed({ iss: 'https://evil.example' })],
    ['because it is for another audience', changed({ aud: 'somebody-else' })],
    [
      'because it has a second audience and another authorized party',
      changed({ aud: ['bookmarks', 'x'], azp: 'x' }),
    ],
    ['because it has another nonce', changed({ nonce: 'another' })],
    ['because it has no nonce', changed({ nonce: undefined })],
    ['because it has expired', changed({ iat: NOW - 7_200, exp: NOW - 3_600 })],
    ['because it never expires', changed({ exp: undefined })],
    ['because it is not valid yet', changed({ nbf: NOW + 3_600 })],
    ['because it is not signed', { signature: 'none' }],
    ['because another key signed it', { signature: 'foreign' }],
    ['because it has no subject', changed({ sub: undefined })],
    ['because its subject cannot be stored', changed({ sub: 'a\0b' })],
    ['because its subject is too long', changed({ sub: 'x'.repeat(300) })],
  ])('%s', async (_what, faults) => {
    bench.provider.faults = faults;
    const { visit, email } = await arrive(bench, bench.service);
    bench.provider.faults = {};
    expect([visit.status, headingOf(visit), email]).toEqual([503, DISTRUSTED, undefined]);
  });
});

describe('a faulty provider leads to an error page', () => {
  const JUNK = { status: 200, body: '<html>' };

  test.each<[string, Faults, string]>([
    ['if it responds to the code with 500', at('/token', { status: 500, body: 'oops' }), DISTRUSTED],
    ['if it responds to the code with HTML', at('/token', JUNK), DISTRUSTED],
    [
      'if it returns no ID token',
      at('/token', { status: 200, body: '{"access_token":"x","token_type":"Bearer"}' }),
      DISTRUSTED,
    ],
    [
      'if its response is too long',
      at('/token', { status: 200, body: Buffer.alloc(1_100_000, 32) }),
      DISTRUSTED,
    ],
    ['if it responds with a redirect', at('/token', { status: 302, body: '' }), DISTRUSTED],
    ['if it closes the connection', at('/token', 'reset'), AWAY],
    [
      'if it responds to the request for the address with 500',
      at('/me', { status: 500, body: '{}' }),
      DISTRUSTED,
    ],
    [
      "if it returns somebody else's address",
      at('/me', { status: 200, body: '{"sub":"x","email":"a@example.org","email_verified":true}' }),
      DISTRUSTED,
    ],
    [
      'if it does not know the client',
      at('/token', { status: 401, body: '{"error":"invalid_client"}' }),
      NOT_ACCEPTED,
    ],
  ])('%s', async (_what, faults, heading) => {
    bench.provider.faults = faults;
    const { visit, email } = await arrive(bench, bench.service);
    bench.provider.faults = {};
    expect([visit.status, headingOf(visit), email]).toEqual([503, heading, undefined]);
    expect(Number(visit.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await arrive(bench, bench.service)).email).toBeDefined();
  });

  test('if it does not respond for some seconds', async () => {
    bench.provider.faults = at('/token', 'silence');
    const { visit } = await arrive(bench, bench.service);
    bench.provider.faults = {};
    expect([visit.status, headingOf(visit)]).toEqual([503, SLOW]);
  });
});

describe('the configuration of the provider', () => {
  const CONFIGURATION = '/.well-known/openid-configuration';

  test.each<[string, Faults, string]>([
    ['500', at(CONFIGURATION, { status: 500, body: '' }), DISTRUSTED],
    ['junk', at(CONFIGURATION, { status: 200, body: 'junk' }), DISTRUSTED],
    [
      'another issuer',
      at(CONFIGURATION, { status: 200, body: '{"issuer":"https://evil.example"}' }),
      DISTRUSTED,
    ],
    ['a closed connection', at(CONFIGURATION, 'reset'), AWAY],
    ['silence', at(CONFIGURATION, 'silence'), SLOW],
  ])(
    '%s instead of it leads to an error page, and the next try succeeds once it is available',
    async (_what, faults, heading) => {
      const service = await bench.beside({ signUp: 'open', provider: { trustEmail: true } });
      bench.provider.faults = faults;
      const browser = new CookieBrowser();
      const page = await browser.open(`${service.origin}/login`);
      bench.provider.faults = {};
      expect([page.status, headingOf(page)]).toEqual([503, heading]);
      expect((await arrive(bench, service)).email).toBeDefined();
    },
  );

  test('prevents neither the start of a replica nor the work of any user', async () => {
    const port = await findFreePort();
    await using service = await startService({
      signIn: {
        provider: bench.provider.settings({ issuer: `http://127.0.0.1:${port}` }),
        signUp: 'invite',
        appRedirects: [],
      },
    });
    const user = await service.user();
    expect((await user.post('/user/profile')).status).toBe(200);
    const page = await new CookieBrowser().open(`${service.origin}/login`);
    expect([page.status, headingOf(page)]).toEqual([503, AWAY]);
    await using provider = await startProvider({ port });
    expect((await arrive({ ...bench, provider }, service)).visit.status).toBe(403);
  });

  test('is requested once for all logins that wait for it', async () => {
    const service = await bench.beside({ signUp: 'open', provider: { trustEmail: true } });
    const before = bench.provider.requests.length;
    await Promise.all(Array.from({ length: 20 }, () => new CookieBrowser().open(`${service.origin}/login`)));
    expect(bench.provider.requests.slice(before)).toEqual([CONFIGURATION]);
  });
});

test('without encryption, only this computer is contacted, whatever the metadata contains', async () => {
  const service = await bench.beside({ signUp: 'open', provider: { trustEmail: true } });
  const response = await fetch(`${bench.provider.issuer}/.well-known/openid-configuration`);
  const metadata = { ...((await response.json()) as object), token_endpoint: 'http://192.0.2.1/token' };
  bench.provider.faults = at('/.well-known/openid-configuration', {
    status: 200,
    body: JSON.stringify(metadata),
  });
  const { visit } = await arrive(bench, service);
  bench.provider.faults = {};
  expect([visit.status, headingOf(visit)]).toEqual([503, DISTRUSTED]);
});

test('a step of the login ends in time, even if every response is late', async () => {
  const provider = new Provider(bench.provider.settings(), 1_000);
  bench.provider.faults = at('/.well-known/openid-configuration', 'silence');
  const checks = { state: 's', nonce: 'n', verifier: 'v'.repeat(43) };
  await expect(provider.begin('http://127.0.0.1/login/callback', checks)).rejects.toMatchObject({
    fault: 'slow',
  });
  bench.provider.faults = {};
  expect(await provider.begin('http://127.0.0.1/login/callback', checks)).toMatch(/^http/);
});

test('a wrong client secret leads to a page that says that the operator must fix it', async () => {
  const service = await bench.beside({ provider: { clientSecret: 'of last year' } });
  const { visit } = await arrive(bench, service);
  expect([visit.status, headingOf(visit)]).toEqual([503, NOT_ACCEPTED]);
});

test('each result is counted and logged, without anything that could be used again', async () => {
  const metricsPort = await findFreePort();
  const lines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
  await using service = await startService(
    {
      metricsPort,
      signIn: { provider: bench.provider.settings({ trustEmail: true }), signUp: 'open', appRedirects: [] },
    },
    { log: log as never },
  );
  const subject = (await arrive(bench, service)).subject;
  const browser = new CookieBrowser();
  bench.provider.faults = { signature: 'none' };
  const { callback } = await goToCallback(browser, `${service.origin}/login`, subject);
  await browser.open(callback!);
  bench.provider.faults = {};
  await browser.open(callback!);
  expect(await whoIs(browser, service)).toBeUndefined();

  const samples = await scrape(metricsPort);
  const count = (outcome: string) => samples.get(`bookmarks_sign_ins_total{outcome="${outcome}"}`);
  expect([count('done'), count('invalid'), count('callback'), count('slow')]).toEqual([1, 1, 1, 0]);
  for (const outcome of SIGN_IN_OUTCOMES) expect(count(outcome)).toBeDefined();
  const text = lines.join('');
  expect(text).toContain('"fault":"invalid"');
  expect(text).toContain('"route":"/login/callback"');
  for (const secret of [...callback!.searchParams.values(), ...browser.secrets, CLIENT_SECRET])
    if (secret !== bench.provider.issuer) expect(text).not.toContain(secret);
  expect(text).not.toContain('id_token');
  expect(text).not.toMatch(/@example\.org/);
});
