import { expect, test } from 'vitest';
import { connectTo } from './support/responses.ts';
import { useService, useUser } from './support/service.ts';

// Only the program that requested a response may use it. The service's headers tell browsers so.

const ORIGIN = 'https://app.example.org';
const service = useService({ corsOrigins: [ORIGIN] });
const user = useUser(service);

const ask = async (path: string, options: RequestInit = {}): Promise<Headers> =>
  (await fetch(service.origin + path, options)).headers;

/** Sends bytes that no library would send. Returns the headers of the response. */
async function askRaw(bytes: string): Promise<Headers> {
  const connection = connectTo(service.origin);
  await connection.write(bytes);
  const [response] = await connection.responses();
  return response!.headers;
}

const preflight = { origin: ORIGIN, 'access-control-request-method': 'POST' };

test.for<[of: string, ask: () => Promise<Headers>]>([
  ['an endpoint', async () => (await user.post('/user/profile')).headers],
  ['an export', async () => (await user.post('/export')).headers],
  ['an error', async () => (await user.post('/bookmarks/add', {})).headers],
  ['a refused token', async () => (await service.post('/user/profile', {})).headers],
  ['an unknown path', () => ask('/nowhere')],
  ['a preflight', () => ask('/api/v1/user/profile', { method: 'OPTIONS', headers: preflight })],
  ['the reference', () => ask('/docs')],
  ['a script of the reference', () => ask('/docs/start.js')],
  ['a health check', () => ask('/readyz')],
  ['bytes that are not HTTP', () => askRaw('NONSENSE\r\n\r\n')],
  ['CONNECT', () => askRaw('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n')],
])('the headers of the response to %s prevent storing it and guessing its type', async ([, askFor]) => {
  const headers = await askFor();
  expect(headers.get('cache-control')).toBe('no-store');
  expect(headers.get('x-content-type-options')).toBe('nosniff');
});

test('the reference loads nothing from other origins, and no other page can frame it', async () => {
  for (const path of ['/docs', '/docs/start.js', '/openapi.json']) {
    const policy = (await ask(path)).get('content-security-policy')!.split('; ');
    expect(policy).toEqual(expect.arrayContaining(["default-src 'self'", "frame-ancestors 'none'"]));
  }
});

test('the OpenAPI document is sent again only if it changed', async () => {
  const headers = await ask('/openapi.json');
  expect(headers.get('cache-control')).toBe('no-cache');
  const again = await fetch(`${service.origin}/openapi.json`, {
    headers: { 'if-none-match': headers.get('etag')! },
  });
  expect(again.status).toBe(304);
  expect(await again.text()).toBe('');
});
