import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { additionsChannel, notifyPolls } from '../src/coordination/channels.ts';
import { foldText } from '../src/domain/text.ts';
import type { HeldBytes } from '../src/flow/held-bytes.ts';
import type { Logger } from '../src/observability/log.ts';
import { createDatabase, runOn } from './support/database.ts';
import { fill } from './support/fill.ts';
import { measureGrowth } from './support/memory.ts';
import { type LogLine, startReplica } from './support/replica.ts';
import { connectTo, sendRaw } from './support/responses.ts';
import { startService, type TestService, type TestUser, useService, useUser } from './support/service.ts';
import { holdLock, untilBlocked } from './support/sessions.ts';
import { formatPost, sendUnread, type UnreadClient } from './support/unread.ts';

// Tests that a hostile client harms only itself.

const service = useService();
const user = useUser(service, { premium: true });

const MIB = 1_048_576;

/** Starts watching how many bytes `held` counts. Returns a function that returns the highest number since the start. */
function watchHighest(held: HeldBytes): () => number {
  let highest = held.total;
  const hold = held.hold.bind(held);
  const watched = vi.spyOn(held, 'hold').mockImplementation((userId, bytes) => {
    const release = hold(userId, bytes);
    highest = Math.max(highest, held.total);
    return release;
  });
  onTestFinished(() => void watched.mockRestore());
  return () => highest;
}

async function open(): Promise<Socket> {
  const socket = connect({
    port: Number(new URL(service.origin).port),
    host: '127.0.0.1',
    allowHalfOpen: true,
  });
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** Returns the uncaught errors that occur while `work` runs. */
async function collectUncaught(work: () => Promise<void>): Promise<unknown[]> {
  const uncaught: unknown[] = [];
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => uncaught.push(error));
  try {
    await work();
  } finally {
    process.removeAllListeners('uncaughtException');
    for (const other of others) process.on('uncaughtException', other);
  }
  return uncaught;
}

