import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { deleteOldImports } from '../../src/store/sweep.ts';
import { useApiAndWorker } from '../support/api-and-worker.ts';
import { runOn } from '../support/database.ts';
import { fill } from '../support/fill.ts';
import { measureGrowth } from '../support/memory.ts';
import { type Replica, startReplica } from '../support/replica.ts';
import { startService, type TestService, type TestUser, useService } from '../support/service.ts';
import { holdAccount } from '../support/sessions.ts';

// Tests decisions 9, 17, 19 and 21 at their limits: 100,000 entries in one transaction, and exports and imports with
// constant memory.

const MIB = 1_048_576;

/** The first replica runs all imports within their requests. The second replica stages imports above 1 MiB. */
const inline = useService({ importInlineBytes: 64 * MIB });
const staging = useService({}, { beside: inline });

const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

/** Returns the body of an import with this many entries. Each has a few tags and a comment of this length. */
const bodyOf = (count: number, commentLength = 0, mode = 'merge'): string =>
  JSON.stringify({
    mode,
    bookmarks: range(count).map((n) => ({
      url: `https://example.org/${n}`,
      title: `Bookmark ${n}`,
      comment: 'c'.repeat(commentLength),
      tags: [`tag ${n % 100}`, `tag ${n % 7}`],
    })),
  });

const requestOptions = ({ token }: TestUser) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
});

/** A request over a plain connection. The test sends the body and reads the response in chunks. */
class SlowRequest {
  readonly socket: Socket;
  #received = '';

  constructor(origin: string, path: string, { token }: TestUser, length: number) {
    const { hostname, port } = new URL(origin);
    this.socket = connect(Number(port), hostname);
    this.socket.on('error', () => {});
    this.socket.on('data', (bytes) => {
      this.#received += bytes.toString('latin1');
    });
    this.socket.write(
      `POST /api/v1${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n` +
        `Content-Type: application/json\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n`,
    );
  }

  /** Sends text. Resolves when the operating system has accepted it. */
  async send(text: string): Promise<void> {
    await new Promise((resolve) => this.socket.write(text, resolve));
  }

  /** Returns everything that was received until the server closed the connection. */
  async response(): Promise<string> {
    await once(this.socket, 'close');
    return this.#received;
  }

  /**
   * Closes the connection. A service ends only after its responses have ended, so a failed test must not leave a
   * response open.
   */
  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}

describe('an import of 100,000 entries', () => {
  test.for(['inline', 'staged'])('is one transaction, visible completely or not at all: %s', async (path) => {
    const service = path === 'inline' ? inline : staging;
    const user = await service.user({ premium: true });
    let isDone = false;
    const importing = service.post('/import', bodyOf(100_000), { token: user.token }).finally(() => {
      isDone = true;
    });
    const totals = new Set<number>();
    for (; !isDone; await sleep(10))
      totals.add((await user.post('/bookmarks/search', { per_page: 1 })).body.total);
    const { body } = await importing;
    expect(body).toEqual({ imported: 100_000, skipped: 0, errors: [] });
    expect([...totals].filter((total) => total !== 0 && total !== 100_000)).toEqual([]);
    const [{ transactions }] = (await runOn<{ transactions: string }>(
      inline.database.url,
      `select count(distinct xmin::text) as transactions from bookmarks where user_id = ${user.id}`,
    )) as [{ transactions: string }];
    expect(Number(transactions)).toBe(1);
  });

  test('one more entry is refused, on both paths', async () => {
    const bookmarks = range(100_001).map(() => 0);
    for (const service of [inline, staging]) {
      const user = await service.user({ premium: true });
      const response = await user.post('/import', { padding: ' '.repeat(MIB), bookmarks });
      expect(response).toMatchObject({ status: 400, body: { code: 'VALIDATION_ERROR' } });
      expect(response.body.error).toBe('bookmarks: at most 100000 entries');
    }
  });
});

