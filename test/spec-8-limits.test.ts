import { describe, expect, onTestFinished, test } from 'vitest';
import type { Config } from '../src/config.ts';
import { parseToken } from '../src/domain/tokens.ts';
import { setPremium } from '../src/store/admin.ts';
import { openRedis } from './support/redis.ts';
import type { ApiResponse } from './support/responses.ts';
import { startService, type TestService, useService } from './support/service.ts';

// Section 8 of docs/contract.md and decisions 25 and 26: the rate limit, its headers, and which requests count.

const URL = 'https://example.org/';
const PROFILE = '/user/profile';

const limitsOf = ({ headers }: ApiResponse) => ({
  limit: headers.get('x-ratelimit-limit'),
  remaining: headers.get('x-ratelimit-remaining'),
});

/**
 * Checks that the headers agree with each other and with the clock. X-RateLimit-Reset is rounded up. Only a 429 has
 * Retry-After, which names the same moment as X-RateLimit-Reset, unless the account's limit refused the request.
 */
function checkReset({ status, headers }: ApiResponse, windowSeconds: number): void {
  const now = Date.now() / 1_000;
  const reset = Number(headers.get('x-ratelimit-reset'));
  expect(Number.isInteger(reset)).toBe(true);
  expect(reset).toBeGreaterThan(now - 5);
  expect(reset).toBeLessThanOrEqual(Math.ceil(now + windowSeconds));
  const retryAfter = headers.get('retry-after');
  if (status !== 429) {
    expect(retryAfter).toBeNull();
    return;
  }
  expect(retryAfter).toMatch(/^[1-9]\d*$/);
  if (headers.has('x-ratelimit-scope')) return;
  expect(Math.abs(reset - (now + Number(retryAfter)))).toBeLessThanOrEqual(5);
}

