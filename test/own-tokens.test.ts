import { describe, expect, test } from 'vitest';
import { newBrowser } from './support/browser-session.ts';
import { createSession } from './support/create-session.ts';
import { startService, type TestUser, useService } from './support/service.ts';
import { holdAccount, holdLock, untilBlocked } from './support/sessions.ts';
import { newEmail } from './support/users.ts';

// Tests how users manage their own tokens and sessions, as in the settings area (section 2.4 of docs/contract.md).

// Polls are held for longer than a test may take, so only a notification can end them.
const service = useService({ syncWaitSeconds: 3_600 });
const other = useService({ syncWaitSeconds: 3_600 }, { beside: service });

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const create = (user: TestUser, body: object = {}) =>
  user.post('/tokens/create', { name: `token ${Math.random()}`, ...body });
const tokensOf = async (user: TestUser) => (await user.post('/tokens/list')).body.tokens;
const sessionsOf = async (user: TestUser) => (await user.post('/sessions/list')).body.sessions;
const currentId = async (user: TestUser) =>
  (await sessionsOf(user)).find((each: { is_current: boolean }) => each.is_current).id;
const statusOf = async (token: string, of = service) =>
  (await of.post('/user/profile', {}, { token })).status;
const denied = (error: string) => ({ status: 403, body: { code: 'PERMISSION_DENIED', error } });

/** Links the account to a provider, and sets the login times of its sessions to this many seconds ago. */
async function link({ id }: TestUser, loggedInSecondsAgo: number): Promise<void> {
  const { sql } = service.context.database;
  await sql`insert into identities (issuer, subject, user_id) values ('https://id.example', ${`s${id}`}, ${id})`;
  await sql`
    update tokens set authenticated_at = now() - ${loggedInSecondsAgo} * interval '1 second'
    where user_id = ${id} and kind = 'session'`;
}

describe('/tokens/create', () => {
  test('returns the token once, with the fields that the list shows', async () => {
    const user = await service.session();
    const { body } = await user.post('/tokens/create', { name: '  Backup ' });
    const { token, ...shown } = body;
    expect(token).toMatch(new RegExp(`^bka_${user.id}_[\\w-]{43}$`));
    expect(shown).toEqual({
      id: expect.any(Number),
      name: 'Backup',
      kind: 'api',
      scope: 'read',
      created_at: expect.stringMatching(TIME),
      expires_at: expect.stringMatching(TIME),
      last_used_at: null,
      last_four: token.slice(-4),
    });
    expect(Date.parse(shown.expires_at) - Date.parse(shown.created_at)).toBeCloseTo(90 * 86_400_000, -3);
    expect(await tokensOf(user)).toEqual([shown]);
    expect((await service.post('/account/get', {}, { token })).body).toMatchObject({ scope: 'read' });
    expect((await service.post('/bookmarks/add', { url: 'https://a.example/' }, { token })).status).toBe(403);
  });

  test('creates a token that can write, and a token that never expires', async () => {
    const user = await service.session();
    const { body } = await create(user, { scope: 'write', expires_in_days: null });
    expect(body).toMatchObject({ scope: 'write', expires_at: null });
    const added = await service.post('/bookmarks/add', { url: 'https://a.example/' }, { token: body.token });
    expect(added.status).toBe(200);
  });

  test("names are unique regardless of case, among all valid tokens including the operator's", async () => {
    const user = await service.session();
    const { body } = await create(user, { name: 'Ärger' });
    for (const name of ['ärger', 'A\u0308RGER', ' Ärger\n'])
      expect(await create(user, { name })).toMatchObject({
        status: 400,
        body: { code: 'VALIDATION_ERROR', error: 'name: another API token has this name' },
      });
    expect((await create(await service.session(), { name: 'ärger' })).status).toBe(200);
    await user.post('/tokens/revoke', { id: body.id });
    expect((await create(user, { name: 'ärger' })).status).toBe(200);
    await service.context.database.sql`
      update tokens set expires_at = now() - interval '1 second' where user_id = ${user.id} and kind = 'api'`;
    expect((await create(user, { name: 'ärger' })).status).toBe(200);
  });

  test('creates one token for twenty simultaneous requests with the same name', async () => {
    const user = await service.session();
    const responses = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        (n % 2 ? service : other).post('/tokens/create', { name: 'raced' }, { token: user.token }),
      ),
    );
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(await tokensOf(user)).toHaveLength(1);
  });

  test('creates at most 50 tokens per account, even in concurrent requests', async () => {
    const user = await service.session();
    await service.context.database.sql`
      insert into tokens (user_id, token_hash, last_four, kind, scope, name, name_key)
      select ${user.id}, sha256(n::text::bytea), 'abcd', 'api', 'read', n::text, n::text
      from generate_series(1, 45) n`;
    const responses = await Promise.all(
      Array.from({ length: 16 }, (_, n) =>
        (n % 2 ? service : other).post('/tokens/create', { name: `raced ${n}` }, { token: user.token }),
      ),
    );
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(5);
    expect(responses.find(({ status }) => status !== 200)).toMatchObject({
      status: 403,
      body: { code: 'LIMIT_EXCEEDED', error: 'an account holds no more API tokens' },
    });
    const [{ id }] = await tokensOf(user);
    await user.post('/tokens/revoke', { id });
    expect((await create(user)).status).toBe(200);
    expect((await create(user)).body.code).toBe('LIMIT_EXCEEDED');
    await service.context.database.sql`
      update tokens set expires_at = now() - interval '1 second' where user_id = ${user.id} and kind = 'api'`;
    expect((await create(user)).status).toBe(200);
  });

  test('no response with a token is stored for an Idempotency-Key', async () => {
    const user = await service.session();
    const options = { headers: { 'idempotency-key': 'once' } };
    expect((await user.post('/tokens/create', { name: 'keyed' }, options)).status).toBe(200);
    expect((await user.post('/tokens/create', { name: 'keyed' }, options)).body.code).toBe(
      'VALIDATION_ERROR',
    );
    const rows = await service.context.database.sql`select from idempotency_keys where user_id = ${user.id}`;
    expect(rows).toHaveLength(0);
  });
});

