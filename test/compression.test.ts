import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, gzipSync, zstdDecompress } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { BASE_PATH } from '../src/http/mount.ts';
import { startService, useService, useUser } from './support/service.ts';
import { until } from './support/until.ts';

// Compressed responses, as section 1 of the contract describes them.

const DECODERS: Record<string, (bytes: Buffer) => Promise<Buffer>> = {
  gzip: promisify<Buffer, Buffer>(gunzip),
  br: promisify<Buffer, Buffer>(brotliDecompress),
  zstd: promisify<Buffer, Buffer>(zstdDecompress),
};

const service = useService({ importInlineBytes: 16 * 1_048_576 });
const user = useUser(service);

/** Sends a request as a client that does not decompress responses. */
async function send(
  path: string,
  accepts: string | undefined,
  { origin = service.origin, token = user.token, body = '{}' as string | Buffer, headers = {} } = {},
): Promise<IncomingMessage> {
  const sent = request(`${origin}${BASE_PATH}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${token}`,
      ...(accepts !== undefined && { 'accept-encoding': accepts }),
      ...headers,
    },
  });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
}

const decode = async (response: IncomingMessage): Promise<unknown> => {
  const bytes = await buffer(response);
  const decoder = DECODERS[response.headers['content-encoding'] ?? ''];
  return JSON.parse(String(decoder === undefined ? bytes : await decoder(bytes)));
};

beforeAll(async () => {
  const bookmarks = Array.from({ length: 200 }, (_, i) => ({
    url: `https://example.org/${i}`,
    tags: ['a', 'é'],
  }));
  await user.post('/import', { bookmarks });
});

test.each([
  ['gzip', 'gzip'],
  ['gzip, deflate, br', 'br'],
  ['gzip, deflate, br, zstd', 'zstd'],
  ['GZIP;q=1.0, br;q=0.5', 'gzip'],
  ['br;q=0, gzip;q=0.1', 'gzip'],
  ['deflate', undefined],
  ['identity', undefined],
  ['gzip;q=0', undefined],
  [', ;q=, gzip;q=x', undefined],
  ['', undefined],
  [undefined, undefined],
])('a client that accepts %j gets the encoding %s, and the same page', async (accepts, encoding) => {
  const response = await send('/bookmarks/list', accepts);
  expect(response.headers['content-encoding']).toBe(encoding);
  expect(response.headers.vary).toBe('Accept-Encoding');
  expect(response.headers['x-request-id']).toBeDefined();
  expect(response.headers['x-ratelimit-limit']).toBeDefined();
  expect(await decode(response)).toEqual((await user.post('/bookmarks/list')).body);
});

test('an export is compressed as a stream, and decodes to the whole collection', async () => {
  for (const encoding of Object.keys(DECODERS)) {
    const response = await send('/export', encoding);
    expect(response.headers['content-encoding']).toBe(encoding);
    expect(await decode(response)).toMatchObject({ count: 200 });
  }
});

test('a response below 1 KiB is not compressed', async () => {
  const response = await send('/user/profile', 'gzip');
  expect(response.headers['content-encoding']).toBeUndefined();
  expect(await decode(response)).toMatchObject({ email: user.email });
});

test('a response that holds a token is never compressed', async () => {
  const session = await service.session();
  // With this name, the response is long enough to be compressed.
  const body = JSON.stringify({ name: 'x'.repeat(100), scope: 'read' });
  const response = await send('/tokens/create', 'gzip', { token: session.token, body });
  expect(response.headers['content-encoding']).toBeUndefined();
  expect(response.headers.vary).toBeUndefined();
});

test('COMPRESS=off disables the compression of responses', async () => {
  await using plain = await startService({ compress: false }, { database: service.database });
  for (const path of ['/bookmarks/list', '/export']) {
    const response = await send(path, 'gzip', { origin: plain.origin });
    expect(response.headers['content-encoding']).toBeUndefined();
    expect(await decode(response)).toHaveProperty('bookmarks');
  }
});

test('a compressed request body is refused on every endpoint, with an error that says so', async () => {
  const body = gzipSync('{"bookmarks":[]}');
  for (const path of ['/bookmarks/add', '/import']) {
    const response = await send(path, undefined, { body, headers: { 'content-encoding': 'gzip' } });
    expect(response.statusCode).toBe(400);
    expect(await decode(response)).toEqual({
      error: 'Content-Encoding: compressed request bodies are not accepted',
      code: 'VALIDATION_ERROR',
    });
  }
});

describe('a client that does not read its export', () => {
  const slow = useService({ importInlineBytes: 16 * 1_048_576 });
  const reader = useUser(slow);

  /** Requests an export that cannot be compressed and is larger than the buffers between the service and its client. */
  async function startSlowExport(encoding: string): Promise<IncomingMessage> {
    const bookmarks = Array.from({ length: 1_000 }, (_, i) => ({
      url: `https://example.org/${i}`,
      comment: randomBytes(7_400).toString('base64'),
    }));
    const { body } = await reader.post('/import', { bookmarks, mode: 'replace' });
    expect(body.imported).toBe(1_000);
    return send('/export', encoding, { origin: slow.origin, token: reader.token });
  }

  test("the compressed pages of the export count towards the client's outbound backlog until it reads them", async () => {
    const response = await startSlowExport('gzip');
    await until(() => slow.context.outboundBacklog.of(reader.id) > 0);
    expect(await decode(response)).toMatchObject({ count: 1_000 });
    await until(() => slow.context.outboundBacklog.of(reader.id) === 0);
  });

  test.each(Object.keys(DECODERS))(
    'a truncated export never decodes as complete, with %s',
    async (encoding) => {
      const response = await startSlowExport(encoding);
      await reader.post('/import', { bookmarks: [], mode: 'replace' });
      await expect(buffer(response)).rejects.toThrow('aborted');
    },
  );
});
