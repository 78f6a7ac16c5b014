import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  BookmarkClient,
  type CopyFault,
  type DigestRange,
  MemoryStore,
  MirrorConflict,
  type SyncedBookmarks,
} from '../src/client/index.ts';
import { DAMAGES, damage, findFaults, readCopy, sortFaults } from './support/copy-faults.ts';
import { CountedRequests } from './support/counted-requests.ts';
import { fill } from './support/fill.ts';
import { type TestUser, useService } from './support/service.ts';
import { type ReadableStore, useStores } from './support/stores.ts';

/**
 * Tests that a verification of a copy finds and repairs everything that digests cover, and nothing else, whatever other
 * clients write meanwhile. mirror-stores.test.ts tests what a verification needs from each store.
 */

const { stores } = useStores();
const service = useService({ rateLimitRequests: 100_000 });

const clientOf = ({ token }: TestUser, requests?: CountedRequests) =>
  new BookmarkClient({ baseUrl: service.origin, token, fetch: requests?.fetch });

async function readContent(user: TestUser) {
  const { bookmarks } = (await user.post('/export')).body;
  const { tags } = (await user.post('/tags/list')).body;
  return { bookmarks, tags: tags.map(({ id, name }: { id: number; name: string }) => ({ id, name })) };
}

const TAGS = ['zebra', 'yak', 'xerus', 'wolf', 'vole'];

/** Creates an account with bookmarks that have different numbers of tags. */
async function fillAccount(count: number): Promise<TestUser> {
  const user = await service.user({ premium: true });
  const bookmarks = Array.from({ length: count }, (_, n) => ({
    url: `https://example.org/${n}`,
    tags: TAGS.slice(0, n % 6),
  }));
  expect((await user.post('/import', { bookmarks })).status).toBe(200);
  return user;
}

const catchUp = (user: TestUser, store: ReadableStore) =>
  Array.fromAsync(clientOf(user).mirror({ store, follow: false }));

async function copyOf(user: TestUser): Promise<MemoryStore> {
  const store = new MemoryStore();
  await catchUp(user, store);
  return store;
}

const verify = (user: TestUser, store: ReadableStore, requests?: CountedRequests): Promise<CopyFault[]> =>
  clientOf(user, requests).mirror({ store }).verify();

describe('a right copy', () => {
  test('costs one request', async () => {
    const user = await fillAccount(200);
    const store = await copyOf(user);
    const requests = new CountedRequests();
    expect(await verify(user, store, requests)).toEqual([]);
    expect(requests.paths).toEqual(['/bookmarks/digest']);
  });

  test('costs one digest while other clients write before and after it, and does not change', async () => {
    const user = await fillAccount(200);
    const store = await copyOf(user);
    const { bookmarks, tags } = await readCopy(store);
    const requests = new CountedRequests();
    const write = async (path: string, body: object) =>
      expect((await user.post(path, body)).status).toBe(200);
    requests.before['/bookmarks/digest'] = async () => {
      await write('/bookmarks/edit', { id: bookmarks[3]!.id, title: 'edited' });
      await write('/bookmarks/delete', { id: bookmarks[50]!.id });
      await write('/tags/delete', { id: tags.find(({ name }) => name === 'vole')!.id });
      await write('/bookmarks/add', { url: 'https://example.org/new', tags: ['new'] });
    };
    requests.after['/bookmarks/digest'] = async () => {
      await write('/bookmarks/edit', { id: bookmarks[100]!.id, tags: ['newer'] });
      await write('/bookmarks/delete', { id: bookmarks[150]!.id });
    };
    const before = await readCopy(store);
    expect(await verify(user, store, requests)).toEqual([]);
    expect(requests.count('/bookmarks/digest')).toBe(1);
    expect(await readCopy(store)).toEqual(before);
    await catchUp(user, store);
    expect(await readCopy(store)).toEqual(await readContent(user));
  });
});

