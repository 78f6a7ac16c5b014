import { once } from 'node:events';
import { request } from 'node:http';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { issueInvite } from '../src/admin/invites.ts';
import { openRedis } from './support/redis.ts';
import { startService, type TestService } from './support/service.ts';

// Decision 42: how often invite codes and tokens may be guessed, over all replicas, and whom that does not affect.

const guess = (service: TestService, body: object = {}, headers: Record<string, string> = {}) =>
  service.post('/auth/invite', { code: 'AAAAAAAA', ...body }, { headers });

/** A different network for each number, as a trusted proxy reports it. */
const from = (n: number) => ({ 'x-forwarded-for': `198.51.${n >> 8}.${n & 255}` });

const invite = async (service: TestService, email: string) =>
  (await issueInvite(service.context.database, email, 7)).code;

describe('invite codes', () => {
  test('fail only so often in a minute, from all addresses and on all replicas together', async () => {
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
    // The refused exchange has not used up the invite, and a request with its address is served.
    const admitted = await other.post(
      '/auth/invite',
      { code, email: ' Guest@EXAMPLE.org ' },
      { headers: from(99) },
    );
    expect(admitted).toMatchObject({ status: 200, body: { user: { email: 'guest@example.org' } } });
  });

  test('beyond the budget are named in the error, even if many come at once', async () => {
    await using service = await startService({ inviteFailuresPerMinute: 1 });
    const responses = await Promise.all(Array.from({ length: 10 }, () => guess(service)));
    const refused = responses.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(9);
    for (const { body } of refused) expect(body.error).toBe('too many wrong invite codes were sent');
  });

  test('that are valid do not count as failures, however many are exchanged', async () => {
    await using service = await startService({ inviteFailuresPerMinute: 2 });
    for (let i = 0; i < 5; i++) {
      const code = await invite(service, `right-${i}@example.org`);
      expect((await service.post('/auth/invite', { code })).status).toBe(200);
    }
    expect((await guess(service)).status).toBe(404);
  });

  test('with an e-mail address work for that one alone, and are no other failure than an unknown code', async () => {
    await using service = await startService();
    const code = await invite(service, 'a@example.org');
    const wrong = await service.post('/auth/invite', { code, email: 'b@example.org' });
    const unknown = await guess(service, { email: 'b@example.org' });
    expect([wrong.status, wrong.body]).toEqual([404, unknown.body]);
    expect((await service.post('/auth/invite', { code, email: 'a@example.org' })).status).toBe(200);
  });

  test('may name an e-mail address of 254 characters, in the longest way to write it', async () => {
    await using service = await startService();
    const email = '\\ud83d\\ude00'.repeat(254);
    const { status } = await service.post('/auth/invite', `{"code":"AAAAAAAA","email":"${email}"}`);
    expect(status).toBe(404);
  });

  test('for one e-mail address may fail ten times an hour, from all networks together', async () => {
    await using service = await startService({ trustProxy: 1, inviteFailuresPerMinute: 1 });
    const statuses = [];
    for (let i = 0; i < 12; i++)
      statuses.push((await guess(service, { email: 'victim@example.org' }, from(i))).status);
    expect(statuses).toEqual([...Array(10).fill(404), 429, 429]);
    // Other addresses, and requests without one, are not affected.
    expect((await guess(service, { email: 'other@example.org' }, from(50))).status).toBe(404);
    expect((await guess(service, {}, from(51))).status).toBe(404);
  });

  test('of one network that names addresses fail ten times an hour, whatever the addresses are', async () => {
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
    'with an e-mail address that is %s are a VALIDATION_ERROR that names the field, and no failure',
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
  test('are looked up 600 times a minute for one network; tokens in use go on there, and other networks see nothing', async () => {
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

    // The same holds for a token that was not used for so long that this replica forgot its principal.
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
    /** Sends this many made-up tokens at once, and returns the statuses. */
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
    // Requests beyond those that may wait are refused at once.
    expect(await failMany(2_000, 300)).toEqual(new Set([429]));
    expect((await profile(await service.token(user.id, 'read'))).status).toBe(200);
  }, 60_000);

  test('get WWW-Authenticate, which says how to present a token', async () => {
    await using service = await startService();
    const { status, headers } = await service.post('/user/profile', {});
    expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
  });
});

describe('headers that name the caller and the host', () => {
  test.each([
    ['Authorization', ['authorization', 'Bearer a', 'Authorization', 'Bearer b']],
    ['Host', ['host', 'a.example.org', 'HOST', 'b.example.org']],
  ])('two of %s are refused', async (name, headers) => {
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