describe('the limit of a token', () => {
  test('admits 100 requests by default, and the 101st is RATE_LIMITED with Retry-After', async () => {
    await using own = await startService({ rateLimitRequests: 100 });
    const user = await own.user();
    const responses = [];
    for (let i = 0; i < 103; i++) responses.push(await user.post(PROFILE));
    expect(responses.map(({ status }) => status)).toEqual([...Array(100).fill(200), 429, 429, 429]);
    expect(responses.map((response) => limitsOf(response).remaining)).toEqual([
      ...Array.from({ length: 100 }, (_, i) => String(99 - i)),
      '0',
      '0',
      '0',
    ]);
    for (const response of responses) {
      expect(limitsOf(response).limit).toBe('100');
      checkReset(response, 60);
    }
    expect(responses[100]!.body).toEqual({ code: 'RATE_LIMITED', error: expect.stringMatching(/\w/) });
  });

  test("the limit follows the account's tier from the next request on, and earlier requests still count", async () => {
    await using own = await startService({ rateLimitRequests: 2, rateLimitRequestsPremium: 4 });
    const user = await own.user();
    const setTier = async (isPremium: boolean) => {
      await setPremium(own.context.database, user.email, isPremium);
      own.context.principals.forget(parseToken(user.token)!);
    };
    const post = async () => {
      const response = await user.post(PROFILE);
      checkReset(response, 60);
      return [response.status, limitsOf(response)];
    };
    const quota = (limit: number, remaining: number) => ({ limit: `${limit}`, remaining: `${remaining}` });
    expect(await post()).toEqual([200, quota(2, 1)]);
    expect(await post()).toEqual([200, quota(2, 0)]);
    expect(await post()).toEqual([429, quota(2, 0)]);
    await setTier(true);
    expect(await post()).toEqual([200, quota(4, 1)]);
    expect(await post()).toEqual([200, quota(4, 0)]);
    expect(await post()).toEqual([429, quota(4, 0)]);
    await setTier(false);
    expect(await post()).toEqual([429, quota(2, 0)]);
    const invited = await own.post('/auth/invite', { code: 'ABCD1234' });
    expect(limitsOf(invited)).toEqual(quota(2, 1));
  });

  test('is exact under concurrency', async () => {
    await using own = await startService({ rateLimitRequests: 20 });
    const user = await own.user();
    const responses = await Promise.all(Array.from({ length: 50 }, () => user.post(PROFILE)));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(20);
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(30);
  });

  test('counts each token separately, even of one user', async () => {
    await using own = await startService({ rateLimitRequests: 1 });
    const user = await own.user();
    const other = await own.token(user.id, 'read');
    expect((await user.post(PROFILE)).status).toBe(200);
    expect((await user.post(PROFILE)).status).toBe(429);
    expect((await own.post(PROFILE, {}, { token: other })).status).toBe(200);
  });

  test('refused requests do not count, and a client that waits as told is admitted', async () => {
    await using own = await startService({ rateLimitRequests: 2, rateLimitWindowSeconds: 3 });
    const user = await own.user();
    const responses = [];
    for (let i = 0; i < 6; i++) responses.push(await user.post(PROFILE));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429, 429, 429, 429]);
    // The later refused requests do not delay the time that the first refusal named. A slot is free at that time.
    const retryAfterMs = Number(responses[2]!.headers.get('retry-after')) * 1_000;
    await new Promise((resolve) => setTimeout(resolve, retryAfterMs));
    expect((await user.post(PROFILE)).status).toBe(200);
  });

  test('all responses to a valid token on a known route have the headers, including errors', async () => {
    await using own = await startService({ rateLimitRequests: 13, freeBookmarkLimit: 0 });
    const user = await own.user();
    const responses = [
      await user.post(PROFILE),
      await user.post('/bookmarks/add', {}),
      await user.post('/bookmarks/add', '{"broken'),
      await user.post('/bookmarks/add', 'x', { headers: { 'content-type': 'text/plain' } }),
      await user.post('/bookmarks/add', ' '.repeat(1_048_577)),
      await user.post('/import', '{"broken'),
      await user.post('/import', { bookmarks: [{ url: URL }] }),
      await user.post('/bookmarks/add', { url: URL }),
      await user.post('/tokens/list'),
      await user.post('/bookmarks/delete', { id: 1 }),
      await user.post('/export'),
      await user.post('/bookmarks/sync'),
      await user.post('/tags/list'),
      await user.post('/tags/list'),
    ];
    expect(responses.map(({ status }) => status)).toEqual([
      200, 400, 400, 400, 400, 400, 403, 403, 403, 404, 200, 200, 200, 429,
    ]);
    for (const [i, response] of responses.entries()) {
      expect(limitsOf(response)).toEqual({ limit: '13', remaining: String(Math.max(12 - i, 0)) });
      checkReset(response, 60);
    }
    const reader = await own.token(user.id, 'read');
    const denied = await own.post('/bookmarks/add', {}, { token: reader });
    expect([denied.status, limitsOf(denied).remaining]).toEqual([403, '12']);
  });

  test('a request that is refused for its scope or body still counts', async () => {
    await using own = await startService({ rateLimitRequests: 2 });
    const user = await own.user({ scope: 'read' });
    expect((await user.post('/bookmarks/add', {})).status).toBe(403);
    expect((await user.post(PROFILE, '[')).status).toBe(400);
    expect((await user.post(PROFILE)).status).toBe(429);
  });

  test('responses without a token, to an invalid token and for an unknown path do not have the headers', async () => {
    await using own = await startService({ rateLimitRequests: 5 });
    const user = await own.user();
    const responses = [
      await own.post(PROFILE, {}),
      await own.post(PROFILE, {}, { token: 'nonsense' }),
      await user.post('/unknown'),
      await user.post(PROFILE, '{}', { method: 'PUT' }),
    ];
    for (const response of responses) {
      expect(limitsOf(response)).toEqual({ limit: null, remaining: null });
      expect(response.headers.get('x-ratelimit-reset')).toBeNull();
    }
    expect(limitsOf(await user.post(PROFILE)).remaining).toBe('4');
  });

  test('X-RateLimit-Reset is when the oldest counted request leaves the window', async () => {
    await using own = await startService({ rateLimitRequests: 10, rateLimitWindowSeconds: 3_600 });
    const user = await own.user();
    const sentMs = Date.now();
    const first = await user.post(PROFILE);
    const reset = Number(first.headers.get('x-ratelimit-reset'));
    // The value is rounded up, so the slot is free at that second. The 5 ms are for the limiter, which counts in whole
    // milliseconds.
    expect(reset * 1_000).toBeGreaterThanOrEqual(sentMs + 3_600_000 - 5);
    expect(Math.abs(reset - (Date.now() / 1_000 + 3_600))).toBeLessThanOrEqual(2);
    // The time depends only on the oldest request. It may differ by a second, because it is rounded and the clock moves
    // on.
    for (let i = 0; i < 3; i++) {
      const later = Number((await user.post(PROFILE)).headers.get('x-ratelimit-reset'));
      expect(Math.abs(later - reset)).toBeLessThanOrEqual(1);
    }
  });
});

