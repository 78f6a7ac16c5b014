import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { newAuthenticator } from './support/authenticator.ts';
import { newBrowser } from './support/browser-session.ts';
import { startRedis } from './support/redis.ts';
import { runOn } from './support/run-on.ts';
import { startService, useService } from './support/service.ts';
import { holdLock, untilBlocked } from './support/sessions.ts';
import { newEmail } from './support/users.ts';

// Tests the sign-in with a passkey when a browser sends responses that no honest browser sends.
// `page-passkeys.test.ts` tests honest browsers.

const publicUrl = 'http://localhost:1';
const rpId = 'localhost';
const service = useService({ publicUrl });

type Changes = Partial<Parameters<ReturnType<typeof newAuthenticator>['assert']>[0]>;

/** Signs a new user in on a page, and adds a passkey there. */
async function addPasskey(of = service, authenticator = newAuthenticator()) {
  const email = newEmail();
  const page = newBrowser(of.origin, publicUrl);
  const { user } = (await page.login(await of.invite(email))).body;
  const add = async (key = authenticator, changes: object = {}) => {
    const { challenge } = (await page.post('/web/login/passkey/new')).body;
    return page.post(
      '/web/login/passkey/add',
      key.attest({ challenge, origin: publicUrl, rpId, ...changes }),
    );
  };
  expect((await add()).body).toEqual({ added: true });
  return { authenticator, email, page, userId: user.id as number, add };
}

const ask = async (of = service): Promise<string> =>
  (await newBrowser(of.origin, publicUrl).post('/web/login/passkey/options')).body.challenge;

type Owner = Pick<Awaited<ReturnType<typeof addPasskey>>, 'authenticator' | 'userId'>;

async function answer({ authenticator, userId }: Owner, changes: Changes = {}) {
  const challenge = await ask();
  return authenticator.assert({ challenge, origin: publicUrl, rpId, userId, ...changes });
}

const send = (body: object, of = service) =>
  newBrowser(of.origin, publicUrl).post('/web/login/passkey', body);

test('a passkey opens a session of its account in another browser, and the list shows the time of use', async () => {
  const owner = await addPasskey();
  const { passkeys } = (await owner.page.post('/web/login/passkey/list')).body;
  expect(passkeys).toEqual([
    {
      id: owner.authenticator.credentialId,
      name: expect.any(String),
      created_at: expect.stringMatching(/Z$/),
      last_used_at: null,
    },
  ]);
  // The browser does not offer an authenticator that already has a passkey of the account.
  const { excludeCredentials } = (await owner.page.post('/web/login/passkey/new')).body;
  expect(excludeCredentials).toMatchObject([{ id: owner.authenticator.credentialId }]);
  const other = newBrowser(service.origin, publicUrl);
  const signedIn = await other.post('/web/login/passkey', await answer(owner));
  expect(signedIn.body).toEqual({ user: { id: owner.userId, email: owner.email } });
  expect((await other.post('/web/api/v1/user/profile')).body.email).toBe(owner.email);
  const after = (await other.post('/web/login/passkey/list')).body.passkeys;
  expect(after).toMatchObject([{ last_used_at: expect.stringMatching(/Z$/) }]);
  expect((await other.post('/web/login/ways')).body).toEqual({
    provider: false,
    passkeys: 1,
    other_sessions: 1,
  });
});

