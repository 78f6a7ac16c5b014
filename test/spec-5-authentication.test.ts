import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Endpoints } from '../src/domain/resources.ts';
import { parseToken } from '../src/domain/tokens.ts';
import { ROUTES } from '../src/routes/app.ts';
import { startService, useService, useUser } from './support/service.ts';

// Section 5 of docs/contract.md and decisions 23 and 24: who may do what, and until when.

const service = useService();
const user = useUser(service);

const URL = 'https://example.org/';
const profile = (token?: string, of = service) =>
  of.post('/user/profile', {}, token === undefined ? {} : { token });
const withHeader = (authorization: string) =>
  service.post('/user/profile', {}, { headers: { authorization } });

/** Every endpoint of section 4 and decision 37, with its scope. */
const SCOPES: Record<keyof Endpoints, 'read' | 'write' | 'public'> = {
  '/user/profile': 'read',
  '/account/get': 'read',
  '/auth/invite': 'public',
  '/auth/device': 'public',
  '/auth/exchange': 'public',
  '/logout': 'read',
  '/bookmarks/add': 'write',
  '/bookmarks/edit': 'write',
  '/bookmarks/delete': 'write',
  '/bookmarks/batch': 'write',
  '/bookmarks/get': 'read',
  '/bookmarks/search': 'read',
  '/bookmarks/list': 'read',
  '/bookmarks/sync': 'read',
  '/bookmarks/changes': 'read',
  '/bookmarks/digest': 'read',
  '/trash/list': 'read',
  '/trash/restore': 'write',
  '/trash/delete': 'write',
  '/tags/list': 'read',
  '/tags/create': 'write',
  '/tags/update': 'write',
  '/tags/delete': 'write',
  '/tags/merge': 'write',
  '/account/delete': 'write',
  '/tokens/list': 'read',
  '/tokens/create': 'write',
  '/tokens/revoke': 'write',
  '/sessions/list': 'read',
  '/sessions/revoke': 'write',
  '/sessions/revoke-others': 'write',
  '/export': 'read',
  '/import': 'write',
};
/** These endpoints need a session. They refuse an API token. */
const OF_SESSIONS = Object.keys(SCOPES).filter((path) =>
  /^\/(account\/delete$|tokens\/|sessions\/)/.test(path),
);
const WITH_TOKEN = Object.entries(SCOPES).filter(([, scope]) => scope !== 'public');

test('the routes are exactly those of the contract', () => {
  expect(Object.fromEntries(ROUTES.map(({ path, scope }) => [path, scope]))).toEqual(SCOPES);
});

describe('scopes', () => {
  test.each(WITH_TOKEN)('%s needs a token, and returns INVALID_TOKEN without one', async (path) => {
    expect(await service.post(path, {})).toMatchObject({ status: 401, body: { code: 'INVALID_TOKEN' } });
  });

  test.each(WITH_TOKEN)('%s needs the scope %s', async (path, scope) => {
    const reader = await service.token(user.id, 'read');
    const { body } = await service.post(path, {}, { token: reader });
    if (scope === 'write' || OF_SESSIONS.includes(path)) expect(body.code).toBe('PERMISSION_DENIED');
    else expect([undefined, 'VALIDATION_ERROR']).toContain(body.code);
    const writer = await service.post(path, {}, { token: await service.token(user.id, 'write') });
    if (OF_SESSIONS.includes(path)) expect(writer.body.code).toBe('PERMISSION_DENIED');
    else expect(writer.body.code).not.toBe('PERMISSION_DENIED');
  });

  test('a write token may read, create, update and delete', async () => {
    const { id } = (await user.post('/bookmarks/add', { url: URL })).body;
    for (const [path, body] of [
      ['/bookmarks/list', {}],
      ['/bookmarks/edit', { id, title: 'T' }],
      ['/bookmarks/delete', { id }],
    ] as const) {
      expect((await user.post(path, body)).status).toBe(200);
    }
  });

  test('/auth/invite and /auth/exchange need no token', async () => {
    expect((await service.post('/auth/invite', { code: 'UNKNOWN0' })).body.code).toBe('NOT_FOUND');
    const exchange = {
      code: 'x'.repeat(43),
      code_verifier: 'v'.repeat(43),
      redirect_uri: 'http://127.0.0.1:1/',
    };
    expect((await service.post('/auth/exchange', exchange)).body.code).toBe('NOT_FOUND');
  });
});

