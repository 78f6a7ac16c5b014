import { describe, expect, test } from 'vitest';
import {
  CookieBrowser,
  goToCallback,
  isCallback,
  addPerson as knowPerson,
} from './support/cookie-browser.ts';
import { runOn } from './support/database.ts';
import type { TestService } from './support/service.ts';
import { arrive, headingOf, type SignInBench, useSignIn, whoIs } from './support/sign-in.ts';
import { newEmail } from './support/users.ts';

// Tests that a user whose account was created by an invite can link the account to a person at the provider.

const careful = useSignIn({});
const trusting = useSignIn();

const ANOTHERS = [403, 'This sign-in belongs to another account'];
const NO_SESSION = [403, 'Your session has ended'];
const OVER = [400, 'This sign-in is over'];

/** Signs a browser in with an invite. The account is not linked to a person at the provider. */
async function arriveByInvite(service: TestService, email = newEmail(), browser = new CookieBrowser()) {
  const code = await service.invite(email);
  const { status, text } = await browser.post(`${service.origin}/web/login/invite`, { code });
  if (status !== 200) throw new Error(text);
  return { browser, email };
}

/** Starts linking and goes through the provider. Stops before the browser requests the callback. */
async function goLink({ provider, service }: SignInBench, browser: CookieBrowser, subject?: string) {
  const person = subject ?? knowPerson(provider);
  const begun = await browser.post(`${service.origin}/web/login/link`, { return_to: '/settings' });
  if (begun.status !== 200) throw new Error(begun.text);
  const { callback } = await goToCallback(browser, JSON.parse(begun.text).location, person);
  return { callback: callback!, subject: person };
}

const signOutOfProvider = ({ cookies }: CookieBrowser): void => {
  for (const name of [...cookies.keys()]) if (name.startsWith('_')) cookies.delete(name);
};

const identitiesOf = ({ service }: SignInBench, email: string) =>
  runOn<{ subject: string }>(
    service.database.url,
    `select i.subject from identities i join users u on u.id = i.user_id where u.email = '${email}'`,
  );

/** Returns the status and the heading of the callback's page. */
async function seeAt(browser: CookieBrowser, callback: URL) {
  const visit = await browser.open(callback);
  return [visit.status, headingOf(visit)];
}

describe.each([
  ['where addresses are not trusted', () => careful],
  ['where addresses are trusted', () => trusting],
])('%s', (_where, benchOf) => {
  test('linking ends at return_to with a new session of the same account, which the provider can open from then on', async () => {
    const bench = benchOf();
    const { browser, email } = await arriveByInvite(bench.service);
    const before = browser.cookies.get('session')!;
    const { callback, subject } = await goLink(bench, browser);
    const visit = await browser.open(callback);
    expect([visit.status, visit.headers.get('location')]).toEqual([303, '/settings']);
    expect(await whoIs(browser, bench.service)).toBe(email);
    expect(browser.cookies.get('session')).not.toBe(before);
    expect((await bench.service.post('/user/profile', {}, { token: before })).status).toBe(401);
    expect((await arrive(bench, bench.service, subject)).email).toBe(email);
  });

  test('linking ignores the address at the provider, even if another account has it', async () => {
    const bench = benchOf();
    const victim = await bench.service.user();
    for (const person of [{ email: victim.email }, { email: victim.email, email_verified: false }, {}]) {
      const { browser, email } = await arriveByInvite(bench.service);
      const { callback, subject } = await goLink(bench, browser, knowPerson(bench.provider, person));
      expect((await browser.open(callback)).status).toBe(303);
      expect((await arrive(bench, bench.service, subject)).email).toBe(email);
    }
    expect(await identitiesOf(bench, victim.email)).toEqual([]);
  });

  test('linking to a person who belongs to another account is refused, and neither account changes', async () => {
    const bench = benchOf();
    const first = await arriveByInvite(bench.service);
    const { callback, subject } = await goLink(bench, first.browser);
    await first.browser.open(callback);
    const second = await arriveByInvite(bench.service);
    const cookie = second.browser.cookies.get('session');
    const again = await goLink(bench, second.browser, subject);
    expect(await seeAt(second.browser, again.callback)).toEqual(ANOTHERS);
    expect(second.browser.cookies.get('session')).toBe(cookie);
    expect(await whoIs(second.browser, bench.service)).toBe(second.email);
    expect(await identitiesOf(bench, second.email)).toEqual([]);
    expect((await arrive(bench, bench.service, subject)).email).toBe(first.email);
  });

  test('an account is linked to one person; a second person is refused, and the first one is accepted again', async () => {
    const bench = benchOf();
    const { browser, email } = await arriveByInvite(bench.service);
    const { callback, subject } = await goLink(bench, browser);
    await browser.open(callback);
    signOutOfProvider(browser);
    expect(await seeAt(browser, (await goLink(bench, browser)).callback)).toEqual(ANOTHERS);
    signOutOfProvider(browser);
    expect((await browser.open((await goLink(bench, browser, subject)).callback)).status).toBe(303);
    expect(await identitiesOf(bench, email)).toEqual([{ subject }]);
  });
});

