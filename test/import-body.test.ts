import { readFileSync } from 'node:fs';
import { constants, getPriority } from 'node:os';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { parseToken } from '../src/domain/tokens.ts';
import { prepareEntries } from '../src/imports/batches.ts';
import { isOversized, MAX_ENTRY_BYTES } from '../src/imports/entries.ts';
import { Preparers } from '../src/imports/preparers.ts';
import { receiveImport } from '../src/imports/receive.ts';
import type { ImportBatch } from '../src/store/imports.ts';
import { deleteOldImports } from '../src/store/sweep.ts';
import { findPrincipal } from '../src/store/tokens.ts';
import { readProcessTimes } from './bench/harness/process-time.ts';
import { runOn } from './support/database.ts';
import { isRunning, listFamily } from './support/processes.ts';
import { sendRaw } from './support/responses.ts';
import { type TestUser, useService } from './support/service.ts';

/** The service receives the whole body of an import before it parses the body (section 4.4 of docs/contract.md). */

const PADDING = ' '.repeat(300_000);

/**
 * The server's process parses a short body, a separate process parses a longer one, and a worker parses a staged one.
 */
describe.each([
  ['a short body', '', 1_048_576],
  ['a longer body', PADDING, 1_048_576],
  ['a staged body', '', 0],
  ['a long staged body', PADDING, 0],
])('an import with %s', (_, padding, importInlineBytes) => {
  const service = useService({ importInlineBytes });

  async function send(body: string | Buffer): Promise<{ user: TestUser; status: number; body: unknown }> {
    const user = await service.user();
    const bytes = Buffer.concat([Buffer.from(padding), Buffer.from(body)]);
    const response = await fetch(`${service.origin}/api/v1/import`, {
      method: 'POST',
      headers: { authorization: `Bearer ${user.token}`, 'content-type': 'application/json' },
      body: bytes,
    });
    return { user, status: response.status, body: await response.json() };
  }

  test.each([
    ['malformed JSON', '{"bookmarks":[}', 'body: malformed JSON'],
    ['text after the JSON', '{"bookmarks":[]} {}', 'body: malformed JSON'],
    ['invalid UTF-8', Buffer.from('{"bookmarks":["\xff"]}', 'latin1'), 'body: is not UTF-8'],
    ['U+0000', '{"bookmarks":["\u0000"]}', 'body: malformed JSON'],
    ['an array', '[]', 'body: expected an object'],
    ['no bookmarks', '{}', 'bookmarks: is required'],
    ['bookmarks that are not an array', '{"bookmarks":{}}', 'bookmarks: expected an array'],
    ['an unknown mode', '{"bookmarks":[],"mode":"both"}', 'mode: expected "merge" or "replace"'],
    ['a key __proto__', '{"bookmarks":[{"__proto__":{"url":"http://a/"}}]}', 'body: malformed JSON'],
    ['100,001 entries', `{"bookmarks":[${'0,'.repeat(100_000)}0]}`, 'bookmarks: at most 100000 entries'],
  ])(
    'with %s is a VALIDATION_ERROR that names the fault, and leaves nothing behind',
    async (_name, text, error) => {
      const { user, ...response } = await send(text);
      expect(response).toEqual({ status: 400, body: { code: 'VALIDATION_ERROR', error } });
      const chunks = `select 1 from import_chunks where user_id = ${user.id}`;
      expect(await runOn(service.database.url, chunks)).toEqual([]);
    },
  );

  test('that is refused before all its bytes have arrived ends its connection', async () => {
    const user = await service.user();
    const { status, headers, body } = await sendRaw(
      service.origin,
      `POST /api/v1/import HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${user.token}\r\nIdempotency-Key: a b\r\n` +
        'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"bookmarks":',
    );
    expect([status, body.code, headers.get('connection')]).toEqual([400, 'VALIDATION_ERROR', 'close']);
  });

  test('uses the last of several fields with the same name, even of the array of bookmarks', async () => {
    const first = '"bookmarks":[{"url":"http://a/"}]';
    const second = '"bookmarks":[{"url":"http://b/","\\u0075rl":"http://c/"}]';
    const { status, body, user } = await send(`{"mode":"both",${first},${second},"mode":"merge"}`);
    expect([status, body]).toEqual([200, { imported: 1, skipped: 0, errors: [] }]);
    expect((await user.post('/export')).body.bookmarks).toMatchObject([{ url: 'http://c/' }]);
  });

  test('reports an entry that cannot be stored as an error of that entry', async () => {
    const large = `{"url":"http://a/","x":"${'x'.repeat(MAX_ENTRY_BYTES)}"}`;
    const { body } = await send(
      `{"bookmarks":["\\ud800",{"url":"http://a/","title":"\\u0000"},${large},{"url":"http://b/"}]}`,
    );
    expect(body).toMatchObject({
      imported: 1,
      errors: [
        { index: 0, url: null, error: 'expected an object' },
        { index: 1, url: 'http://a/', error: 'title: may not contain U+0000 or a lone surrogate' },
        { index: 2, url: null, error: `at most ${MAX_ENTRY_BYTES} bytes` },
      ],
    });
  });
});

