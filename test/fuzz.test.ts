import assert from 'node:assert/strict';
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BOOKMARK_FIELDS, FIELD_NAMES, type Field, type FieldName } from '../src/domain/bookmark-fields.ts';
import { SORTS } from '../src/domain/bounds.ts';
import type { Endpoints } from '../src/domain/resources.ts';
import { STATUS_BY_CODE } from '../src/http/error-responses.ts';
import { BASE_PATH } from '../src/http/mount.ts';
import { ROUTES } from '../src/routes/app.ts';
import { findFaults } from './support/invariants.ts';
import { useService, useUser } from './support/service.ts';

// No input causes a fault of the service. Errors always have the same form, and a refused request changes nothing.

const seed = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
const PATHS = ROUTES.map(({ path }) => path);

const config = { syncWaitSeconds: 0.01 };
const first = useService(config);
/** The first replica runs imports directly. The second stages every import. */
const replicas = [first, useService({ ...config, importInlineBytes: 0 }, { beside: first })];
const user = useUser(first, { premium: true });
let turn = 0;

beforeAll(async () => {
  console.log(`fuzz: TEST_SEED=${seed}`);
  await user.post('/import', {
    bookmarks: ['a', 'b', 'c'].map((name) => ({ url: `http://${name}.example`, tags: [name, 'all'] })),
  });
});
afterAll(async () => {
  expect(await findFaults(first.database.url)).toEqual([]);
  for (const { origin } of replicas) expect((await fetch(`${origin}/readyz`)).status).toBe(200);
});

/** Returns all bookmarks and tags of the user. */
async function readAll(): Promise<string> {
  const [exported, tags] = await Promise.all([user.post('/export', {}), user.post('/tags/list', {})]);
  return JSON.stringify([exported.body.bookmarks, tags.body]);
}

let known: string | undefined;
let taken = 0;

/**
 * Sends a body to one of the replicas. `post` checks the form of the response. This function checks that the response
 * is not a fault of the service, and that a refused request changed nothing.
 */
async function sendChecked(path: string, body: string | Uint8Array): Promise<void> {
  known ??= await readAll();
  const replica = replicas[turn++ % 2]!;
  // A logout revokes the token of its request.
  const token = path === '/logout' ? await first.token(user.id, 'write') : user.token;
  const { status, text } = await replica.post(path, body as string, { token });
  assert.ok(status < 500, text);
  const now = await readAll();
  if (status === 200) taken += 1;
  else assert.equal(now, known);
  known = now;
}

const check = <T>(property: fc.IAsyncProperty<T>, numRuns: number) => fc.assert(property, { seed, numRuns });

const path = fc.constantFrom(...PATHS);
const text = fc.string({ unit: 'binary', maxLength: 12 });
const junk = fc.oneof(
  fc.jsonValue({ maxDepth: 3, stringUnit: 'binary' }),
  fc.constantFrom<unknown[]>(
    null,
    -0,
    1e300,
    2 ** 53,
    -1,
    0.1,
    '',
    '\u0000',
    '\ud800',
    '\udfff\ud800',
    'http://',
    'http://a\u0000',
    'x'.repeat(20_000),
    [[[[[[]]]]]],
    { __proto__: null, toString: null, length: -1 },
  ),
  fc.string({ unit: 'binary', maxLength: 400 }),
  fc.double(),
);

const url = fc.oneof(
  fc.webUrl({ withFragments: true, withQueryParameters: true }),
  fc
    .tuple(fc.constantFrom('http://', 'HTTPS://a/', 'http://a?', 'http://[', 'http:'), text)
    .map((parts) => parts.join('')),
);
const id = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.maxSafeNat());
const tags = fc.array(fc.oneof(text, fc.constantFrom('a', 'B', 'all')), { maxLength: 6 });
const time = fc.oneof(
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  fc.stringMatching(
    /^\d{4}-[01]\d-[0-3]\d([T ][0-2]\d:[0-6]\d(:[0-6]\d(\.\d{0,9})?)?(Z| ?[+-][0-2]\d(:?[0-6]\d)?)?)?$/,
  ),
);

const BY_KIND: Record<Field['kind'], fc.Arbitrary<unknown>> = { url, text, tags, time, flag: fc.boolean() };
const BOOKMARK = Object.fromEntries(
  FIELD_NAMES.map((name) => [name, BY_KIND[BOOKMARK_FIELDS[name].kind]]),
) as Record<FieldName, fc.Arbitrary<unknown>>;

const someTags = fc.array(fc.oneof(text, fc.record({ name: text }), junk), { maxLength: 4 });
const entry = fc.record({ ...BOOKMARK, tags: someTags }, { requiredKeys: ['url'] });

/** The names of all fields of all requests. */
type BodyField = {
  [Path in keyof Endpoints]: string extends keyof Endpoints[Path]['request']
    ? never
    : keyof Endpoints[Path]['request'];
}[keyof Endpoints];