describe('the Authorization header', () => {
  test('is the same for both kinds of tokens, with any case of the scheme', async () => {
    const session = await service.session();
    for (const token of [session.token, user.token]) {
      for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer ']) {
        expect((await withHeader(`${scheme} ${token}`)).status).toBe(200);
      }
    }
  });

  test('is INVALID_TOKEN unless it contains a valid token, and the response does not say why', async () => {
    const [kind, id, secret] = user.token.split(/_(\d+)_/) as [string, string, string];
    const other = await service.user();
    const responses = await Promise.all(
      [
        '',
        'Bearer',
        'Bearer ',
        user.token,
        `Basic ${user.token}`,
        `Token ${user.token}`,
        `Bearer${user.token}`,
        `Bearer ${user.token} x`,
        `Bearer x ${user.token}`,
        `Bearer ${user.token},Bearer ${user.token}`,
        `Bearer "${user.token}"`,
        `Bearer ${user.token}x`,
        `Bearer ${user.token.slice(0, -1)}`,
        `Bearer ${user.token.toUpperCase()}`,
        `Bearer bks_${id}_${secret}`,
        `Bearer bkx_${id}_${secret}`,
        `Bearer ${kind}_${other.id}_${secret}`,
        `Bearer ${kind}_0${id}_${secret}`,
        `Bearer ${kind}_0_${secret}`,
        `Bearer ${kind}_-1_${secret}`,
        `Bearer ${kind}__${secret}`,
        `Bearer ${kind}_1e3_${secret}`,
        `Bearer ${kind}_9007199254740993_${secret}`,
        `Bearer ${kind}_99999999999999999999_${secret}`,
        `Bearer ${kind}_${id}_${'A'.repeat(43)}`,
        `Bearer ${kind}_${id}_`,
        `Bearer ${kind}_${id}_${secret.slice(0, -1)}'`,
        `Bearer ${'x'.repeat(5_000)}`,
      ].map(withHeader),
    );
    for (const { status, body } of responses) {
      expect([status, body]).toEqual([401, responses[0]!.body]);
    }
    expect(responses[0]!.body).toEqual({
      code: 'INVALID_TOKEN',
      error: 'the access token is missing, invalid or expired',
    });
  });
});

describe('tokens (decision 23)', () => {
  test("consist of a prefix for the kind, the user's id and 256 random bits", async () => {
    const session = await service.session();
    const api = await service.token(session.id, 'read');
    for (const [token, prefix] of [
      [session.token, 'bks'],
      [api, 'bka'],
    ]) {
      const [, kind, id, secret] = /^(bk[sa])_(\d+)_([A-Za-z0-9_-]+)$/.exec(token!)!;
      expect([kind, Number(id)]).toEqual([prefix, session.id]);
      expect(Buffer.from(secret!, 'base64url')).toHaveLength(32);
    }
  });

  test('are stored only as SHA-256', async () => {
    const session = await service.session();
    const secret = session.token.split(/_\d+_/)[1]!;
    const rows = await service.context.database.sql`select * from tokens where user_id = ${session.id}`;
    expect(rows).toHaveLength(1);
    expect(Buffer.from(rows[0]!.token_hash)).toEqual(createHash('sha256').update(secret).digest());
    expect(JSON.stringify(rows)).not.toContain(secret);
  });

  test('session tokens have the scope write and expire after 90 days', async () => {
    const session = await service.session();
    expect((await session.post('/bookmarks/add', { url: URL })).status).toBe(200);
    const [row] = await service.context.database.sql<{ scope: string; kind: string; days: number }[]>`
      select scope, kind, extract(epoch from expires_at - now()) / 86400 as days
      from tokens where user_id = ${session.id}`;
    expect(row).toMatchObject({ scope: 'write', kind: 'session' });
    expect(Number(row!.days)).toBeCloseTo(90, 2);
  });

  test('API tokens have the given scope, and last until they are revoked or until the given expiry', async () => {
    const [row] = await service.context.database.sql<{ expires: string }[]>`
      select expires_at::text as expires from tokens where user_id = ${user.id} limit 1`;
    expect(row!.expires).toBe('infinity');
  });

  test('are INVALID_TOKEN after their expiry, even on a replica that has cached them', async () => {
    for (const path of ['/user/profile', '/bookmarks/add', '/tags/create', '/export', '/import', '/logout']) {
      const session = await service.session();
      expect((await session.post('/user/profile')).status).toBe(200);
      await service.context.database.sql`
        update tokens set expires_at = now() - interval '1 second' where user_id = ${session.id}`;
      const response = await session.post(path, { url: URL, name: 'a', bookmarks: [] });
      expect(response.body.code, path).toBe('INVALID_TOKEN');
    }
  });
});