describe('a link that is started in one browser', () => {
  test('changes nothing in another browser, and can still be completed in its own', async () => {
    const owner = await arriveByInvite(careful.service);
    const victim = await arriveByInvite(careful.service);
    const stranger = new CookieBrowser();
    const { callback, subject } = await goLink(careful, owner.browser);
    for (const browser of [victim.browser, stranger]) expect(await seeAt(browser, callback)).toEqual(OVER);
    // Starting a login gives the victim's browser its own secret, which differs from the secret of the owner's login.
    await goToCallback(victim.browser, `${careful.service.origin}/login?fresh=true`, subject);
    expect(await seeAt(victim.browser, callback)).toEqual(OVER);
    expect(await identitiesOf(careful, victim.email)).toEqual([]);
    expect((await owner.browser.open(callback)).status).toBe(303);
    expect(await identitiesOf(careful, owner.email)).toEqual([{ subject }]);
  });

  test('changes nothing after another account signed in there', async () => {
    const { browser, email } = await arriveByInvite(careful.service);
    const { callback } = await goLink(careful, browser);
    const other = await arriveByInvite(careful.service, newEmail(), browser);
    expect(await seeAt(browser, callback)).toEqual(NO_SESSION);
    for (const each of [email, other.email]) expect(await identitiesOf(careful, each)).toEqual([]);
    expect(await whoIs(browser, careful.service)).toBe(other.email);
  });

  test('does not apply to another session of the same account, or after its session has ended', async () => {
    const { browser, email } = await arriveByInvite(careful.service);
    const { callback } = await goLink(careful, browser);
    await arriveByInvite(careful.service, email, browser);
    expect(await seeAt(browser, callback)).toEqual(NO_SESSION);
    signOutOfProvider(browser);
    const later = await goLink(careful, browser);
    await browser.post(`${careful.service.origin}/web/logout`, {});
    expect(await seeAt(browser, later.callback)).toEqual(NO_SESSION);
    expect(await identitiesOf(careful, email)).toEqual([]);
  });
});

test('linking makes the provider authenticate the person, and counts as a recent login', async () => {
  const { browser } = await arriveByInvite(careful.service);
  const begun = await browser.post(`${careful.service.origin}/web/login/link`, {});
  const location = new URL(JSON.parse(begun.text).location);
  expect(location.searchParams.get('max_age')).toBe('900');
  const { callback } = await goLink(careful, browser);
  await browser.open(callback);
  const made = await browser.post(`${careful.service.origin}/web/api/v1/tokens/create`, { name: 'mine' });
  expect(made.status).toBe(200);
});

test('a request to link works once, and cancelling at the provider changes nothing', async () => {
  const { browser, email } = await arriveByInvite(careful.service);
  const { callback } = await goLink(careful, browser);
  await browser.open(callback);
  expect(await seeAt(browser, callback)).toEqual(OVER);
  const other = await arriveByInvite(careful.service);
  const begun = await other.browser.post(`${careful.service.origin}/web/login/link`, {});
  const asked = await other.browser.visit(JSON.parse(begun.text).location, isCallback);
  const refused = await other.browser.open(asked.url, {
    method: 'POST',
    body: new URLSearchParams({ login: '' }),
  });
  const back = await other.browser.visit(new URL(refused.headers.get('location')!, asked.url));
  expect([back.status, headingOf(back)]).toEqual([403, 'You were not signed in']);
  expect(await whoIs(other.browser, careful.service)).toBe(other.email);
  expect([await identitiesOf(careful, email), await identitiesOf(careful, other.email)]).toMatchObject([
    [{ subject: expect.any(String) }],
    [],
  ]);
});

test('if two accounts link one person at the same time, one of them succeeds', async () => {
  for (let round = 0; round < 5; round += 1) {
    const subject = knowPerson(careful.provider);
    const both = [await arriveByInvite(careful.service), await arriveByInvite(careful.service)];
    const callbacks: URL[] = [];
    for (const { browser } of both) callbacks.push((await goLink(careful, browser, subject)).callback);
    const visits = await Promise.all(both.map(({ browser }, at) => browser.open(callbacks[at]!)));
    expect(visits.map(({ status }) => status).sort()).toEqual([303, 403]);
    for (const { browser, email } of both) expect(await whoIs(browser, careful.service)).toBe(email);
  }
});