describe('a limit per account', () => {
  const scopeOf = ({ headers }: ApiResponse) => headers.get('x-ratelimit-scope');
  const describeQuota = (response: ApiResponse) => {
    const { limit, remaining } = limitsOf(response);
    return [response.status, scopeOf(response), limit, remaining].join(' ');
  };
  const useOfRedis = ['in one process', 'over Redis'] as const;
  const open = async (where: (typeof useOfRedis)[number], limits: Partial<Config>) => {
    if (where === 'in one process') return startService(limits);
    const redis = await openRedis();
    onTestFinished(() => redis.stop());
    return startService({ ...limits, redisAddress: { kind: 'servers', urls: [redis.url] } });
  };

  test('does not exist unless the operator sets it: each of ten tokens has its whole limit', async () => {
    await using own = await startService({ rateLimitRequests: 100 });
    const { id } = await own.user();
    for (let n = 0; n < 10; n += 1) {
      const token = await own.token(id, 'read');
      const send = () => own.post(PROFILE, {}, { token });
      const responses = await Promise.all(Array.from({ length: 101 }, send));
      expect(responses.filter(({ status }) => status === 200)).toHaveLength(100);
      for (const response of responses) expect(scopeOf(response)).toBeNull();
    }
  });

  test.each(useOfRedis)(
    'shows only on its refusals, and the headers always describe the token, %s',
    async (where) => {
      await using own = await open(where, { rateLimitRequests: 3, rateLimitRequestsPerAccount: 5 });
      const { id } = await own.user();
      const tokens = [await own.token(id, 'read'), await own.token(id, 'read'), await own.token(id, 'write')];
      const ask = async (i: number) => {
        const response = await own.post(PROFILE, {}, { token: tokens[i]! });
        checkReset(response, 60);
        return response;
      };
      for (const remaining of [2, 1, 0]) expect(describeQuota(await ask(0))).toBe(`200  3 ${remaining}`);
      // The account does not count requests that the token's limit refuses.
      for (let i = 0; i < 3; i += 1) expect(describeQuota(await ask(0))).toBe('429  3 0');
      for (const remaining of [2, 1]) expect(describeQuota(await ask(1))).toBe(`200  3 ${remaining}`);
      const refused = await ask(1);
      expect(scopeOf(refused)).toBe('account');
      expect(refused.body).toEqual({ code: 'RATE_LIMITED', error: expect.stringContaining('account') });
      // The token's count may be one too high, because it is counted first. The refusals that follow do not count.
      for (let i = 0; i < 3; i += 1) expect(describeQuota(await ask(2))).toBe('429 account 3 3');
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(50);
      // The requests of this account do not affect other accounts, and no others have the header.
      expect(describeQuota(await (await own.user()).post(PROFILE))).toBe('200  3 2');
      expect(scopeOf(await own.post('/auth/invite', { code: 'UNKNOWN0' }))).toBeNull();
    },
  );

  test('depends on its tier', async () => {
    const limits = { rateLimitRequestsPerAccount: 1, rateLimitRequestsPerAccountPremium: 2 };
    await using own = await startService(limits);
    const user = await own.user();
    await setPremium(own.context.database, user.email, true);
    const premium = await own.token(user.id, 'read');
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await own.post(PROFILE, {}, { token: premium })).status);
    expect(statuses).toEqual([200, 200, 429]);
  });
});

