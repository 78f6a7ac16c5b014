import { once } from 'node:events';
import { request } from 'node:http';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { issueInvite } from '../src/admin/invites.ts';
import type { Config } from '../src/config.ts';
import { openRedis } from './support/redis.ts';
import { startService, type TestService } from './support/service.ts';

// Decision 42 limits how often clients may guess invite codes and tokens, at all replicas together. The tests also show
// which requests are not limited in this way.

const guess = (service: TestService, body: object = {}, headers: Record<string, string> = {}) =>
  service.post('/auth/invite', { code: 'AAAAAAAA', ...body }, { headers });

/** Returns the header in which a trusted proxy names the client's address. All addresses are in one network. */
const from = (n: number) => fromNetwork(100, n);

/** The same for an address in another network for each `network`. */
const fromNetwork = (network: number, n: number) => ({ 'x-forwarded-for': `198.51.${network}.${n}` });

const invite = async (service: TestService, email: string) =>
  (await issueInvite(service.context.database, email, 7)).code;

const TOO_MANY = { code: 'RATE_LIMITED', error: 'too many wrong codes were sent' };

/** Starts two replicas that share one Redis. */
const startPair = async (config: Partial<Config>) => {
  const redis = await openRedis();
  onTestFinished(() => redis.stop());
  const shared = { redisAddress: { kind: 'servers', urls: [redis.url] }, trustProxy: 1, ...config } as const;
  const one = await startService(shared);
  onTestFinished(() => one[Symbol.asyncDispose]());
  const other = await startService(shared, { database: one.database });
  onTestFinished(() => other[Symbol.asyncDispose]());
  return [one, other] as const;
};

