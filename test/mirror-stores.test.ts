import { randomUUID } from 'node:crypto';
import { readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Bookmark, type BookmarkTag, MirrorConflict, type MirrorPage } from '../src/client/index.ts';
import { MemoryStore } from '../src/client/memory-store.ts';
import { SqliteStore, UnusableMirror } from '../src/client/sqlite-store.ts';
import { makeFolder, removeFolder } from './support/folders.ts';

/** The stores of a mirror, alone: pages as the service could send them. */

let folder: string;
beforeAll(() => {
  folder = makeFolder('mirrors');
});
afterAll(() => removeFolder(folder));

const nextFile = (): string => join(folder, `${randomUUID()}.sqlite`);

const page = (part: Partial<MirrorPage>): MirrorPage => ({
  reset: false,
  bookmarks: [],
  deleted: [],
  tags: [],
  deleted_tags: [],
  cursor: 'c',
  ...part,
});

const bookmark = (id: number, title: string, tags: BookmarkTag[] = []): Bookmark => ({
  id,
  url: `https://example.org/${id}`,
  title,
  comment: '',
  tags,
  created_at: '2026-01-31T12:00:00.000Z',
  updated_at: '2026-01-31T12:00:00.000Z',
});

interface ReadableStore {
  apply(page: MirrorPage, after?: string | undefined): Promise<number[]>;
  readCursor(): Promise<string | undefined>;
  bookmarks(): Iterable<Bookmark>;
  tags(): BookmarkTag[];
  find(id: number): Bookmark | undefined;
  readonly size: number;
}

const STORES: [string, () => ReadableStore][] = [
  ['in memory', () => new MemoryStore()],
  ['in a file', () => new SqliteStore(nextFile())],
];

describe.each(STORES)('a store %s', (_, open) => {
  test('is empty and without a cursor when it is new', async () => {
    const store = open();
    expect(await store.readCursor()).toBeUndefined();
    expect([...store.bookmarks()]).toEqual([]);
    expect(store.tags()).toEqual([]);
    expect(store.find(1)).toBeUndefined();
  });

  test('puts, replaces and removes bookmarks, and keeps the cursor', async () => {
    const store = open();
    await store.apply(page({ bookmarks: [bookmark(2, 'two'), bookmark(1, 'one')], cursor: 'first' }));
    await store.apply(page({ bookmarks: [bookmark(1, 'uno')], deleted: [2, 99], cursor: 'second' }));
    expect([...store.bookmarks()]).toEqual([bookmark(1, 'uno')]);
    expect(store.size).toBe(1);
    expect(await store.readCursor()).toBe('second');
  });

  test('renames a tag in every bookmark that carries it, and takes a deleted one out of them', async () => {
    const store = open();
    const [a, b] = [
      { id: 1, name: 'a' },
      { id: 2, name: 'b' },
    ];
    await store.apply(page({ bookmarks: [bookmark(1, '', [a, b]), bookmark(2, '', [a])] }));
    await store.apply(page({ tags: [{ id: 1, name: 'z' }] }));
    expect(store.find(1)!.tags).toEqual([b, { id: 1, name: 'z' }]);
    await store.apply(page({ deleted_tags: [1, 77] }));
    expect([...store.bookmarks()].map(({ tags }) => tags)).toEqual([[b], []]);
    expect(store.tags()).toEqual([b]);
  });

  test('holds tags of no bookmark, in the order of their folded names', async () => {
    const store = open();
    const names = ['b', 'A', 'ß', 'É', '\u{1f600}', '\uffee', 'a2'];
    await store.apply(page({ tags: names.map((name, at) => ({ id: at + 1, name })) }));
    expect(store.tags().map(({ name }) => name)).toEqual(['A', 'a2', 'b', 'ß', 'É', '\uffee', '\u{1f600}']);
  });

  test('drops everything at a reset and begins with that page', async () => {
    const store = open();
    const tag = { id: 1, name: 'old' };
    await store.apply(page({ bookmarks: [bookmark(1, 'one', [tag])] }));
    await store.apply(page({ reset: true, bookmarks: [bookmark(9, 'nine')] }));
    expect([...store.bookmarks()]).toEqual([bookmark(9, 'nine')]);
    expect(store.tags()).toEqual([]);
  });

  test('keeps ids and texts as they came, whatever they hold', async () => {
    const store = open();
    const odd = bookmark(Number.MAX_SAFE_INTEGER, `'"\\ \u0001\u2028 \u{1f600} %_`, [
      { id: 1, name: '"],[' },
    ]);
    await store.apply(page({ bookmarks: [odd] }));
    expect(store.find(Number.MAX_SAFE_INTEGER)).toEqual(odd);
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

const contentOf = (store: ReadableStore) => ({ bookmarks: [...store.bookmarks()], tags: store.tags() });

test('both stores hold the same after any pages, and a page applied twice changes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(arbitraryPage, { maxLength: 8 }), async (pages) => {
      const memory = new MemoryStore();
      using file = new SqliteStore(':memory:');
      for (const one of pages) {
        for (const store of [memory, file]) await store.apply(one);
        const before = contentOf(file);
        expect(contentOf(memory)).toEqual(before);
        for (const store of [memory, file]) await store.apply(one);
        expect(contentOf(memory)).toEqual(before);
        expect(contentOf(file)).toEqual(before);
      }
    }),
    { numRuns: 300 },
  );
});