/** Verifies a damaged copy, and expects the right faults and the service's content. */
async function expectRepair(user: TestUser, store: ReadableStore, requests?: CountedRequests): Promise<void> {
  const truth = await readContent(user);
  const faults = findFaults(await readCopy(store), truth);
  expect(sortFaults(await verify(user, store, requests))).toEqual(faults);
  expect(await readCopy(store)).toEqual(truth);
}

describe('a wrong copy is repaired, and what was wrong is reported', () => {
  test.for(DAMAGES)('%s', async (kind) => {
    const user = await fillAccount(150);
    const store = await copyOf(user);
    const cursor = await store.readCursor();
    await damage(store, kind, 77);
    expect(findFaults(await readCopy(store), await readContent(user))).not.toEqual([]);
    await expectRepair(user, store);
    expect(await store.readCursor()).toBe(cursor);
    expect(await verify(user, store)).toEqual([]);
  });

  describe.each(stores)('%s', (_, open, test) => {
    test('all kinds of faults at once', async () => {
      const user = await fillAccount(150);
      const store = await open();
      await catchUp(user, store);
      for (const [n, kind] of DAMAGES.entries()) await damage(store, kind, 10 * n + 7);
      await expectRepair(user, store);
    });
  });

  test('any faults, in accounts of any size', async () => {
    const users = await Promise.all([1, 7, 90, 400].map(fillAccount));
    const faults = fc.array(
      fc.record({ kind: fc.constantFrom(...DAMAGES), position: fc.integer({ min: 1, max: 10_000 }) }),
      { minLength: 1, maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...users), faults, async (user, damages) => {
        const store = await copyOf(user);
        for (const { kind, position } of damages) {
          // Earlier faults may have left nothing to damage.
          if (store.size > 0 && store.tags().length > 0) await damage(store, kind, position);
        }
        await expectRepair(user, store);
      }),
      { numRuns: Number(process.env.TEST_HISTORIES ?? 30) },
    );
  });

  test('a copy that has lost everything', async () => {
    const user = await fillAccount(1_500);
    const store = await copyOf(user);
    const cursor = (await store.readCursor())!;
    await store.apply({ reset: true, bookmarks: [], deleted: [], tags: [], deleted_tags: [], cursor });
    const requests = new CountedRequests();
    await expectRepair(user, store, requests);
    // Adjacent parts are read together.
    expect(requests.count('/bookmarks/sync')).toBeLessThan(25);
  });

  test('the last bookmarks, which the copy has lost', async () => {
    const user = await fillAccount(100);
    const store = await copyOf(user);
    for (let n = 0; n < 3; n += 1) await damage(store, 'lost', store.size - 1);
    await expectRepair(user, store);
    // The mirror is told when such a bookmark is deleted.
    const { bookmarks } = await readCopy(store);
    await user.post('/bookmarks/delete', { id: bookmarks.at(-1)!.id });
    await catchUp(user, store);
    expect(await readCopy(store)).toEqual(await readContent(user));
  });

  test('a bookmark that another client changes meanwhile is left to the mirror', async () => {
    const user = await fillAccount(100);
    const store = await copyOf(user);
    const { bookmarks } = await readCopy(store);
    await damage(store, 'lost', 40);
    await damage(store, 'stale', 60);
    const requests = new CountedRequests();
    requests.before['/bookmarks/sync'] = () =>
      user.post('/bookmarks/edit', { id: bookmarks[40]!.id, title: 'edited' });
    expect(await verify(user, store, requests)).toEqual([{ kind: 'stale', bookmark: bookmarks[61]!.id }]);
    await catchUp(user, store);
    expect(await readCopy(store)).toEqual(await readContent(user));
  });

  test('a new bookmark that is deleted right after it was read does not come into the copy', async () => {
    const user = await fillAccount(100);
    const store = await copyOf(user);
    await damage(store, 'lost', 99);
    const requests = new CountedRequests();
    let added: number | undefined;
    let deleted = 0;
    requests.before['/bookmarks/sync'] = async () => {
      added ??= (await user.post('/bookmarks/add', { url: 'https://example.org/brief' })).body.id;
    };
    requests.after['/bookmarks/sync'] = async ({ bookmarks }: SyncedBookmarks) => {
      if (!bookmarks.some(({ id }) => id === added)) return;
      await user.post('/bookmarks/delete', { id: added });
      deleted += 1;
    };
    expect(await verify(user, store, requests)).toHaveLength(1);
    expect(deleted).toBe(1);
    await catchUp(user, store);
    expect(await readCopy(store)).toEqual(await readContent(user));
  });

  test('a bookmark that was added, and deleted before a page contained it, is not a fault', async () => {
    const user = await fillAccount(100);
    const store = await copyOf(user);
    const { body: added } = await user.post('/bookmarks/add', { url: 'https://example.org/brief' });
    // A collection stores a bookmark from the response to its add.
    await store.update([added.id], () => ({ row: added }));
    await user.post('/bookmarks/delete', { id: added.id });
    expect(await verify(user, store)).toEqual([]);
    await catchUp(user, store);
    expect(await readCopy(store)).toEqual(await readContent(user));
  });

  test('a tag that is deleted meanwhile is not a fault', async () => {
    const user = await fillAccount(100);
    const store = await copyOf(user);
    const { bookmarks, tags } = await readCopy(store);
    await damage(store, 'stale', 41);
    const requests = new CountedRequests();
    requests.after['/bookmarks/sync'] = () =>
      user.post('/tags/delete', { id: tags.find(({ name }) => name === 'yak')!.id });
    expect(await verify(user, store, requests)).toEqual([{ kind: 'stale', bookmark: bookmarks[41]!.id }]);
    await catchUp(user, store);
    expect(await readCopy(store)).toEqual(await readContent(user));
  });
});

