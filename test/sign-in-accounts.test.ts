import { describe, expect, test } from 'vitest';
import { linkIdentity, signInByProvider } from '../src/store/identities.ts';
import { addPerson, CookieBrowser, goToCallback } from './support/cookie-browser.ts';
import { runOn } from './support/database.ts';
import { arrive, headingOf, useSignIn, whoIs } from './support/sign-in.ts';
import { newEmail } from './support/users.ts';

// Nobody can open another person's account by claiming its e-mail address.

/** By default, only invites create accounts, and the service does not trust addresses. */
const careful = useSignIn({});
/**
 * Here a verified address opens the account with that address, and everybody with a verified address gets an account.
 */
const trusting = useSignIn();

const INVITED = 'There is no invite for you';
const UNVERIFIED = 'Your address is not verified';
const TAKEN = 'There is already an account with this address';

const countUsers = async ({ service }: typeof careful): Promise<number> =>
  Number((await runOn<{ n: string }>(service.database.url, 'select count(*) as n from users'))[0]!.n);

/** Expects that nobody was signed in, that no account was created, and that the page says why. */
async function expectRefusal(
  bench: typeof careful,
  person: object | string,
  heading: string,
  service = bench.service,
) {
  const before = await countUsers(bench);
  const { visit, email, browser } = await arrive(bench, service, person);
  expect([visit.status, headingOf(visit), email]).toEqual([403, heading, undefined]);
  expect([...browser.cookies.keys()]).not.toContain('session');
  expect(await countUsers(bench)).toBe(before);
}

describe('an existing account with the same address', () => {
  test.each([false, undefined, 'true', 1 as never])(
    'is not opened if email_verified is %j',
    async (email_verified) => {
      const { email } = await trusting.service.user();
      const before = await countUsers(trusting);
      const { visit, email: opened } = await arrive(trusting, trusting.service, {
        email,
        email_verified: email_verified as never,
      });
      expect([visit.status, headingOf(visit), opened]).toEqual([403, UNVERIFIED, undefined]);
      expect(await countUsers(trusting)).toBe(before);
    },
  );

  test('is not opened if the address is verified but the operator does not trust the provider', async () => {
    const { email } = await careful.service.user();
    await expectRefusal(careful, { email }, TAKEN);
  });

  test('is not opened by an invite for it, and the invite stays valid', async () => {
    const { email } = await careful.service.user();
    const code = await careful.service.invite(email);
    await expectRefusal(careful, { email }, TAKEN);
    expect((await careful.service.post('/auth/invite', { code })).status).toBe(200);
  });

  test('is opened if the address is verified and trusted, ignoring the case of ASCII letters', async () => {
    const { id, email } = await trusting.service.user();
    const { email: opened } = await arrive(trusting, trusting.service, { email: email.toUpperCase() });
    expect(opened).toBe(email);
    const [row] = await runOn<{ user_id: string }>(
      trusting.service.database.url,
      `select user_id from identities where user_id = ${id}`,
    );
    expect(row).toBeDefined();
  });

  test.each([
    ['the Kelvin sign for a k', 'karl', '\u212aarl'],
    ['another form of the same letters', 'andr\u00e9', 'andre\u0301'],
    ['a capital letter beyond ASCII', '\u00e9mile', '\u00c9mile'],
    ['final sigma', 'odo\u03c3', 'odo\u03c2'],
  ])('is not opened by a similar address: %s', async (_what, owner, other) => {
    const domain = newEmail().split('-').at(-1)!.replace('@', '.');
    await trusting.service.user({ email: `${owner}@${domain}` });
    await expectRefusal(trusting, { email: `${other}@${domain}` }, UNVERIFIED);
  });

  test.each([
    '',
    'no address',
    'a@b@c.example',
    'x@example.org\0',
    `${'x'.repeat(250)}@example.org`,
    ' a@example.org',
  ])('is not looked up if the provider sends the invalid address %j', async (email) => {
    await expectRefusal(trusting, { email }, UNVERIFIED);
  });
});

describe("a person's identity", () => {
  test('consists of issuer and subject: the same subject at another issuer is another person', async () => {
    const victim = await careful.service.user();
    const subject = addPerson(careful.provider);
    await runOn(
      careful.service.database.url,
      `insert into identities (issuer, subject, user_id) values ('https://other.example', '${subject}', ${victim.id})`,
    );
    await expectRefusal(careful, subject, INVITED);
  });

  test('keeps its account when the address changes at the provider, even to the address of another account', async () => {
    const victim = await trusting.service.user();
    const first = await arrive(trusting, trusting.service);
    trusting.provider.people.set(first.subject, { email: victim.email, email_verified: true });
    expect((await arrive(trusting, trusting.service, first.subject)).email).toBe(first.email);
    trusting.provider.people.set(first.subject, {});
    expect((await arrive(trusting, trusting.service, first.subject)).email).toBe(first.email);
  });

  test("does not open an earlier owner's account with an address that the provider reassigned", async () => {
    const first = await arrive(trusting, trusting.service);
    await expectRefusal(trusting, { email: first.email! }, TAKEN);
  });

  test('needs a new invite after its account was deleted', async () => {
    const email = newEmail();
    await careful.service.invite(email);
    const { subject } = await arrive(careful, careful.service, { email });
    await runOn(careful.service.database.url, `select delete_user('${email}')`);
    await expectRefusal(careful, subject, INVITED);
  });
});