describe('the limit of /auth/invite is per client address (decision 25)', () => {
  const exchange = (of: TestService, forwarded?: string, code = 'UNKNOWN0') =>
    of.post('/auth/invite', { code }, { ...(forwarded && { headers: { 'x-forwarded-for': forwarded } }) });

  test('counts every request, with any result, even one with a token', async () => {
    await using own = await startService({ rateLimitRequests: 3 });
    const user = await own.user();
    const code = await own.invite('new@example.org');
    const responses = [
      await exchange(own, undefined, code),
      await exchange(own),
      await exchange(own, undefined, 'malformed'),
      await exchange(own),
      await user.post('/auth/invite', { code: 'UNKNOWN0' }),
    ];
    expect(responses.map(({ status }) => status)).toEqual([200, 404, 400, 429, 429]);
    expect(responses.map((response) => limitsOf(response).remaining)).toEqual(['2', '1', '0', '0', '0']);
    for (const response of responses) checkReset(response, 60);
    expect((await user.post(PROFILE)).status).toBe(200);
  });

  test("uses the peer's address unless TRUST_PROXY names trusted proxies", async () => {
    await using own = await startService({ rateLimitRequests: 1 });
    expect((await exchange(own, '192.0.2.1')).status).toBe(404);
    expect((await exchange(own, '192.0.2.2')).status).toBe(429);
  });

  test("behind one proxy uses the address that the proxy reports, not the client's own claim", async () => {
    await using own = await startService({ rateLimitRequests: 1, trustProxy: 1 });
    expect((await exchange(own, '192.0.2.1')).status).toBe(404);
    expect((await exchange(own, '192.0.2.2')).status).toBe(404);
    expect((await exchange(own, '198.51.100.7, 192.0.2.1')).status).toBe(429);
    expect((await exchange(own, '192.0.2.2, 198.51.100.8')).status).toBe(404);
  });

  test('behind two proxies uses the second address from the end', async () => {
    await using own = await startService({ rateLimitRequests: 1, trustProxy: 2 });
    expect((await exchange(own, '192.0.2.1, 10.0.0.1')).status).toBe(404);
    expect((await exchange(own, '192.0.2.9, 192.0.2.1, 10.0.0.2')).status).toBe(429);
  });

  test('with trusted networks uses the last address outside of them', async () => {
    await using own = await startService({ rateLimitRequests: 1, trustProxy: ['127.0.0.0/8', '10.0.0.0/8'] });
    expect((await exchange(own, '192.0.2.1, 10.9.9.9')).status).toBe(404);
    expect((await exchange(own, '192.0.2.1')).status).toBe(429);
    expect((await exchange(own, '10.1.1.1, 192.0.2.1, 10.2.2.2')).status).toBe(429);
    await using distrusting = await startService({ rateLimitRequests: 1, trustProxy: ['10.0.0.0/8'] });
    expect((await exchange(distrusting, '192.0.2.1')).status).toBe(404);
    expect((await exchange(distrusting, '192.0.2.2')).status).toBe(429);
  });

  test('counts IPv6 by /64, and IPv4 by address, even if it is mapped to IPv6', async () => {
    await using own = await startService({ rateLimitRequests: 1, trustProxy: 1 });
    const same = [
      ['2001:db8:0:1::1', '2001:DB8:0:1:ffff:ffff:ffff:ffff'],
      ['2001:db8::1', '2001:0db8:0000:0000:8000::'],
      ['::1', '::2'],
      ['192.0.2.1', '::ffff:192.0.2.1'],
      ['::ffff:c000:0202', '192.0.2.2'],
    ];
    for (const [one, other] of same) {
      expect((await exchange(own, one)).status, one).toBe(404);
      expect((await exchange(own, other)).status, other).toBe(429);
    }
    for (const different of ['2001:db8:0:2::1', '2001:db8:1:1::1', '192.0.2.3', '::ffff:192.0.2.4']) {
      expect((await exchange(own, different)).status, different).toBe(404);
    }
  });

  test("ignores an invalid address and uses the peer's", async () => {
    await using own = await startService({ rateLimitRequests: 1, trustProxy: 1 });
    expect((await exchange(own, 'unknown')).status).toBe(404);
    for (const nonsense of ['_hidden', '999.1.1.1', 'a:b', '"192.0.2.1"']) {
      expect((await exchange(own, nonsense)).status, nonsense).toBe(429);
    }
  });
});

describe('the limits of section 8', () => {
  const service = useService();

  test.each([
    ['/bookmarks/search', 'per_page', 50, 100],
    ['/bookmarks/list', 'limit', 100, 500],
    ['/bookmarks/sync', 'limit', 50, 100],
  ])('%s: %s is %i by default and %i at most', async (path, field, byDefault, max) => {
    const user = await service.user();
    await user.post('/import', {
      bookmarks: Array.from({ length: max + 1 }, (_, i) => ({ url: URL + i })),
    });
    expect((await user.post(path)).body.bookmarks).toHaveLength(byDefault);
    expect((await user.post(path, { [field]: max })).body.bookmarks).toHaveLength(max);
    expect((await user.post(path, { [field]: max + 1 })).body.code).toBe('VALIDATION_ERROR');
  });
});