describe('revocation (decision 24)', () => {
  const other = useService({}, { beside: service });

  test.each(WITH_TOKEN)('takes effect on every replica before its response is sent: %s', async (path) => {
    const session = await service.session();
    for (const replica of [service, other]) expect((await profile(session.token, replica)).status).toBe(200);
    await session.post('/logout');
    for (const replica of [other, service]) {
      for (const body of [
        { url: URL, id: 1, name: 'a', bookmarks: [], confirm: 'a@b.example' },
        { id: 'wrong' },
      ]) {
        const response = await replica.post(path, body, { token: session.token });
        expect(response.body.code).toBe('INVALID_TOKEN');
        expect(response.headers.get('x-ratelimit-limit')).toBeNull();
      }
    }
    const { sql } = service.context.database;
    expect(await sql`select 1 from bookmarks where user_id = ${session.id}`).toHaveLength(0);
  });

  test('makes a token with an insufficient scope INVALID_TOKEN, not PERMISSION_DENIED', async () => {
    const session = await service.session();
    const token = await service.token(session.id, 'read');
    expect((await profile(token, other)).status).toBe(200);
    await service.context.database.sql`delete from tokens where token_hash = ${parseToken(token)!.hash}`;
    const response = await other.post('/bookmarks/add', { url: URL }, { token });
    expect([response.status, response.body.code]).toEqual([401, 'INVALID_TOKEN']);
  });

  test('ends a held poll on another replica with 401', async () => {
    await using third = await startService({ syncWaitSeconds: 2 }, { database: service.database });
    const session = await service.session();
    const response = third.post('/bookmarks/sync', { wait: true }, { token: session.token });
    await expect.poll(() => third.context.coordination.notifier.held).toBe(1);
    await session.post('/logout');
    expect((await response).body.code).toBe('INVALID_TOKEN');
  });

  test('makes a token always INVALID_TOKEN, and its requests are counted at most once', async () => {
    await using limited = await startService({ rateLimitRequests: 3 }, { database: service.database });
    const session = await service.session();
    expect((await profile(session.token, limited)).status).toBe(200);
    await session.post('/logout');
    for (let i = 0; i < 5; i++)
      expect((await profile(session.token, limited)).body.code).toBe('INVALID_TOKEN');
  });

  test('does not affect an operation that started before it', async () => {
    const session = await service.session();
    const [, ...responses] = await Promise.all([
      session.post('/logout'),
      ...Array.from({ length: 20 }, () => session.post('/bookmarks/add', { url: URL, tags: ['raced'] })),
    ]);
    const added = responses.filter(({ status }) => status === 200).length;
    for (const { status, body } of responses) if (status !== 200) expect(body.code).toBe('INVALID_TOKEN');
    const { sql } = service.context.database;
    expect(await sql`select 1 from bookmarks where user_id = ${session.id}`).toHaveLength(added);
    expect((await session.post('/bookmarks/add', { url: URL })).body.code).toBe('INVALID_TOKEN');
  });
});
