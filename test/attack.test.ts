import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../src/domain/json.ts';
import { foldText } from '../src/domain/text.ts';
import { prepareImport } from '../src/operations/import/entries.ts';
import { createDatabase, runOn } from './support/database.ts';
import { connectTo, sendRaw } from './support/responses.ts';
import { startService, useService, useUser } from './support/service.ts';

// What a hostile client may try: it harms nobody but itself.

const service = useService();
const user = useUser(service, { premium: true });

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

/** Resolves with what was thrown and caught by nobody, while `work` went on. */
async function uncaughtDuring(work: () => Promise<void>): Promise<unknown[]> {
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
      const uncaught = await uncaughtDuring(async () => {
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
    'a client that keeps its side open after %j does not keep the connection',
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

describe('clients that are slow', () => {
  test.each([
    ['head', 'POST /api/v1/user/profile HTTP/1.1\r\nHos'],
    ['body', 'POST /api/v1/user/profile HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{'],
  ])('a %s that does not arrive within REQUEST_TIMEOUT_SECONDS ends the connection', async (_, text) => {
    await using hasty = await startService({ requestTimeoutSeconds: 1 });
    const token = (await hasty.user()).token;
    const authorized = text.replace(
      'Host: a',
      `Host: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json`,
    );
    const response = await sendRaw(hasty.origin, authorized);
    expect(response).toMatchObject({ status: 400, body: { error: 'request: did not arrive in time' } });
  });

  test('a response that nobody reads is not kept for ever', () => {
    expect(service.app.server.timeout).toBe(300_000);
  });
});

describe('text that is dear to normalise', () => {
  /** Marks in the wrong order: each has to pass all of the first kind. */
  const marks = (count: number) => '\u0301'.repeat(count / 2) + '\u0316'.repeat(count / 2);

  test('long runs of marks are folded in pieces: half a million of them would take minutes as one', () => {
    expect(foldText(`a${marks(500_000)}`)).toHaveLength(500_000);
    expect(foldText(`A${marks(8)}`)).toBe(`a${marks(8)}`.normalize('NFC'));
  });

  test('the name of a tag is measured before it is normalised', async () => {
    const response = await user.post('/tags/create', { name: `a${marks(500_000)}` });
    expect(response).toMatchObject({ status: 400, body: { error: 'name: at most 255 characters' } });
  });

  test('a name that fits once it is normalised is taken, whatever it was before', async () => {
    const name = 'ᾂ'.repeat(255);
    const response = await user.post('/tags/create', { name: name.normalize('NFD') });
    expect(response).toMatchObject({ status: 200, body: { name } });
  });
});

describe('bodies that grow when they are read', () => {
  const listOf = (entry: string, count: number) => `[${Array(count).fill(entry).join(',')}]`;

  test.each([
    ['0', 'tags[0]: expected a string'],
    ['""', 'tags[0]: may not be empty'],
  ])('an array of a million tags %s has one fault, not a million', async (tag, error) => {
    const body = Buffer.from(`{"bookmarks":[{"url":"https://a.example/","tags":${listOf(tag, 1_000_000)}}]}`);
    const before = process.memoryUsage().rss;
    const { errors } = await prepareImport(parseJson(body));
    expect(errors).toMatchObject([{ index: 0, error }]);
    // A million faults take 800 MB.
    expect(process.memoryUsage().rss - before).toBeLessThan(400_000_000);
  });

  test('a million names of the same tag are one tag', async () => {
    const response = await user.post('/import', {
      bookmarks: [{ url: 'https://b.example/', tags: Array(200_000).fill('same') }],
    });
    expect(response).toMatchObject({ status: 200, body: { imported: 1, errors: [] } });
  });

  test.each([
    ['objects', '{},'.repeat(3_500_000)],
    ['arrays in arrays', `${'['.repeat(3_500_000)}${']'.repeat(3_500_000)},`],
  ])('a body with millions of %s is refused before they are made', (_, entries) => {
    const body = Buffer.from(`{"bookmarks":[${entries}{}]}`);
    expect(() => parseJson(body)).toThrow('body: at most 3500000 objects and arrays');
  });

  test('brackets in strings are no arrays', () => {
    const comment = '{["\\'.repeat(2_000_000);
    expect(parseJson(Buffer.from(JSON.stringify({ comment })))).toEqual({ comment });
  });
});

describe('a role with settings of its own', () => {
  test('keeps every promise', async () => {
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
});

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
