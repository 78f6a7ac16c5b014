import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  type Bookmark,
  BookmarkClient,
  type Changes,
  MemoryStore,
  MirrorConflict,
} from '../src/client/index.ts';
import { SqliteStore } from '../src/client/sqlite-store.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { type TestUser, useService } from './support/service.ts';

/**
 * Tests that a mirror that has caught up has the same content as the service, whatever was written while the mirror
 * read the changes (decision 37).
 */

const service = useService({ rateLimitRequests: 100_000 });

type Store = MemoryStore | SqliteStore;

const contentOf = (store: Store) => ({ bookmarks: [...store.bookmarks()], tags: store.tags() });

async function readContent(user: TestUser) {
  const { bookmarks } = (await user.post('/export')).body;
  const { tags } = (await user.post('/tags/list')).body;
  return { bookmarks, tags: tags.map(({ id, name }: { id: number; name: string }) => ({ id, name })) };
}

/**
 * A program's own copy of the bookmarks, outside of the store. The program updates only the bookmarks that a page
 * contains, and those that `apply` returns because their tags changed.
 */
type Copy = Map<number, Bookmark>;

/** Reads and applies one page. Returns false if the page was the last one. */
async function step(user: TestUser, store: Store, limit: number, copy: Copy = new Map()): Promise<boolean> {
  const cursor = await store.readCursor();
  const { status, body } = await user.post('/bookmarks/changes', { cursor, limit });
  expect(status).toBe(200);
  const page: Changes = body;
  const retagged = await store.apply(page);
  if (page.reset) copy.clear();
  for (const id of [...page.bookmarks.map((bookmark) => bookmark.id), ...retagged]) {
    copy.set(id, store.find(id)!);
  }
  for (const id of page.deleted) copy.delete(id);
  return page.has_more;
}

async function catchUp(user: TestUser, store: Store, limit: number, copy?: Copy): Promise<void> {
  while (await step(user, store, limit, copy));
}

/**
 * One write of a random sequence of writes. A position such as `at` may exceed the number of objects, so it is taken
 * modulo that number.
 */
type Write =
  | { kind: 'add'; url: number; tags: number[] }
  | { kind: 'edit'; at: number; title: string; tags?: number[] }
  | { kind: 'delete'; at: number }
  | { kind: 'editSeveral'; at: number; tags: number[]; removed: number[] }
  | { kind: 'deleteSeveral'; at: number }
  | { kind: 'createTag' | 'deleteTag'; tag: number }
  | { kind: 'renameTag' | 'mergeTags'; tag: number; to: number }
  | { kind: 'merge'; urls: number[]; tags: number[] }
  | { kind: 'replace'; urls: number[]; tags: number[] };

const place = fc.nat({ max: 20 });
const tags = fc.uniqueArray(fc.nat({ max: 5 }), { maxLength: 3 });
const urls = fc.array(fc.nat({ max: 9 }), { maxLength: 5 });

