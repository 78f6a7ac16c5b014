import { pino } from 'pino';
import { expect, test } from 'vitest';
import { isLogged, type RequestFacts } from '../src/http/report-requests.ts';
import { startService } from './support/service.ts';

// LOG_REQUESTS decides which requests are logged.

const PLAIN: RequestFacts = {
  id: 'a-request',
  route: '/api/v1/bookmarks/list',
  status: 200,
  ms: 5,
  wasHeld: false,
  unserved: undefined,
  isRepeatedRefusal: false,
};

test.each<[string, Partial<RequestFacts>, boolean]>([
  ['a successful request', {}, false],
  ['a failed request', { status: 500 }, true],
  ['a request that was refused early', { status: 503, unserved: 'overloaded' }, true],
  ['a request with a refused token', { status: 401 }, true],
  ['an invalid request', { status: 400 }, true],
  ['a request to an unknown path', { status: 404, route: undefined }, false],
  ['a request beyond the rate limit', { status: 429 }, false],
  ['a slow request', { ms: 1_001 }, true],
  ['a held poll', { ms: 29_000, wasHeld: true }, false],
  ...[
    '/api/v1/logout',
    '/web/api/v1/tokens/revoke',
    '/api/v1/sessions/revoke-others',
    '/api/v1/account/delete',
    '/api/v1/auth/invite',
    '/api/v1/auth/device',
    '/login/callback',
    '/web/login/invite',
    '/web/login/device/exchange',
  ].map((route): [string, Partial<RequestFacts>, boolean] => [route, { route }, true]),
  ['a path that only begins like one of these', { route: '/api/v1/tokensfoo' }, false],
])('LOG_REQUESTS=errors decides correctly about %s: %j', (_, facts, logged) => {
  expect(isLogged({ ...PLAIN, ...facts }, 0)).toBe(logged);
  expect(isLogged({ ...PLAIN, ...facts }, 1)).toBe(true);
});

test('a repeated refusal is never logged, not even of a slow request or of one to open a session', () => {
  const refused = { ...PLAIN, status: 429, ms: 1_001, route: '/api/v1/auth/invite' };
  for (const share of [0, 1]) {
    expect(isLogged({ ...refused, isRepeatedRefusal: true }, share)).toBe(false);
    expect(isLogged(refused, share)).toBe(true);
  }
});

test('every process logs the same share of the request ids', () => {
  const ids = Array.from({ length: 100_000 }, (_, n) => `request-${n}`);
  const chosen = (share: number) => ids.filter((id) => isLogged({ ...PLAIN, id }, share));
  expect(chosen(0.01).length).toBeGreaterThan(900);
  expect(chosen(0.01).length).toBeLessThan(1_100);
  expect(chosen(0.01)).toEqual(chosen(0.01));
  // A request that is logged at one share is also logged at every larger share.
  const inLarger = new Set(chosen(0.1));
  expect(chosen(0.01).every((id) => inLarger.has(id))).toBe(true);
});

test('requests that are not logged are still counted', async () => {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  await using service = await startService({ logRequests: 0 }, { log });
  const user = await service.user();
  await user.post('/bookmarks/list');
  await user.post('/bookmarks/list', { limit: 0 });
  await user.post('/logout');
  // A request is logged only after its response was sent, so the test waits for the line of the last request.
  const requests = () => lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
  await expect.poll(() => requests().at(-1)?.route).toBe('/api/v1/logout');
  // Slow requests are always logged, and on a busy machine any request may be slow. So the test ignores slow requests.
  const quick = requests().filter(({ route, ms }) => ms <= 1_000 && route === '/api/v1/bookmarks/list');
  for (const { status } of quick) expect(status).toBe(400);
  const text = await service.context.metrics.registry.metrics();
  const counts = text.match(/(?<=^bookmarks_http_requests_total\{[^}]*bookmarks\/list[^}]*\} )\d+/gm)!;
  expect(counts.reduce((sum, count) => sum + Number(count), 0)).toBe(2);
});