describe('while the same store is used', () => {
  test('an iteration of the mirror continues, and yields every change', async () => {
    const user = await fillAccount(300);
    const store = await copyOf(user);
    const controller = new AbortController();
    const mirror = clientOf(user).mirror({ store, signal: controller.signal });
    const seen = new Set<number>();
    const following = (async () => {
      for await (const { bookmarks } of mirror) for (const { id } of bookmarks) seen.add(id);
    })();
    const { bookmarks } = await readCopy(store);
    const edited = bookmarks.slice(0, 60).map(({ id }) => id);
    const writing = (async () => {
      for (const id of edited) await user.post('/bookmarks/edit', { id, title: 'edited' });
    })();
    const found: CopyFault[] = [];
    for (const position of [100, 150, 200, 250]) {
      await damage(store, 'lost', position).catch((error) => expect(error).toBeInstanceOf(MirrorConflict));
      found.push(...(await mirror.verify()));
    }
    await writing;
    await expect.poll(() => seen.size).toBe(edited.length);
    controller.abort('done');
    await expect(following).rejects.toBe('done');
    expect(found.every(({ kind }) => kind === 'lost')).toBe(true);
    expect(await readCopy(store)).toEqual(await readContent(user));
  });

  test('a repair succeeds although the iteration receives a change during each request', async () => {
    const user = await fillAccount(60);
    const store = await copyOf(user);
    const controller = new AbortController();
    const following = new CountedRequests();
    let received = Promise.withResolvers<void>();
    following.after['/bookmarks/changes'] = async () => received.resolve();
    const mirror = clientOf(user, following).mirror({ store, signal: controller.signal });
    const iterating = (async () => {
      for await (const _ of mirror);
    })();
    await received.promise;
    await damage(store, 'lost', 50);
    const { id } = (await readCopy(store)).bookmarks[0]!;
    const requests = new CountedRequests();
    requests.after['/bookmarks/sync'] = async () => {
      received = Promise.withResolvers();
      await user.post('/bookmarks/edit', { id, title: `edited ${requests.paths.length}` });
      await received.promise;
      // The iteration applies the page before the next turn of the event loop.
      await nextTurn();
    };
    expect(await verify(user, store, requests)).toHaveLength(1);
    await catchUp(user, store);
    expect(await readCopy(store)).toEqual(await readContent(user));
    controller.abort('done');
    await expect(iterating).rejects.toBe('done');
  });

  test('a collection that follows is repaired, and sends its writes meanwhile', async () => {
    const user = await fillAccount(60);
    const store = await copyOf(user);
    const ids = (await readCopy(store)).bookmarks.map(({ id }) => id);
    await damage(store, 'lost', 50);
    const collection = clientOf(user).collection(store);
    const controller = new AbortController();
    const following = collection.follow({ signal: controller.signal });
    const verifying = collection.verify();
    for (const id of ids.slice(0, 10)) await collection.edit(id, { title: 'mine' });
    expect(await verifying).toEqual([{ kind: 'lost', bookmark: ids[50] }]);
    await expect.poll(() => collection.pending()).toEqual([]);
    controller.abort('done');
    await expect(following).rejects.toBe('done');
    await catchUp(user, store);
    const { bookmarks } = await readCopy(store);
    expect(bookmarks.filter(({ title }) => title === 'mine')).toHaveLength(10);
    expect(await readCopy(store)).toEqual(await readContent(user));
  });

  test('a collection keeps its pending writes, and sync applies one to a bookmark that was lost', async () => {
    const user = await fillAccount(50);
    const store = await copyOf(user);
    const { id } = (await readCopy(store)).bookmarks[20]!;
    const collection = clientOf(user).collection(store);
    await collection.edit(id, { title: 'edited' });
    const { bookmarks } = await readCopy(store);
    await damage(store, 'lost', 20);
    expect(await collection.verify()).toEqual([{ kind: 'lost', bookmark: id }]);
    expect(await collection.pending()).toHaveLength(1);
    expect((await readCopy(store)).bookmarks).toEqual(bookmarks);
    expect(await collection.sync()).toEqual([]);
    expect((await collection.get(id))!.title).toBe('edited');
    expect(await readCopy(store)).toEqual(await readContent(user));
  });

  test('a collection is filled by its first verification', async () => {
    const user = await fillAccount(5);
    const store = new MemoryStore();
    expect(await clientOf(user).collection(store).verify()).toEqual([]);
    expect(await readCopy(store)).toEqual(await readContent(user));
  });
});

