import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test, vi } from 'vitest';
import { findAssets } from '../src/http/page/assets.ts';
import { useService } from './support/service.ts';

// Tests how a browser loads the page: the page's documents, and the files that the documents need.

const service = useService();

/** Requests a file with this `Accept-Encoding`. */
const fetchEncoded = (path: string, encoding: string): Promise<Response> =>
  fetch(service.origin + path, { headers: { 'accept-encoding': encoding } });

async function readDocument(path = '/'): Promise<string> {
  const response = await fetch(service.origin + path);
  expect(response.status).toBe(200);
  return await response.text();
}

/** Returns the addresses that a document contains. */
const addressesIn = (html: string): string[] =>
  [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address!);

/** Matches a static or dynamic import, and the address of a worker. The group is the address. */
const IMPORT = /(?:^import\s*|[}\w*]\s*from\s*|\bimport\(\s*|new URL\(\s*)['"]([^'"\n]+)['"](?!\])/gm;

/** Returns the addresses that a module imports, statically, dynamically or as a worker. */
const importsOf = (code: string, address: string): string[] =>
  [...code.matchAll(IMPORT)].map(([, name]) => new URL(name!, service.origin + address).pathname);

/** The first part of an asset's address. It contains a hash of all files. */
const HASHED = /^\/assets\/[0-9a-f]{16}\//;

test('a document contains nothing inline and nothing from other origins, and allows neither', async () => {
  const response = await fetch(service.origin);
  const html = await response.text();
  expect(html).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/);
  expect(addressesIn(html).filter((address) => !address.startsWith('/assets/'))).toEqual([
    '/manifest.webmanifest',
  ]);
  const policy = response.headers.get('content-security-policy')!.split('; ');
  expect(policy).toEqual(
    expect.arrayContaining([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "form-action 'self'",
      "require-trusted-types-for 'script'",
    ]),
  );
  expect(policy.join()).not.toContain('unsafe');
  expect(policy.join()).not.toContain('*');
});

test('a document is requested each time, and sent again only if it has changed', async () => {
  const first = await fetch(service.origin);
  expect(first.headers.get('cache-control')).toBe('no-cache');
  const etag = first.headers.get('etag')!;
  const again = await fetch(service.origin, { headers: { 'if-none-match': etag } });
  expect([again.status, await again.text()]).toEqual([304, '']);
});

test('a document is built once for any number of requests, and other requests are served meanwhile', async () => {
  const { modules } = await findAssets();
  const made = vi.spyOn(modules, 'get');
  onTestFinished(() => made.mockRestore());
  const { token } = await service.user();
  const asked = Array.from({ length: 300 }, (_, n) => readDocument(['/', '/settings', '/save'][n % 3]));
  const profile = await service.post('/user/profile', {}, { token });
  expect(new Set(await Promise.all(asked)).size).toBe(3);
  expect(profile.status).toBe(200);
  expect(made.mock.calls.length).toBeLessThanOrEqual(3);
});

test('every file that a page loads exists, is cached for a year, and imports only such files', async () => {
  const seen = new Set(addressesIn(await readDocument()));
  for (const address of seen) {
    const response = await fetch(service.origin + address);
    expect([address, response.status]).toEqual([address, 200]);
    if (!HASHED.test(address)) continue;
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    const text = await response.text();
    if (!address.endsWith('.js')) continue;
    expect(response.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    for (const next of importsOf(text, address)) {
      expect(next, address).toMatch(HASHED);
      seen.add(next);
    }
  }
  expect([...seen].some((address) => address.endsWith('/client/client.js'))).toBe(true);
});

test('a file has the same content with each compression', async () => {
  const address = addressesIn(await readDocument()).find((each) => each.endsWith('.css'))!;
  const text = await (await fetchEncoded(address, 'identity')).text();
  // `fetch` decompresses the body. The header shows that the response was compressed.
  for (const encoding of ['br', 'gzip']) {
    const response = await fetchEncoded(address, encoding);
    expect(response.headers.get('content-encoding')).toBe(encoding);
    expect(response.headers.get('vary')).toBe('accept-encoding');
    expect(await response.text()).toBe(text);
  }
  expect((await fetchEncoded(address, 'identity')).headers.get('content-encoding')).toBeNull();
});

test('a path that names no file is answered with 404', async () => {
  const address = addressesIn(await readDocument()).find((each) => HASHED.test(each))!;
  const [, , hash] = address.split('/');
  for (const path of [
    `/assets/${hash}/`,
    `/assets/${hash}/web/`,
    `/assets/${hash}/web/bookmarks-page.ts`,
    `/assets/${hash}/..%2f..%2fpackage.json`,
    `/assets/${hash}/web/%2e%2e/config.js`,
    `/assets/${hash}/__proto__`,
    '/assets/0000000000000000/web/styles.css',
    '/assets/',
  ]) {
    const response = await fetch(service.origin + path);
    expect([path, response.status]).toEqual([path, 404]);
    expect(response.headers.get('cache-control')).toBe('no-store');
  }
});

test('the first load takes at most 60 KB', async () => {
  const html = await readDocument();
  let bytes = gzipSync(html).length;
  for (const address of addressesIn(html)) {
    const response = await fetch(service.origin + address, { headers: { 'accept-encoding': 'identity' } });
    bytes += gzipSync(new Uint8Array(await response.arrayBuffer()), { level: 9 }).length;
  }
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThan(60_000);
});