test('a body whose parsing needs too much memory is refused, and the next one is imported', async () => {
  const preparers = new Preparers({ heapMiB: 48 });
  const body = Buffer.from(`{"x":[${'{},'.repeat(1_500_000)}0],"bookmarks":[]}`);
  const entries = { bookmarks: [{ url: 'http://a/', comment: PADDING.slice(0, 10_000) }], x: PADDING };
  const refused = preparers.prepare(body);
  const next = preparers.prepare(Buffer.from(JSON.stringify(entries)));
  await expect(refused).rejects.toThrow('body: is too complex to be parsed');
  expect(await next).toMatchObject({ entries: 1, batch: { errors: Buffer.alloc(0) } });
  preparers.close();
});

test('a body whose parsing takes too long is refused', async () => {
  const preparers = new Preparers({ timeLimitMs: 1 });
  const body = Buffer.from(`{"bookmarks":[],"x":"${PADDING}"}`);
  await expect(preparers.prepare(body)).rejects.toThrow('body: is too complex to be parsed');
  preparers.close();
});

/** Stops the time of `setTimeout` until the test ends. Only `vi.advanceTimersByTime` makes it go on. */
function useFakeTimers(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
}

/** A time limit that the tests never reach. */
const NEVER_MS = 2_147_483_647;

const isLinux = process.platform === 'linux';

const findPreparer = (): number | undefined =>
  listFamily(process.pid)
    .filter(isRunning)
    .find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('prepare-process'));

test.runIf(isLinux)('a long body is parsed with a lower priority than requests have', async () => {
  const preparers = new Preparers();
  await preparers.prepare(Buffer.from(JSON.stringify({ bookmarks: [], x: PADDING })));
  const niceness = Math.max(constants.priority.PRIORITY_BELOW_NORMAL, getPriority());
  expect(getPriority(findPreparer()!)).toBe(niceness);
  preparers.close();
});

test.runIf(isLinux)('a refused body does not cost the next import a new parsing process', async () => {
  const preparers = new Preparers();
  const tags = Array.from({ length: 10_001 }, (_, n) => ({ url: `http://a/${n}`, tags: [`tag ${n}`] }));
  const refused: [object, string][] = [
    [{ x: PADDING }, 'bookmarks: is required'],
    [{ bookmarks: tags, x: PADDING }, 'an account holds no more tags'],
    [{ bookmarks: [{}], mode: 'replace', x: PADDING }, '1 entry is invalid'],
  ];
  const pids = new Set<number | undefined>();
  for (const [body, error] of refused) {
    await expect(preparers.prepare(Buffer.from(JSON.stringify(body)))).rejects.toThrow(error);
    pids.add(findPreparer());
    const next = await preparers.prepare(
      Buffer.from(JSON.stringify({ bookmarks: [{ url: 'http://a/' }], x: PADDING })),
    );
    expect(next).toMatchObject({ entries: 1, skipped: 0, tags: { names: [] } });
    pids.add(findPreparer());
  }
  expect(pids.size).toBe(1);
  expect(pids).not.toContain(undefined);
  preparers.close();
});

test.runIf(isLinux)('a parsing process prepares one long body after another in the same heap', async () => {
  const bookmarks = Array.from({ length: 5_000 }, (_, n) => ({
    url: `http://a/${n}`,
    comment: 'x'.repeat(1_000),
  }));
  const body = Buffer.from(JSON.stringify({ bookmarks }));
  // The heap has room for about one body.
  const preparers = new Preparers({ heapMiB: 32 });
  const pids = new Set<number | undefined>();
  for (let n = 0; n < 8; n += 1) {
    expect(await preparers.prepare(Buffer.from(body), async () => {})).toMatchObject({ entries: 5_000 });
    pids.add(findPreparer());
  }
  expect(pids.size).toBe(1);
  expect(pids).not.toContain(undefined);
  preparers.close();
});

test.runIf(isLinux).each([
  ['one chunk', 1, 'body: is too complex to be parsed', { takeLimitMs: NEVER_MS }],
  ['many chunks', 100, 'took nothing', { timeLimitMs: NEVER_MS }],
])('a parsing process that hangs after %s does not block imports forever', async (_, chunks, end, limits) => {
  useFakeTimers();
  const preparers = new Preparers(limits);
  const long = Buffer.from(JSON.stringify({ bookmarks: [{ url: 'http://a/' }], x: PADDING }));
  expect((await preparers.prepare(long)).entries).toBe(1);
  const stopped = findPreparer()!;
  process.kill(stopped, 'SIGSTOP');
  const send = async function* () {
    for (let n = 0; n < chunks; n += 1) yield long.subarray(0, 65_536);
  };
  let isRefused = false;
  const refuse = async () => {
    await expect(preparers.prepare(send())).rejects.toThrow(end);
    isRefused = true;
  };
  const passTime = expect.poll(() => {
    vi.advanceTimersByTime(60_000);
    return isRefused;
  });
  await Promise.all([refuse(), passTime.toBe(true)]);
  await expect.poll(() => isRunning(stopped)).toBe(false);
  expect((await preparers.prepare(long)).entries).toBe(1);
  preparers.close();
});