describe('managing tokens and sessions', () => {
  const PATHS = [
    '/account/delete',
    '/tokens/list',
    '/tokens/create',
    '/tokens/revoke',
    '/sessions/list',
    '/sessions/revoke',
    '/sessions/revoke-others',
  ];

  test.each(PATHS)('is refused for an API token of either scope, whatever it sends to %s', async (path) => {
    const user = await service.session();
    const [{ id }] = await sessionsOf(user);
    for (const scope of ['read', 'write'] as const) {
      const token = await service.token(user.id, scope);
      const response = await service.post(path, { id, name: 'n', confirm: user.email }, { token });
      expect(response).toMatchObject(denied('this needs a session, not an API token'));
      expect(response.headers.get('x-ratelimit-limit')).not.toBeNull();
    }
    expect(await statusOf(user.token)).toBe(200);
  });

  test('requires a login at the provider within the last 15 minutes to create a token, if the account has a provider', async () => {
    const user = await service.session();
    const old = denied('log in again: this needs a person who logged in within the last 15 minutes');
    await link(user, 14 * 60);
    expect((await create(user)).status).toBe(200);
    const { sql } = service.context.database;
    for (const moment of [`now() - interval '15 minutes 1 second'`, 'null']) {
      await sql`update tokens set authenticated_at = ${sql.unsafe(moment)} where user_id = ${user.id}`;
      expect(await create(user)).toMatchObject(old);
    }
    expect(await tokensOf(user)).toHaveLength(1);
    expect((await user.post('/tokens/revoke', { id: (await tokensOf(user))[0].id })).status).toBe(200);
    await sql`delete from identities where user_id = ${user.id}`;
    expect((await create(user)).status).toBe(200);
  });

  test("an app's session has the browser's login time, and using the session does not renew it", async () => {
    const user = await service.session();
    await link(user, 3_600);
    const authenticatedAt = new Date(Date.now() - 20 * 60_000);
    const options = { userId: user.id, appName: 'App', authenticatedAt, days: 90 };
    const token = await createSession(service.context.database, options);
    for (let i = 0; i < 3; i++) expect(await statusOf(token)).toBe(200);
    expect((await service.post('/tokens/create', { name: 'n' }, { token })).status).toBe(403);
  });

  test("is limited to the user's own tokens", async () => {
    const [user, stranger] = [await service.session(), await service.session()];
    const { body } = await create(user);
    const sessionId = await currentId(user);
    for (const [path, id] of [
      ['/tokens/revoke', body.id],
      ['/sessions/revoke', sessionId],
      // Each path accepts only ids of its own kind, so this id of a token is not found here.
      ['/sessions/revoke', body.id],
    ])
      expect((await stranger.post(path, { id })).body.code).toBe('NOT_FOUND');
    expect((await user.post('/tokens/revoke', { id: sessionId })).body.code).toBe('NOT_FOUND');
    expect((await user.post('/sessions/revoke', { id: body.id })).body.code).toBe('NOT_FOUND');
    expect(await tokensOf(stranger)).toEqual([]);
    expect(await statusOf(body.token)).toBe(200);
    expect(await statusOf(user.token)).toBe(200);
  });

  test('works for a page with its cookie', async () => {
    const browser = newBrowser(service.origin);
    await browser.login(await service.invite('settings@example.org'));
    const made = await browser.post('/web/api/v1/tokens/create', { name: 'by the page' });
    expect(await statusOf(made.body.token)).toBe(200);
    const { sessions } = (await browser.post('/web/api/v1/sessions/list')).body;
    expect(sessions).toMatchObject([{ is_current: true, app_name: null }]);
    await browser.post('/web/api/v1/sessions/revoke', { id: sessions[0].id });
    expect((await browser.post('/web/api/v1/tokens/list')).status).toBe(401);
    expect(browser.cookie).toBeUndefined();
  });
});