const arbitraryWrite: fc.Arbitrary<Write> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('add' as const), url: place, tags }) },
  {
    weight: 5,
    arbitrary: fc.record(
      { kind: fc.constant('edit' as const), at: place, title: fc.constantFrom('', 'a', 'b'), tags },
      { requiredKeys: ['kind', 'at', 'title'] },
    ),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('delete' as const), at: place }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('editSeveral' as const), at: place, tags, removed: tags }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('deleteSeveral' as const), at: place }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('createTag' as const, 'deleteTag' as const),
      tag: fc.nat({ max: 5 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('renameTag' as const),
      tag: fc.nat({ max: 5 }),
      to: fc.nat({ max: 7 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('mergeTags' as const),
      tag: fc.nat({ max: 5 }),
      to: fc.nat({ max: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('merge' as const), urls, tags }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('replace' as const), urls, tags }) },
);

const nameTag = (tag: number): string => `tag${tag}`;
const nameUrl = (url: number): string => `https://example.org/${url}`;

async function write(user: TestUser, one: Write): Promise<void> {
  const idOf = async (path: string, key: 'bookmarks' | 'tags', at: number): Promise<number | undefined> => {
    const found = (await user.post(path, {})).body[key] as { id: number }[];
    return found[at % Math.max(1, found.length)]?.id;
  };
  const someIds = async (from: number): Promise<number[]> => {
    const { bookmarks } = (await user.post('/bookmarks/list', {})).body as { bookmarks: { id: number }[] };
    return [1, ...bookmarks.map(({ id }) => id).slice(from % 3, (from % 3) + 3)];
  };
  const send = async (): Promise<{ status: number }> => {
    switch (one.kind) {
      case 'add':
        return user.post('/bookmarks/add', { url: nameUrl(one.url), tags: one.tags.map(nameTag) });
      case 'edit':
        return user.post('/bookmarks/edit', {
          id: (await idOf('/bookmarks/list', 'bookmarks', one.at)) ?? 1,
          title: one.title,
          ...(one.tags && { tags: one.tags.map(nameTag) }),
        });
      case 'delete':
        return user.post('/bookmarks/delete', {
          id: (await idOf('/bookmarks/list', 'bookmarks', one.at)) ?? 1,
        });
      case 'editSeveral':
        return user.post('/bookmarks/edit', {
          ids: await someIds(one.at),
          add_tags: one.tags.map(nameTag),
          remove_tags: one.removed.map(nameTag),
        });
      case 'deleteSeveral':
        return user.post('/bookmarks/delete', { ids: await someIds(one.at) });
      case 'createTag':
        return user.post('/tags/create', { name: nameTag(one.tag) });
      case 'deleteTag':
        return user.post('/tags/delete', { id: (await idOf('/tags/list', 'tags', one.tag)) ?? 1 });
      case 'renameTag':
        return user.post('/tags/update', {
          id: (await idOf('/tags/list', 'tags', one.tag)) ?? 1,
          name: nameTag(one.to),
        });
      case 'mergeTags':
        return user.post('/tags/merge', {
          id: (await idOf('/tags/list', 'tags', one.tag)) ?? 1,
          into_id: (await idOf('/tags/list', 'tags', one.to)) ?? 2,
        });
      case 'merge':
      case 'replace':
        return user.post('/import', {
          mode: one.kind,
          bookmarks: one.urls.map((url) => ({ url: nameUrl(url), tags: one.tags.map(nameTag) })),
        });
    }
  };
  // Some of the random writes use names that are taken, or ids that do not exist.
  expect([200, 400, 404]).toContain((await send()).status);
}

const clientOf = ({ token }: TestUser) => new BookmarkClient({ baseUrl: `${service.origin}/api/v1`, token });

/** Expects that a verification finds nothing wrong in a copy that may lag behind. */
async function expectRight(user: TestUser, store: Store): Promise<void> {
  const faults = await clientOf(user)
    .mirror({ store })
    .verify()
    .catch((error) => {
      // The copy must be filled again after an import with `replace`.
      expect(error).toBeInstanceOf(MirrorConflict);
      return [];
    });
  expect(faults).toEqual([]);
}

describe('a mirror', () => {
  test('equals the collection after any history, with pages of any size, read between any two writes', async () => {
    const arbitraryStep = fc.oneof(
      { weight: 3, arbitrary: arbitraryWrite },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant('read' as const), limit: fc.integer({ min: 1, max: 4 }) }),
      },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(arbitraryStep, { minLength: 5, maxLength: 30 }), async (steps) => {
        const user = await service.user();
        using file = new SqliteStore(':memory:');
        const stores: [Store, Copy][] = [
          [new MemoryStore(), new Map()],
          [file, new Map()],
        ];
        for (const one of steps) {
          if (one.kind !== 'read') await write(user, one);
          else for (const [store, copy] of stores) await step(user, store, one.limit, copy);
        }
        const truth = await readContent(user);
        for (const [store, copy] of stores) {
          await catchUp(user, store, 2, copy);
          expect(contentOf(store)).toEqual(truth);
          // The pages and `apply` together name every changed bookmark, even if only a tag was renamed or deleted.
          expect([...copy.values()].sort((a, b) => a.id - b.id)).toEqual(truth.bookmarks);
        }
      }),
      { numRuns: Number(process.env.TEST_HISTORIES ?? 60) },
    );
  });

  test('a mirror misses no change while several clients write at once', async () => {
    const user = await service.user({ premium: true });
    const histories = fc.sample(fc.array(arbitraryWrite, { minLength: 60, maxLength: 60 }), 4);
    const stores: Store[] = [new MemoryStore(), new MemoryStore(), new SqliteStore(':memory:')];
    let writing = true;
    const readers = stores.map(async (store, n) => {
      while (writing) {
        await step(user, store, n + 1);
        await expectRight(user, store);
      }
      await catchUp(user, store, 3);
      await expectRight(user, store);
    });
    await Promise.all(
      histories.map(async (history) => {
        for (const one of history) await write(user, one);
      }),
    );
    writing = false;
    await Promise.all(readers);
    const truth = await readContent(user);
    for (const store of stores) expect(contentOf(store)).toEqual(truth);
  });
});

