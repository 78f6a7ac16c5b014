import { afterEach, describe, expect, test, vi } from 'vitest';
import { type Bookmark, MemoryStore, type Report } from '../src/client/index.ts';
import { makeBookmark } from './support/bookmark-samples.ts';
import { FakeService, json, lose } from './support/fake-service.ts';

/** Tests a client's collection against a fake service that sends prepared responses. */

const HOUR_MS = 3_600_000;

const bookmark = (fields: Partial<Bookmark> = {}): Bookmark =>
  makeBookmark({ id: 7, title: 'mine', ...fields });

const results = (...list: object[]) => json({ results: list });

const page = (fields: object = {}) =>
  json({
    reset: false,
    bookmarks: [],
    deleted: [],
    tags: [],
    deleted_tags: [],
    cursor: 'c',
    has_more: false,
    waited: false,
    ...fields,
  });

afterEach(() => {
  vi.useRealTimers();
});

/** Simulates a computer that sleeps: the wall clock advances, and the client's clock does not. */
const sleepFor = (ms: number) => vi.setSystemTime(Date.now() + ms);

test.each([
  ['2026-01-31', '2026-01-31T00:00:00.000Z'],
  ['2026-01-31 12:00:00.123456', '2026-01-31T12:00:00.123Z'],
  ['2026-01-31T14:00:00+0200', '2026-01-31T12:00:00.000Z'],
])('an added bookmark has the time %s as the service will return it', async (given, shown) => {
  const collection = new FakeService().client().collection(new MemoryStore());
  expect((await collection.add({ url: 'https://example.org/', created_at: given })).created_at).toBe(shown);
});

describe('while the computer sleeps', () => {
  test('an added bookmark gets the current time of the wall clock', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const collection = new FakeService().client().collection(new MemoryStore());
    sleepFor(48 * HOUR_MS);
    const now = new Date().toISOString();
    expect((await collection.add({ url: 'https://example.org/' })).created_at).toBe(now);
  });

  test('a key expires, so the client looks for an added bookmark before it sends it again', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const added = bookmark();
    const fake = new FakeService(
      page(),
      lose('ECONNRESET'),
      page(),
      json({ bookmarks: [added] }),
      page(),
      page(),
    );
    const collection = fake.client({ retryForMs: 0 }).collection(new MemoryStore());
    await collection.add({ url: added.url, title: added.title, created_at: added.created_at });
    await expect(collection.sync()).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
    sleepFor(30 * HOUR_MS);
    expect(await collection.sync()).toEqual([]);
    expect(fake.received.map(({ path }) => path)).toEqual([
      '/bookmarks/changes',
      '/bookmarks/batch',
      '/bookmarks/changes',
      '/bookmarks/get',
      '/bookmarks/changes',
    ]);
  });

  test('a request with an expired key is not sent again', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const fake = new FakeService(lose('ECONNRESET'), json(bookmark()));
    const onRetry = () => sleepFor(30 * HOUR_MS);
    const adding = fake.run(fake.client({ onRetry }).addBookmark({ url: 'https://example.org/' }));
    await expect(adding).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
    expect(fake.received).toHaveLength(1);
  });
});

test('an added bookmark that another device edited before it was found is not deleted without a conflict', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const edited = bookmark({ title: 'theirs', updated_at: '2026-02-01T12:00:00.000Z' });
  const fake = new FakeService(
    page(),
    lose('ECONNRESET'),
    page(),
    json({ bookmarks: [edited] }),
    page({ bookmarks: [edited] }),
    page(),
  );
  const collection = fake.client({ retryForMs: 0 }).collection(new MemoryStore());
  const { id } = await collection.add({
    url: edited.url,
    title: 'mine',
    created_at: edited.created_at,
  });
  await collection.delete(id);
  await expect(collection.sync()).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
  sleepFor(30 * HOUR_MS);
  expect(await collection.sync()).toMatchObject([{ kind: 'kept', id: 7 }]);
  expect(fake.received.map(({ path }) => path)).not.toContain('/bookmarks/delete');
});