describe('the response of an authenticator is refused', () => {
  test.each<[string, Changes]>([
    ['for a page of another origin', { origin: 'https://evil.example' }],
    ['for another port of this host', { origin: 'http://localhost:2' }],
    ['for another host', { rpId: 'evil.example' }],
    ['for a challenge that the service did not issue', { challenge: 'x'.repeat(43) }],
    ['if no person was present', { flags: 0x04 }],
    ['if the person was not verified', { flags: 0x01 }],
    ['for a user who does not exist', { userId: 999_999_999 }],
  ])('%s', async (_name, changes) => {
    const owner = await addPasskey();
    const { status, body } = await send(await answer(owner, changes));
    expect([status, body.code]).toEqual([404, 'NOT_FOUND']);
  });

  test('if it is sent again', async () => {
    const owner = await addPasskey();
    const body = await answer(owner);
    const statuses = await Promise.all(Array.from({ length: 10 }, async () => (await send(body)).status));
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect((await send(body)).status).toBe(404);
  });

  test("if it comes from another passkey than the account's, even one with the same id", async () => {
    const [owner, thief] = [await addPasskey(), await addPasskey()];
    expect((await send(await answer({ ...thief, userId: owner.userId }))).status).toBe(404);
    const forged = { ...(await answer(thief)), credential_id: owner.authenticator.credentialId };
    expect((await send(forged)).status).toBe(404);
    const both = { ...(await answer(thief, { userId: owner.userId })), credential_id: forged.credential_id };
    expect((await send(both)).status).toBe(404);
  });

  test('if it comes from a copied passkey, whose counter does not increase', async () => {
    const owner = await addPasskey();
    expect((await send(await answer(owner, { counter: 5 }))).status).toBe(200);
    for (const counter of [5, 4, 0]) expect((await send(await answer(owner, { counter }))).status).toBe(404);
    const twice = await Promise.all([answer(owner, { counter: 6 }), answer(owner, { counter: 6 })]);
    // Both signatures are verified before either sign-in raises the counter.
    await using held = await holdLock(
      service.database.url,
      `select from accounts where user_id = ${owner.userId} for update`,
    );
    const responses = Promise.all(twice.map((body) => send(body)));
    await untilBlocked(service.database.url, 'sign_in_by_passkey', 2);
    await held.release();
    expect((await responses).map(({ status }) => status).sort()).toEqual([200, 404]);
  });

  test('if the account is suspended or deleted, or the passkey was removed', async () => {
    const owner = await addPasskey();
    const { sql } = service.context.database;
    await sql`select suspend_user(${owner.email.toLowerCase()})`;
    expect((await send(await answer(owner))).body.code).toBe('ACCOUNT_SUSPENDED');
    await sql`select resume_user(${owner.email.toLowerCase()})`;
    const other = newAuthenticator();
    expect((await owner.add(other)).status).toBe(200);
    const removal = { id: owner.authenticator.credentialId };
    expect((await owner.page.post('/web/login/passkey/remove', removal)).body).toEqual({ removed: true });
    expect((await owner.page.post('/web/login/passkey/remove', removal)).status).toBe(404);
    expect((await send(await answer(owner))).status).toBe(404);
    const left = { ...owner, authenticator: other };
    expect((await send(await answer(left))).status).toBe(200);
    await owner.page.post('/web/api/v1/account/delete', { confirm: owner.email });
    expect((await send(await answer(left))).status).toBe(404);
    expect(await sql`select from passkeys where user_id = ${owner.userId}`).toHaveLength(0);
  });

  test('if a field is invalid', async () => {
    const owner = await addPasskey();
    const good = await answer(owner);
    for (const name of Object.keys(good)) {
      for (const value of [undefined, 1, '', 'ä', 'A'.repeat(40_000)]) {
        const { status, body } = await send({ ...good, [name]: value });
        expect([status, body.error]).toEqual([400, expect.stringContaining(name)]);
      }
      // This value is valid base64url, but no browser sends it here.
      const { status } = await send({ ...(await answer(owner)), [name]: 'AAAA' });
      expect([name, status]).toEqual([name, 404]);
    }
  });
});

