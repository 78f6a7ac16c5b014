import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { Config } from '../src/config.ts';
import { nameStatement } from '../src/observability/tracing.ts';
import { deleteLeftovers } from '../src/process/sweeper.ts';
import { startService, type TestService } from './support/service.ts';

interface Sent {
  spans: { traceId: string; name: string; parentSpanId?: string }[];
  /** Attributes of the process, of each batch. */
  resources: Record<string, string>[];
  lines: { msg: string; trace?: string; route?: string }[];
}

const TRACE_ID = 'a'.repeat(32);
const SAMPLED = { headers: { traceparent: `00-${TRACE_ID}-${'b'.repeat(16)}-01` } };

/** What a service sends to its collector, and logs, until it has closed. */
async function collect(config: Partial<Config>, use: (service: TestService) => Promise<void>): Promise<Sent> {
  const sent: Sent = { spans: [], resources: [], lines: [] };
  const collector = createServer(async (request, response) => {
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString());
    for (const { resource, scopeSpans } of body.resourceSpans) {
      sent.resources.push(
        Object.fromEntries(
          resource.attributes.map(({ key, value }: { key: string; value: object }) => [
            key,
            Object.values(value)[0],
          ]),
        ),
      );
      for (const { spans } of scopeSpans) sent.spans.push(...spans);
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const otlpEndpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const log = pino({ level: 'info' }, { write: (line: string) => void sent.lines.push(JSON.parse(line)) });
  {
    await using service = await startService({ otlpEndpoint, ...config }, { log });
    await use(service);
  }
  collector.close();
  return sent;
}

test('a trace runs from the request over SQL and Redis to the job, and each statement has its name', async () => {
  const { spans, lines } = await collect({ importInlineBytes: 0 }, async (service) => {
    const user = await service.user();
    const { body } = await user.post('/import', { bookmarks: [{ url: 'http://b/' }] }, SAMPLED);
    expect(body.imported).toBe(1);
  });
  const names = new Set(spans.filter(({ traceId }) => traceId === TRACE_ID).map(({ name }) => name));
  expect(names).toContain('POST /api/v1/import');
  expect(names).toContain('redis rate limit');
  expect(names).toContain('redis queue import');
  expect(names).toContain('import job');
  expect(names).toContain('postgres call begin_import');
  expect([...names].filter((name) => /^postgres (read|write)$/.test(name))).toEqual([]);
  expect(
    lines
      .filter(({ trace }) => trace === TRACE_ID)
      .map(({ msg }) => msg)
      .sort(),
  ).toEqual(['import ended', 'request']);
});

test('a service that nobody asks for anything sends nothing: no sweeps, no probes', async () => {
  const { spans } = await collect({}, async ({ origin, context }) => {
    for (const path of ['/livez', '/readyz']) expect((await fetch(origin + path)).status).toBe(200);
    await deleteLeftovers(context);
  });
  expect(spans).toEqual([]);
});

test('every span of a request belongs to its trace, which is named by the method that it came with', async () => {
  const { spans } = await collect({}, async (service) => {
    await (await service.user()).post('/bookmarks/list');
    await fetch(`${service.origin}/openapi.json`);
  });
  const roots = spans.filter(({ parentSpanId }) => !parentSpanId).map(({ name }) => name);
  expect(roots.sort()).toEqual(['GET /openapi.json', 'POST /api/v1/bookmarks/list']);
});

test('the resource says which service, role and process it is', async () => {
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

test('a client that asks for all of its traces gets no more recorded than others', async () => {
  const { spans, lines } = await collect({ traceRatio: 0 }, async (service) => {
    const user = await service.user();
    for (let n = 0; n < 20; n += 1) await user.post('/bookmarks/list', {}, SAMPLED);
  });
  expect(spans).toEqual([]);
  // Its id is in the log all the same: the client may have the rest of the trace.
  expect(lines.filter(({ trace }) => trace === TRACE_ID)).toHaveLength(20);
});

test.each([
  ['select outcome from add_bookmark( , , )', 'call add_bookmark'],
  ['select token_is_valid( , )', 'call token_is_valid'],
  ['select id from users where email_key = ', 'read users'],
  ['with made as (insert into users (email) values ( ) returning id) select id from made', 'insert users'],
  ['update imports set touched_at = now() where id = ', 'update imports'],
  ['delete from tokens where user_id = ', 'delete tokens'],
  ['select count(*) from unnest( ) join tags on true', 'read unnest'],
  ['', 'read'],
])('the statement %j is named %j', (text, name) => {
  expect(nameStatement(text)).toBe(name);
});