describe('connections', () => {
  test.each(['CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 'NONSENSE\r\n\r\n'])(
    'a reset after %j does not end the process',
    async (text) => {
      const uncaught = await collectUncaught(async () => {
        for (let i = 0; i < 30; i += 1) {
          const socket = await open();
          socket.write(text);
          if (i % 2 === 1) await sleep(i);
          socket.resetAndDestroy();
        }
        expect((await user.post('/user/profile')).status).toBe(200);
      });
      expect(uncaught).toEqual([]);
    },
  );

  test.each(['CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 'NONSENSE\r\n\r\n'])(
    'the service closes the connection after %j even if the client keeps its side open',
    async (text) => {
      const isOpen = new Promise<Socket>((resolve) => service.app.server.once('connection', resolve));
      const client = await open();
      const server = await isOpen;
      const ended = once(client.resume(), 'end');
      client.write(text);
      await ended;
      if (!server.destroyed) await once(server, 'close');
      client.destroy();
    },
  );
});

describe('slow clients', () => {
  test.concurrent.each([
    ['head', 'POST /api/v1/user/profile HTTP/1.1\r\nHos'],
    ['body', 'POST /api/v1/user/profile HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{'],
  ])('the connection is closed if a %s does not arrive within REQUEST_TIMEOUT_SECONDS', async (_, text) => {
    await using hasty = await startService({ requestTimeoutSeconds: 1 });
    const token = (await hasty.user()).token;
    const authorized = text.replace(
      'Host: a',
      `Host: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json`,
    );
    const response = await sendRaw(hasty.origin, authorized);
    expect(response).toMatchObject({ status: 400, body: { error: 'request: took too long to arrive' } });
  });
});

describe('responses that nobody reads', () => {
  const STALL_SECONDS = 2;
  const lines: LogLine[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const slow = {} as TestService;
  const greedy = {} as TestUser;
  const other = {} as TestUser;

  beforeAll(async () => {
    const config = { responseStallSeconds: STALL_SECONDS, metricsPort: 0, compatLinkding: true };
    Object.assign(slow, await startService(config, { log: log as Logger }));
    Object.assign(greedy, await slow.user({ premium: true }));
    Object.assign(other, await slow.user());
    // The user's bookmarks take 40 MB, which is more than the kernel buffers for a connection.
    await fill(slow.database.url, greedy, 4_000, 10_000);
  });
  afterAll(() => slow[Symbol.asyncDispose]());

  const outboundBacklog = () => slow.context.outboundBacklog.total;
  // The server notices the end of a connection later than the client does. So each test first waits until the backlog
  // of the previous test is gone.
  beforeEach(() => expect.poll(outboundBacklog).toBe(0));

  const LIST = { limit: 500 };

  /** Requests the first page `count` times on one connection, and does not read the responses. */
  const requestPages = (count: number) =>
    sendUnread(slow.origin, formatPost('/bookmarks/list', greedy.token, LIST).repeat(count));

  const requestExport = () =>
    sendUnread(slow.origin, formatPost('/export', greedy.token, {}, 'Connection: close'));

  const brokenOff = (from = 0) => lines.slice(from).filter(({ msg }) => msg === 'response aborted');

  /** Returns the log lines about responses that were cut off while `work` ran. */
  async function collectCutOff(work: () => Promise<void>): Promise<LogLine[]> {
    const before = lines.length;
    await work();
    await expect.poll(outboundBacklog).toBe(0);
    return brokenOff(before);
  }

  test("are buffered up to 8 MiB per account; then the account's requests get 503 before any work, and other accounts are served", async () => {
    const clients: UnreadClient[] = [];
    while (outboundBacklog() < 8 * MIB) {
      clients.push(await requestPages(10));
      await expect.poll(() => slow.context.requestPermits.gauges(greedy.id).inUse).toBe(0);
    }
    const reads = (['read', 'readShort'] as const).map((name) => vi.spyOn(slow.context.database, name));
    onTestFinished(() => reads.forEach((read) => void read.mockRestore()));
    const refused = await greedy.post('/user/profile');
    expect(refused).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
    expect(refused.body.error).toBe('earlier responses to this account have not been read yet');
    expect(refused.headers.get('retry-after')).toMatch(/^[1-3]$/);
    expect(refused.headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/);
    for (const read of reads) expect(read).not.toHaveBeenCalled();
    expect((await other.post('/bookmarks/list')).status).toBe(200);
    for (const client of clients) client[Symbol.dispose]();
    await expect.poll(outboundBacklog).toBe(0);
    expect((await greedy.post('/user/profile')).status).toBe(200);
  });

  test("exceed the account's limit by at most one read, with any number of connections", async () => {
    const highest = watchHighest(slow.context.outboundBacklog);
    const clients = await Promise.all(Array.from({ length: 60 }, () => requestPages(10)));
    await expect.poll(highest).toBeGreaterThan(8 * MIB);
    for (const client of clients) expect(await client.take(1)).toBeGreaterThan(0);
    // Of the ten connections to the database, five may read for this account at the same time, one page each.
    expect(highest()).toBeLessThan(8 * MIB + 5 * 1.3 * MIB);
    for (const client of clients) client[Symbol.dispose]();
  });

  const searchByMcp = (token: string) => {
    const call = { name: 'search_bookmarks', arguments: { per_page: 50 } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call });
    return (
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n` +
      'Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n' +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
    );
  };
  const listAsLinkding = (token: string) =>
    `GET /compat/linkding/api/bookmarks/?limit=100 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Token ${token}\r\n\r\n`;

  test.each([
    ['/mcp', searchByMcp],
    ["linkding's API", listAsLinkding],
  ])('are counted before the next request of the account begins, also at %s', async (_, format) => {
    const reader = await slow.user({ premium: true });
    const long = { url: `https://example.org/${'€'.repeat(8_000)}`, title: '€'.repeat(2_000) };
    await reader.post('/import', { bookmarks: Array(50).fill(long), mode: 'replace' });
    const { outboundBacklog, requestPermits } = slow.context;
    const hold = outboundBacklog.hold.bind(outboundBacklog);
    const permitsInUse: number[] = [];
    const watched = vi.spyOn(outboundBacklog, 'hold').mockImplementation((userId, bytes) => {
      permitsInUse.push(requestPermits.gauges(userId).inUse);
      return hold(userId, bytes);
    });
    onTestFinished(() => void watched.mockRestore());
    using _client = await sendUnread(slow.origin, format(reader.token).repeat(16));
    await expect.poll(() => permitsInUse.length).toBeGreaterThan(2);
    expect(Math.min(...permitsInUse)).toBeGreaterThan(0);
  });

  test('are buffered up to UNSENT_BYTES for all accounts; then every request gets 503, even without a token', async () => {
    await using small = await startService({ maxOutboundBacklog: MIB }, { database: slow.database });
    // An export holds two pages while its client does not read.
    using _client = await sendUnread(small.origin, formatPost('/export', greedy.token));
    await expect.poll(() => small.context.outboundBacklog.total).toBeGreaterThan(1.5 * MIB);
    await expect.poll(() => small.context.requestPermits.gauges(greedy.id).inUse).toBe(0);
    const refused = [
      await small.post('/user/profile', {}, { token: other.token }),
      await small.post('/auth/invite', { code: 'UNKNOWN0' }),
    ];
    for (const { status, body, headers } of refused) {
      expect({ status, body }).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
      expect(headers.get('retry-after')).toMatch(/^[1-3]$/);
    }
    expect((await small.post('/user/profile', {}, { token: 'nonsense' })).status).toBe(401);
    expect((await fetch(`${small.origin}/livez`)).status).toBe(200);
  });

  test.each([
    ['pages', () => requestPages(10), '/api/v1/bookmarks/list'],
    ['exports', requestExport, '/api/v1/export'],
  ])(
    '%s are cut off: a client that reads nothing for RESPONSE_STALL_SECONDS loses its connection',
    async (_, ask, route) => {
      const broken = await collectCutOff(async () => {
        const before = lines.length;
        using client = await ask();
        await expect.poll(() => brokenOff(before)).not.toEqual([]);
        expect(await client.readToEnd()).toBe('ECONNRESET');
      });
      expect(broken[0]).toMatchObject({ route, user: greedy.id, reason: 'stalled' });
      expect(broken[0]!.sentBytes).toBeGreaterThan(0);
      expect(broken[0]!.ms).toBeGreaterThanOrEqual(STALL_SECONDS * 1_000);
      expect(JSON.stringify(broken)).not.toContain(greedy.token.slice(-43));
    },
  );

  test('are not cut off while the client keeps reading, however long the response takes', async () => {
    const broken = await collectCutOff(async () => {
      using client = await requestExport();
      const startedAt = performance.now();
      // The kernel frees its buffer in chunks of 1.5 MB. So the client reads half a megabyte every 100 ms: that is
      // enough to free a chunk before the service sees a stall.
      for (; performance.now() - startedAt < 2 * STALL_SECONDS * 1_000; await sleep(100)) {
        expect(await client.take(MIB / 2)).toBeGreaterThan(0);
      }
      expect(client.socket.destroyed).toBe(false);
      expect(outboundBacklog()).toBeGreaterThan(0);
    });
    expect(broken).toMatchObject([{ reason: 'client' }]);
  });

  test('are cut off if the client reads only a byte now and then', async () => {
    const broken = await collectCutOff(async () => {
      const before = lines.length;
      using client = await requestExport();
      for (; brokenOff(before).length === 0; await sleep(100)) client.socket.read(1);
      expect(await client.readToEnd()).toBe('ECONNRESET');
    });
    expect(broken).toMatchObject([{ reason: 'stalled' }]);
  });

  test("many unread exports use at most half of the account's limit, and each continues when there is room", async () => {
    const before = lines.length;
    const highest = watchHighest(slow.context.outboundBacklog);
    const [last, ...others] = await Promise.all(Array.from({ length: 30 }, requestExport));
    await expect.poll(outboundBacklog).toBeGreaterThan(4 * MIB);
    expect((await greedy.post('/user/profile')).status).toBe(200);
    for (const other of others) other[Symbol.dispose]();
    expect(await last!.readToEnd()).toBeUndefined();
    expect(last!.socket.bytesRead).toBeGreaterThan(40_000_000);
    await expect.poll(() => brokenOff(before).length).toBe(others.length);
    expect(highest()).toBeLessThan(4 * MIB + 5 * 1.1 * MIB);
  });

  test('are counted and logged with the reason if they are cut off', async () => {
    const countBroken = async (reason: string) => {
      const { registry } = slow.context.metrics;
      const metric = registry.getSingleMetric('bookmarks_http_broken_responses_total')!;
      const { values } = await metric.get();
      return values.find(({ labels }) => labels.reason === reason)!.value;
    };
    const end: Record<string, (client: UnreadClient) => unknown> = {
      client: ({ socket }) => socket.resetAndDestroy(),
      service: async ({ readToEnd }) => {
        await slow.context.database
          .sql`update accounts set generation = generation + 1 where user_id = ${greedy.id}`;
        await readToEnd();
      },
    };
    for (const [reason, finish] of Object.entries(end)) {
      const before = await countBroken(reason);
      const broken = await collectCutOff(async () => {
        using client = await requestExport();
        expect(await client.take(1)).toBeGreaterThan(0);
        await finish(client);
      });
      expect(broken).toMatchObject([{ reason, user: greedy.id, route: '/api/v1/export' }]);
      expect(await countBroken(reason)).toBe(before + 1);
    }
    const before = await countBroken('unanswered');
    using poll = await sendUnread(
      slow.origin,
      formatPost('/bookmarks/sync', other.token, { cursor: 9_999, wait: true }),
    );
    await expect.poll(() => slow.context.coordination.notifier.held).toBe(1);
    poll.socket.destroy();
    await expect.poll(() => countBroken('unanswered')).toBe(before + 1);
  });

  test("many polls that are notified together do not exceed the account's limit of unread bytes", async () => {
    const sleeper = await slow.user({ premium: true });
    const tokens = await Promise.all(Array.from({ length: 8 }, () => slow.token(sleeper.id, 'read')));
    const polls = await Promise.all(
      tokens.map((token) =>
        sendUnread(
          slow.origin,
          // The test sends many polls, because the kernel buffers the first few pages, which do not count as backlog.
          formatPost('/bookmarks/sync', token, { cursor: 0, limit: 100, wait: true }).repeat(16),
        ),
      ),
    );
    const { notifier } = slow.context.coordination;
    await expect.poll(() => notifier.held).toBe(8 * 16);
    const highest = watchHighest(slow.context.outboundBacklog);
    await fill(slow.database.url, sleeper, 100, 10_000);
    notifier.notify(additionsChannel(sleeper.id));
    await expect.poll(() => notifier.held).toBe(0);
    await expect.poll(highest).toBeGreaterThan(4 * MIB);
    for (const client of polls) client[Symbol.dispose]();
    await expect.poll(outboundBacklog).toBe(0);
    expect(highest()).toBeLessThan(10 * MIB);
  });
});

describe('a connection with many requests at once', () => {
  test('is closed at the seventeenth open request, while other clients are served', async () => {
    const poll = formatPost('/bookmarks/sync', user.token, { cursor: 9_999, wait: true });
    using sixteen = await sendUnread(service.origin, poll.repeat(16));
    await expect.poll(() => service.context.coordination.notifier.held).toBe(16);
    using more = await sendUnread(service.origin, formatPost('/user/profile', user.token).repeat(1_000));
    expect(await more.readToEnd()).toBe('ECONNRESET');
    expect((await user.post('/user/profile')).status).toBe(200);
    expect(sixteen.socket.destroyed).toBe(false);
    sixteen.socket.write(formatPost('/user/profile', user.token));
    expect(await sixteen.readToEnd()).toBe('ECONNRESET');
    await expect.poll(() => service.context.coordination.notifier.held).toBe(0);
  });

  test('may send any number of requests one after the other', async () => {
    using client = await sendUnread(service.origin, '');
    for (let i = 0; i < 40; i += 1) {
      client.socket.write(formatPost('/user/profile', user.token));
      expect(await client.take(100)).toBeGreaterThan(0);
    }
  });
});

describe('bodies in very many chunks', () => {
  /** Formats a body in chunks of one byte. HTTP allows such small chunks. */
  const inChunks = (text: string) => `${[...text].map((byte) => `1\r\n${byte}\r\n`).join('')}0\r\n\r\n`;

  const headOf = (path: string, token?: string) =>
    `POST /api/v1${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n` +
    `${token === undefined ? '' : `Authorization: Bearer ${token}\r\n`}Transfer-Encoding: chunked\r\n\r\n`;

  const addOf = (length: number) => JSON.stringify({ url: 'http://e/', x: 'x'.repeat(length) });
  const importOf = (length: number) =>
    JSON.stringify({ bookmarks: [{ url: 'http://e/', x: 'x'.repeat(length) }] });

  /**
   * The length of the text in a body. The body alone is shorter than the 64 KiB that Node reads at a time. In chunks of
   * one byte, the body takes several times 64 KiB.
   */
  const SHORT = 60_000;

  /**
   * Watches the service's new connections until the test ends. Returns a function that returns the highest number of
   * bytes that the service has read from one connection in one turn of the event loop.
   */
  function watchReads() {
    const before = new Map<Socket, number>();
    let most = 0;
    const accept = (socket: Socket) => before.set(socket, 0);
    service.app.server.on('connection', accept);
    let immediate: NodeJS.Immediate;
    const check = () => {
      for (const [socket, bytes] of before) {
        most = Math.max(most, socket.bytesRead - bytes);
        before.set(socket, socket.bytesRead);
      }
      immediate = setImmediate(check);
    };
    check();
    onTestFinished(() => {
      clearImmediate(immediate);
      service.app.server.off('connection', accept);
    });
    return () => most;
  }

  test.each([
    ['an add', '/bookmarks/add', addOf(SHORT)],
    ['an import', '/import', importOf(SHORT)],
  ])('the body of %s is read a little at a time, and is accepted like any other', async (_, path, text) => {
    const most = watchReads();
    const connection = connectTo(service.origin);
    void connection.write(
      headOf(path, user.token) +
        inChunks(text) +
        formatPost('/user/profile', user.token, {}, 'Connection: close'),
    );
    const responses = await connection.responses();
    expect(responses.map(({ status }) => status)).toEqual([200, 200]);
    // Node reads 64 KiB at a time. Without a limit, it would read all data of this connection before any other data.
    expect(most()).toBeLessThanOrEqual(65_536);
  });

  test('the body of a request without a token is read a little at a time, and dropped', async () => {
    const most = watchReads();
    const connection = connectTo(service.origin);
    void connection.write(
      headOf('/bookmarks/add') +
        inChunks(addOf(SHORT)) +
        formatPost('/user/profile', user.token, {}, 'Connection: close'),
    );
    expect((await connection.responses()).map(({ status }) => status)).toEqual([401, 200]);
    expect(most()).toBeLessThanOrEqual(65_536);
  });

  test.each([
    ['bodies of adds', '/bookmarks/add', addOf(200_000)],
    ['bodies of imports', '/import', importOf(200_000)],
  ])('%s take little more memory than their bytes', async (_, path, text) => {
    await using replica = await startReplica('api', { DATABASE_URL: service.database.url });
    const half = inChunks(text).slice(0, -1_000);
    const clients = await Promise.all(Array.from({ length: 4 }, () => sendUnread(replica.origin, '')));
    const growth = await measureGrowth(replica.pid, async () => {
      for (const { socket } of clients) socket.write(headOf(path, user.token) + half);
      // The kernel buffers a part of the body before the service reads it.
      await expect.poll(() => clients.every(({ socket }) => socket.writableLength === 0)).toBe(true);
      // While the replica is busy with the bodies, a request may get 503.
      await expect.poll(async () => (await replica.post('/user/profile', {}, user.token)).status).toBe(200);
    });
    for (const client of clients) client[Symbol.dispose]();
    expect(growth).toBeLessThan(100 * MIB);
  });
});

describe('bodies that do not end', () => {
  const announced = 640 * 1_024;

  /** Sends a body except for its last byte. */
  const sendMost = (token: string, path: string) => {
    const connection = connectTo(service.origin);
    const head =
      `POST /api/v1${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${announced}\r\n\r\n`;
    // If the service refuses the body, it closes the connection, so the write may fail.
    connection.write(head + ' '.repeat(announced - 1)).catch(() => {});
    return connection;
  };

  test.each(['/bookmarks/add', '/import'])(
    'bodies for %s are kept up to 16 MiB per account; then some get 503, and other accounts are served',
    async (path) => {
      const greedy = await service.user();
      const received = () => service.context.received.of(greedy.id);
      const highest = watchHighest(service.context.received);
      const clients = Array.from({ length: 60 }, () => sendMost(greedy.token, path));
      onTestFinished(() => {
        for (const client of clients) client.destroy();
      });
      const [refused] = await Promise.race(clients.map((client) => client.responses()));
      expect(refused).toMatchObject({
        status: 503,
        body: { code: 'UNAVAILABLE', error: 'other request bodies of this account are still being received' },
      });
      expect(Number(refused!.headers.get('retry-after'))).toBeGreaterThan(0);
      expect((await user.post('/bookmarks/add', { url: 'http://e/' })).status).toBe(200);
      for (const client of clients) client.destroy();
      await expect.poll(received).toBe(0);
      expect(highest()).toBeLessThan(17 * MIB);
      expect((await greedy.post('/bookmarks/add', { url: 'http://e/' })).status).toBe(200);
    },
  );
});

test('a complete body is not kept if its client disconnects while its token is looked up', async () => {
  const leaving = await service.user();
  const body = JSON.stringify({ url: 'https://left.example/', comment: 'a'.repeat(1_000) });
  const lock = await holdLock(service.database.url, 'lock table tokens in access exclusive mode');
  const client = connectTo(service.origin);
  await client.write(
    `POST /api/v1/bookmarks/add HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${leaving.token}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await untilBlocked(service.database.url);
  client.destroy();
  // When the replica responds to this later request, it has already noticed that the client disconnected.
  await fetch(`${service.origin}/livez`);
  await lock.release();
  await expect.poll(async () => (await leaving.post('/account/get')).body.bookmark_count).toBe(1);
  await expect.poll(() => service.context.received.of(leaving.id)).toBe(0);
});

describe('text that is expensive to normalise', () => {
  /**
   * Returns combining marks in the wrong order. Normalization has to move each mark of the second half before all marks
   * of the first half.
   */
  const marks = (count: number) => '\u0301'.repeat(count / 2) + '\u0316'.repeat(count / 2);

  test('long runs of combining marks are normalised in chunks: as one, half a million would take minutes', () => {
    expect(foldText(`a${marks(500_000)}`)).toHaveLength(500_000);
    expect(foldText(`A${marks(8)}`)).toBe(`a${marks(8)}`.normalize('NFC'));
  });

  test("the length of a tag's name is checked before the name is normalised", async () => {
    const tags = [`a${marks(300_000)}`];
    const response = await user.post('/bookmarks/add', { url: 'https://a.example/', tags });
    expect(response).toMatchObject({ status: 400, body: { error: 'tags[0]: at most 255 characters' } });
  });

  test('a name that fits after normalisation is accepted', async () => {
    const name = 'ᾂ'.repeat(255);
    const response = await user.post('/tags/create', { name: name.normalize('NFD') });
    expect(response).toMatchObject({ status: 200, body: { name } });
  });
});

describe('bodies that grow when they are parsed', () => {
  const listOf = (entry: string, count: number) => `[${Array(count).fill(entry).join(',')}]`;

  test.each([
    ['0', 'tags[0]: expected a string'],
    ['""', 'tags[0]: may not be empty'],
  ])('an array with many invalid tags (%s) causes one error, not one per tag', async (tag, error) => {
    const body = `{"bookmarks":[{"url":"https://a.example/","tags":${listOf(tag, 170_000)}}]}`;
    const { body: response } = await user.post('/import', body);
    expect(response.errors).toMatchObject([{ index: 0, error }]);
  });

  test('many names of the same tag count as one tag', async () => {
    const response = await user.post('/import', {
      bookmarks: [{ url: 'https://b.example/', tags: Array(70_000).fill('same') }],
    });
    expect(response).toMatchObject({ status: 200, body: { imported: 1, errors: [] } });
  });

  const listed = (count: number, of: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => of(n)).join(',');

  test.each([
    ['a title', `"title":{${listed(50_000, (n) => `"k${n}":0`)}}`],
    ['tags', `"tags":["t",${listed(40_000, (n) => `{"k${n}":0}`)}]`],
    ['unknown fields', listed(50_000, (n) => `"k${n}":0`)],
    ['an unknown field', `"x":${'['.repeat(300_000)}${']'.repeat(300_000)}`],
    ['a body', null],
  ])(
    'a body with more values in the place of %s than any body may have is refused before it is parsed',
    async (_, field) => {
      const error = 'body: contains too many values';
      const body = field === null ? `[${listed(40_000, () => '{}')}]` : `{"url":"http://f/",${field}}`;
      const response = await service.post('/bookmarks/add', body, { token: user.token });
      expect(response).toMatchObject({ status: 400, body: { code: 'VALIDATION_ERROR', error } });
    },
  );
});

describe('bodies of imports', () => {
  test('an import in replace mode with an entry over 512 KiB changes nothing', async () => {
    const owner = await service.user();
    await owner.post('/bookmarks/add', { url: 'http://e/1' });
    const bookmarks = [{ url: 'http://e/2' }, { url: 'http://e/3', x: 'x'.repeat(524_288) }];
    const refused = await owner.post('/import', { mode: 'replace', bookmarks });
    expect(refused).toMatchObject({ status: 400, body: { code: 'VALIDATION_ERROR' } });
    expect(refused.body.error).toBe(
      'bookmarks[1]: at most 524288 bytes; 1 entry is invalid and nothing was changed',
    );
    expect((await owner.post('/export')).body.bookmarks).toMatchObject([{ url: 'http://e/1' }]);
  });
});

describe('responses that are stored for Idempotency-Keys', () => {
  const keyed = (key: string) => ({ headers: { 'idempotency-key': key } });
  const keptBytes = async ({ id }: TestUser): Promise<number> => {
    const [row] = await runOn<{ kept: string }>(
      service.database.url,
      `select coalesce(sum(octet_length(k.response) + coalesce(octet_length(i.errors), 0)), 0) as kept
      from idempotency_keys k
      left join imports i on i.user_id = k.user_id and i.id = k.import_id
      where k.user_id = ${id}`,
    );
    return Number(row!.kept);
  };
  /** Returns the body of an import with one valid entry. The errors of its other entries take 1.3 MB. */
  const bodyOf = (n: number) => ({
    bookmarks: [
      ...Array.from({ length: 3_500 }, (_, m) => ({ url: `${m} ${'x'.repeat(250)}` })),
      { url: `https://kept.example/${n}` },
    ],
  });

  test('use at most 16 MiB per account; then a request with a new key is RATE_LIMITED and does nothing', async () => {
    const greedy = await service.user();
    let sent = 0;
    let response = await greedy.post('/import', bodyOf(sent), keyed(`key-${sent}`));
    const first = response.text;
    for (; response.status === 200 && sent < 30; sent += 1)
      response = await greedy.post('/import', bodyOf(sent + 1), keyed(`key-${sent + 1}`));
    expect(response).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(await keptBytes(greedy)).toBeLessThanOrEqual(16 * MIB);
    expect(await keptBytes(greedy)).toBeGreaterThan(12 * MIB);
    const { body } = await greedy.post('/bookmarks/search', { per_page: 1 });
    expect(body.total).toBe(sent);

    // Requests with an earlier idempotency key still get the stored responses, and requests without a key are served.
    expect((await greedy.post('/import', bodyOf(0), keyed('key-0'))).text).toBe(first);
    expect(await greedy.post('/import', bodyOf(sent))).toMatchObject({ status: 200, body: { imported: 1 } });
    // Another account has its own limit.
    const other = await service.user();
    expect((await other.post('/import', bodyOf(0), keyed('key-0'))).status).toBe(200);
  });

  test('errors that exceed all the space are a VALIDATION_ERROR, and errors that only lack space now are RATE_LIMITED', async () => {
    const greedy = await service.user();
    const importOf = (count: number) =>
      greedy.post(
        '/import',
        { bookmarks: Array.from({ length: count }, (_, m) => ({ url: `${10_000 + m} ${'x'.repeat(250)}` })) },
        keyed(`errors-${count}`),
      );
    await runOn(service.database.url, `update accounts set kept_bytes = ${MIB} where user_id = ${greedy.id}`);
    const { text } = await greedy.post('/import', { bookmarks: [{ url: `10000 ${'x'.repeat(250)}` }] });
    const errorBytes = Buffer.byteLength(text) - '{"imported":0,"skipped":0,"errors":[]}'.length;
    const tooMany = Math.ceil((16 * MIB) / errorBytes);
    expect(await importOf(tooMany)).toMatchObject({ status: 400, body: { code: 'VALIDATION_ERROR' } });
    // A later error takes five bytes more than the first: a comma, and four digits of its index.
    const fitting = Math.floor((16 * MIB) / (errorBytes + 5));
    expect(await importOf(fitting)).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
  });

  test('at the limit, adds, new tags and imports with a new key are RATE_LIMITED, and those without a key succeed', async () => {
    const greedy = await service.user();
    await greedy.post('/bookmarks/add', { url: 'https://kept.example/' }, keyed('used'));
    const setKept = (bytes: string) =>
      runOn(
        service.database.url,
        `update idempotency_keys set bytes = ${bytes} where user_id = ${greedy.id};
        update accounts set kept_bytes = ${bytes} where user_id = ${greedy.id}`,
      );
    await setKept('16777216 - 524287');
    const refused = await Promise.all([
      greedy.post('/bookmarks/add', { url: 'https://kept.example/' }, keyed('new')),
      greedy.post('/tags/create', { name: 'Kept' }, keyed('new-tag')),
      greedy.post('/import', { bookmarks: [], x: 'x'.repeat(2 * MIB) }, keyed('new-import')),
    ]);
    for (const { status, body, headers } of refused) {
      expect([status, body.code, headers.get('retry-after')]).toEqual([429, 'RATE_LIMITED', '60']);
    }
    expect((await greedy.post('/bookmarks/search')).body.total).toBe(1);
    expect((await greedy.post('/tags/list')).body.tags).toEqual([]);
    const again = await greedy.post('/bookmarks/add', { url: 'https://kept.example/' }, keyed('used'));
    expect(again.status).toBe(200);
    expect((await greedy.post('/tags/create', { name: 'Kept' })).status).toBe(200);
    // A day later the stored responses have expired.
    await runOn(
      service.database.url,
      `update idempotency_keys set created_at = now() - interval '25 hours' where user_id = ${greedy.id}`,
    );
    const repeated = await greedy.post('/bookmarks/add', { url: 'https://kept.example/' }, keyed('used'));
    expect(repeated.body.id).not.toBe(again.body.id);
  });
});