describe('an invite', () => {
  test('creates an account for the person with its verified address, once', async () => {
    const email = newEmail();
    const code = await careful.service.invite(email);
    expect((await arrive(careful, careful.service, { email })).email).toBe(email);
    expect((await careful.service.post('/auth/invite', { code })).body.code).toBe('NOT_FOUND');
  });

  test('creates no account for a person with another address, and stays valid', async () => {
    const code = await careful.service.invite(newEmail());
    await expectRefusal(careful, {}, INVITED);
    expect((await careful.service.post('/auth/invite', { code })).status).toBe(200);
  });

  test('creates no account for an unverified address, or after it has expired', async () => {
    const [fresh, old] = [newEmail(), newEmail()];
    await careful.service.invite(fresh);
    await expectRefusal(careful, { email: fresh, email_verified: false }, UNVERIFIED);
    const code = await careful.service.invite(old);
    await runOn(careful.service.database.url, `update invites set expires_at = now() where code = '${code}'`);
    await expectRefusal(careful, { email: old }, INVITED);
  });

  test('creates one account, for one person, if it is used by its code and through the provider at the same time', async () => {
    for (let round = 0; round < 10; round += 1) {
      const email = newEmail();
      const code = await careful.service.invite(email);
      const browser = new CookieBrowser();
      const { callback } = await goToCallback(
        browser,
        `${careful.service.origin}/login`,
        addPerson(careful.provider, { email }),
      );
      const [byCode] = await Promise.all([
        careful.service.post('/auth/invite', { code }),
        browser.open(callback!),
      ]);
      const isIn = (await whoIs(browser, careful.service)) !== undefined;
      expect([byCode.status === 200, isIn].sort()).toEqual([false, true]);
    }
  });
});

describe('OIDC_ALLOWED_DOMAINS', () => {
  test('limits sign-in to verified addresses of these domains', async () => {
    const service = await trusting.beside({
      signUp: 'open',
      provider: { trustEmail: true, allowedDomains: ['inside.example', 'xn--bcher-kva.example'] },
    });
    const heading = 'Your e-mail address is not allowed here';
    for (const email of ['a@inside.example', 'b@INSIDE.example', 'c@b\u00fccher.example'])
      expect((await arrive(trusting, service, { email })).email).toBe(email);
    for (const email of ['a@outside.example', 'a@sub.inside.example', 'inside.example@outside.example'])
      await expectRefusal(trusting, { email }, heading, service);
    await expectRefusal(trusting, { email: 'd@inside.example', email_verified: false }, UNVERIFIED, service);
    // This person has an account. At the provider, the person's address belongs to another domain.
    const { subject } = await arrive(trusting, trusting.service);
    await expectRefusal(trusting, subject, heading, service);
  });
});

describe('simultaneous sign-ins', () => {
  const session = { authenticatedAt: null, days: 90 };

  test('create one account for two first logins of one person', async () => {
    for (let round = 0; round < 10; round += 1) {
      const email = newEmail();
      await careful.service.invite(email);
      const subject = addPerson(careful.provider, { email });
      const browsers = [new CookieBrowser(), new CookieBrowser(), new CookieBrowser()];
      const ways = await Promise.all(
        browsers.map((each) => goToCallback(each, `${careful.service.origin}/login`, subject)),
      );
      const visits = await Promise.all(ways.map(({ callback }, at) => browsers[at]!.open(callback!)));
      expect(visits.map(({ status }) => status)).toEqual([303, 303, 303]);
      for (const each of browsers) expect(await whoIs(each, careful.service)).toBe(email);
    }
  });

  test('give the account to one of two people with the same address, and nothing to the other', async () => {
    const { database } = trusting.service.context;
    for (let round = 0; round < 20; round += 1) {
      const email = newEmail();
      const claim = { emailKey: email, isTrusted: true, isOpen: true };
      const results = await Promise.all(
        ['one', 'two'].map((name) =>
          signInByProvider(
            database,
            { issuer: 'https://i.example', subject: `${name}-${round}`, email },
            claim,
            session,
          ),
        ),
      );
      expect(results.map(({ refusal }) => refusal ?? 'in').sort()).toEqual(['in', 'taken']);
    }
  });

  test('link an identity by a session once: the new session replaces it', async () => {
    const { service } = trusting;
    const user = await service.session();
    const { parseToken } = await import('../src/domain/tokens.ts');
    const link = () =>
      linkIdentity(
        service.context.database,
        parseToken(user.token)!,
        { issuer: 'https://i.example', subject: user.email, email: null },
        session,
      );
    const results = await Promise.all([link(), link()]);
    expect(results.map(({ refusal }) => refusal ?? 'in').sort()).toEqual(['in', 'token']);
    expect((await user.post('/user/profile')).body.code).toBe('INVALID_TOKEN');
    const { token = '' } = results.find((result) => 'token' in result) as { token?: string };
    expect((await service.post('/user/profile', {}, { token })).body.email).toBe(user.email);
  });

  test('link one identity to one of two accounts', async () => {
    const { service } = trusting;
    for (let round = 0; round < 20; round += 1) {
      const sessions = await Promise.all([service.session(), service.session()]);
      const { parseToken } = await import('../src/domain/tokens.ts');
      const identity = { issuer: 'https://i.example', subject: `linked-${round}`, email: null };
      const results = await Promise.all(
        sessions.map(({ token }) =>
          linkIdentity(service.context.database, parseToken(token)!, identity, session),
        ),
      );
      expect(results.map(({ refusal }) => refusal ?? 'in').sort()).toEqual(['in', 'linked']);
    }
  });
});