describe('an export', () => {
  test('of 1,000,000 bookmarks streams; memory does not grow with the collection', async () => {
    await using service = await startService();
    const { url } = service.database;
    const many = await service.user({ premium: true });
    await runOn(url, 'drop index bookmarks_url_key; drop index bookmarks_tag_ids');
    await fill(url, many, 1_000_000);
    const few = await service.user();
    await fill(url, few, 1_000);
    await using api = await startReplica('api', { DATABASE_URL: url });
    // This export warms up code and connections, so that their memory does not count as growth.
    await drain(api, few);
    const growth = await measureGrowth(api.pid, async () => {
      const { bytes, end } = await drain(api, many);
      expect(end).toMatch(/,"count":1000000}$/);
      expect(bytes).toBeGreaterThan(200 * MIB);
    });
    expect(growth).toBeLessThan(80 * MIB);
  });

  /** Reads an export completely, but keeps only its end. */
  async function drain({ origin }: Replica, user: TestUser): Promise<{ bytes: number; end: string }> {
    const response = await fetch(`${origin}/api/v1/export`, { ...requestOptions(user), body: '{}' });
    let bytes = 0;
    let end = '';
    for await (const part of response.body!) {
      bytes += part.length;
      end = Buffer.from(part.subarray(-64)).toString();
    }
    return { bytes, end };
  }

  /** Starts an export and stops reading. Resolves when the service can write no more. */
  async function stall(service: TestService, user: TestUser) {
    const arrived = once(service.app.server, 'request');
    const request = new SlowRequest(service.origin, '/export', user, 2);
    await request.send('{}');
    const [, response] = (await arrived) as [IncomingMessage, ServerResponse];
    await once(request.socket, 'data');
    request.socket.pause();
    const { socket } = response;
    // The operating system accepts more data until its buffers are full.
    for (let last = -1; last !== socket!.bytesWritten || !response.writableNeedDrain; await sleep(300))
      last = socket!.bytesWritten;
    return request;
  }

  test('holds no database connection while its client reads slowly, and completes', async () => {
    await using service = await startService({ databasePoolSize: 1 });
    const user = await service.user({ premium: true });
    await fill(service.database.url, user, 100_000);
    using request = await stall(service, user);
    expect(service.context.database.gauges).toMatchObject({ size: 1, inUse: 0, waiting: 0 });
    expect((await user.post('/user/profile')).status).toBe(200);
    request.socket.resume();
    expect(await request.response()).toMatch(/,"count":100000}\r\n0\r\n\r\n$/);
  });

  test('is aborted if a replace happens while its client reads slowly', async () => {
    await using service = await startService();
    const user = await service.user({ premium: true });
    await fill(service.database.url, user, 100_000);
    using request = await stall(service, user);
    expect((await user.post('/import', { mode: 'replace', bookmarks: [] })).status).toBe(200);
    request.socket.resume();
    const response = await request.response();
    expect(response).toMatch(/^HTTP\/1.1 200 /);
    expect(response).not.toMatch(/\r\n0\r\n\r\n$/);
    expect(response).not.toMatch(/"count"/);
  });
});

