import { readFileSync, statSync, truncateSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { type Bookmark, type BookmarkTag, MirrorConflict, type MirrorPage } from '../src/client/index.ts';
import { MemoryStore } from '../src/client/memory-store.ts';
import { SqliteStore, UnusableMirror } from '../src/client/sqlite-store.ts';
import { makeBookmark } from './support/bookmark-samples.ts';
import { type ReadableStore, useStores } from './support/stores.ts';

/** Tests, without a service, the stores that a mirror can use. The stores get pages that the service could send. */

const { stores: STORES, nextFile } = useStores();

const page = (part: Partial<MirrorPage>): MirrorPage => ({
  reset: false,
  bookmarks: [],
  deleted: [],
  tags: [],
  deleted_tags: [],
  cursor: 'c',
  ...part,
});

const bookmark = (id: number, title: string, tags: BookmarkTag[] = []): Bookmark =>
  makeBookmark({ id, url: `https://example.org/${id}`, title, tags });

describe.each(STORES)('a store %s', (_, open, test) => {
  test('is empty and has no cursor when it is new', async () => {
    const store = await open();
    expect(await store.readCursor()).toBeUndefined();
    expect([...(await store.bookmarks())]).toEqual([]);
    expect(await store.tags()).toEqual([]);
    expect(await store.find(1)).toBeUndefined();
  });

  test('puts, replaces and removes bookmarks, and keeps the cursor', async () => {
    const store = await open();
    await store.apply(page({ bookmarks: [bookmark(2, 'two'), bookmark(1, 'one')], cursor: 'first' }));
    await store.apply(page({ bookmarks: [bookmark(1, 'uno')], deleted: [2, 99], cursor: 'second' }));
    expect([...(await store.bookmarks())]).toEqual([bookmark(1, 'uno')]);
    expect(await store.readCursor()).toBe('second');
  });

  test('keeps a bookmark from the response to a write that is newer than the page, unless the page is a reset', async () => {
    const store = await open();
    const old = bookmark(1, 'old', [{ id: 1, name: 'a' }]);
    const response = { ...bookmark(1, 'new'), updated_at: '2026-01-31T12:00:00.001Z' };
    await store.apply(page({ bookmarks: [response] }));
    await store.apply(page({ bookmarks: [old, bookmark(2, 'two')], cursor: 'second' }));
    expect([...(await store.bookmarks())]).toEqual([response, bookmark(2, 'two')]);
    expect(await store.readCursor()).toBe('second');
    await store.apply(page({ reset: true, bookmarks: [old] }));
    expect([...(await store.bookmarks())]).toEqual([old]);
  });

  test('replaces a version that is known to be wrong by an older one', async () => {
    const store = await open();
    const wrong = { ...bookmark(1, 'wrong'), updated_at: '2026-02-01T12:00:00.000Z' };
    const right = bookmark(1, 'right');
    await store.apply(page({ bookmarks: [wrong] }));
    await store.apply(
      page({ bookmarks: [right], wrongVersions: { 1: right.updated_at, 2: wrong.updated_at } }),
    );
    expect(await store.find(1)).toEqual(wrong);
    await store.apply(page({ bookmarks: [right], wrongVersions: { 1: wrong.updated_at } }));
    expect(await store.find(1)).toEqual(right);
  });

  test('returns versions of a range in order of ids, and all tags, with the cursor', async () => {
    const store = await open();
    expect(await store.readVersions({ afterId: 0, upToId: 9 })).toEqual({ cursor: undefined, versions: [] });
    const tags = [3, 1, 2].map((id) => ({ id, name: `${id}` }));
    const ids = [30, -5, 10, 20, 2 ** 53 - 1];
    await store.apply(
      page({ bookmarks: ids.map((id) => bookmark(id, '', id === 20 ? tags : [])), cursor: 'c' }),
    );
    const read = async (afterId: number, upToId: number, limit?: number) => {
      const { cursor, versions } = await store.readVersions({ afterId, upToId }, limit);
      expect(cursor).toBe('c');
      return versions.map(({ id, updated_at, tagIds }) => [id, updated_at.slice(0, 4), tagIds.toSorted()]);
    };
    expect(await read(10, 30)).toEqual([
      [20, '2026', [1, 2, 3]],
      [30, '2026', []],
    ]);
    const all = await read(Number.MIN_SAFE_INTEGER, 2 ** 53 - 1);
    expect(all.map(([id]) => id)).toEqual([-5, 10, 20, 30, 2 ** 53 - 1]);
    expect((await read(0, 30, 2)).map(([id]) => id)).toEqual([10, 20]);
    const { cursor, tags: stored } = await store.readTags();
    expect([cursor, new Set(stored)]).toEqual(['c', new Set(tags)]);
  });

  test('is ahead of its cursor only by the bookmarks that no page has contained', async () => {
    const store = await open();
    await store.apply(page({ reset: true, bookmarks: [bookmark(7, 'known')] }));
    await store.storeAdded(bookmark(7, 'known'));
    await store.storeAdded(bookmark(8, 'added'));
    expect(await store.readAhead()).toEqual([8]);
    await store.apply(page({ bookmarks: [bookmark(8, 'added')] }));
    expect(await store.readAhead()).toEqual([]);
    expect(await store.find(7)).toEqual(bookmark(7, 'known'));
  });

  test('renames a tag in every bookmark that has it, and removes a deleted tag from them', async () => {
    const store = await open();
    const [a, b] = [
      { id: 1, name: 'a' },
      { id: 2, name: 'b' },
    ];
    await store.apply(page({ bookmarks: [bookmark(1, '', [a, b]), bookmark(2, '', [a])] }));
    await store.apply(page({ tags: [{ id: 1, name: 'z' }] }));
    expect((await store.find(1))!.tags).toEqual([b, { id: 1, name: 'z' }]);
    await store.apply(page({ deleted_tags: [1, 77] }));
    expect([...(await store.bookmarks())].map(({ tags }) => tags)).toEqual([[b], []]);
    expect(await store.tags()).toEqual([b]);
  });

  test('contains tags without bookmarks, in the order of their normalized names', async () => {
    const store = await open();
    const names = ['b', 'A', 'ß', 'É', '\u{1f600}', '\uffee', 'a2'];
    await store.apply(page({ tags: names.map((name, at) => ({ id: at + 1, name })) }));
    expect((await store.tags()).map(({ name }) => name)).toEqual([
      'A',
      'a2',
      'b',
      'ß',
      'É',
      '\uffee',
      '\u{1f600}',
    ]);
  });

  test('drops everything at a reset and starts with that page', async () => {
    const store = await open();
    const tag = { id: 1, name: 'old' };
    await store.apply(page({ bookmarks: [bookmark(1, 'one', [tag])] }));
    await store.apply(page({ reset: true, bookmarks: [bookmark(9, 'nine')] }));
    expect([...(await store.bookmarks())]).toEqual([bookmark(9, 'nine')]);
    expect(await store.tags()).toEqual([]);
  });

  test('keeps ids and texts exactly as received', async () => {
    const store = await open();
    const odd = bookmark(Number.MAX_SAFE_INTEGER, `'"\\ \u0001\u2028 \u{1f600} %_`, [
      { id: 1, name: '"],[' },
    ]);
    await store.apply(page({ bookmarks: [odd] }));
    expect(await store.find(Number.MAX_SAFE_INTEGER)).toEqual(odd);
  });
});

const tagIds = fc.integer({ min: 1, max: 4 });
const arbitraryPage = fc.record({
  reset: fc.integer({ min: 0, max: 20 }).map((n) => n === 0),
  bookmarks: fc
    .uniqueArray(
      fc.tuple(fc.integer({ min: 1, max: 6 }), fc.uniqueArray(tagIds, { maxLength: 3 }), fc.string()),
      {
        maxLength: 4,
        selector: ([id]) => id,
      },
    )
    .map((list) =>
      list.map(([id, tags, title]) =>
        bookmark(
          id,
          title,
          tags.map((tag) => ({ id: tag, name: `t${tag}` })),
        ),
      ),
    ),
  deleted: fc.uniqueArray(fc.integer({ min: 1, max: 6 }), { maxLength: 2 }),
  tags: fc.uniqueArray(fc.record({ id: tagIds, name: fc.constantFrom('x', 'Y', 'z') }), {
    maxLength: 2,
    selector: ({ id }) => id,
  }),
  deleted_tags: fc.uniqueArray(tagIds, { maxLength: 1 }),
  cursor: fc.string(),
});

const contentOf = async (store: ReadableStore) => ({
  bookmarks: [...(await store.bookmarks())],
  tags: await store.tags(),
});

describe.each(STORES.slice(1))('a store %s', (name, open, test) => {
  test('has the same contents as one in memory after any pages, and applying a page twice changes nothing', async () => {
    const store = await open();
    await fc.assert(
      fc.asyncProperty(fc.array(arbitraryPage, { maxLength: 8 }), async (pages) => {
        const memory = new MemoryStore();
        for (const one of [page({ reset: true }), ...pages]) {
          expect(await store.apply(one)).toEqual(await memory.apply(one));
          const content = await contentOf(memory);
          expect(await contentOf(store)).toEqual(content);
          expect(await store.apply(one)).toEqual(await memory.apply(one));
          expect(await contentOf(memory)).toEqual(content);
          expect(await contentOf(store)).toEqual(content);
        }
      }),
      { numRuns: name === 'in IndexedDB' ? 30 : 150 },
    );
  });
});

describe.each(STORES)('with two mirrors on one store %s', (_, open, test) => {
  test('the mirror that lags changes nothing and reports it', async () => {
    const store = await open();
    await store.apply(page({ bookmarks: [bookmark(1, 'old')], cursor: 'c1' }), undefined);
    // Both mirrors continue from c1. One of them applies two pages before the other one applies its first page.
    await store.apply(page({ bookmarks: [bookmark(1, 'new')], cursor: 'c2' }), 'c1');
    await store.apply(page({ bookmarks: [bookmark(2, 'two')], cursor: 'c3' }), 'c2');
    const late = page({ bookmarks: [bookmark(1, 'old')], deleted: [2], cursor: 'c2' });
    await expect(store.apply(late, 'c1')).rejects.toThrow(MirrorConflict);
    expect([...(await store.bookmarks())]).toEqual([bookmark(1, 'new'), bookmark(2, 'two')]);
    expect(await store.readCursor()).toBe('c3');
  });

  test('either mirror can start again: a reset does not depend on earlier contents', async () => {
    const store = await open();
    await store.apply(page({ bookmarks: [bookmark(1, 'one')], cursor: 'c1' }), undefined);
    await store.apply(page({ reset: true, bookmarks: [bookmark(2, 'two')], cursor: 'd1' }), 'c0');
    expect([...(await store.bookmarks())]).toEqual([bookmark(2, 'two')]);
    await expect(store.apply(page({ deleted: [2], cursor: 'c2' }), 'c1')).rejects.toThrow(MirrorConflict);
    expect(await store.readCursor()).toBe('d1');
  });
});

test('if two processes mirror to one file, the cursor in the file decides', async () => {
  const path = nextFile();
  using one = new SqliteStore(path);
  using other = new SqliteStore(path);
  await one.apply(page({ bookmarks: [bookmark(1, 'new')], cursor: 'c1' }), undefined);
  await other.apply(page({ bookmarks: [bookmark(2, 'two')], cursor: 'c2' }), 'c1');
  await expect(one.apply(page({ deleted: [2], cursor: 'c1b' }), 'c1')).rejects.toThrow(MirrorConflict);
  expect([...one.bookmarks()]).toEqual([bookmark(1, 'new'), bookmark(2, 'two')]);
  expect(await one.readCursor()).toBe('c2');
});

describe('a file', () => {
  test('that is truncated is refused and left unchanged', async () => {
    const path = nextFile();
    const store = new SqliteStore(path);
    const many = Array.from({ length: 500 }, (_, n) => bookmark(n + 1, `title ${n}`));
    await store.apply(page({ bookmarks: many }));
    store[Symbol.dispose]();
    truncateSync(path, statSync(path).size / 2);
    const before = readFileSync(path);
    expect(() => new SqliteStore(path)).toThrow(UnusableMirror);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('continues where another process ended', async () => {
    const path = nextFile();
    const first = new SqliteStore(path);
    await first.apply(page({ bookmarks: [bookmark(1, 'one')], cursor: 'here' }));
    first[Symbol.dispose]();
    const second = new SqliteStore(path);
    expect(await second.readCursor()).toBe('here');
    expect([...second.bookmarks()]).toEqual([bookmark(1, 'one')]);
    second[Symbol.dispose]();
  });

  test('keeps neither content nor cursor of a page that cannot be applied completely', async () => {
    const store = new SqliteStore(nextFile());
    await store.apply(page({ bookmarks: [bookmark(1, 'one')], cursor: 'here' }));
    const broken = { ...bookmark(2, 'two'), url: null } as unknown as Bookmark;
    await expect(store.apply(page({ deleted: [1], bookmarks: [broken], cursor: 'there' }))).rejects.toThrow();
    expect([...store.bookmarks()]).toEqual([bookmark(1, 'one')]);
    expect(await store.readCursor()).toBe('here');
    store[Symbol.dispose]();
  });

  test('can be read by others while it is written', async () => {
    const path = nextFile();
    const writer = new SqliteStore(path);
    await writer.apply(page({ bookmarks: [bookmark(1, 'one')] }));
    const reader = new SqliteStore(path);
    const reading = reader.bookmarks();
    expect(reading.next().value).toEqual(bookmark(1, 'one'));
    await writer.apply(page({ bookmarks: [bookmark(2, 'two')] }));
    expect(reading.next().done).toBe(true);
    expect([...reader.bookmarks()]).toHaveLength(2);
    for (const store of [writer, reader]) store[Symbol.dispose]();
  });

  test('lets no other process write between the read and the write of an update', async () => {
    const path = nextFile();
    const store = new SqliteStore(path);
    const other = new DatabaseSync(path, { timeout: 0 });
    await store.update([1], () => {
      expect(() => other.exec("insert into tags values (1, 'other')")).toThrow('database is locked');
      return {};
    });
    other.close();
    store[Symbol.dispose]();
  });

  test('is listed as one snapshot, even if another process stores the response to an add at the same time', async () => {
    const path = nextFile();
    using store = new SqliteStore(path);
    using other = new SqliteStore(path);
    const intent = { kind: 'delete', bookmark: bookmark(1, 'one') } as const;
    const [added] = await store.update([0], () => ({ writes: [{ id: 0, intent, seen: undefined }] }));
    const { prepare } = DatabaseSync.prototype;
    const spy = vi.spyOn(DatabaseSync.prototype, 'prepare').mockImplementation(function (
      this: DatabaseSync,
      sql,
    ) {
      // The other process writes after the bookmarks were read, and before the outbox is read.
      if (sql.includes('from outbox')) {
        spy.mockRestore();
        void other.update([added!.id], () => ({ writes: [], row: bookmark(1, 'one') }));
      }
      return prepare.call(this, sql);
    });
    const readAll = () => store.readPage(-1_000, 1_000);
    expect(await readAll()).toMatchObject([{ id: added!.id, row: undefined, writes: [{ id: added!.id }] }]);
    expect(await readAll()).toMatchObject([{ id: 1, row: { id: 1 }, writes: [] }]);
  });

  test('that another process is writing can be opened and read', async () => {
    const path = nextFile();
    new SqliteStore(path)[Symbol.dispose]();
    using other = new DatabaseSync(path);
    other.exec("begin immediate; insert into tags values (1, 'a')");
    const beganMs = performance.now();
    using store = new SqliteStore(path);
    expect(await store.readPage(0, 10)).toEqual([]);
    expect(performance.now() - beganMs).toBeLessThan(4_000);
  });

  test('that is locked for too long is not reported as a file with other contents', () => {
    const path = nextFile();
    using other = new DatabaseSync(path);
    other.exec('pragma journal_mode = wal; begin immediate');
    expect(() => new SqliteStore(path)).toThrow(/^database is locked$/);
  });

  test('with other contents is refused and left unchanged', () => {
    const path = nextFile();
    const other = new DatabaseSync(path);
    other.exec('create table mine (x integer); insert into mine values (7)');
    other.close();
    expect(() => new SqliteStore(path)).toThrow(UnusableMirror);
    const again = new DatabaseSync(path);
    expect(again.prepare('select x from mine').get()).toEqual({ x: 7 });
    again.close();
  });

  test.each([1, 99])('from another version, here %i, is refused', (version) => {
    const path = nextFile();
    const other = new DatabaseSync(path);
    other.exec(`pragma user_version = ${version}`);
    other.close();
    expect(() => new SqliteStore(path)).toThrow(`${path} has other content, or another version`);
  });
});