describe('a page of changes', () => {
  test('is one snapshot, which shows a write completely or not at all', async () => {
    const user = await service.user();
    let writing = true;
    const writers = [1, 2, 3].map(async (writer) => {
      for (let n = 0; n < 60; n += 1) {
        await user.post('/bookmarks/add', { url: nameUrl(n), tags: [`${writer} ${n}`] });
      }
    });
    const readers = [1, 2, 3].map(async () => {
      const store = new MemoryStore();
      let seen = 0;
      while (writing) {
        if (await step(user, store, 500)) continue;
        seen += 1;
        expect(store.tags()).toHaveLength(store.size);
      }
      return seen;
    });
    await Promise.all(writers);
    writing = false;
    for (const seen of await Promise.all(readers)) expect(seen).toBeGreaterThan(0);
  });
});

describe('client.mirror', () => {
  test('catches up, follows, and continues from its store in another process', async () => {
    const user = await service.user();
    await user.post('/bookmarks/add', { url: nameUrl(1), tags: ['a'] });
    const store = new MemoryStore();
    const client = clientOf(user);
    for await (const { isCaughtUp } of client.mirror({ store, follow: false })) expect(isCaughtUp).toBe(true);
    expect(contentOf(store)).toEqual(await readContent(user));

    const controller = new AbortController();
    const seen: number[] = [];
    const following = (async () => {
      for await (const batch of client.mirror({ store, signal: controller.signal })) {
        seen.push(...batch.deleted);
        if (batch.deleted.length > 0) controller.abort();
      }
    })();
    await expect.poll(() => service.context.coordination.notifier.held).toBe(1);
    const [first] = [...store.bookmarks()];
    await user.post('/bookmarks/delete', { id: first!.id });
    await expect(following).rejects.toThrow();
    expect(seen).toEqual([first!.id]);
    expect(contentOf(store)).toEqual(await readContent(user));
  });

  test('names the bookmarks that have a renamed or deleted tag', async () => {
    const user = await service.user();
    const store = new MemoryStore();
    const read = () => Array.fromAsync(clientOf(user).mirror({ store, follow: false }));
    const { body: one } = await user.post('/bookmarks/add', { url: nameUrl(1), tags: ['a', 'b'] });
    const { body: two } = await user.post('/bookmarks/add', { url: nameUrl(2), tags: ['a'] });
    expect(await read()).toMatchObject([{ retagged: [] }]);
    const tagId = (name: string) => one.tags.find((tag: { name: string }) => tag.name === name).id;
    await user.post('/tags/update', { id: tagId('a'), name: 'c' });
    expect((await read()).flatMap(({ retagged }) => retagged)).toEqual([one.id, two.id]);
    await user.post('/tags/delete', { id: tagId('b') });
    expect((await read()).flatMap(({ retagged }) => retagged)).toEqual([one.id]);
  });

  test('reports that an empty account is up to date, and applies a reset', async () => {
    const user = await service.user();
    const store = new MemoryStore();
    const batches = await Array.fromAsync(clientOf(user).mirror({ store, follow: false }));
    expect(batches).toMatchObject([{ reset: true, isCaughtUp: true, bookmarks: [] }]);
    await user.post('/import', { mode: 'replace', bookmarks: [{ url: nameUrl(1) }] });
    const later = await Array.fromAsync(clientOf(user).mirror({ store, follow: false }));
    expect(later).toMatchObject([{ reset: true, isCaughtUp: true }]);
    expect(contentOf(store)).toEqual(await readContent(user));
  });

  test('refuses the file of another account, and leaves the copy unchanged', async () => {
    const [user, other] = [await service.user(), await service.user()];
    await user.post('/bookmarks/add', { url: nameUrl(1), tags: ['a'] });
    await other.post('/bookmarks/add', { url: nameUrl(2) });
    const folder = makeFolder('copies');
    onTestFinished(() => removeFolder(folder));
    using store = new SqliteStore(join(folder, 'mine.sqlite'));
    await Array.fromAsync(clientOf(user).mirror({ store, follow: false }));
    const copied = Array.fromAsync(clientOf(other).mirror({ store, follow: false }));
    await expect(copied).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    expect(contentOf(store)).toEqual(await readContent(user));
    await user.post('/bookmarks/add', { url: nameUrl(3) });
    await Array.fromAsync(clientOf(user).mirror({ store, follow: false }));
    expect(contentOf(store)).toEqual(await readContent(user));
  });

  test('continues by itself from a copy of its file that was made during writes', async () => {
    const user = await service.user();
    await user.post('/bookmarks/add', { url: nameUrl(1), tags: ['a'] });
    const folder = makeFolder('copies');
    onTestFinished(() => removeFolder(folder));
    using store = new SqliteStore(join(folder, 'first.sqlite'));
    await Array.fromAsync(clientOf(user).mirror({ store, follow: false }));
    // The copied file lacks SQLite's write-ahead log, which still has the last pages. So the copy is older than the
    // original, or empty.
    copyFileSync(join(folder, 'first.sqlite'), join(folder, 'second.sqlite'));
    using second = new SqliteStore(join(folder, 'second.sqlite'));
    const { bookmarks } = await readContent(user);
    await user.post('/bookmarks/delete', { id: bookmarks[0].id });
    for (const each of [store, second]) {
      await Array.fromAsync(clientOf(user).mirror({ store: each, follow: false }));
      expect(contentOf(each)).toEqual(await readContent(user));
    }
  });

  test('stops one of two runs on the same store with an error, and the copy is correct', async () => {
    const user = await service.user();
    await user.post('/bookmarks/add', { url: nameUrl(1), tags: ['a'] });
    const store = new MemoryStore();
    const client = clientOf(user);
    await Array.fromAsync(client.mirror({ store, follow: false }));
    const ending = new AbortController();
    const follow = () => Array.fromAsync(client.mirror({ store, signal: ending.signal }));
    const ends = Promise.allSettled([follow(), follow()]);
    await expect.poll(() => service.context.coordination.notifier.held).toBe(2);
    await user.post('/bookmarks/add', { url: nameUrl(2) });
    await expect.poll(() => store.size).toBe(2);
    await expect.poll(() => service.context.coordination.notifier.held).toBe(1);
    await user.post('/bookmarks/add', { url: nameUrl(3) });
    await expect.poll(() => store.size).toBe(3);
    ending.abort();
    const reasons = (await ends).map((end) => end.status === 'rejected' && end.reason.name);
    expect(reasons.toSorted()).toEqual(['AbortError', 'MirrorConflict']);
    expect(contentOf(store)).toEqual(await readContent(user));
  });
});
