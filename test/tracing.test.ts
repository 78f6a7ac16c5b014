import { hash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { Config } from '../src/config.ts';
import { describeStatement } from '../src/observability/tracing.ts';
import { deleteLeftovers } from '../src/process/sweeper.ts';
import { addPerson, CookieBrowser, goToCallback } from './support/cookie-browser.ts';
import { startProvider } from './support/provider.ts';
import { startService, type TestService } from './support/service.ts';
import { until } from './support/until.ts';

interface SentSpan {
  traceId: string;
  name: string;
  parentSpanId?: string;
  /** 2 server, 3 client, 4 producer, 5 consumer */
  kind: number;
  /** `code` is 2 for a failed span. */
  status: { code?: number; message?: string };
  attributes: Record<string, unknown>;
}

interface Sent {
  spans: SentSpan[];
  /** For each batch of spans: the attributes of the process that sent the batch. */
  resources: Record<string, string>[];
  lines: { msg: string; trace?: string; route?: string }[];
  /** Everything that was sent and logged, as raw text. */
  text: string;
}

const TRACE_ID = 'a'.repeat(32);
const SAMPLED = { headers: { traceparent: `00-${TRACE_ID}-${'b'.repeat(16)}-01` } };

const readAttributes = (attributes: { key: string; value: object }[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

/**
 * Starts a service with a collector, calls `use`, and closes the service. Returns everything that the service logged,
 * and everything that it sent to the collector.
 */
async function collect(
  config: Partial<Config>,
  use: (service: TestService, sent: Sent) => Promise<void>,
): Promise<Sent> {
  const sent: Sent = { spans: [], resources: [], lines: [], text: '' };
  const collector = createServer(async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString();
    sent.text += text;
    const body = JSON.parse(text);
    for (const { resource, scopeSpans } of body.resourceSpans) {
      sent.resources.push(readAttributes(resource.attributes));
      for (const { spans } of scopeSpans)
        for (const span of spans) sent.spans.push({ ...span, attributes: readAttributes(span.attributes) });
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const otlpEndpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const write = (line: string) => {
    sent.text += line;
    sent.lines.push(JSON.parse(line));
  };
  const log = pino({ level: 'trace' }, { write });
  {
    await using service = await startService({ otlpEndpoint, ...config }, { log });
    await use(service, sent);
  }
  collector.close();
  return sent;
}

test('a trace contains the request, SQL, Redis and the job, and each statement has a name', async () => {
  const { spans, lines } = await collect({ importInlineBytes: 0 }, async (service, sent) => {
    const user = await service.user();
    const { body } = await user.post('/import', { bookmarks: [{ url: 'http://b/' }] }, SAMPLED);
    expect(body.imported).toBe(1);
    // The worker may log the end of the import after the request has its response.
    await until(() => sent.lines.some(({ msg }) => msg === 'import ended'));
  });
  const names = new Set(spans.filter(({ traceId }) => traceId === TRACE_ID).map(({ name }) => name));
  expect(names).toContain('POST /api/v1/import');
  expect(names).toContain('EVALSHA rate limit');
  expect(names).toContain('send imports');
  expect(names).toContain('process imports');
  expect(names).toContain('CALL begin_import');
  expect(names).not.toContain('postgresql');
  expect(
    lines
      .filter(({ trace }) => trace === TRACE_ID)
      .map(({ msg }) => msg)
      .sort(),
  ).toEqual(['import ended', 'request']);
});

test('an idle service sends no spans of sweeps or probes', async () => {
  const { spans } = await collect({}, async ({ origin, context }) => {
    for (const path of ['/livez', '/readyz']) expect((await fetch(origin + path)).status).toBe(200);
    await deleteLeftovers(context);
  });
  expect(spans).toEqual([]);
});

test("every span of a request belongs to its trace, which is named after the request's method", async () => {
  const { spans } = await collect({}, async (service) => {
    await (await service.user()).post('/bookmarks/list');
    await fetch(`${service.origin}/openapi.json`);
  });
  const roots = spans.filter(({ parentSpanId }) => !parentSpanId).map(({ name }) => name);
  expect(roots.sort()).toEqual(['GET /openapi.json', 'POST /api/v1/bookmarks/list']);
});

test('the resource names the service, role and process', async () => {
  const traceResource = { 'service.instance.id': 'api-1', 'deployment.environment.name': 'production' };
  const { resources } = await collect({ traceResource }, async (service) => {
    await (await service.user()).post('/bookmarks/list');
  });
  expect(resources[0]).toMatchObject({
    'service.name': 'bookmark-service',
    'service.version': expect.any(String),
    'bookmarks.role': 'all',
    ...traceResource,
  });
});

test('a client that requests sampling of all its traces does not get more of them than others', async () => {
  const { spans, lines } = await collect({ traceRatio: 0 }, async (service) => {
    const user = await service.user();
    for (let n = 0; n < 20; n += 1) await user.post('/bookmarks/list', {}, SAMPLED);
  });
  expect(spans).toEqual([]);
  // The log still has the trace id, because the client may have recorded the other spans of the trace.
  expect(lines.filter(({ trace }) => trace === TRACE_ID)).toHaveLength(20);
});

test('traces and logs contain no secret of signing in that could be used again, even after errors', async () => {
  await using provider = await startProvider();
  const signIn: Config['signIn'] = {
    provider: provider.settings({ trustEmail: true }),
    signUp: 'open',
    appRedirects: [],
  };
  const secrets: string[] = [];
  const { spans, text } = await collect({ signIn }, async ({ origin }) => {
    const browser = new CookieBrowser();
    const begin = `${origin}/login?return_to=/secret-place`;
    const { callback } = await goToCallback(browser, begin, addPerson(provider));
    const { searchParams } = callback!;
    for (const name of ['code', 'state', 'iss']) expect(searchParams.get(name)).toBeTruthy();
    secrets.push(searchParams.get('code')!, searchParams.get('state')!, 'secret-place');
    for (const status of [303, 400]) expect((await browser.open(callback!)).status).toBe(status);
    // The path is mistyped, so this is not the callback.
    await browser.open(`${callback!.href.replace('/callback', '/callbock')}`);
    secrets.push(...browser.secrets);

    const verifier = randomBytes(32).toString('base64url');
    const redirect_uri = 'http://127.0.0.1:8123/signed-in';
    const asked = {
      redirect_uri,
      code_challenge: hash('sha256', verifier, 'base64url'),
      code_challenge_method: 'S256',
      state: 'state-of-the-app',
      name: 'An app',
    };
    await browser.open(`${origin}/login/app?${new URLSearchParams(asked)}`);
    const approved = await browser.post(`${origin}/web/login/app`, asked);
    const code = new URL(JSON.parse(approved.text).location).searchParams.get('code')!;
    const exchanged = await browser.post(`${origin}/api/v1/auth/exchange`, {
      code,
      code_verifier: verifier,
      redirect_uri,
    });
    expect(exchanged.status).toBe(200);
    secrets.push(code, verifier, asked.code_challenge, asked.state, JSON.parse(exchanged.text).token);
  });
  const names = spans.map(({ name }) => name);
  for (const name of ['GET /login', 'GET /login/callback', 'GET', 'POST /api/v1/auth/exchange'])
    expect(names).toContain(name);
  for (const secret of secrets) expect(text).not.toContain(secret);
});

test("spans have the attributes of OpenTelemetry's conventions, by which an APM tool groups them", async () => {
  const { spans } = await collect({}, async (service) => {
    const user = await service.user();
    await user.post('/bookmarks/add', { url: 'http://a/' });
    await user.post('/bookmarks/edit', { id: 'no number' });
    await fetch(`${service.origin}/nowhere?secret=1`);
  });
  const find = (name: string) => spans.find((span) => span.name === name)!;
  const route = '/api/v1/bookmarks/add';
  expect(find(`POST ${route}`)).toMatchObject({
    kind: 2,
    status: {},
    attributes: {
      'http.request.method': 'POST',
      'http.route': route,
      'url.path': route,
      'url.scheme': 'http',
      'http.response.status_code': 200,
    },
  });
  // A fault of the client is no failure of the service.
  const refused = find('POST /api/v1/bookmarks/edit');
  expect(refused.attributes['http.response.status_code']).toBe(400);
  expect(refused.status.code ?? 0).toBe(0);
  expect(refused.attributes).not.toHaveProperty('error.type');
  const unknown = find('GET');
  expect(unknown.attributes).toMatchObject({ 'url.path': '/nowhere', 'http.response.status_code': 404 });
  expect(unknown.attributes).not.toHaveProperty('http.route');
  expect(find('CALL add_bookmark')).toMatchObject({
    kind: 3,
    attributes: {
      'db.system.name': 'postgresql',
      'db.query.summary': 'CALL add_bookmark',
      'db.operation.name': 'CALL',
      'db.stored_procedure.name': 'add_bookmark',
    },
  });
  expect(find('EVALSHA rate limit').attributes).toMatchObject({
    'db.system.name': 'redis',
    'db.operation.name': 'EVALSHA',
  });
});

test('a failure of the service marks its spans as failed, with the type of the error', async () => {
  const { spans } = await collect({}, async (service) => {
    const user = await service.user();
    await service.context.database.write((sql) => sql`alter function add_bookmark rename to add_no_bookmark`);
    expect((await user.post('/bookmarks/add', { url: 'http://a/' })).status).toBe(500);
  });
  expect(spans.find(({ name }) => name === 'POST /api/v1/bookmarks/add')).toMatchObject({
    status: { code: 2 },
    attributes: { 'http.response.status_code': 500, 'error.type': '500' },
  });
  expect(spans.find(({ name }) => name === 'CALL add_bookmark')).toMatchObject({
    status: { code: 2 },
    // the SQLSTATE of an undefined function
    attributes: { 'db.response.status_code': '42883', 'error.type': '42883' },
  });
});

test('a poll whose client left has a span too, without a status', async () => {
  const { spans } = await collect({}, async (service, sent) => {
    const user = await service.user();
    const leave = new AbortController();
    const poll = user.post('/bookmarks/sync', { cursor: 0, wait: true }, { signal: leave.signal });
    await until(() => service.context.coordination.notifier.held > 0);
    leave.abort();
    await poll.catch(() => {});
    await until(() => sent.lines.some(({ msg }) => msg === 'response aborted'));
  });
  const { attributes, status } = spans.find(({ name }) => name === 'POST /api/v1/bookmarks/sync')!;
  expect(attributes).toMatchObject({ 'error.type': 'response_aborted' });
  expect(attributes).not.toHaveProperty('http.response.status_code');
  expect(status.code ?? 0).toBe(0);
});

test.each([
  ['select outcome from add_bookmark( , , )', 'CALL add_bookmark'],
  ['select token_is_valid( , )', 'CALL token_is_valid'],
  ['select id from users where email_key = ', 'SELECT users'],
  ['with made as (insert into users (email) values ( ) returning id) select id from made', 'INSERT users'],
  ['update imports set touched_at = now() where id = ', 'UPDATE imports'],
  ['with own as (select id from imports for update skip locked) delete from imports', 'DELETE imports'],
  ['delete from tokens where user_id = ', 'DELETE tokens'],
  ['select count(*) from unnest( ) join tags on true', 'SELECT unnest'],
  ['', 'SELECT'],
])('the statement %j is summarized as %j', (text, summary) => {
  expect(describeStatement(text)['db.query.summary']).toBe(summary);
});