describe('a role with settings of its own in the database', () => {
  test('does not break any promise of the service', async () => {
    await using database = await createDatabase();
    const { pathname } = new URL(database.url);
    const settings = {
      default_transaction_isolation: 'serializable',
      bytea_output: 'escape',
      array_nulls: 'off',
      timezone: 'Asia/Kathmandu',
      datestyle: 'German, DMY',
      intervalstyle: 'sql_standard',
      standard_conforming_strings: 'off',
    };
    const alter = Object.entries(settings).map(
      ([name, value]) => `alter database ${pathname.slice(1)} set ${name} = '${value}';`,
    );
    await runOn(database.url, alter.join(''));
    await using odd = await startService({ importInlineBytes: 1_000, freeBookmarkLimit: 200 }, { database });
    const somebody = await odd.user();
    const added = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        somebody.post('/bookmarks/add', { url: `https://a.example/${n}` }),
      ),
    );
    expect(new Set(added.map(({ status }) => status))).toEqual(new Set([200]));
    const bookmarks = Array.from({ length: 100 }, (_, n) => ({
      url: `https://b.example/${n}`,
      title: "it's \\ a 'title'",
      ...(n % 2 === 0 && { created_at: '2020-02-03T04:05:06.789+05:45' }),
    }));
    const small = await somebody.post('/import', { bookmarks: bookmarks.slice(0, 5) });
    expect(small).toMatchObject({ status: 200, body: { imported: 5 } });
    const large = await somebody.post('/import', { bookmarks });
    expect(large).toMatchObject({ status: 200, body: { imported: 95, skipped: 5 } });
    const found = await somebody.post('/bookmarks/search', { query: "\\ 'TITLE'", per_page: 1, page: 100 });
    expect(found.body).toMatchObject({ total: 100, bookmarks: [{ created_at: '2020-02-02T22:20:06.789Z' }] });
  });
});