describe('a copy that cannot be verified', () => {
  test('has never been filled', async () => {
    const user = await fillAccount(3);
    await expect(verify(user, new MemoryStore())).rejects.toThrow(MirrorConflict);
  });

  test('must be filled again', async () => {
    const user = await fillAccount(3);
    const store = await copyOf(user);
    await user.post('/import', { mode: 'replace', bookmarks: [{ url: 'https://example.org/' }] });
    await expect(verify(user, store)).rejects.toThrow(MirrorConflict);
    await catchUp(user, store);
    expect(await verify(user, store)).toEqual([]);
  });

  test('is in a store that cannot read versions', async () => {
    const user = await fillAccount(3);
    const store = { readCursor: async () => undefined, apply: async () => [] };
    await expect(clientOf(user).mirror({ store }).verify()).rejects.toThrow(TypeError);
  });
});

test('if digests of all bookmarks take too long, the client asks for smaller ranges', async () => {
  const user = await service.user({ premium: true });
  await fill(service.database.url, user, 3_000);
  await user.post('/tags/create', { name: 'unused' });
  const store = await copyOf(user);
  for (const position of [5, 2_900]) await damage(store, 'lost', position);
  await damage(store, 'below all ids', 1_000);
  const ids = (await readCopy(store)).bookmarks.map(({ id }) => id);
  const requests = new CountedRequests();
  const counts: number[] = [];
  requests.before['/bookmarks/digest'] = async ({ after_id, up_to_id }: Required<DigestRange>) => {
    const count = ids.filter((id) => id > after_id! && id <= up_to_id!).length;
    counts.push(count);
    if (count <= 2_000) return undefined;
    return Response.json({ error: 'too slow', code: 'UNAVAILABLE' }, { status: 503 });
  };
  await expectRepair(user, store, requests);
  // The second half is asked for immediately in a range that the service can handle.
  expect(counts.filter((count) => count > 2_000)).toHaveLength(2 * 7);
});