describe('of two mirrors of one store', () => {
  test.each(STORES)('%s the one that lags changes nothing and says so', async (_, open) => {
    const store = open();
    await store.apply(page({ bookmarks: [bookmark(1, 'old')], cursor: 'c1' }), undefined);
    // Both have read on from c1: one two pages, the other the first of these, late.
    await store.apply(page({ bookmarks: [bookmark(1, 'new')], cursor: 'c2' }), 'c1');
    await store.apply(page({ bookmarks: [bookmark(2, 'two')], cursor: 'c3' }), 'c2');
    const late = page({ bookmarks: [bookmark(1, 'old')], deleted: [2], cursor: 'c2' });
    await expect(store.apply(late, 'c1')).rejects.toThrow(MirrorConflict);
    expect([...store.bookmarks()]).toEqual([bookmark(1, 'new'), bookmark(2, 'two')]);
    expect(await store.readCursor()).toBe('c3');
  });

  test.each(STORES)('%s any may begin anew: a reset does not depend on what was there', async (_, open) => {
    const store = open();
    await store.apply(page({ bookmarks: [bookmark(1, 'one')], cursor: 'c1' }), undefined);
    await store.apply(page({ reset: true, bookmarks: [bookmark(2, 'two')], cursor: 'd1' }), 'c0');
    expect([...store.bookmarks()]).toEqual([bookmark(2, 'two')]);
    await expect(store.apply(page({ deleted: [2], cursor: 'c2' }), 'c1')).rejects.toThrow(MirrorConflict);
    expect(await store.readCursor()).toBe('d1');
  });

  test('in two processes the cursor in the file decides', async () => {
    const path = nextFile();
    using one = new SqliteStore(path);
    using other = new SqliteStore(path);
    await one.apply(page({ bookmarks: [bookmark(1, 'new')], cursor: 'c1' }), undefined);
    await other.apply(page({ bookmarks: [bookmark(2, 'two')], cursor: 'c2' }), 'c1');
    await expect(one.apply(page({ deleted: [2], cursor: 'c1b' }), 'c1')).rejects.toThrow(MirrorConflict);
    expect([...one.bookmarks()]).toEqual([bookmark(1, 'new'), bookmark(2, 'two')]);
    expect(await one.readCursor()).toBe('c2');
  });
});

describe('a file', () => {
  test('cut in half is refused and left as it was', async () => {
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

  test('goes on where another process ended', async () => {
    const path = nextFile();
    const first = new SqliteStore(path);
    await first.apply(page({ bookmarks: [bookmark(1, 'one')], cursor: 'here' }));
    first[Symbol.dispose]();
    const second = new SqliteStore(path);
    expect(await second.readCursor()).toBe('here');
    expect([...second.bookmarks()]).toEqual([bookmark(1, 'one')]);
    second[Symbol.dispose]();
  });

  test('keeps neither content nor cursor of a page that cannot be applied whole', async () => {
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

  test('that is something else is refused and left as it was', () => {
    const path = nextFile();
    const other = new DatabaseSync(path);
    other.exec('create table mine (x integer); insert into mine values (7)');
    other.close();
    expect(() => new SqliteStore(path)).toThrow(UnusableMirror);
    const again = new DatabaseSync(path);
    expect(again.prepare('select x from mine').get()).toEqual({ x: 7 });
    again.close();
  });

  test('of a newer version is refused', () => {
    const path = nextFile();
    const other = new DatabaseSync(path);
    other.exec('pragma user_version = 99');
    other.close();
    expect(() => new SqliteStore(path)).toThrow(UnusableMirror);
  });
});