describe('a new passkey is refused', () => {
  test.each<[string, object]>([
    ['if a page of another origin created it', { origin: 'https://evil.example' }],
    ['for another host', { rpId: 'evil.example' }],
  ])('%s', async (_name, changes) => {
    const owner = await addPasskey();
    expect((await owner.add(newAuthenticator(), changes)).body.code).toBe('VALIDATION_ERROR');
  });

  test('if its attestation has a certificate, and the service requests nothing that the certificate names', async () => {
    const owner = await addPasskey();
    const requests = vi.spyOn(globalThis, 'fetch');
    onTestFinished(() => requests.mockRestore());
    expect((await owner.add(newAuthenticator(), { isCertified: true })).body.code).toBe('VALIDATION_ERROR');
    expect(requests.mock.calls.map(([address]) => new URL(String(address)).origin)).not.toContain(
      'http://revoked.example',
    );
  });

  test('if its challenge belongs to another session, is for signing in, or was already used', async () => {
    const [owner, thief] = [await addPasskey(), await addPasskey()];
    const given = { origin: publicUrl, rpId };
    const key = newAuthenticator();
    const post = (challenge: string) =>
      owner.page.post('/web/login/passkey/add', key.attest({ ...given, challenge }));
    const theirs = (await thief.page.post('/web/login/passkey/new')).body.challenge;
    expect((await post(theirs)).status).toBe(400);
    expect((await post(await ask())).status).toBe(400);
    const own = (await owner.page.post('/web/login/passkey/new')).body.challenge;
    expect((await post(own)).status).toBe(200);
    expect((await post(own)).status).toBe(400);
    expect((await owner.add(key)).body.code).toBe('CONFLICT');
  });

  test('if the account already has twenty', async () => {
    const owner = await addPasskey();
    for (let count = 1; count < 20; count += 1)
      expect((await owner.add(newAuthenticator())).status).toBe(200);
    expect((await owner.add(newAuthenticator())).body.code).toBe('LIMIT_EXCEEDED');
  });

  test('if another request has just added the twentieth', async () => {
    const owner = await addPasskey();
    const [session] = await service.context.database.sql<{ hash: string }[]>`
      select encode(token_hash, 'hex') as hash from tokens where user_id = ${owner.userId}`;
    const addInDatabase = (n: number) =>
      `add_passkey(${owner.userId}, decode('${session!.hash}', 'hex'), 'key${n}', 'key', 0, 'key', 20)`;
    await runOn(
      service.database.url,
      Array.from({ length: 18 }, (_, n) => `select ${addInDatabase(n)}`).join(';'),
    );
    await using twentieth = await holdLock(service.database.url, `select ${addInDatabase(18)}`);
    const added = owner.add(newAuthenticator());
    await untilBlocked(service.database.url, 'add_passkey');
    await twentieth.commit();
    expect((await added).body.code).toBe('LIMIT_EXCEEDED');
  });

  test('if a linked provider has not authenticated the person for 15 minutes; a removal is refused too', async () => {
    const owner = await addPasskey();
    const { sql } = service.context.database;
    await sql`insert into identities (issuer, subject, user_id) values ('https://id.example', ${owner.email}, ${owner.userId})`;
    await sql`update tokens set authenticated_at = 'epoch' where user_id = ${owner.userId}`;
    expect((await owner.page.post('/web/login/passkey/new')).body.code).toBe('PERMISSION_DENIED');
    const removal = { id: owner.authenticator.credentialId };
    expect((await owner.page.post('/web/login/passkey/remove', removal)).body.code).toBe('PERMISSION_DENIED');
    // A sign-in with a passkey proves the person's identity, as a sign-in through the provider does.
    const page = newBrowser(service.origin, publicUrl);
    await page.post('/web/login/passkey', await answer(owner));
    expect((await page.post('/web/login/passkey/new')).status).toBe(200);
  });
});

test('the last passkey cannot be removed, even if two are removed at once', async () => {
  const owner = await addPasskey();
  const other = newAuthenticator();
  await owner.add(other);
  const responses = await Promise.all(
    [owner.authenticator, other].map(({ credentialId }) =>
      owner.page.post('/web/login/passkey/remove', { id: credentialId }),
    ),
  );
  expect(responses.map(({ status }) => status).sort()).toEqual([200, 409]);
  expect((await owner.page.post('/web/login/passkey/list')).body.passkeys).toHaveLength(1);
});

test('a page at an IP address cannot use passkeys, and neither can a page of another origin', async () => {
  await using plain = await startService({}, { database: service.database });
  const page = newBrowser(plain.origin);
  expect((await page.post('/web/login/passkey/options')).body).toMatchObject({
    code: 'PERMISSION_DENIED',
    error: expect.stringContaining('host name'),
  });
  // The same service accepts passkeys if the address of the page has a host name.
  const named = newBrowser(plain.origin, plain.origin.replace('127.0.0.1', 'localhost'));
  expect((await named.post('/web/login/passkey/options')).body).toMatchObject({ rpId: 'localhost' });
  const foreign = newBrowser(service.origin, 'https://evil.example');
  for (const path of ['', '/options', '/new', '/add', '/list', '/remove'])
    expect((await foreign.post(`/web/login/passkey${path}`)).body.code).toBe('PERMISSION_DENIED');
});

test('a challenge that one replica created works at another one; without Redis there are no challenges', async () => {
  await using redis = await startRedis();
  const config = { redisAddress: { kind: 'servers' as const, urls: [redis.url] }, publicUrl };
  await using a = await startService(config, { database: service.database });
  await using b = await startService(config, { database: service.database });
  const owner = await addPasskey(a);
  const challenge = await ask(a);
  const body = owner.authenticator.assert({ challenge, origin: publicUrl, rpId, userId: owner.userId });
  expect((await send(body, b)).status).toBe(200);
  expect((await send(body, a)).status).toBe(404);
  await redis.kill();
  await expect.poll(() => a.context.coordination.state).toBe('degraded');
  const options = await newBrowser(a.origin, publicUrl).post('/web/login/passkey/options');
  expect(options.body.code).toBe('UNAVAILABLE');
});