/** For each field, a generator of valid and nearly valid values. If a field is missing, the compiler reports it. */
const FIELDS: Record<BodyField, fc.Arbitrary<unknown>> = {
  ...BOOKMARK,
  id,
  without_tags: tags,
  untagged: fc.boolean(),
  trash: fc.boolean(),
  created_after: time,
  created_before: time,
  updated_after: time,
  site: fc.oneof(fc.domain(), fc.constantFrom('a', '[::1]', 'b.example'), text),
  sort: fc.constantFrom(...SORTS, 'Title'),
  into_id: id,
  name: text,
  email: text,
  code_verifier: text,
  redirect_uri: text,
  query: text,
  phrases: fc.array(text, { maxLength: 12 }),
  without_phrases: fc.array(text, { maxLength: 12 }),
  any: fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.record({ phrases: fc.array(text), tags }, { requiredKeys: [] }) },
      { weight: 1, arbitrary: junk },
    ),
    { maxLength: 12 },
  ),
  tag: text,
  page: id,
  per_page: id,
  cursor: fc.oneof(id, fc.base64String(), text),
  limit: fc.integer({ min: 1, max: 600 }),
  wait: fc.boolean(),
  wait_seconds: fc.integer({ min: -1, max: 31 }),
  from: fc.constantFrom('now', 'then'),
  operations: fc.array(
    fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record(
          {
            do: fc.constantFrom('add', 'edit', 'delete', 'Add'),
            key: text,
            ...BOOKMARK,
            id,
            if_updated_at: time,
            trash: fc.boolean(),
            on_duplicate: fc.constantFrom('add', 'return', 'error'),
          },
          { requiredKeys: ['do'] },
        ),
      },
      { weight: 1, arbitrary: junk },
    ),
    { maxLength: 6 },
  ),
  atomic: fc.boolean(),
  parts: fc.integer({ min: 0, max: 65 }),
  after_id: fc.oneof(id, fc.constant(0)),
  up_to_id: fc.oneof(id, fc.constant(0)),
  code: fc.stringMatching(/^[A-Z0-9]{8}$/),
  bookmarks: fc.array(fc.oneof({ weight: 4, arbitrary: entry }, { weight: 1, arbitrary: junk }), {
    maxLength: 6,
  }),
  mode: fc.constantFrom('merge', 'replace', 'Merge'),
  ids: fc.array(id, { maxLength: 6 }),
  items: fc.array(fc.oneof(fc.record({ id, if_updated_at: time }), junk), { maxLength: 6 }),
  if_updated_at: time,
  all: fc.boolean(),
  tag_under: fc.oneof(text, tags),
  path: text,
  with_children: fc.boolean(),
  add_tags: tags,
  remove_tags: tags,
  on_duplicate: fc.constantFrom('add', 'return', 'error', 'replace'),
  confirm: text,
  scope: fc.constantFrom('read', 'write', 'admin'),
  expires_in_days: fc.option(fc.integer({ min: -1, max: 400 })),
};

/** Generates a nearly valid body for a route. Fields may be missing, have another type, or be unknown. */
const nearlyValid = fc.constantFrom(...ROUTES).chain((route) => {
  const names = Object.keys((route.body as unknown as { shape: object }).shape) as BodyField[];
  const fields = names.map((name) =>
    fc.oneof(
      { weight: 8, arbitrary: FIELDS[name] },
      { weight: 1, arbitrary: junk },
      { weight: 1, arbitrary: fc.constant(undefined) },
    ),
  );
  return fc.tuple(fc.tuple(...fields), fc.option(fc.tuple(text, junk))).map(([values, extra]) => {
    const body = Object.fromEntries(names.map((name, index) => [name, values[index]]));
    return { path: route.path, body: JSON.stringify(extra ? { ...body, [extra[0]]: extra[1] } : body) };
  });
});

/** Generates bodies that were valid JSON until bytes were inserted, removed or changed. */
const damaged = fc
  .tuple(
    nearlyValid,
    fc.array(fc.tuple(fc.nat(), fc.nat(3), fc.uint8Array({ maxLength: 3 })), { minLength: 1, maxLength: 3 }),
  )
  .map(([{ path, body }, cuts]) => {
    let bytes = Buffer.from(body);
    for (const [place, taken, put] of cuts) {
      const start = place % (bytes.length + 1);
      bytes = Buffer.concat([bytes.subarray(0, start), put, bytes.subarray(start + taken)]);
    }
    return { path, body: bytes };
  });

describe('a request with an unexpected body gets a well-formed response', () => {
  test('for any JSON, on every route', async () => {
    await check(
      fc.asyncProperty(path, junk, (to, body) => sendChecked(to, JSON.stringify(body) ?? 'undefined')),
      200,
    );
  });

  test('for nearly valid bodies', async () => {
    await check(
      fc.asyncProperty(nearlyValid, ({ path: to, body }) => sendChecked(to, body)),
      500,
    );
    // Both cases must occur: some of these bodies are accepted and some are refused.
    expect(taken).toBeGreaterThan(50);
    expect(taken).toBeLessThan(450);
  });

  test('for JSON with damaged bytes, and bytes that are not JSON', async () => {
    await check(
      fc.asyncProperty(fc.oneof(damaged, fc.record({ path, body: fc.uint8Array() })), ({ path: to, body }) =>
        sendChecked(to, body),
      ),
      200,
    );
  });
});

