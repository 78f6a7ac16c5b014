import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { ErrorCode } from '../src/domain/resources.ts';
import { parseToken } from '../src/domain/tokens.ts';
import { STATUS_BY_CODE } from '../src/http/error-responses.ts';
import { BASE_PATH } from '../src/http/mount.ts';
import { ROUTES } from '../src/routes/app.ts';
import { issueDeviceCode } from '../src/sign-in/device-codes.ts';
import { newGrant } from './support/app-grant.ts';
import { startService, useService } from './support/service.ts';

// Tests the OpenAPI 3.1 document at /openapi.json and the reference at /docs.

// biome-ignore lint/suspicious/noExplicitAny: the document is read from outside
type Json = any;

const service = useService();
let document: Json;

beforeAll(async () => {
  const response = await fetch(`${service.origin}/openapi.json`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  document = await response.json();
});

/** Returns all schemas inside a schema, and the schema itself, that pass the test. */
const findSchemas = (schema: Json, passes: (schema: Json) => boolean): Json[] => {
  const { properties = {}, items, anyOf = [], oneOf = [] } = schema;
  const children = [
    ...Object.values(properties),
    ...(items === undefined ? [] : [items]),
    ...anyOf,
    ...oneOf,
  ];
  return [...(passes(schema) ? [schema] : []), ...children.flatMap((child) => findSchemas(child, passes))];
};

const findAllSchemas = (passes: (schema: Json) => boolean): Json[] =>
  Object.values(document.components.schemas).flatMap((schema) => findSchemas(schema, passes));

const operationOf = (path: string): Json => document.paths[path].post;
const requestOf = (path: string): Json =>
  withSchema(operationOf(path).requestBody.content['application/json']);
const responseOf = (path: string, status: number | string): Json =>
  withSchema(operationOf(path).responses[status].content['application/json']);

/** Returns the target of a reference. */
const lookUp = (ref: string): Json =>
  ref
    .replace(/^#\//, '')
    .split('/')
    .reduce((value, step) => value?.[step], document);

/** Returns the content of a request or response, with its schema in place of a reference. */
const withSchema = (content: Json): Json =>
  content.schema.$ref === undefined ? content : { ...content, schema: lookUp(content.schema.$ref) };

/** Returns a validator for a schema of the document, including the schemas to which it refers. */
const validatorOf = (schema: Json): z.ZodType =>
  z.fromJSONSchema(
    JSON.parse(
      JSON.stringify(schema, (_, value) => (value?.$ref === undefined ? value : lookUp(value.$ref))),
    ),
  );

/** Calls `see` with every object of the document. */
function visit(value: Json, see: (object: Json, path: string) => void, path = '#'): void {
  if (typeof value !== 'object' || value === null) return;
  see(value, path);
  for (const [name, child] of Object.entries(value)) visit(child, see, `${path}/${name}`);
}

const EACH_ROUTE = ROUTES.map((route) => [route.path, route] as const);

describe('the structure of OpenAPI 3.1', () => {
  test('has version, info, servers, paths and components', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document.info).toMatchObject({ title: expect.any(String), version: expect.any(String) });
    expect(document.servers).toEqual([{ url: BASE_PATH }]);
    expect(Object.keys(document).sort()).toEqual([
      'components',
      'info',
      'openapi',
      'paths',
      'security',
      'servers',
      'tags',
    ]);
    for (const path of Object.keys(document.paths)) expect(path).toMatch(/^\//);
    for (const kind of Object.keys(document.components)) {
      for (const name of Object.keys(document.components[kind])) expect(name).toMatch(/^[\w.-]+$/);
    }
  });

  test('has no broken references', () => {
    const refs: string[] = [];
    visit(document, (object) => {
      if (typeof object.$ref === 'string') refs.push(object.$ref);
    });
    expect(refs.length).toBeGreaterThan(0);
    for (const ref of refs) {
      expect(ref).toMatch(/^#\//);
      expect(lookUp(ref), ref).toBeDefined();
    }
  });

  test('gives each operation a unique id, each response a description, and each security scheme a definition', () => {
    const operations = Object.keys(document.paths).map(operationOf);
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { summary, description, responses, security, tags } of operations) {
      expect([summary, description]).toEqual([expect.stringMatching(/./), expect.stringMatching(/./)]);
      expect(tags).toEqual([expect.any(String)]);
      for (const [status, response] of Object.entries<Json>(responses)) {
        expect(status).toMatch(/^[1-5]\d\d$/);
        expect(response.description).toMatch(/./);
      }
      for (const requirement of security ?? document.security) {
        for (const name of Object.keys(requirement))
          expect(document.components.securitySchemes).toHaveProperty(name);
      }
    }
  });

  test('uses only types and keywords of JSON Schema 2020-12 in its schemas', () => {
    const schemas: Json[] = Object.values(document.components.schemas);
    for (const [path] of EACH_ROUTE) {
      schemas.push(requestOf(path).schema);
      for (const status of Object.keys(operationOf(path).responses))
        schemas.push(responseOf(path, status).schema);
    }
    const keywords =
      '$ref type properties required items anyOf oneOf enum const default examples description format pattern minimum maximum minLength maxLength minItems maxItems';
    const check = (schema: Json) => {
      expect(keywords.split(' ')).toEqual(expect.arrayContaining(Object.keys(schema)));
      const types = [schema.type].flat().filter(Boolean);
      for (const type of types)
        expect(['object', 'array', 'string', 'integer', 'boolean', 'null']).toContain(type);
      for (const name of schema.required ?? []) expect(schema.properties).toHaveProperty(name);
      for (const child of Object.values(schema.properties ?? {})) check(child);
      for (const child of [schema.items, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter(Boolean))
        check(child);
    };
    for (const schema of schemas) check(schema);
  });
});

test('no request lists null as a value, except for expires_in_days (decision 4)', () => {
  const nullable = (schema: Json, name: string): string[] => {
    const children = [
      ...Object.entries<Json>(schema.properties ?? {}),
      ...[schema.items, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]
        .filter(Boolean)
        .map((child) => [name, child] as const),
    ];
    return [
      ...([schema.type].flat().includes('null') ? [name] : []),
      ...children.flatMap(([childName, child]) => nullable(child, childName)),
    ];
  };
  expect(EACH_ROUTE.flatMap(([path]) => nullable(requestOf(path).schema, path))).toEqual(['expires_in_days']);
});

describe('the document is complete', () => {
  test('every route is in it, and nothing else', () => {
    expect(Object.keys(document.paths).sort()).toEqual(ROUTES.map(({ path }) => path).sort());
    for (const path of Object.keys(document.paths))
      expect(Object.keys(document.paths[path])).toEqual(['post']);
  });

  test.each(EACH_ROUTE)('%s has its scope', (path, { scope }) => {
    const { security, description } = operationOf(path);
    expect(security).toEqual(scope === 'public' ? [] : undefined);
    expect(document.security).toEqual([{ token: [] }]);
    expect(description).toMatch(scope === 'public' ? /public/i : new RegExp(`Scope: ${scope}`));
  });

  test.each(EACH_ROUTE)('%s has its errors, with examples', (path, { scope, errors = [] }) => {
    const codes: ErrorCode[] = [
      'VALIDATION_ERROR',
      'RATE_LIMITED',
      'INTERNAL_ERROR',
      'UNAVAILABLE',
      ...(scope === 'public' ? [] : (['INVALID_TOKEN', 'ACCOUNT_SUSPENDED', 'PERMISSION_DENIED'] as const)),
      ...errors,
    ];
    const described: string[] = [];
    for (const [status, response] of Object.entries<Json>(operationOf(path).responses)) {
      if (status === '200') continue;
      const { schema, examples } = response.content['application/json'];
      expect(schema).toEqual({ $ref: '#/components/schemas/Error' });
      for (const [code, { value }] of Object.entries<Json>(examples)) {
        expect(value).toEqual({ error: expect.stringMatching(/./), code });
        expect(STATUS_BY_CODE[code as ErrorCode]).toBe(Number(status));
        expect(validatorOf(schema).safeParse(value).success).toBe(true);
        described.push(code);
      }
    }
    expect(described.sort()).toEqual(codes.sort());
  });

  test.each(EACH_ROUTE)('%s has the headers of the rate limit', (path) => {
    const limits = ['Limit', 'Remaining', 'Reset'].map((name) => `X-RateLimit-${name}`);
    for (const [status, { headers }] of Object.entries<Json>(operationOf(path).responses)) {
      expect(Object.keys(headers)).toContain('X-Request-Id');
      if (['200', '400', '403', '404', '429'].includes(status)) {
        expect(Object.keys(headers)).toEqual(expect.arrayContaining(limits));
      }
      expect(Object.keys(headers).includes('Retry-After')).toBe(['429', '503'].includes(status));
    }
  });

  test.each(EACH_ROUTE)('%s has examples that match their schemas', (path, { exampleLeavesOut = [] }) => {
    for (const { schema, example } of [requestOf(path), responseOf(path, 200)]) {
      expect(example).toBeDefined();
      expect(validatorOf(schema).parse(example)).toEqual(example);
      const one = schema.anyOf?.[0] ?? schema;
      const whole = one.$ref === undefined ? one : lookUp(one.$ref);
      const leftOut = schema === requestOf(path).schema ? exampleLeavesOut : [];
      expect([...Object.keys(example), ...leftOut].sort()).toEqual(
        Object.keys(whole.properties ?? {}).sort(),
      );
    }
  });

  test('it contains the limits of section 8 and decision 9', () => {
    const add = requestOf('/bookmarks/add').schema.properties;
    expect(add.url.maxLength).toBe(8_192);
    expect(add.title.maxLength).toBe(2_048);
    expect(add.comment.maxLength).toBe(10_000);
    expect(add.tags).toMatchObject({ maxItems: 100, items: { minLength: 1, maxLength: 255 } });
    expect(requestOf('/tags/create').schema.properties.name.maxLength).toBe(255);
    expect(requestOf('/auth/invite').schema.properties.code.pattern).toBe('^[A-Z0-9]{8}$');
    expect(requestOf('/auth/device').schema.properties.code.pattern).toBe('^[A-Z0-9]{12}$');
    expect(requestOf('/bookmarks/search').schema.properties).toMatchObject({
      query: { maxLength: 1_000, description: 'Default: "".' },
      page: { minimum: 1, description: 'Default: 1.' },
      per_page: { minimum: 1, maximum: 100, description: 'Default: 50.' },
    });
    expect(requestOf('/bookmarks/list').schema.properties.limit).toMatchObject({
      minimum: 1,
      maximum: 500,
      description: 'Default: 100.',
    });
    expect(requestOf('/bookmarks/sync').schema.properties).toMatchObject({
      cursor: { minimum: 0, description: 'Default: 0.' },
      limit: { minimum: 1, maximum: 100, description: 'Default: 50.' },
      wait: { type: 'boolean', description: 'Default: false, or true with `wait_seconds`.' },
      wait_seconds: { type: 'integer', minimum: 0, maximum: 30 },
    });
    const entry = requestOf('/import').schema.properties.bookmarks;
    expect(entry).toMatchObject({ maxItems: 100_000, items: { properties: { tags: { maxItems: 100 } } } });
    expect(document.info.description).toMatch(/100 requests per token in any 60 s/);
  });

  test('integers that may exceed 32 bits have the format int64', () => {
    const integers = findAllSchemas(({ type }) => type === 'integer');
    expect(integers.length).toBeGreaterThan(40);
    for (const schema of integers)
      expect(schema.format, JSON.stringify(schema)).toBe(
        (schema.maximum ?? 2 ** 53) > 2 ** 31 ? 'int64' : undefined,
      );
  });

  test('no request has a default, because generators would make the field required', () => {
    expect(findAllSchemas((schema) => 'default' in schema)).toEqual([]);
  });

  test('each variant of a request or response has a name', () => {
    for (const [name, schema] of Object.entries<Json>(document.components.schemas))
      for (const variant of schema.anyOf ?? schema.oneOf ?? []) expect(variant, name).toHaveProperty('$ref');
  });

  test("requests that may take long say so, with a time above the service's own limits", async () => {
    await using patient = await startService(
      { syncWaitSeconds: 11, importWaitSeconds: 300, requestTimeoutSeconds: 40 },
      { database: service.database },
    );
    for (const { context, origin } of [service, patient]) {
      const { paths } = await (await fetch(`${origin}/openapi.json`)).json();
      const timeoutOf = (path: string): number => paths[path].post['x-client-timeout-seconds'];
      const marked = ROUTES.filter(({ path }) => timeoutOf(path) !== undefined);
      const { config } = context;
      expect(marked.map(({ path }) => path).sort()).toEqual([
        '/bookmarks/changes',
        '/bookmarks/sync',
        '/export',
        '/import',
      ]);
      // A poll reads before and after the hold. Each read waits for a permit and then for its statement.
      const poll = config.syncWaitSeconds + 2 * 10;
      expect(timeoutOf('/bookmarks/sync')).toBeGreaterThan(poll);
      expect(timeoutOf('/bookmarks/changes')).toBeGreaterThan(poll);
      // An import may wait for its turn, then for its statement, and then for its cancellation.
      const { requestTimeoutSeconds, importWaitSeconds } = config;
      expect(timeoutOf('/import')).toBeGreaterThan(requestTimeoutSeconds + 2 * importWaitSeconds + 20);
      expect(paths['/import'].post.description).toContain(`at least ${timeoutOf('/import')} s`);
    }
  });

  test("it contains the size limit of each operation's body", () => {
    const sizes = Object.fromEntries(
      Object.keys(document.paths).map((path) => [
        path,
        /^At most (\d+ [KM]iB)\./.exec(operationOf(path).requestBody.description)?.[1],
      ]),
    );
    expect(sizes).toMatchObject({
      '/auth/invite': '4 KiB',
      '/bookmarks/add': '640 KiB',
      '/bookmarks/list': '64 KiB',
      '/import': '64 MiB',
    });
    expect(Object.values(sizes)).not.toContain(undefined);
  });

  test('its required fields are those of section 4', () => {
    const required = Object.fromEntries(
      EACH_ROUTE.map(([path]) => [path, requestOf(path).schema.required ?? []]),
    );
    expect(Object.entries(required).filter(([, fields]) => fields.length > 0)).toEqual(
      expect.arrayContaining([
        ['/auth/invite', ['code']],
        ['/auth/device', ['code']],
        ['/auth/exchange', ['code', 'code_verifier', 'redirect_uri']],
        ['/bookmarks/add', ['url']],
        ['/bookmarks/batch', ['operations']],
        ['/tags/create', ['name']],
        ['/tags/update', ['name']],
        ['/tags/merge', ['id', 'into_id']],
        ['/import', ['bookmarks']],
        ['/trash/restore', ['ids']],
        ['/account/delete', ['confirm']],
        ['/tokens/create', ['name']],
        ['/tokens/revoke', ['id']],
        ['/sessions/revoke', ['id']],
      ]),
    );
    expect(Object.values(required).flat()).toHaveLength(17);
  });
});

describe('the document is correct', () => {
  test.each(EACH_ROUTE)(
    'the example of %s is accepted, and the response matches the schema',
    async (path) => {
      const user = await service.session();
      const { id, tags } = (await user.post('/bookmarks/add', requestOf('/bookmarks/add').example)).body;
      const body = { ...requestOf(path).example };
      if (path === '/tags/merge') body.into_id = tags[1].id;
      if ('id' in body) body.id = path.startsWith('/tags') ? tags[0].id : id;
      if (path === '/tokens/revoke') body.id = (await user.post('/tokens/create', { name: 'mine' })).body.id;
      if (path === '/sessions/revoke') body.id = (await user.post('/sessions/list')).body.sessions[0].id;
      if (path === '/tags/create' || path === '/tags/update') body.name = 'another';
      if (path === '/account/delete') body.confirm = user.email.toUpperCase();
      if (path === '/auth/invite') body.code = await service.invite(user.email);
      if (path === '/auth/device') {
        const maker = await service.session();
        const { hash } = parseToken(maker.token)!;
        body.code = await issueDeviceCode(service.context.coordination.pending, { userId: maker.id, hash });
      }
      if (path === '/auth/exchange') Object.assign(body, await newGrant(service, user));
      const response = await user.post(path, body);
      expect(response.status, response.text).toBe(200);
      expect(validatorOf(responseOf(path, 200).schema).parse(response.body)).toEqual(response.body);
    },
  );
});

describe('/docs', () => {
  test('is a page whose resources all exist', async () => {
    const page = await fetch(`${service.origin}/docs`);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const html = await page.text();
    const assets = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path!);
    expect(assets.length).toBeGreaterThan(2);
    for (const path of assets) {
      expect(path).toMatch(/^\/docs\//);
      const asset = await fetch(service.origin + path);
      expect(asset.status, path).toBe(200);
      expect((await asset.arrayBuffer()).byteLength).toBeGreaterThan(0);
    }
    expect(page.headers.get('content-security-policy')).toContain("default-src 'self'");
  });

  test('needs no token and accepts only GET, and so does the document', async () => {
    for (const path of ['/docs', '/openapi.json', '/livez', '/readyz']) {
      expect((await fetch(service.origin + path)).status).toBe(200);
      const posted = await fetch(service.origin + path, { method: 'POST', body: '{}' });
      expect([posted.status, (await posted.json()).code]).toEqual([404, 'NOT_FOUND']);
    }
  });
});