test.runIf(isLinux)(
  'a body is not refused because other processes leave little time to parse it',
  async () => {
    useFakeTimers();
    const preparers = new Preparers();
    const entries = 50_000;
    const bookmarks = Array.from({ length: entries }, (_, n) => ({ url: `http://a/${n}`, tags: ['a', 'b'] }));
    const chunks = [Buffer.from(JSON.stringify({ bookmarks }))];
    let isSent = false;
    const send = async function* () {
      yield* chunks;
      isSent = true;
    };
    const prepared = preparers.prepare(send());
    await expect.poll(() => isSent).toBe(true);
    const usedMs = () => readProcessTimes({ preparer: [findPreparer()!] }).preparer!;
    const usedBeforeMs = usedMs();
    await expect.poll(usedMs).toBeGreaterThan(usedBeforeMs + 50);
    vi.advanceTimersByTime(60_000);
    expect(await prepared).toMatchObject({ entries });
    preparers.close();
  },
);

test.each([
  ['long comments', { comment: 'c'.repeat(10_000) }, 300],
  ['many tags', { tags: Array.from({ length: 100 }, (_, n) => `tag ${n}`) }, 10_000],
])('a batch of entries with %s has about 1 MiB', async (_, fields, entries) => {
  const bookmarks = Array.from({ length: entries }, (_, n) => ({ url: `http://a/${n}`, ...fields }));
  const full: ImportBatch[] = [];
  const { batch: last } = await prepareEntries({ replace: false, entries: bookmarks }, async (batch) => {
    full.push(batch);
  });
  const sizeOf = ({ urlKeys, tagSets, entries }: ImportBatch) =>
    urlKeys.length + tagSets.length + entries.length;
  // The newest rows are not counted yet, and the last entry may exceed the limit.
  const mostAbove = 131_072;
  expect(full.length).toBeGreaterThan(1);
  for (const size of full.map(sizeOf)) {
    expect(size).toBeGreaterThan(1_048_576);
    expect(size).toBeLessThan(1_048_576 + mostAbove);
  }
  expect(sizeOf(last)).toBeLessThan(1_048_576 + mostAbove);
});

test('the time of a slow database does not count towards the limit of parsing time', async () => {
  useFakeTimers();
  const preparers = new Preparers();
  const bookmarks = Array.from({ length: 10_000 }, (_, n) => ({
    url: `http://a/${n}`,
    comment: 'x'.repeat(400),
  }));
  const body = Buffer.from(JSON.stringify({ bookmarks }));
  let staged = 0;
  const stage = async () => {
    staged += 1;
    vi.advanceTimersByTime(120_000);
  };
  expect((await preparers.prepare(body, stage)).batches).toBe(staged);
  expect(staged).toBeGreaterThan(0);
  preparers.close();
});

describe('a slow upload', () => {
  const service = useService({ importInlineBytes: 0 });

  test('does not count as abandoned while it sends a few bytes every ten seconds', async () => {
    const user = await service.user();
    const principal = await findPrincipal(service.context.database, parseToken(user.token)!);
    let now = 0;
    const clock = { ...service.context.coordination.clock, now: () => now };
    const context = { ...service.context, coordination: { ...service.context.coordination, clock } };
    const parts = ['{"book', 'marks', '":', '[]}'].map(Buffer.from);
    const next = async () => {
      now += 10_000;
      await runOn(
        service.database.url,
        `update imports set expires_at = expires_at - interval '50 seconds' where user_id = ${user.id}`,
      );
      await deleteOldImports(service.context.database);
      return parts.shift();
    };
    const facts = { announcedBytes: undefined, requestHash: undefined };
    await receiveImport(context, principal!, { next }, facts);
    const chunks = `select convert_from(string_agg(bytes, '' order by position), 'UTF8') as body from import_chunks
      where user_id = ${user.id}`;
    expect(await runOn(service.database.url, chunks)).toEqual([{ body: '{"bookmarks":[]}' }]);
  });
});

test('only an entry of more than 512 KiB is too large', () => {
  expect(isOversized({ x: 'x'.repeat(MAX_ENTRY_BYTES - 8) })).toBe(false);
  expect(isOversized({ x: 'x'.repeat(MAX_ENTRY_BYTES - 7) })).toBe(true);
  expect(isOversized({ x: 'é'.repeat(MAX_ENTRY_BYTES / 2) })).toBe(true);
  expect(isOversized(JSON.parse(`${'['.repeat(300_000)}${']'.repeat(300_000)}`))).toBe(true);
});