const headerName = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      'Content-Type',
      'Content-Length',
      'Transfer-Encoding',
      'Content-Encoding',
      'Authorization',
      'Connection',
      'Expect',
      'Upgrade',
      'Host',
      'X-Request-Id',
      'Idempotency-Key',
      'X-Forwarded-For',
      'Origin',
      'Accept-Encoding',
      'Trailer',
      'TE',
      'Traceparent',
      '__proto__',
    ),
  },
  { weight: 1, arbitrary: fc.string({ maxLength: 12 }) },
);

const headerValue = fc.oneof(
  fc.constantFrom(
    'application/json',
    'application/json; charset=utf-16',
    'application/json;',
    'text/plain',
    'multipart/form-data; boundary=a',
    '/',
    '0',
    '-1',
    '1e3',
    '5, 5',
    '99999999999999999999',
    'chunked',
    'gzip, chunked',
    'close',
    'keep-alive',
    'upgrade',
    'websocket',
    'h2c',
    '100-continue',
    '200-ok',
    'Bearer',
    'Bearer bka_1_a',
    'Bearer  ',
    '*',
    'null',
    'x'.repeat(9_000),
    'x'.repeat(20_000),
  ),
  fc.string({ unit: fc.nat(255).map((code) => String.fromCharCode(code)), maxLength: 30 }),
);

/** Generates a request line and headers that no library would write. */
const request = fc.record({
  method: fc.oneof(
    { weight: 6, arbitrary: fc.constant('POST') },
    fc.constantFrom('GET', 'PUT', 'OPTIONS', 'CONNECT', 'HEAD', 'post', 'X'),
  ),
  target: fc.oneof(
    // A logout would revoke the token that all these requests share.
    { weight: 6, arbitrary: path.filter((to) => to !== '/logout').map((to) => BASE_PATH + to) },
    fc.constantFrom(
      '/',
      '*',
      '//',
      '/%',
      '/%00',
      '/%ff',
      '/api/v1',
      '/api/v1/',
      '/api/v1/..',
      'http://a/',
      'a:443',
      '/?',
      '/ ',
    ),
    fc.webPath().map((to) => BASE_PATH + to),
  ),
  version: fc.oneof(
    { weight: 8, arbitrary: fc.constant('HTTP/1.1') },
    fc.constantFrom('HTTP/1.0', 'HTTP/2.0', 'HTTP/0.9', ''),
  ),
  hasToken: fc.boolean(),
  headers: fc.array(fc.tuple(headerName, headerValue), { maxLength: 4 }),
  body: fc.oneof(fc.constant('{}'), fc.constant(''), fc.constant('2\r\n{}\r\n0\r\n\r\n'), text),
  announcesLength: fc.boolean(),
});

/** Sends bytes, closes the sending side of the connection, and reads until the service closes the connection. */
function exchange(origin: string, bytes: Uint8Array): Promise<string> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    let received = '';
    socket.on('data', (part) => {
      received += part.toString('latin1');
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(received));
    socket.end(bytes);
  });
}

/** Checks that no response is a fault of the service, and that every error has the same form. */
function checkRaw(received: string): void {
  for (const response of received.split(/(?=HTTP\/1\.1 \d{3} )/)) {
    const status = Number(response.slice(9, 12));
    const body = response.slice(response.indexOf('\r\n\r\n') + 4);
    assert.ok(status < 500, response);
    if (status < 400 || body === '') continue;
    const { error, code, ...more } = JSON.parse(body);
    assert.deepEqual(more, {});
    assert.match(error, /./);
    assert.equal(STATUS_BY_CODE[code as 'NOT_FOUND'], status);
  }
}

describe('a connection with unexpected bytes gets well-formed responses', () => {
  test('for any headers, methods, targets and versions', async () => {
    const before = await readAll();
    let answered = 0;
    await check(
      fc.asyncProperty(
        request,
        async ({ method, target, version, hasToken, headers, body, announcesLength }) => {
          const lines = [
            `${method} ${target} ${version}`,
            'Host: localhost',
            ...(hasToken ? [`Authorization: Bearer ${user.token}`] : []),
            ...headers.map(([name, value]) => `${name}: ${value}`),
            ...(announcesLength
              ? ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]
              : []),
          ];
          const bytes = Buffer.concat([
            Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'),
            Buffer.from(body),
          ]);
          const received = await exchange(replicas[turn++ % 2]!.origin, bytes);
          checkRaw(received);
          if (received !== '') answered += 1;
        },
      ),
      400,
    );
    expect(answered).toBeGreaterThan(200);
    expect(await readAll()).toBe(before);
  });

  test('for bytes that are not HTTP', async () => {
    await check(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), async (bytes) => {
        const received = await exchange(first.origin, bytes);
        checkRaw(received);
        // Empty lines may precede a request (RFC 9112, 2.2). Empty lines alone are not a request and get no response.
        if (bytes.every((byte) => byte === 10 || byte === 13)) assert.equal(received, '');
        else assert.match(received, /^HTTP\/1\.1 400 /);
      }),
      100,
    );
  });
});