test('a report that was added after the others were read is not acknowledged with them', async () => {
  const store = new MemoryStore();
  const collection = new FakeService().client().collection(store);
  const report = (seq: number): Report => ({
    seq,
    id: 7,
    kind: 'kept',
    intent: { kind: 'delete', bookmark: bookmark() },
  });
  await store.update([7], () => ({ reports: [report(2), report(4)] }));
  const read = await collection.reports();
  // Another process then adds a report about an earlier write to another bookmark.
  await store.update([8], () => ({ reports: [report(3)] }));
  await collection.acknowledge(read);
  expect((await collection.reports()).map(({ seq }) => seq)).toEqual([3]);
});

test('a bookmark that the service already had is not deleted by a deletion of the added one', async () => {
  const existing = bookmark({
    created_at: '2020-01-01T00:00:00.000Z',
    updated_at: '2020-01-01T00:00:00.000Z',
  });
  const fake = new FakeService(page(), results(existing), page({ bookmarks: [existing] }), page());
  const collection = fake.client().collection(new MemoryStore());
  const { id } = await collection.add({ url: existing.url, on_duplicate: 'return' });
  await collection.delete(id);
  expect(await fake.run(collection.sync())).toMatchObject([
    { kind: 'duplicate', id },
    { kind: 'kept', id: 7 },
  ]);
  expect(fake.received.map(({ path }) => path)).not.toContain('/bookmarks/delete');
  expect(await collection.list()).toEqual([existing]);
});

test('a conflict that is resolved with the value of the service sends no request', async () => {
  const seen = bookmark({ title: 'seen' });
  const theirs = bookmark({ title: 'theirs', updated_at: '2026-02-01T12:00:00.000Z' });
  const fake = new FakeService(
    page({ bookmarks: [seen] }),
    page({ bookmarks: [theirs], cursor: 'd' }),
    page(),
  );
  const collection = fake.client().collection(new MemoryStore());
  await fake.run(collection.sync());
  await collection.edit(7, { title: 'mine' });
  expect(await fake.run(collection.sync())).toMatchObject([
    { kind: 'conflict', conflict: { kept: 'theirs' } },
  ]);
  expect(new Set(fake.received.map(({ path }) => path))).toEqual(new Set(['/bookmarks/changes']));
});

describe('sync without a connection', () => {
  const offline = (code: string) => Array.from({ length: 99 }, () => lose(code));

  test.each(['ECONNREFUSED', 'ENOTFOUND', 'ECONNRESET'])(
    'rejects within 3 s after %s, names the address, and keeps the writes',
    async (code) => {
      const fake = new FakeService(...offline(code));
      const collection = fake.client().collection(new MemoryStore());
      await collection.add({ url: 'https://example.org/' });
      const beganAt = fake.clock.now();
      await expect(fake.run(collection.sync())).rejects.toMatchObject({
        code: 'CONNECTION_LOST',
        message: expect.stringMatching(`^http://service/api/v1/bookmarks/changes: .*: ${code}$`),
      });
      expect(fake.clock.now() - beganAt).toBeLessThanOrEqual(3_000);
      expect(fake.received.length).toBeGreaterThan(1);
      expect(await collection.pending()).toHaveLength(1);
    },
  );

  test('rejects after one attempt if this attempt takes longer than 3 s', async () => {
    const fake = new FakeService(async () => {
      fake.clock.advance(10_000);
      return lose('UND_ERR_CONNECT_TIMEOUT')();
    });
    const syncing = fake.run(fake.client().collection(new MemoryStore()).sync());
    await expect(syncing).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
    expect(fake.received).toHaveLength(1);
  });

  test.each([{ retryForMs: 60_000 }, { unreachableForMs: 60_000 }])(
    '%j makes it try longer',
    async (options) => {
      const fake = new FakeService(...offline('ECONNREFUSED').slice(0, 8), page());
      expect(await fake.run(fake.client().collection(new MemoryStore()).sync(options))).toEqual([]);
      expect(fake.received.at(-1)!.atMs - fake.received[0]!.atMs).toBeGreaterThan(3_000);
    },
  );

  test('a service that responds, but asks to wait, gets the time of other requests', async () => {
    const fake = new FakeService(
      json({ error: 'wait', code: 'RATE_LIMITED' }, 429, { 'retry-after': '30' }),
      page(),
    );
    expect(await fake.run(fake.client().collection(new MemoryStore()).sync())).toEqual([]);
    expect(fake.gapsMs[0]).toBeGreaterThanOrEqual(30_000);
  });
});