describe('revoking', () => {
  test('a token or session takes effect on every replica before the response', async () => {
    const user = await service.session();
    const session = await service.session(user.email);
    const { body } = await create(user);
    for (const replica of [service, other])
      for (const token of [body.token, session.token]) expect(await statusOf(token, replica)).toBe(200);
    expect((await user.post('/tokens/revoke', { id: body.id })).body).toEqual({ revoked: true });
    expect((await user.post('/sessions/revoke', { id: await currentId(session) })).body).toEqual({
      revoked: true,
    });
    for (const replica of [other, service])
      for (const token of [body.token, session.token]) expect(await statusOf(token, replica)).toBe(401);
    expect((await user.post('/tokens/revoke', { id: body.id })).body.code).toBe('NOT_FOUND');
    expect(await tokensOf(user)).toEqual([]);
  });

  test('ends held polls at once', async () => {
    const user = await service.session();
    const { body } = await create(user);
    const session = await service.session(user.email);
    const { notifier } = service.context.coordination;
    const before = notifier.held;
    const polls = [body.token, session.token].map((token) =>
      service.post('/bookmarks/sync', { wait: true }, { token }),
    );
    await expect.poll(() => notifier.held).toBe(before + 2);
    await user.post('/tokens/revoke', { id: body.id });
    expect((await polls[0]!).body.code).toBe('INVALID_TOKEN');
    await user.post('/sessions/revoke-others');
    expect((await polls[1]!).body.code).toBe('INVALID_TOKEN');
  });

  test('with /sessions/revoke-others ends all other sessions, and no API token', async () => {
    const user = await service.session();
    const { body } = await create(user);
    const others = [await service.session(user.email), await service.session(user.email)];
    const stranger = await service.session();
    expect((await user.post('/sessions/revoke-others')).body).toEqual({ revoked: 2 });
    for (const { token } of others) expect(await statusOf(token)).toBe(401);
    for (const token of [user.token, body.token, stranger.token]) expect(await statusOf(token)).toBe(200);
    await service.session(user.email);
    await service.context.database.sql`
      update tokens set expires_at = now() - interval '1 second'
      where user_id = ${user.id} and kind = 'session' and id <> ${await currentId(user)}`;
    expect((await user.post('/sessions/revoke-others')).body).toEqual({ revoked: 0 });
  });

  test('sessions that revoke each other at once leave exactly one of them, and no request fails', async () => {
    const user = await service.session();
    const all = [user];
    for (let i = 0; i < 5; i++) all.push(await service.session(user.email));
    const responses = await Promise.all(
      all.map(({ token }, n) => (n % 2 ? service : other).post('/sessions/revoke-others', {}, { token })),
    );
    const statuses = responses.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, 401, 401, 401, 401, 401]);
    const left = await Promise.all(all.map(({ token }) => statusOf(token)));
    expect(left.filter((status) => status === 200)).toHaveLength(1);
  });

  test('waits for a token that the session is creating: the token exists before the response, or never', async () => {
    const user = await service.session();
    const thief = await service.session(user.email);
    // The insert of the new token waits for this lock, after the session was checked.
    await using lock = await holdLock(service.database.url, 'lock table tokens in share row exclusive mode');
    const making = create(thief, { name: 'hidden' });
    await untilBlocked(service.database.url, 'create_own_token');
    const revoking = user.post('/sessions/revoke-others');
    await untilBlocked(service.database.url, 'revoke_other_sessions');
    await lock.release();
    const [made, revoked] = await Promise.all([making, revoking]);
    expect(revoked.body).toEqual({ revoked: 1 });
    const names = (await tokensOf(user)).map(({ name }: { name: string }) => name);
    expect(names).toEqual(made.status === 200 ? ['hidden'] : []);
  });

  test('a session that waits to create a token prevents the creation', async () => {
    const user = await service.session();
    const thief = await service.session(user.email);
    await using lock = await holdAccount(service.database.url, user);
    const making = create(thief);
    await untilBlocked(service.database.url, 'create_own_token');
    await user.post('/sessions/revoke-others');
    await lock.release();
    expect((await making).body.code).toBe('INVALID_TOKEN');
    expect(await tokensOf(user)).toEqual([]);
  });
});

