import { describe, expect, test } from 'vitest';
import { useService } from './support/service.ts';

// Section 4.1 of docs/contract.md and decisions 22 and 23: the profile, the exchange of invites and the end of a
// session.

const service = useService();

const exchange = (code: unknown, token?: string) =>
  service.post('/auth/invite', { code }, token === undefined ? {} : { token });

const expireInvite = (code: string) =>
  service.context.database
    .sql`update invites set expires_at = now() - interval '1 second' where code = ${code}`;

describe('/user/profile', () => {
  test('returns exactly the e-mail address, the tier and the time of creation', async () => {
    const user = await service.user({ email: 'Exact@Example.org', premium: true });
    expect((await user.post('/user/profile')).body).toEqual({
      email: 'Exact@Example.org',
      is_premium: true,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
  });
});

describe('/account/get', () => {
  test("returns the token's user, the account's contents and limits, and the token's scope", async () => {
    const free = await service.user({ email: 'Free.User@Example.org' });
    const premium = await service.user({ premium: true });
    expect((await free.post('/account/get')).body).toEqual({
      email: 'Free.User@Example.org',
      is_premium: false,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      id: free.id,
      bookmark_count: 0,
      bookmark_limit: service.context.config.freeBookmarkLimit,
      scope: 'write',
      token_expires_at: null,
    });
    expect((await premium.post('/account/get')).body).toMatchObject({
      email: premium.email,
      is_premium: true,
      bookmark_limit: null,
    });
  });

  test('counts the bookmarks that exist at the time of the request', async () => {
    const user = await service.user();
    const count = async () => (await user.post('/account/get')).body.bookmark_count;
    const { body } = await user.post('/bookmarks/add', { url: 'http://a/' });
    await user.post('/import', { bookmarks: [{ url: 'http://b/' }, { url: 'http://c/' }] });
    expect(await count()).toBe(3);
    await user.post('/bookmarks/delete', { id: body.id });
    expect(await count()).toBe(2);
  });

  test("returns the scope and the expiry of the request's token", async () => {
    const session = await service.session();
    const reader = await service.token(session.id, 'read');
    const { body } = await session.post('/account/get');
    expect(body.scope).toBe('write');
    const days = (Date.parse(body.token_expires_at) - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(89.9);
    expect(days).toBeLessThan(90.1);
    const read = (await service.post('/account/get', {}, { token: reader })).body;
    expect(read).toEqual({ ...body, scope: 'read', token_expires_at: null });
  });

  test('shows an account that has more than its limit, after a limit was lowered or premium ended', async () => {
    const user = await service.user({ premium: true });
    await user.post('/import', { bookmarks: [{ url: 'http://a/' }, { url: 'http://b/' }] });
    await service.context.database.sql`update accounts set is_premium = false where user_id = ${user.id}`;
    const { freeBookmarkLimit } = service.context.config;
    Object.assign(service.context.config, { freeBookmarkLimit: 1 });
    const { body } = await user.post('/account/get');
    Object.assign(service.context.config, { freeBookmarkLimit });
    expect(body).toMatchObject({ is_premium: false, bookmark_count: 2, bookmark_limit: 1 });
  });
});

describe('/auth/invite', () => {
  test('exchanges a code for a session token and a user with id and email', async () => {
    const code = await service.invite('New.User@example.org');
    expect(code).toMatch(/^[A-Z0-9]{8}$/);
    const { status, body } = await exchange(code);
    expect(status).toBe(200);
    expect(body).toEqual({
      token: expect.stringMatching(/^bks_/),
      user: { id: expect.any(Number), email: 'New.User@example.org' },
    });
    const profile = await service.post('/user/profile', {}, { token: body.token });
    expect(profile.body).toMatchObject({ email: 'New.User@example.org', is_premium: false });
  });

  test('needs no Authorization header, and ignores one', async () => {
    for (const token of ['nonsense', `bka_1_${'x'.repeat(43)}`]) {
      const code = await service.invite(`${token}@example.org`);
      expect((await exchange(code, token)).status).toBe(200);
    }
  });

  test('an invite works once (decision 22)', async () => {
    const code = await service.invite('once@example.org');
    expect((await exchange(code)).status).toBe(200);
    expect(await exchange(code)).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
  });

  test('an invite creates its user if necessary, and then opens a session of the user with that address', async () => {
    const owner = await service.user({ email: 'Mixed.Case@example.org' });
    await owner.post('/bookmarks/add', { url: 'https://example.org/' });
    for (const email of ['mixed.case@example.org', 'MIXED.CASE@EXAMPLE.ORG']) {
      const session = await service.session(email);
      expect(session).toMatchObject({ id: owner.id, email: 'Mixed.Case@example.org' });
      expect((await session.post('/bookmarks/search')).body.total).toBe(1);
    }
  });

  test('an invite expires after 7 days', async () => {
    const code = await service.invite('late@example.org');
    const { sql } = service.context.database;
    const [row] = await sql<{ days: number }[]>`
      select extract(epoch from expires_at - now()) / 86400 as days from invites where code = ${code}`;
    expect(Number(row!.days)).toBeCloseTo(7, 2);
    await expireInvite(code);
    expect(await exchange(code)).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
  });

  test('an unknown, a used and an expired code get the same response', async () => {
    const used = await service.invite('a@example.org');
    const expired = await service.invite('b@example.org');
    await exchange(used);
    await expireInvite(expired);
    const bodies = await Promise.all(
      ['UNKNOWN0', used, expired].map(async (code) => (await exchange(code)).body),
    );
    expect(bodies[0].code).toBe('NOT_FOUND');
    for (const body of bodies) expect(body).toEqual(bodies[0]);
  });
});

describe('/logout', () => {
  test('revokes the session token of the request, and no other', async () => {
    const session = await service.session('logout@example.org');
    const other = await service.session('logout@example.org');
    const api = await service.token(session.id, 'read');
    const { status, body } = await session.post('/logout');
    expect(status).toBe(200);
    expect(body).toEqual({ logged_out: true, message: expect.stringMatching(/./) });
    expect((await session.post('/user/profile')).body.code).toBe('INVALID_TOKEN');
    expect((await session.post('/logout')).body.code).toBe('INVALID_TOKEN');
    expect((await other.post('/user/profile')).status).toBe(200);
    expect((await service.post('/user/profile', {}, { token: api })).status).toBe(200);
  });

  test('succeeds once if it is sent several times at once', async () => {
    const session = await service.session();
    const responses = await Promise.all(Array.from({ length: 8 }, () => session.post('/logout')));
    expect(responses.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(401)]);
  });

  test('revokes an API token of either scope, and no other token (decision 23)', async () => {
    for (const scope of ['read', 'write'] as const) {
      const user = await service.user({ scope });
      const other = await service.token(user.id, 'read');
      expect((await user.post('/logout')).body).toEqual({
        logged_out: true,
        message: 'the token is revoked',
      });
      expect((await user.post('/user/profile')).body.code).toBe('INVALID_TOKEN');
      expect((await service.post('/user/profile', {}, { token: other })).status).toBe(200);
    }
  });
});
