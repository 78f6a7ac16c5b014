import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { buildApp } from '../src/routes/app.ts';
import { checkResponse, connectTo, sendRaw } from './support/responses.ts';
import { startService, useService, useUser } from './support/service.ts';
import { holdAccount, untilBlocked } from './support/sessions.ts';

// Section 1 "Request format" of docs/contract.md and decisions 1 to 5: what the service checks, in which order, and
// with which messages.

const service = useService();
const user = useUser(service);

const MIB = 1_048_576;
const ADD = '/bookmarks/add';
const PROFILE = '/user/profile';
const LIMIT_HEADERS = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];

/** Returns the JSON body of an add, padded to exactly this many bytes. */
const bodyOf = (bytes: number) => {
  const body = '{"url":"https://example.org/"}';
  return body + ' '.repeat(bytes - body.length);
};

const chunked = (text: string): RequestInit & { duplex: 'half' } => ({
  body: new Blob([text]).stream(),
  duplex: 'half',
});

/** Returns the head of a POST with the user's token, including the empty line that ends the head. */
const headOf = (path: string, ...headers: string[]) =>
  [
    `POST /api/v1${path} HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${user.token}`,
    'Content-Type: application/json',
    'Connection: close',
    ...headers,
    '',
    '',
  ].join('\r\n');

const wholeRequest = (path: string, body: string) =>
  `${headOf(path, `Content-Length: ${Buffer.byteLength(body)}`)}${body}`;

describe('the order of checks (decision 1)', () => {
  test('an unknown path is 404 for everybody, without a check of the token or the body, and without limit headers', async () => {
    for (const token of [undefined, 'nonsense', user.token]) {
      for (const body of ['{}', '{"broken', bodyOf(2 * MIB)]) {
        const response = await service.post('/bookmarks/unknown', body, { ...(token && { token }) });
        expect(response).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
        for (const name of LIMIT_HEADERS) expect(response.headers.get(name)).toBeNull();
      }
    }
  });

  test('the token is checked before the rate limit: an invalid one is always 401', async () => {
    await using limited = await startService({ rateLimitRequests: 1 });
    const token = `bka_1_${'x'.repeat(43)}`;
    for (let i = 0; i < 3; i++) {
      const response = await limited.post(PROFILE, {}, { token });
      expect(response.body.code).toBe('INVALID_TOKEN');
      for (const name of LIMIT_HEADERS) expect(response.headers.get(name)).toBeNull();
    }
  });

  test('the rate limit is checked before the scope', async () => {
    await using limited = await startService({ rateLimitRequests: 1 });
    const reader = await limited.user({ scope: 'read' });
    expect((await reader.post(PROFILE)).status).toBe(200);
    expect((await reader.post(ADD, { url: 'https://example.org/' })).body.code).toBe('RATE_LIMITED');
  });

  test.each([
    ['malformed JSON', '{"broken'],
    ['an empty body', ''],
    ['a body that is too large', bodyOf(MIB + 1)],
    ['an invalid field', '{"url":1}'],
  ])('the scope is checked before the body: %s with a read token is 403', async (_, body) => {
    const token = await service.token(user.id, 'read');
    for (const path of [ADD, '/import']) {
      const response = await service.post(path, body, { token });
      expect(response).toMatchObject({ status: 403, body: { code: 'PERMISSION_DENIED' } });
    }
  });

  test('the token is checked before the body: malformed JSON without a token is 401', async () => {
    for (const path of [ADD, '/import', '/export']) {
      expect((await service.post(path, '{"broken')).body.code).toBe('INVALID_TOKEN');
    }
  });

  test('a revoked token that a replica has cached is 401, before scope and body are checked', async () => {
    const session = await service.session();
    const reader = await service.token(session.id, 'read');
    await service.post(PROFILE, {}, { token: reader });
    await session.post(PROFILE);
    await service.context.database.sql`delete from tokens where user_id = ${session.id}`;
    expect((await service.post(ADD, {}, { token: reader })).body.code).toBe('INVALID_TOKEN');
    for (const path of [ADD, '/import']) {
      const response = await session.post(path, '{"broken');
      expect(response.body.code).toBe('INVALID_TOKEN');
      for (const name of LIMIT_HEADERS) expect(response.headers.get(name)).toBeNull();
    }
  });
});

