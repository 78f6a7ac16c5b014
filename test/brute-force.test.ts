import { once } from 'node:events';
import { request } from 'node:http';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { issueInvite } from '../src/admin/invites.ts';
import { openRedis } from './support/redis.ts';
import { startService, type TestService } from './support/service.ts';

// Decision 42 limits how often clients may guess invite codes and tokens, at all replicas together. The tests also show
// which requests are not limited in this way.

const guess = (service: TestService, body: object = {}, headers: Record<string, string> = {}) =>
  service.post('/auth/invite', { code: 'AAAAAAAA', ...body }, { headers });

/** Returns the header in which a trusted proxy names the client's address. Each `n` gives a different network. */
const from = (n: number) => ({ 'x-forwarded-for': `198.51.${n >> 8}.${n & 255}` });

const invite = async (service: TestService, email: string) =>
  (await issueInvite(service.context.database, email, 7)).code;

describe('invite codes', () => {
  test('failures are limited per minute, over all addresses and replicas together', async () => {
    const redis = await openRedis();
    onTestFinished(() => redis.stop());
    const redisAddress = { kind: 'servers', urls: [redis.url] } as const;
    const shared = { redisAddress, trustProxy: 1, inviteFailuresPerMinute: 20 };
    await using one = await startService(shared);
    await using other = await startService(shared, { database: one.database });
    const statuses = [];
    for (let i = 0; i < 30; i++) statuses.push((await guess(i % 2 === 0 ? one : other, {}, from(i))).status);
    expect(statuses).toEqual([...Array(20).fill(404), ...Array(10).fill(429)]);

    const code = await invite(one, 'guest@example.org');
    const refused = await one.post('/auth/invite', { code }, { headers: from(99) });
    expect(refused).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    // The refused exchange did not use up the invite. The limit does not refuse a request that also contains the
    // invite's email address.
    const admitted = await other.post(
      '/auth/invite',
      { code, email: ' Guest@EXAMPLE.org ' },
      { headers: from(99) },
    );
    expect(admitted).toMatchObject({ status: 200, body: { user: { email: 'guest@example.org' } } });
  });

  test('attempts beyond the limit get an error that names it, even if many come at once', async () => {
    await using service = await startService({ inviteFailuresPerMinute: 1 });
    const responses = await Promise.all(Array.from({ length: 10 }, () => guess(service)));
    const refused = responses.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(9);
    for (const { body } of refused) expect(body.error).toBe('too many wrong invite codes were sent');
  });

  test('exchanges of valid codes do not count as failures, however many there are', async () => {
    await using service = await startService({ inviteFailuresPerMinute: 2 });
    for (let i = 0; i < 5; i++) {
      const code = await invite(service, `right-${i}@example.org`);
      expect((await service.post('/auth/invite', { code })).status).toBe(200);
    }
    expect((await guess(service)).status).toBe(404);
  });

  test('a code works only with its own e-mail address, and fails with another one like an unknown code', async () => {
    await using service = await startService();
    const code = await invite(service, 'a@example.org');
    const wrong = await service.post('/auth/invite', { code, email: 'b@example.org' });
    const unknown = await guess(service, { email: 'b@example.org' });
    expect([wrong.status, wrong.body]).toEqual([404, unknown.body]);
    expect((await service.post('/auth/invite', { code, email: 'a@example.org' })).status).toBe(200);
  });

  test('an e-mail address may have 254 characters, in its longest encoding', async () => {
    await using service = await startService();
    const email = '\\ud83d\\ude00'.repeat(254);
    const { status } = await service.post('/auth/invite', `{"code":"AAAAAAAA","email":"${email}"}`);
    expect(status).toBe(404);
  });

  test('an exchange for one e-mail address may fail ten times an hour, from all networks together', async () => {
    await using service = await startService({ trustProxy: 1, inviteFailuresPerMinute: 1 });
    const statuses = [];
    for (let i = 0; i < 12; i++)
      statuses.push((await guess(service, { email: 'victim@example.org' }, from(i))).status);
    expect(statuses).toEqual([...Array(10).fill(404), 429, 429]);
    // Requests with another email address, and requests without one, are not affected.
    expect((await guess(service, { email: 'other@example.org' }, from(50))).status).toBe(404);
    expect((await guess(service, {}, from(51))).status).toBe(404);
  });

  test('exchanges that name e-mail addresses may fail ten times an hour per network, whatever the addresses are', async () => {
    await using service = await startService({ trustProxy: 1 });
    const statuses = [];
    for (let i = 0; i < 12; i++)
      statuses.push((await guess(service, { email: `any-${i}@example.org` }, from(7))).status);
    expect(statuses).toEqual([...Array(10).fill(404), 429, 429]);
    expect((await guess(service, { email: 'any-99@example.org' }, from(8))).status).toBe(404);
  });

  test.each([
    ['a number', 5],
    ['empty', ''],
    ['blank', '  '],
    ['null', null],
    ['too long', 'a'.repeat(255)],
    ['U+0000', 'a\0@example.org'],
    ['a lone surrogate', '\ud800@example.org'],
  ])(
    'an e-mail address that is %s is a VALIDATION_ERROR that names the field, and does not count as a failure',
    async (_, email) => {
      await using service = await startService({ inviteFailuresPerMinute: 1 });
      for (let i = 0; i < 2; i++) {
        const { status, body } = await guess(service, { email });
        expect([status, body]).toEqual([
          400,
          { code: 'VALIDATION_ERROR', error: expect.stringMatching(/^email: /) },
        ]);
      }
      expect((await guess(service)).status).toBe(404);
    },
  );
});