describe('one user who keeps the database busy', () => {
  test('leaves connections to the others', async () => {
    await using crowded = await startService({ databasePoolSize: 4 });
    const [busy, other] = [await crowded.user(), await crowded.user()];
    const locked = await crowded.context.importDatabase.sql.reserve();
    await locked`begin`;
    await locked`select from accounts where user_id = ${busy.id} for update`;
    const waiting = Array.from({ length: 12 }, (_, n) =>
      busy.post('/bookmarks/add', { url: `https://a.example/${n}` }),
    );
    await expect.poll(() => crowded.context.database.gauges.inUse).toBe(2);
    for (const path of ['/user/profile', '/tags/list', '/bookmarks/list']) {
      expect((await other.post(path)).status).toBe(200);
    }
    expect(crowded.context.database.gauges.inUse).toBe(2);
    await locked`rollback`;
    locked.release();
    const responses = await Promise.all(waiting);
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
  });

  test('takes at most half of the connections by exports, syncs and polls, including running exports and notified polls', async () => {
    await using crowded = await startService({ databasePoolSize: 6 });
    const [busy, other] = [await crowded.user({ premium: true }), await crowded.user()];
    await fill(crowded.database.url, busy, 4_000, 2_000);
    const { notifier } = crowded.context.coordination;
    const [last] = await crowded.context.database.sql<{ id: number }[]>`
      select max(id) as id from bookmarks where user_id = ${busy.id}`;
    const exports = await Promise.all(Array.from({ length: 4 }, () => beginReading(crowded, busy)));
    const { cursor } = (await busy.post('/bookmarks/changes', { from: 'now' })).body;
    const polls = Array.from({ length: 6 }, () => [
      busy.post('/bookmarks/sync', { wait: true, cursor: last!.id }),
      busy.post('/bookmarks/changes', { wait: true, cursor }),
    ]).flat();
    await expect.poll(() => notifier.held).toBe(12);

    // From now on, every read of bookmarks keeps its connection until the lock is released.
    const lock = await holdLock(crowded.database.url, 'lock table bookmarks in access exclusive mode');
    const streamed = exports.map((reader) => readToEnd(reader));
    const permits = () => crowded.context.requestPermits.gauges(busy.id);
    await expect.poll(permits).toMatchObject({ inUse: 3, waiting: 1 });
    notifyPolls(notifier, busy.id);
    const asked = [
      '/export',
      '/bookmarks/list',
      '/bookmarks/sync',
      '/bookmarks/changes',
      '/bookmarks/search',
    ].flatMap((path) => Array.from({ length: 4 }, () => busy.post(path)));
    for (let n = 0; n < 10; n += 1) {
      expect((await other.post('/tags/list')).status).toBe(200);
      expect(crowded.context.database.gauges.inUse).toBeLessThanOrEqual(3);
    }
    await lock.release();
    expect((await busy.post('/bookmarks/add', { url: 'https://wakes.example/' })).status).toBe(200);
    await Promise.all([...polls, ...asked, ...streamed]);
  });
});