describe('an upload', () => {
  const states = async (user: TestUser) =>
    (
      await runOn<{ state: string }>(
        inline.database.url,
        `select state from imports where user_id = ${user.id} order by created_at`,
      )
    ).map(({ state }) => state);

  /** Resolves when the user's imports have these states. */
  async function untilStates(user: TestUser, expected: string[]): Promise<void> {
    await expect.poll(() => states(user)).toEqual(expected);
  }

  test('that is aborted is never queued, and frees its place', async () => {
    const user = await staging.user({ premium: true });
    const body = bodyOf(200, 9_000);
    const request = new SlowRequest(staging.origin, '/import', user, body.length + 1);
    await request.send(body);
    await untilStates(user, ['receiving']);
    request.socket.destroy();
    await untilStates(user, ['cancelled']);
    expect((await user.post('/import', body)).body.imported).toBe(200);
  });

  test('blocks a second large import of the same user, with Retry-After, and nobody else', async () => {
    const [user, other] = [await staging.user({ premium: true }), await staging.user({ premium: true })];
    const body = bodyOf(200, 9_000);
    const request = new SlowRequest(staging.origin, '/import', user, body.length);
    await request.send(body.slice(0, -1));
    await untilStates(user, ['receiving']);
    const refused = await user.post('/import', body);
    expect(refused).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect((await other.post('/import', body)).body.imported).toBe(200);
    // A small import of the same user is not blocked.
    expect((await user.post('/import', bodyOf(1))).body.imported).toBe(1);
    await request.send(body.slice(-1));
    expect(await request.response()).toContain('{"imported":199,"skipped":1,"errors":[]}');
    expect((await user.post('/import', body)).body.skipped).toBe(200);
  });

  test('that is refused early gets a response, even if its client sends everything first', async () => {
    const user = await staging.user({ premium: true });
    const body = bodyOf(3_000, 9_000);
    const first = new SlowRequest(staging.origin, '/import', user, body.length);
    await first.send(body.slice(0, 2 * MIB));
    await untilStates(user, ['receiving']);
    const second = new SlowRequest(staging.origin, '/import', user, body.length);
    second.socket.pause();
    await second.send(body);
    second.socket.resume();
    expect(await second.response()).toMatch(/^HTTP\/1.1 429 [\s\S]*"code":"RATE_LIMITED"}$/);
    first.socket.destroy();
  });

  test('that is complete is imported even if its client has disconnected and the import runs late (decision 21)', async () => {
    await using hurried = await startService(
      { importInlineBytes: 0, importWaitSeconds: 4 },
      { database: inline.database },
    );
    const user = await hurried.user();
    const holders = [await hurried.user(), await hurried.user()];
    const locks = await Promise.all(holders.map((holder) => holdAccount(inline.database.url, holder)));
    // At most two imports run at a time. These two wait for locks that the test holds, so a third cannot begin.
    const ahead = holders.map((holder) => hurried.post('/import', bodyOf(1), { token: holder.token }));
    for (const holder of holders) await untilStates(holder, ['queued']);
    const body = bodyOf(5);
    const request = new SlowRequest(hurried.origin, '/import', user, body.length);
    await request.send(body);
    await untilStates(user, ['queued']);
    request.socket.destroy();
    // This later import gets 503 when its time is over. The time of the import above is then over too.
    const later = await hurried.user();
    expect((await later.post('/import', bodyOf(1))).status).toBe(503);
    await Promise.allSettled(ahead);
    expect(await states(user)).not.toEqual(['cancelled']);
    for (const lock of locks) await lock.release();
    await untilStates(user, ['done']);
    expect((await user.post('/export', {})).body.count).toBe(5);
  });

  test('whose replica died is deleted by a sweep after a while, and its place is free', async () => {
    const user = await staging.user({ premium: true });
    const body = bodyOf(200, 9_000);
    {
      await using dying = await startReplica('api', { DATABASE_URL: inline.database.url });
      const request = new SlowRequest(dying.origin, '/import', user, body.length + 1);
      await request.send(body);
      await untilStates(user, ['receiving']);
      await dying.kill();
    }
    expect((await user.post('/import', body)).status).toBe(429);
    await deleteOldImports(staging.context.database);
    expect((await user.post('/import', body)).status).toBe(429);
    await runOn(inline.database.url, `update imports set expires_at = now() where user_id = ${user.id}`);
    await deleteOldImports(staging.context.database);
    expect((await user.post('/import', body)).body.imported).toBe(200);
  });
});

describe('64 MiB', () => {
  const processes = useApiAndWorker(inline);

  // Each request has its own connection. While this process builds a long body, it does not notice that the service
  // closes an idle connection.
  const send = async (user: TestUser, body: string | Buffer) => {
    const { method, headers } = requestOptions(user);
    const response = await fetch(`${processes.api.origin}/api/v1/import`, {
      method,
      headers: { ...headers, connection: 'close' },
      body: body as BodyInit,
    });
    return (await response.json()) as Record<string, unknown>;
  };

  test('pass through a replica to a worker, and its memory grows by less than 128 MiB', async () => {
    const user = await inline.user({ premium: true });
    // This import warms up code and connections, so that their memory does not count as growth.
    await send(user, bodyOf(400, 9_000));
    const body = bodyOf(6_900, 9_580);
    expect(body.length).toBeGreaterThan(63 * MIB);
    const growth = await measureGrowth(processes.api.pid, async () => {
      expect(await send(user, body)).toEqual({ imported: 6_500, skipped: 400, errors: [] });
    });
    expect(growth).toBeLessThan(128 * MIB);
  });

  test.for([
    ['[', ']'],
    ['{"a":', '}'],
  ] as const)(
    'of nested %s are refused, a million deep is one bad entry, and the worker goes on',
    async ([open, close]) => {
      const user = await inline.user({ premium: true });
      const nested = (depth: number) => `{"bookmarks":[${open.repeat(depth)}0${close.repeat(depth)}]}`;
      const deepest = Math.floor((64 * MIB - 64) / (open.length + close.length));
      const growth = await measureGrowth(processes.worker.pid, async () => {
        expect(await send(user, nested(deepest))).toMatchObject({ code: 'VALIDATION_ERROR' });
        expect(await send(user, nested(1_000_000))).toMatchObject({
          imported: 0,
          errors: [{ index: 0, url: null }],
        });
      });
      expect(growth).toBeLessThan(768 * MIB);
    },
  );
});