describe('the body (spec 1, decision 2)', () => {
  const paths = [PROFILE, ADD, '/import', '/export'];

  test.each([
    ['malformed JSON', '{"url":'],
    ['two values', '{}{}'],
    ['no JSON at all', 'url=https://example.org/'],
    ['an empty body', ''],
    ['a blank body', ' \n'],
    ['an array', '[]'],
    ['null', 'null'],
    ['a string', '"text"'],
    ['a number', '1'],
    ['true', 'true'],
    ['a key that names the prototype', '{"__proto__":{"url":"https://example.org/"}}'],
    ['such a key written with escapes', '{"\\u005f_proto__":{"url":"https://example.org/"}}'],
    ['a constructor with a prototype', '{"constructor":{"prototype":{"url":"https://example.org/"}}}'],
    ['deep nesting', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ['unterminated deep nesting', '{"a":'.repeat(100_000)],
  ])('%s is a VALIDATION_ERROR on every route', async (_, body) => {
    for (const path of paths) {
      const response = await user.post(path, body);
      expect(response, path).toMatchObject({ status: 400, body: { code: 'VALIDATION_ERROR' } });
      expect(response.body.error).toMatch(/^(body|bookmarks): /);
    }
  });

  test.each([
    ['a byte that never occurs in UTF-8', [0xff]],
    ['half a character', [0xe2, 0x82]],
    ['an overlong form', [0xc0, 0xaf]],
    ['a surrogate in UTF-8', [0xed, 0xa0, 0x80]],
  ])('%s is a VALIDATION_ERROR, and is never replaced by another character', async (_, bytes) => {
    const body = Buffer.concat([
      Buffer.from('{"url":"https://example.org/","title":"'),
      Buffer.from(bytes),
      Buffer.from('"}'),
    ]);
    for (const path of [ADD, '/import']) {
      const response = await user.post(path, body);
      expect(response.body).toEqual({ code: 'VALIDATION_ERROR', error: 'body: is not UTF-8' });
    }
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/xml',
    'application/jsonp',
    'application/merge-patch+json',
    'json',
    '',
  ])('the content type %j is a VALIDATION_ERROR', async (type) => {
    for (const path of paths) {
      const response = await user.post(path, '{}', { headers: { 'content-type': type } });
      expect(response, path).toMatchObject({ status: 400, body: { code: 'VALIDATION_ERROR' } });
    }
  });

  test('a body without a content type is a VALIDATION_ERROR', async () => {
    const head = headOf(PROFILE, 'Content-Length: 2').replace(/Content-Type.*\r\n/, '');
    const response = await sendRaw(service.origin, `${head}{}`);
    checkResponse(PROFILE, response);
    expect(response.body.error).toMatch(/^Content-Type: /);
  });

  test('a missing body is a VALIDATION_ERROR, with or without a content type', async () => {
    for (const path of paths) {
      for (const head of [headOf(path), headOf(path).replace(/Content-Type.*\r\n/, '')]) {
        const response = await sendRaw(service.origin, head);
        checkResponse(path, response);
        expect(response.body).toEqual({ code: 'VALIDATION_ERROR', error: 'body: is required' });
      }
    }
  });

  test.each(['application/json; charset=utf-8', 'Application/JSON', 'application/json;charset=UTF-8'])(
    'the content type %j is accepted',
    async (type) => {
      expect((await user.post(PROFILE, '{}', { headers: { 'content-type': type } })).status).toBe(200);
    },
  );

  test('a compressed body is a VALIDATION_ERROR', async () => {
    for (const path of paths) {
      const response = await user.post(path, gzipSync('{}'), { headers: { 'content-encoding': 'gzip' } });
      expect(response, path).toMatchObject({ status: 400, body: { code: 'VALIDATION_ERROR' } });
    }
  });

  test('a client that waits for 100 Continue gets it', async () => {
    const connection = connectTo(service.origin);
    await connection.write(headOf(PROFILE, 'Content-Length: 2', 'Expect: 100-continue'));
    await connection.write('{}');
    expect((await connection.responses()).map(({ status }) => status)).toEqual([100, 200]);
  });

  test('white space and a byte order mark around the JSON are ignored', async () => {
    expect((await user.post(PROFILE, ' \r\n\t{} ')).status).toBe(200);
    expect((await user.post(PROFILE, '\ufeff{}')).status).toBe(200);
  });

  test.each([
    ['/auth/invite', 4, '{"code":"AAAAAAAA"}', 404],
    ['/auth/device', 4, '{"code":"AAAABBBBCCCC"}', 404],
    ['/auth/exchange', 2, '{}', 400],
    [ADD, 640, '{"url":"https://example.org/"}', 200],
    ['/bookmarks/edit', 640, '{"id":1000000}', 404],
    ['/bookmarks/search', 640, '{}', 200],
    ['/bookmarks/list', 64, '{}', 200],
    ['/tags/create', 64, '{"name":1}', 400],
    [PROFILE, 64, '{}', 200],
  ])(
    'a body of %s may have %i KiB; one byte more is a VALIDATION_ERROR, with Content-Length or chunked',
    async (path, kib, start, status) => {
      const padded = (bytes: number) => start + ' '.repeat(bytes - start.length);
      const largest = padded(kib * 1_024);
      const larger = padded(kib * 1_024 + 1);
      const tooLarge = { status: 400, body: { code: 'VALIDATION_ERROR', error: 'body: is too large' } };
      for (const form of [undefined, chunked]) {
        expect((await user.post(path, largest, form?.(largest))).status).toBe(status);
        expect(await user.post(path, larger, form?.(larger))).toMatchObject(tooLarge);
      }
    },
  );

  test('the longest bookmark is accepted in its longest encoding, by add and edit', async () => {
    const escaped = (text: string) =>
      text.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
    const emojis = (count: number) => '😀'.repeat(count);
    const url = `https://a.example/${emojis(8_192 - 18)}`;
    const fields = {
      title: emojis(2_048),
      comment: emojis(10_000),
      tags: Array.from({ length: 100 }, (_, n) => String(n).padStart(3, '0') + emojis(252)),
    };
    const added = await user.post(ADD, escaped(JSON.stringify({ url, ...fields })));
    expect(added).toMatchObject({ status: 200, body: { url, comment: fields.comment } });
    const change = escaped(JSON.stringify({ id: added.body.id, ...fields }));
    expect((await user.post('/bookmarks/edit', change)).status).toBe(200);
  });

  test('a body of /import may have 64 MiB; one byte more is a VALIDATION_ERROR, with Content-Length or chunked', async () => {
    const start = '{"bookmarks":[{"url":"https://example.org/"}],"mode":"merge"}';
    const largest = Buffer.alloc(64 * MIB, ' ');
    largest.write(start);
    expect((await user.post('/import', largest)).status).toBe(200);
    const larger = Buffer.concat([largest, Buffer.from(' ')]);
    for (const options of [{}, { body: new Blob([larger]).stream(), duplex: 'half' as const }]) {
      const response = await user.post('/import', larger, options);
      expect(response).toMatchObject({ status: 400, body: { code: 'VALIDATION_ERROR' } });
      expect(response.body.error).toMatch(/^body: /);
    }
  });

  test('a client that sends a refused body completely before it reads still gets the response', async () => {
    const body = ' '.repeat(24 * MIB);
    for (const path of [ADD, '/import']) {
      const token = path === ADD ? user.token : await service.token(user.id, 'read');
      const connection = connectTo(service.origin);
      const head = headOf(path, `Content-Length: ${body.length}`).replace(user.token, token);
      await connection.write(head + body).catch(() => {});
      const [response] = await connection.responses();
      checkResponse(path, response!);
      expect(response!.status).toBe(path === ADD ? 400 : 403);
    }
  });

  test('the message names the field and the rule', async () => {
    const cases: [string, unknown, string][] = [
      [
        ADD,
        { url: 'https://example.org/', tags: ['a', 'b', 'x'.repeat(256)] },
        'tags[2]: at most 255 characters',
      ],
      [ADD, {}, 'url: is required'],
      [ADD, { url: 7 }, 'url: expected a string'],
      ['/bookmarks/edit', { id: '7' }, 'id: expected an integer from 1 to 9007199254740991'],
      ['/bookmarks/search', { per_page: 101 }, 'per_page: expected an integer from 1 to 100'],
      ['/import', { bookmarks: {} }, 'bookmarks: expected an array'],
      ['/import', { bookmarks: [], mode: 'upsert' }, 'mode: expected "merge" or "replace"'],
    ];
    for (const [path, body, error] of cases) {
      expect((await user.post(path, body)).body).toEqual({ code: 'VALIDATION_ERROR', error });
    }
  });

  test('no message contains text of the request', async () => {
    for (const body of [{ url: 'secret' }, { url: { secret: 1 } }, '{"secret', '["secret"]']) {
      expect((await user.post(ADD, body)).text).not.toContain('secret');
    }
  });

  test('unknown fields are ignored (decision 4)', async () => {
    const response = await user.post(ADD, {
      url: 'https://example.org/',
      color: 'red',
      constructor: 1,
      id: 5,
    });
    expect(response.status).toBe(200);
    expect((await user.post(PROFILE, { anything: null })).status).toBe(200);
  });
});

/**
 * Bodies as serializers write them by default: `null` for what is not set, empty texts, naive times, escapes and blanks.
 * `createdAt` is the time that the service must read from `add` and from the entry of `import`.
 */
const CLIENTS: Record<string, { add: string; createdAt: string; search: string; import: string }> = {
  Python: {
    add: '{"url": "https://python.example/caf\\u00e9", "title": null, "comment": null, "tags": null, "created_at": "2026-01-31T12:00:00.123456"}',
    createdAt: '2026-01-31T12:00:00.123Z',
    search: '{"query": "python.example", "tag": null, "page": null, "per_page": null}',
    import:
      '{"bookmarks": [{"url": "https://python.example/imported", "title": null, "tags": null, "created_at": "2026-01-31 12:00:00.123456", "updated_at": null}], "mode": null}',
  },
  Go: {
    add: '{"url":"https://go.example/?a=1\\u0026b=2","title":"","comment":"","tags":null,"created_at":"2026-01-31T13:00:00.123456789+01:00"}\n',
    createdAt: '2026-01-31T12:00:00.123Z',
    search: '{"query":"go.example","tag":""}\n',
    import:
      '{"bookmarks":[{"url":"https://go.example/imported","title":"","comment":"","tags":null,"created_at":"2026-01-31T12:00:00.123Z","updated_at":null}],"mode":"merge"}\n',
  },
  Swift: {
    add: '{"url":"https:\\/\\/swift.example\\/","title":null,"comment":null,"tags":[],"created_at":"2026-01-31T12:00:00Z"}',
    createdAt: '2026-01-31T12:00:00.000Z',
    search: '{"tag":null,"query":"swift.example"}',
    import:
      '{"mode":null,"bookmarks":[{"created_at":"2026-01-31 12:00:00 +0000","url":"https:\\/\\/swift.example\\/imported","tags":null}]}',
  },
  Kotlin: {
    add: '{"url":"https://kotlin.example/","title":null,"comment":null,"tags":[],"created_at":"2026-01-31T12:00"}',
    createdAt: '2026-01-31T12:00:00.000Z',
    search: '{"query":"kotlin.example","tag":null,"page":1,"per_page":50}',
    import:
      '{"bookmarks":[{"url":"https://kotlin.example/imported","title":null,"tags":[],"created_at":"2026-01-31T12:00:00Z"}],"mode":null}',
  },
  Java: {
    add: '{"url":"https://java.example/","title":null,"comment":null,"tags":null,"created_at":"2026-01-31T14:00:00.000+0200"}',
    createdAt: '2026-01-31T12:00:00.000Z',
    search: '{"query":"java.example","tag":null,"page":null,"per_page":null}',
    import:
      '{"bookmarks":[{"url":"https://java.example/imported","title":null,"comment":null,"tags":null,"created_at":"2026-01-31T12:00:00.000000","updated_at":null}],"mode":null}',
  },
  'C#': {
    add: '{"url":"https://csharp.example/","title":null,"comment":null,"tags":null,"created_at":"2026-01-31T13:00:00.1234567\\u002B01:00"}',
    createdAt: '2026-01-31T12:00:00.123Z',
    search: '{"query":"csharp.example","tag":null,"page":1,"per_page":50}',
    import:
      '{"bookmarks":[{"url":"https://csharp.example/imported","title":null,"tags":null,"created_at":"2026-01-31T12:00:00.1234567","updated_at":null}],"mode":null}',
  },
};

describe.each(Object.entries(CLIENTS))(
  'bodies as serializers of %s write them (decisions 4, 13, 14 and 18)',
  (_, client) => {
    test('add, edit, find, list, import and delete bookmarks', async () => {
      const owner = await service.user();
      const { body: added } = await owner.post(ADD, client.add);
      expect(added).toMatchObject({ title: '', comment: '', tags: [], created_at: client.createdAt });
      await owner.post('/bookmarks/edit', { id: added.id, title: 'T', comment: 'C', tags: ['t'] });
      const edit = `{"id":${added.id},"title":"U","comment":null,"tags":null,"url":null,"ids":null}`;
      expect((await owner.post('/bookmarks/edit', edit)).body).toMatchObject({
        url: added.url,
        title: 'U',
        comment: 'C',
        tags: [{ name: 't' }],
      });
      expect((await owner.post('/bookmarks/search', client.search)).body).toMatchObject({
        total: 1,
        per_page: 50,
      });
      expect((await owner.post('/import', client.import)).body).toEqual({
        imported: 1,
        skipped: 0,
        errors: [],
      });
      const whole = (await owner.post('/export')).body.bookmarks;
      expect(whole[1]).toMatchObject({ title: '', comment: '', tags: [], created_at: client.createdAt });
      for (const cursor of [null, ''])
        expect((await owner.post('/bookmarks/list', { cursor, limit: null })).body.bookmarks).toEqual(whole);
      expect((await owner.post('/bookmarks/sync', { cursor: null, limit: null, wait: null })).body).toEqual({
        bookmarks: whole,
        cursor: whole[1].id,
        has_more: false,
        waited: false,
      });
      const unconditional = await owner.post('/bookmarks/delete', { id: added.id, if_updated_at: null });
      expect(unconditional.body.error).toBe('if_updated_at: expected a string');
      expect((await owner.post('/bookmarks/delete', { id: added.id, ids: null })).status).toBe(200);
    });
  },
);

describe('requests that do not belong to the API (decision 2)', () => {
  test.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY'])(
    'the method %s is NOT_FOUND, even with an invalid body',
    async (method) => {
      for (const path of [PROFILE, '/import', '/auth/invite']) {
        const withoutBody = method === 'GET';
        const response = await user.post(path, withoutBody ? undefined : '{"broken', {
          method,
          ...(withoutBody && { body: null }),
        });
        expect(response).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
        expect(response.body.error).toContain('use POST');
      }
    },
  );

  test('only a path that is an endpoint advises to use POST', async () => {
    const read = async (path: string) => (await fetch(service.origin + path)).json();
    for (const path of ['/api/v1/bookmarks/list?cursor=1', '/api//v1/bookmarks/list/'])
      expect(await read(path)).toMatchObject({ error: expect.stringContaining('use POST') });
    // The router would read a `*` or a `:` as the pattern of a route.
    for (const path of ['bookmarks', 'nothing', '/', '*/a', '*', ':path/list'].map((to) => `/api/v1/${to}`))
      expect(await read(path)).toEqual({ error: 'the path does not exist', code: 'NOT_FOUND' });
  });

  test('the methods TRACE and CONNECT are NOT_FOUND', async () => {
    for (const method of ['TRACE', 'CONNECT']) {
      const response = await sendRaw(
        service.origin,
        `${method} /api/v1${PROFILE} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
      );
      checkResponse(PROFILE, response);
      expect(response.status).toBe(404);
    }
  });

  test('HEAD is 404 without a body', async () => {
    const response = await fetch(`${service.origin}/api/v1${PROFILE}`, { method: 'HEAD' });
    expect(response.status).toBe(404);
    expect(response.headers.get('x-request-id')).not.toBeNull();
  });

  test.each([
    '/Bookmarks/Add',
    '/bookmarks//',
    '/bookmarks/add/x',
    '/bookmarks',
    '/',
    '',
    '/../v2/bookmarks/add',
  ])('the path %j is NOT_FOUND', async (path) => {
    const response = await sendRaw(service.origin, wholeRequest(path, '{"url":"https://example.org/"}'));
    checkResponse(path, response);
    expect(response.status).toBe(404);
  });

  test.each([
    '//bookmarks/add',
    '/bookmarks/add/',
    '/bookmarks//add',
    '///bookmarks//add//',
    '//bookmarks/add?a=//',
  ])('a slash too many does no harm: %s', async (path) => {
    const response = await sendRaw(service.origin, wholeRequest(path, '{"url":"https://example.org/"}'));
    checkResponse(ADD, response);
    expect(response.status).toBe(200);
    expect(response.headers.get('x-ratelimit-remaining')).not.toBeNull();
  });

  test('with doubled slashes, a key still belongs to the same request', async () => {
    const body = '{"url":"https://example.org/"}';
    const send = (path: string) =>
      sendRaw(
        service.origin,
        headOf(path, 'Idempotency-Key: slashes', `Content-Length: ${body.length}`) + body,
      );
    const first = await send(ADD);
    expect(await send(`/${ADD}/`)).toMatchObject({ status: 200, body: first.body });
  });

  test('a path outside of the version prefix is NOT_FOUND', async () => {
    for (const path of ['/', '/bookmarks/add', '/api/v2/bookmarks/add', '/docs/secret']) {
      const response = await fetch(service.origin + path, { method: 'POST', body: 'x' });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ code: 'NOT_FOUND' });
    }
  });

  test('a query string is ignored', async () => {
    const response = await sendRaw(service.origin, wholeRequest(`${PROFILE}?a=%zz`, '{}'));
    checkResponse(PROFILE, response);
    expect(response.status).toBe(200);
  });

  test('a path in absolute form is the same path', async () => {
    const bytes = wholeRequest(PROFILE, '{}').replace('POST /', 'POST http://localhost/');
    expect((await sendRaw(service.origin, bytes)).status).toBe(200);
  });

  test.each(['/%zz', '/bookmarks/%', '/%c0%af'])(
    'bad percent-encoding in the path %s gets a regular error response with a request id',
    async (path) => {
      const response = await user.post(path, '{}', { headers: { 'x-request-id': 'bad-path' } });
      expect([400, 404]).toContain(response.status);
      expect(response.headers.get('x-request-id')).toBe('bad-path');
    },
  );

  test.each([
    ['text that is not HTTP', 'HELO example.org\r\n\r\n'],
    ['a header without a colon', 'GET / HTTP/1.1\r\nnonsense\r\n\r\n'],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx'],
    ['headers of 100 kB', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`],
    ['no host', 'POST /api/v1/user/profile HTTP/1.1\r\nConnection: close\r\n\r\n'],
    [
      'an unknown expectation',
      'POST /api/v1/nothing HTTP/1.1\r\nHost: a\r\nExpect: much\r\nConnection: close\r\n\r\n',
    ],
    ['a chunk without a length', 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
  ])('%s gets a regular error response with a request id', async (_, bytes) => {
    const response = await sendRaw(service.origin, bytes);
    checkResponse('', response);
    expect(response.body.code).toMatch(/^(VALIDATION_ERROR|NOT_FOUND)$/);
  });

  test.each(['gzip, chunked', 'x, CHUNKED'])(
    'the transfer coding %j is a VALIDATION_ERROR, and nothing more is read from the connection',
    async (coding) => {
      const keptOpen = headOf(ADD, `Transfer-Encoding: ${coding}`).replace('Connection: close\r\n', '');
      const connection = connectTo(service.origin);
      await connection.write(`${keptOpen}2\r\n{}\r\n0\r\n\r\n${wholeRequest(PROFILE, '{}')}`);
      const responses = await connection.responses();
      expect(responses.map(({ body }) => body)).toEqual([
        { code: 'VALIDATION_ERROR', error: 'Transfer-Encoding: only chunked is accepted' },
      ]);
    },
  );

  test('the transfer coding chunked is accepted in any case', async () => {
    const bytes = `${headOf(PROFILE, 'Transfer-Encoding: Chunked')}2\r\n{}\r\n0\r\n\r\n`;
    expect((await sendRaw(service.origin, bytes)).status).toBe(200);
  });

  describe('malformed HTTP after a valid request on the same connection', () => {
    /** An add that leaves its connection open. */
    const openAdd = () =>
      wholeRequest(ADD, '{"url":"https://example.org/"}').replace('Connection: close\r\n', '');
    const sendAll = async (bytes: string) => {
      const connection = connectTo(service.origin);
      await connection.write(bytes);
      return connection.responses();
    };

    test.each([
      ['text that is not HTTP', 'HELO example.org\r\n\r\n', 400],
      ['headers of 100 kB', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`, 400],
      [
        'a chunk without a length',
        'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
        404,
      ],
      ['CONNECT', 'CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n', 404],
    ])('%s gets its error after the responses to all valid requests', async (_, bytes, status) => {
      const responses = await sendAll(openAdd() + openAdd() + bytes);
      expect(responses.map((response) => response.status)).toEqual([200, 200, status]);
      for (const { body } of responses.slice(0, 2))
        expect((await user.post('/bookmarks/get', { id: body.id })).body.bookmarks).toHaveLength(1);
    });

    test('a fault in a body gets its error after the responses to all valid requests', async () => {
      const faulty = `${headOf(ADD, 'Transfer-Encoding: chunked')}zz\r\n`;
      const responses = await sendAll(openAdd() + faulty);
      expect(responses.map(({ status }) => status)).toEqual([200, 400]);
      expect(responses[1]!.body).toEqual({ code: 'VALIDATION_ERROR', error: 'request: is malformed' });
    });

    test('more of it, while the valid request still waits, changes nothing', async () => {
      const lock = await holdAccount(service.database.url, user);
      const connection = connectTo(service.origin);
      await connection.write(`${openAdd()}HELO example.org\r\n\r\n`);
      await untilBlocked(service.database.url, 'add_bookmark');
      await connection.write('HELO example.org\r\n\r\n');
      // When the process responds to a request on a later connection, it has already received the bytes above.
      await user.post(PROFILE, {});
      await lock.release();
      expect((await connection.responses()).map(({ status }) => status)).toEqual([200, 400]);
    });

    test('a fault in a body gets no second response if the request was already refused', async () => {
      const refused = headOf(ADD, 'Transfer-Encoding: chunked').replace(user.token, 'nonsense');
      const responses = await sendAll(`${refused.replace('Connection: close\r\n', '')}zz\r\n`);
      expect(responses.map(({ status }) => status)).toEqual([401]);
    });
  });

  test('a request that arrives while the server is closing gets a complete response', async () => {
    await using closing = await startService();
    const late = await closing.user();
    const connection = connectTo(closing.origin);
    const text = wholeRequest(PROFILE, '{}').replace(user.token, late.token);
    const served = new Promise((resolve) => closing.app.server.once('connection', resolve));
    await connection.write(text.slice(0, 40));
    await served;
    // When the process responds to a request on a later connection, it has already received the bytes above.
    await late.post(PROFILE);
    const closed = closing.app.close();
    await connection.write(text.slice(40));
    const [response] = await connection.responses();
    checkResponse(PROFILE, response!);
    expect(response).toMatchObject({ status: 200, body: { email: late.email } });
    await closed;
  });
});

describe('X-Request-Id', () => {
  test('is taken from the request if it is printable and short', async () => {
    for (const id of ['a', '00-4bf92f3577b34da6a3ce929d0e0e4736-01', 'a/b:c=d+e.f', 'x'.repeat(128)]) {
      const response = await user.post(PROFILE, {}, { headers: { 'x-request-id': id } });
      expect(response.headers.get('x-request-id')).toBe(id);
    }
  });

  test('is generated if it is absent, too long or could break a log line', async () => {
    const made = [];
    for (const id of [undefined, '', 'x'.repeat(129), 'a b', '{"a":1}', 'é']) {
      const response = await user.post(
        PROFILE,
        {},
        { headers: id === undefined ? {} : { 'x-request-id': id } },
      );
      made.push(response.headers.get('x-request-id'));
    }
    for (const id of made) expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(new Set(made).size).toBe(made.length);
  });

  test('is in every kind of error response', async () => {
    const headers = { 'x-request-id': 'mine' };
    const responses = await Promise.all([
      service.post(PROFILE, {}, { headers }),
      user.post('/nowhere', {}, { headers }),
      user.post(PROFILE, {}, { headers, method: 'PUT' }),
      user.post(ADD, '{', { headers }),
      user.post(ADD, bodyOf(MIB + 1), { headers }),
      user.post(ADD, 'x', { headers: { ...headers, 'content-type': 'text/plain' } }),
      user.post('/bookmarks/delete', { id: 1_000_000 }, { headers }),
      service.post('/auth/invite', { code: 'AAAAAAAA' }, { headers }),
    ]);
    expect(responses.map(({ status }) => status)).toEqual([401, 404, 404, 400, 400, 400, 404, 404]);
    for (const response of responses) expect(response.headers.get('x-request-id')).toBe('mine');
  });
});

test('a route that the list of public paths lacks is refused when the application is built', async () => {
  const app = await buildApp(service.context);
  expect(() => app.get('/apiary', async () => '')).toThrow('/apiary is missing in PUBLIC_PATHS');
  expect(() => app.get('/docs/new', async () => '')).not.toThrow();
  await app.close();
});