describe('tokens that do not exist', () => {
  test('unknown tokens are looked up 600 times a minute per network; valid ones still work there, and in other networks', async () => {
    await using service = await startService({ trustProxy: 1 });
    const user = await service.user();
    const profile = (token: string, headers: Record<string, string>) =>
      service.post('/user/profile', {}, { token, headers });
    expect((await profile(user.token, from(1))).status).toBe(200);

    const made = (n: number) => `bka_${user.id}_${String(n).padStart(43, 'A')}`;
    const counts = new Map<number, number>();
    for (let i = 0; i < 620; i++) {
      const { status } = await profile(made(i), from(1));
      counts.set(status, (counts.get(status) ?? 0) + 1);
    }
    expect(Object.fromEntries(counts)).toEqual({ 401: 600, 429: 20 });
    expect((await profile(user.token, from(1))).status).toBe(200);
    expect((await profile(made(700), from(2))).status).toBe(401);

    // After two minutes, the replica looks the token up again. The limit does not apply to this lookup, because the
    // token was valid at the last lookup.
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 120_000);
    onTestFinished(() => void vi.restoreAllMocks());
    expect((await profile(user.token, from(1))).status).toBe(200);
    await service.context.database.sql`delete from tokens where user_id = ${user.id}`;
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 120_000);
    const statuses = [];
    for (let i = 0; i < 2; i++) statuses.push((await profile(user.token, from(1))).status);
    expect(statuses).toEqual([401, 429]);
  });

  test('do not lock out a valid token that is new to a replica: beyond the limit, tokens are looked up one by one', async () => {
    await using service = await startService({ trustProxy: 1 });
    const user = await service.user();
    const profile = (token: string) => service.post('/user/profile', {}, { token, headers: from(3) });
    /** Sends `count` made-up tokens at the same time, and returns the statuses. */
    const failMany = async (first: number, count: number) => {
      const made = Array.from(
        { length: count },
        (_, n) => `bka_${user.id}_${String(first + n).padStart(43, 'A')}`,
      );
      return new Set((await Promise.all(made.map(profile))).map(({ status }) => status));
    };
    for (let first = 0; first < 600; first += 100) await failMany(first, 100);
    const guessed = failMany(1_000, 50);
    expect((await profile(user.token)).status).toBe(200);
    expect(await guessed).toEqual(new Set([429]));
    // Requests beyond the limit of waiting requests are refused immediately.
    expect(await failMany(2_000, 300)).toEqual(new Set([429]));
    expect((await profile(await service.token(user.id, 'read'))).status).toBe(200);
  });

  test('get a WWW-Authenticate header, which says how to present a token', async () => {
    await using service = await startService();
    const { status, headers } = await service.post('/user/profile', {});
    expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
  });
});

describe('headers that name the token and the host', () => {
  test.each([
    ['Authorization', ['authorization', 'Bearer a', 'Authorization', 'Bearer b']],
    ['Host', ['host', 'a.example.org', 'HOST', 'b.example.org']],
  ])('a request with two of %s is refused', async (name, headers) => {
    await using service = await startService();
    const sent = request(`${service.origin}/api/v1/user/profile`, {
      method: 'POST',
      setHost: false,
      headers: [...headers, ...(name === 'Host' ? [] : ['host', 'a']), 'content-length', '0'],
    });
    sent.end();
    const [response] = await once(sent, 'response');
    response.resume();
    expect(response.statusCode).toBe(400);
  });
});