/** Starts an export and reads its first bytes. */
async function beginReading({ origin }: TestService, { token }: TestUser) {
  const response = await fetch(`${origin}/api/v1/export`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      // A compressed export would be so small that the service would finish sending it before the test reads it.
      'accept-encoding': 'identity',
    },
    body: '{}',
  });
  const reader = response.body!.getReader();
  await reader.read();
  return reader;
}

/** Reads until the response ends or is cut off. */
async function readToEnd(reader: ReadableStreamDefaultReader): Promise<void> {
  while (!(await reader.read().catch(() => ({ done: true }))).done);
}

test('an import whose token is revoked while its body arrives never runs (decision 24)', async () => {
  await using own = await startService({ importInlineBytes: 100 });
  const owner = await own.session();
  await owner.post('/bookmarks/add', { url: 'https://kept.example/' });
  const body = JSON.stringify({
    mode: 'replace',
    bookmarks: [{ url: 'https://late.example/' }],
    x: 'x'.repeat(500),
  });
  const connection = connectTo(own.origin);
  await connection.write(
    [
      'POST /api/v1/import HTTP/1.1',
      'Host: localhost',
      `Authorization: Bearer ${owner.token}`,
      'Content-Type: application/json',
      'Connection: close',
      `Content-Length: ${body.length}`,
      '',
      body.slice(0, -10),
    ].join('\r\n'),
  );
  const states = () =>
    own.context.database.sql<{ state: string }[]>`select state from imports where user_id = ${owner.id}`;
  await expect.poll(async () => (await states()).length).toBe(1);
  expect((await owner.post('/logout')).status).toBe(200);
  await connection.write(body.slice(-10));
  expect(await connection.responses()).toMatchObject([{ status: 401, body: { code: 'INVALID_TOKEN' } }]);
  expect((await states())[0]).toEqual({ state: 'cancelled' });
  const kept = await own.context.database.sql`select url from bookmarks where user_id = ${owner.id}`;
  expect([...kept]).toEqual([{ url: 'https://kept.example/' }]);
});