describe('/sessions/list', () => {
  test('shows each session with its app, oldest first, and marks the current one', async () => {
    const user = await service.session();
    const options = { userId: user.id, appName: 'Reader', authenticatedAt: null, days: 7 };
    const token = await createSession(service.context.database, options);
    const [first, second, ...more] = (await service.post('/sessions/list', {}, { token })).body.sessions;
    expect(more).toEqual([]);
    const shown = { kind: 'session', scope: 'write', created_at: expect.stringMatching(TIME) };
    expect(first).toMatchObject({
      ...shown,
      app_name: null,
      is_current: false,
      last_four: user.token.slice(-4),
    });
    expect(second).toMatchObject({
      ...shown,
      app_name: 'Reader',
      is_current: true,
      last_four: token.slice(-4),
    });
    expect(second.last_used_at).toMatch(TIME);
  });

  test.each([
    ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
    [
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0',
      'Edge on Windows',
    ],
    [
      'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36',
      'Chrome on Android',
    ],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1',
      'Safari on iPhone',
    ],
    ['curl/8.9.1', 'curl'],
    [`<script>${'x'.repeat(4_000)}`, null],
  ])('shows the program that signed in: %s', async (agent, client) => {
    const code = await service.invite(newEmail());
    const { body } = await service.post('/auth/invite', { code }, { headers: { 'user-agent': agent } });
    const { sessions } = (await service.post('/sessions/list', {}, { token: body.token })).body;
    expect(sessions).toMatchObject([{ client, is_current: true }]);
  });

  test('shows only valid sessions, and /tokens/list only valid tokens', async () => {
    const user = await service.session();
    await service.session(user.email);
    await create(user);
    await service.context.database.sql`
      update tokens set expires_at = now() - interval '1 second'
      where user_id = ${user.id} and (kind = 'api' or id <> ${await currentId(user)})`;
    expect(await sessionsOf(user)).toHaveLength(1);
    expect(await tokensOf(user)).toEqual([]);
  });
});

test('a request of an account that is deleted while it waits gets INVALID_TOKEN', async () => {
  await using fresh = await startService({}, { database: service.database });
  const user = await fresh.session();
  expect((await user.post('/tokens/list')).status).toBe(200);
  await service.context.database.sql`select delete_user(${user.email})`;
  for (const path of ['/tokens/list', '/tokens/create', '/sessions/list', '/sessions/revoke-others'])
    expect((await user.post(path, { name: 'n' })).body.code, path).toBe('INVALID_TOKEN');
});