describe('codes without an e-mail address', () => {
  test('failures are limited per minute, over all addresses and replicas together', async () => {
    const pair = await startPair({ inviteFailuresPerMinute: 20 });
    const statuses = [];
    // All addresses belong to one network.
    for (let i = 0; i < 30; i++) statuses.push((await guess(pair[i % 2]!, {}, from(i))).status);
    // Beyond the limit, the network has one try.
    expect(statuses).toEqual([...Array(21).fill(404), ...Array(9).fill(429)]);

    const code = await invite(pair[0], 'guest@example.org');
    const refused = await pair[0].post('/auth/invite', { code }, { headers: from(99) });
    expect([refused.status, refused.body]).toEqual([429, TOO_MANY]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    // The refused exchange did not use up the invite. The limit does not refuse a request that also contains the
    // invite's email address.
    const admitted = await pair[1].post(
      '/auth/invite',
      { code, email: ' Guest@EXAMPLE.org ' },
      { headers: from(99) },
    );
    expect(admitted).toMatchObject({ status: 200, body: { user: { email: 'guest@example.org' } } });
  });

  test('when strangers have used up the budget, each network can try one code a minute, also at once on two replicas', async () => {
    const pair = await startPair({ inviteFailuresPerMinute: 5 });
    for (let i = 0; i < 5; i++) await guess(pair[0], {}, from(i));
    const code = await invite(pair[0], 'guest@example.org');
    const tryFrom = (n: number, i: number) => guess(pair[i % 2]!, {}, fromNetwork(n, i));
    const tries = await Promise.all(Array.from({ length: 20 }, (_, i) => tryFrom(7, i)));
    expect(tries.filter(({ status }) => status === 404)).toHaveLength(1);
    expect(tries.filter(({ status }) => status === 429)).toHaveLength(19);
    // The try of another network finds the right code.
    const right = await pair[1].post('/auth/invite', { code }, { headers: fromNetwork(8, 1) });
    expect(right.status).toBe(200);
    // A try counts, even a successful one.
    expect((await tryFrom(8, 2)).status).toBe(429);
  });

  test('a network is an IPv4 /24 or an IPv6 /48', async () => {
    await using service = await startService({ trustProxy: 1, inviteFailuresPerMinute: 1 });
    await guess(service, {}, { 'x-forwarded-for': '192.0.2.1' });
    const tryFrom = async (address: string) => {
      const { status } = await guess(service, {}, { 'x-forwarded-for': address });
      return status === 404;
    };
    const networks: string[][] = [
      ['192.0.2.1', '192.0.2.255', '::ffff:192.0.2.7'],
      ['192.0.3.1'],
      ['2001:db8:1::1', '2001:db8:1:ffff::2'],
      ['2001:db8:2::1'],
    ];
    for (const addresses of networks) {
      for (const [i, address] of addresses.entries()) expect(await tryFrom(address), address).toBe(i === 0);
    }
  });

  test('at ten times the budget, no network can try a code', async () => {
    await using service = await startService({ trustProxy: 1, inviteFailuresPerMinute: 2 });
    const statuses = [];
    for (let n = 0; n < 25; n++) statuses.push((await guess(service, {}, fromNetwork(n, 1))).status);
    expect(statuses).toEqual([...Array(20).fill(404), ...Array(5).fill(429)]);
    const code = await invite(service, 'guest@example.org');
    const send = (body: object) =>
      service.post('/auth/invite', { code, ...body }, { headers: fromNetwork(30, 1) });
    expect((await send({})).body).toEqual(TOO_MANY);
    expect((await send({ email: 'guest@example.org' })).status).toBe(200);
  });

  test('attempts beyond the limit get an error that names it, even if many come at once', async () => {
    await using service = await startService({ inviteFailuresPerMinute: 1 });
    const responses = await Promise.all(Array.from({ length: 10 }, () => guess(service)));
    const refused = responses.filter(({ status }) => status === 429);
    // One attempt is within the limit. If it has failed before another one begins, the network has one more try.
    expect(refused.length).toBeOneOf([8, 9]);
    for (const { body } of refused) expect(body).toEqual(TOO_MANY);
  });

  test('exchanges of valid codes do not count as failures, however many there are', async () => {
    await using service = await startService({ inviteFailuresPerMinute: 2 });
    for (let i = 0; i < 5; i++) {
      const code = await invite(service, `right-${i}@example.org`);
      expect((await service.post('/auth/invite', { code })).status).toBe(200);
    }
    expect((await guess(service)).status).toBe(404);
  });
});

describe('codes with an e-mail address', () => {
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

  const VICTIM = 'victim@example.org';
  const guessVictim = async (service: TestService, headers: Record<string, string>) =>
    (await guess(service, { email: VICTIM }, headers)).status;

  test('wrong codes of strangers for an e-mail address do not block it in other networks', async () => {
    const pair = await startPair({ inviteFailuresPerMinute: 1 });
    const code = await invite(pair[0], VICTIM);
    const statuses = [];
    for (let i = 0; i < 12; i++) statuses.push(await guessVictim(pair[i % 2]!, from(i)));
    expect(statuses).toEqual([...Array(10).fill(404), 429, 429]);
    const send = (n: number) =>
      pair[0].post('/auth/invite', { code, email: VICTIM }, { headers: fromNetwork(n, 1) });
    const refused = await pair[1].post('/auth/invite', { code, email: VICTIM }, { headers: from(1) });
    expect([refused.status, refused.body]).toEqual([429, TOO_MANY]);
    expect((await send(7)).status).toBe(200);
    // Requests of the same network with another e-mail address, and requests without one, are not affected.
    expect((await guess(pair[1], { email: 'other@example.org' }, from(50))).status).toBe(404);
    expect((await guess(pair[1], {}, from(51))).status).toBe(404);
  });

  test('one client address may fail ten times an hour, whatever the e-mail addresses are', async () => {
    await using service = await startService({ trustProxy: 1 });
    const statuses = [];
    for (let i = 0; i < 12; i++)
      statuses.push((await guess(service, { email: `any-${i}@example.org` }, from(7))).status);
    expect(statuses).toEqual([...Array(10).fill(404), 429, 429]);
    expect((await guess(service, { email: 'any-99@example.org' }, from(8))).status).toBe(404);
  });

  test('above 300 failures for an e-mail address, a network that has not failed has one try an hour', async () => {
    const pair = await startPair({});
    const code = await invite(pair[0], VICTIM);
    for (let n = 0; n < 30; n++) {
      const sent = Array.from({ length: 10 }, (_, i) => guessVictim(pair[i % 2]!, fromNetwork(n, i)));
      expect(new Set(await Promise.all(sent))).toEqual(new Set([404]));
    }
    // Network 40 has failed once for another e-mail address, which does not matter.
    expect((await guess(pair[0], { email: 'other@example.org' }, fromNetwork(40, 1))).status).toBe(404);
    const tries = await Promise.all(
      Array.from({ length: 10 }, (_, i) => guessVictim(pair[i % 2]!, fromNetwork(40, i))),
    );
    expect(tries.toSorted()).toEqual([404, ...Array(9).fill(429)]);
    const right = await pair[1].post(
      '/auth/invite',
      { code, email: VICTIM },
      { headers: fromNetwork(41, 1) },
    );
    expect(right.status).toBe(200);
    expect((await guess(pair[0], { email: 'other@example.org' }, fromNetwork(41, 2))).status).toBe(404);
  });

  test('above 300 failures for an e-mail address, a network that has failed for it has no try', async () => {
    await using service = await startService({ trustProxy: 1 });
    expect(await guessVictim(service, fromNetwork(50, 1))).toBe(404);
    for (let n = 0; n < 30; n++) for (let i = 0; i < 10; i++) await guessVictim(service, fromNetwork(n, i));
    expect(await guessVictim(service, fromNetwork(50, 2))).toBe(429);
    expect(await guessVictim(service, fromNetwork(51, 2))).toBe(404);
  });

  test.each([
    ['a number', 5],
    ['empty', ''],
    ['blank', '  '],
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
