import { describe, expect, inject, test } from 'vitest';
import { createDatabase, runOn } from './support/database.ts';
import { fill } from './support/fill.ts';
import { startService, type TestUser, useService } from './support/service.ts';

// Section 4.2 of docs/contract.md: `/bookmarks/get`, by id or by url.

const service = useService();
const other = useService({}, { beside: service });

const URL = 'https://example.org/a?b=1#c';

const add = async (user: TestUser, fields: object = {}) =>
  (await user.post('/bookmarks/add', { url: URL, ...fields })).body;
const get = async (user: TestUser, choice: object) => (await user.post('/bookmarks/get', choice)).body;

describe('/bookmarks/get by id', () => {
  test('returns the bookmark as every other endpoint shows it', async () => {
    const user = await service.user();
    const bookmark = await add(user, { title: 'T', comment: 'C', tags: ['b', 'A'] });
    await add(user);
    expect(await get(user, { id: bookmark.id })).toEqual({ bookmarks: [bookmark] });
  });

  test('returns nothing if the bookmark never existed or was deleted', async () => {
    const user = await service.user();
    const { id } = await add(user);
    await user.post('/bookmarks/delete', { id });
    for (const gone of [id, 1, Number.MAX_SAFE_INTEGER])
      expect(await get(user, { id: gone })).toEqual({ bookmarks: [] });
  });
});

describe('/bookmarks/get by url', () => {
  test.each([
    ['HTTPS://EXAMPLE.ORG:443/a?b=1#c', 2],
    [` ${URL}\n`, 2],
    ['https://example.org/a?b=1', 0],
    ['https://example.org/a/?b=1#c', 0],
    ['http://example.org/a?b=1#c', 0],
    ['https://example.org/A?b=1#c', 0],
  ])('finds the bookmarks whose url is equal (decision 10): %j', async (url, count) => {
    const user = await service.user();
    const ids = [(await add(user)).id, (await add(user)).id];
    await add(user, { url: 'https://other.example/' });
    const { bookmarks } = await get(user, { url });
    expect(bookmarks.map(({ id }: { id: number }) => id)).toEqual(ids.reverse().slice(0, count));
  });

  test('finds an added bookmark once the add is answered, at every replica', async () => {
    const user = await service.user();
    for (let n = 0; n < 20; n += 1) {
      const [writer, reader] = n % 2 ? [service, other] : [other, service];
      const { id } = (await writer.post('/bookmarks/add', { url: URL }, { token: user.token })).body;
      const { bookmarks } = (await reader.post('/bookmarks/get', { url: URL }, { token: user.token })).body;
      expect([bookmarks[0].id, bookmarks.length]).toEqual([id, n + 1]);
    }
  });

  test('returns the newest 100 bookmarks', async () => {
    const user = await service.user();
    const entry = (n: number) => ({ url: URL, title: String(n) });
    await user.post('/import', {
      mode: 'replace',
      bookmarks: Array.from({ length: 130 }, (_, n) => entry(n)),
    });
    const { bookmarks } = await get(user, { url: URL });
    expect(bookmarks.map(({ title }: { title: string }) => title)).toEqual(
      Array.from({ length: 100 }, (_, n) => String(129 - n)),
    );
  });

  test('returns the newest bookmarks up to about 1 MiB, and at least one', async () => {
    const user = await service.user();
    // This character takes six bytes in JSON.
    const comment = '\u0001'.repeat(10_000);
    await user.post('/import', {
      mode: 'replace',
      bookmarks: Array.from({ length: 40 }, (_, n) => ({ url: URL, title: String(n), comment })),
    });
    const { text, body } = await user.post('/bookmarks/get', { url: URL });
    expect(Buffer.byteLength(text)).toBeGreaterThan(900_000);
    expect(Buffer.byteLength(text)).toBeLessThan(1_100_000);
    expect(body.bookmarks.map(({ title }: { title: string }) => title)).toEqual(
      body.bookmarks.map((_: unknown, n: number) => String(39 - n)),
    );
  });

  // Does not run on a sharded database, because each of its nodes counts only the rows that the node itself reads.
  test.runIf(inject('citusUrl') === undefined)(
    "reads no more rows than it returns, however many of the user's bookmarks match",
    async () => {
      await using database = await createDatabase();
      await runOn(database.url, 'alter table bookmarks set (autovacuum_enabled = off)');
      const countRows = async () => {
        const [row] = await runOn<{ count: string }>(
          database.url,
          `select seq_tup_read + coalesce(idx_tup_fetch, 0) as count from pg_stat_user_tables where relname = 'bookmarks'`,
        );
        return Number(row!.count);
      };
      let before: number;
      {
        await using replica = await startService({}, { database });
        const user = await replica.user({ premium: true });
        await fill(database.url, user, 5_000);
        const { id } = await add(user);
        await runOn(
          database.url,
          `update bookmarks b set url_key = o.url_key from bookmarks o where o.id = ${id} and b.id % 2 = 0`,
        );
        before = await countRows();
        expect((await get(user, { url: URL })).bookmarks).toHaveLength(100);
      }
      // Each row is read once to find it and once to render it.
      expect((await countRows()) - before).toBeLessThan(210);
    },
  );
});

test.each([
  [{}, 'id: expected either id or url'],
  [{ id: 1, url: URL }, 'url: expected either id or url'],
  [{ id: 1, url: 'nonsense' }, 'url: expected an absolute url'],
  [{ id: 2 ** 53, url: URL }, `id: expected an integer from 1 to ${Number.MAX_SAFE_INTEGER}`],
  [{ ID: 1 }, 'id: expected either id or url'],
])('/bookmarks/get requires exactly one of id and url: %j', async (choice, error) => {
  const user = await service.user();
  expect(await user.post('/bookmarks/get', choice)).toMatchObject({
    status: 400,
    body: { code: 'VALIDATION_ERROR', error },
  });
});

test('/bookmarks/get accepts the longest url, however its characters are written', async () => {
  const user = await service.user();
  const url = `http://a/${'😀'.repeat(8_192 - 9)}`;
  const { id } = await add(user, { url });
  const escaped = url.replace(/😀/gu, '\\ud83d\\ude00');
  const { body } = await user.post('/bookmarks/get', `{"url":"${escaped}"}`);
  expect(body.bookmarks).toMatchObject([{ id, url }]);
});
