import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  type BookmarkClient,
  type ChangedIds,
  BookmarkClient as Client,
  type Collection,
  type CollectionStore,
  MemoryStore,
} from '../src/client/index.ts';
import { SqliteStore } from '../src/client/sqlite-store.ts';
import { FakeService, hang, json, refusal, turn } from './support/fake-service.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { type TestUser, useService } from './support/service.ts';
import { until } from './support/until.ts';

/** Tests `follow`, `watch`, `tags`, `list` and `undelete` of `client.collection`. */

const service = useService();

/** Returns a client of the user, and the paths of its requests. A held poll is `poll`. */
function connect(user: TestUser): { client: BookmarkClient; paths: string[] } {
  const paths: string[] = [];
  const client = new Client({
    baseUrl: `${service.origin}/api/v1`,
    token: user.token,
    fetch: (input, init) => {
      const path = String(input).replace(`${service.origin}/api/v1`, '');
      paths.push(JSON.parse(String(init?.body)).wait === true ? 'poll' : path);
      return fetch(input, init);
    },
  });
  return { client, paths };
}

/** Follows until the test ends. */
function follow(collection: Collection): { ended: Promise<unknown>; stop: () => void } {
  const life = new AbortController();
  const ended = collection.follow({ signal: life.signal }).catch((error) => error);
  const stop = () => life.abort(new Error('stopped'));
  onTestFinished(async () => {
    stop();
    await ended;
  });
  return { ended, stop };
}

const readAll = async (user: TestUser) => (await user.post('/export')).body.bookmarks;
const url = (name: unknown) => `https://example.org/${name}`;

describe('a collection that follows', () => {
  test('sends a write that is made while it holds a poll at once, and applies the changes of others', async () => {
    const user = await service.user();
    const { client, paths } = connect(user);
    const collection = client.collection(new MemoryStore());
    const { ended, stop } = follow(collection);
    await until(() => paths.at(-1) === 'poll');
    paths.length = 0;
    const { id } = await collection.add({ url: url('mine') });
    await until(async () => (await readAll(user)).length === 1);
    await until(() => paths.at(-1) === 'poll');
    expect(paths).toEqual(['/bookmarks/batch', '/bookmarks/changes', 'poll']);
    expect(await collection.pending()).toEqual([]);
    expect(await collection.get(id)).toMatchObject({ url: url('mine') });

    await user.post('/bookmarks/add', { url: url('theirs') });
    await until(async () => (await collection.list()).length === 2);
    expect(await collection.list()).toEqual(await readAll(user));
    stop();
    expect(await ended).toMatchObject({ message: 'stopped' });
  });

  test('sends writes that were made before it began', async () => {
    const user = await service.user();
    const collection = connect(user).client.collection(new MemoryStore());
    for (const n of [1, 2, 3]) await collection.add({ url: url(n) });
    follow(collection);
    await until(async () => (await collection.pending()).length === 0);
    expect(await readAll(user)).toHaveLength(3);
  });

  test('continues after a MirrorConflict, and applies each write once, with other clients of the same store', async () => {
    const user = await service.user();
    const store = new MemoryStore();
    const collections = [1, 2, 3].map(() => connect(user).client.collection(store));
    const followers = collections.map(follow);
    let isRunning = true;
    for (const { ended } of followers)
      void ended.then(() => {
        isRunning = false;
      });
    for (let n = 0; n < 20; n += 1) {
      await collections[n % 3]!.add({ url: url(n) });
      await user.post('/bookmarks/add', { url: url(`there-${n}`) });
      if (n % 7 === 0) await collections[0]!.sync();
    }
    await until(async () => (await collections[0]!.pending()).length === 0);
    await until(async () => (await collections[0]!.list()).length === 40);
    expect(await readAll(user)).toHaveLength(40);
    expect(await collections[0]!.list()).toEqual(await readAll(user));
    expect(isRunning).toBe(true);
  });

  test('ends if its token is revoked', async () => {
    const user = await service.session();
    const collection = connect(user).client.collection(new MemoryStore());
    const { ended } = follow(collection);
    await user.post('/logout');
    expect(await ended).toMatchObject({ code: 'INVALID_TOKEN' });
  });

  test('reads changes, but sends nothing for a minute, if the service has no room for more responses', async () => {
    const page = (cursor: string, fields = {}) =>
      json({
        reset: false,
        bookmarks: [],
        deleted: [],
        tags: [],
        deleted_tags: [],
        cursor,
        has_more: false,
        waited: true,
        ...fields,
      });
    const full = json({ results: [{ error: 'too many responses are kept', code: 'RATE_LIMITED' }] });
    const added = { id: 7, url: url('b'), title: '', comment: '', tags: [], created_at: '', updated_at: '' };
    const fake = new FakeService(
      page('a'),
      full,
      page('b', { bookmarks: [added] }),
      hang,
      refusal('VALIDATION_ERROR', 400),
    );
    const collection = fake.client().collection(new MemoryStore());
    await collection.add({ url: url('a') });
    const { ended } = follow(collection);
    await until(() => fake.received.length === 4);
    // Writes that are made meanwhile wait too.
    await collection.add({ url: url('c') });
    for (let n = 0; n < 10; n += 1) await turn();
    expect(fake.received).toHaveLength(4);
    expect(await collection.get(7)).toEqual(added);
    fake.clock.advance(59_000);
    await turn();
    expect(fake.received).toHaveLength(4);
    fake.clock.advance(1_000);
    await until(() => fake.received.length === 5);
    expect(fake.received.at(-1)!.body.operations).toHaveLength(2);
    expect(await ended).toMatchObject({ code: 'VALIDATION_ERROR' });
  });
});

/** Records what a collection tells its watchers. */
function record({ watch }: { watch: Collection['watch'] | CollectionStore['watch'] }): ChangedIds[] {
  const told: ChangedIds[] = [];
  onTestFinished(watch((ids) => told.push(ids)));
  return told;
}

describe('a watcher', () => {
  test('is told which bookmarks have changed: by local writes, by responses, and by pages of changes', async () => {
    const user = await service.user();
    const collection = connect(user).client.collection(new MemoryStore());
    const told = record({ watch: (listener) => collection.watch(listener) });
    const first = await collection.add({ url: url('a'), tags: ['t'] });
    await turn();
    expect(told.splice(0)).toEqual([[first.id]]);
    await collection.get(first.id);
    await collection.edit(first.id, {});
    await collection.sync();
    await turn();
    const [added] = await readAll(user);
    expect(
      new Set(
        told
          .splice(0)
          .filter((ids) => ids !== 'all')
          .flat(),
      ),
    ).toEqual(new Set([first.id, added.id]));
    await user.post('/tags/update', { id: added.tags[0].id, name: 'renamed' });
    await collection.sync();
    await turn();
    expect(told.splice(0)).toEqual([[added.id]]);
    await user.post('/bookmarks/delete', { id: added.id });
    await collection.sync();
    await turn();
    expect(told.splice(0)).toEqual([[added.id]]);
  });

  test('of a file is told that another process has changed it', async () => {
    const folder = makeFolder('watch');
    onTestFinished(() => removeFolder(folder));
    using one = new SqliteStore(join(folder, 'a.sqlite'));
    using other = new SqliteStore(join(folder, 'a.sqlite'));
    const told = Promise.withResolvers<ChangedIds>();
    const unwatch = one.watch(told.resolve);
    const user = await service.user();
    await connect(user)
      .client.collection(other)
      .add({ url: url('a') });
    expect(await told.promise).toBe('all');
    unwatch();
  });
});

describe.each([
  ['in memory', () => new MemoryStore()],
  [
    'in a file',
    () => {
      const folder = makeFolder('collection');
      const store = new SqliteStore(join(folder, 'a.sqlite'));
      onTestFinished(() => {
        store[Symbol.dispose]();
        removeFolder(folder);
      });
      return store;
    },
  ],
] as [string, () => CollectionStore][])('a collection %s', (_, open) => {
  test('counts the bookmarks of each tag as the service will, with the writes that are not sent', async () => {
    const user = await service.user();
    const { client } = connect(user);
    const collection = client.collection(open());
    for (const tags of [['a', 'b'], ['A', 'c'], ['b']])
      await user.post('/bookmarks/add', { url: url('x'), tags });
    await user.post('/tags/create', { name: 'unused' });
    await collection.sync();
    const { tags: before } = (await user.post('/tags/list')).body;
    expect(await collection.tags()).toEqual(before);
    const [one, two, three] = await collection.list();
    await collection.edit(one!.id, { tags: ['B', 'new'] });
    await collection.delete(two!.id);
    await collection.edit(three!.id, { tags: [] });
    await collection.edit(three!.id, { tags: ['NEW', 'a'] });
    const added = await collection.add({ url: url('y'), tags: ['later', 'a'] });
    await collection.edit(added.id, { title: 'same tags' });
    const shown = await collection.tags();
    expect(shown.find(({ name }) => name === 'new')).toEqual({ id: 0, name: 'new', bookmark_count: 2 });
    expect(await collection.sync()).toEqual([]);
    const { tags: after } = (await user.post('/tags/list')).body;
    const withoutIds = (tags: { name: string; bookmark_count: number }[]) =>
      tags.map(({ name, bookmark_count }) => [name, bookmark_count]);
    expect(withoutIds(shown)).toEqual(withoutIds(after));
    expect(await collection.tags()).toEqual(after);
  });

  test('is listed in parts that contain each bookmark once', async () => {
    const user = await service.user();
    const collection = connect(user).client.collection(open());
    for (let n = 0; n < 12; n += 1) await user.post('/bookmarks/add', { url: url(n) });
    await collection.sync();
    const all = await collection.list();
    for (const { id } of all.slice(2, 8)) await collection.delete(id);
    await collection.edit(all[9]!.id, { title: 'edited' });
    for (let n = 0; n < 5; n += 1) await collection.add({ url: url(`new-${n}`) });
    const whole = await collection.list();
    expect(whole).toHaveLength(11);
    for (const limit of [1, 2, 3, 5, 11, 20]) {
      const parts = [];
      for (let part = await collection.list({ limit }); part.length > 0; ) {
        expect(part.length).toBeLessThanOrEqual(limit);
        parts.push(...part);
        part = await collection.list({ afterId: part.at(-1)!.id, limit });
      }
      expect(parts).toEqual(whole);
    }
  });

  test('takes back a deletion that was never sent, and no other', async () => {
    const user = await service.user();
    const { client } = connect(user);
    const store = open();
    const collection = client.collection(store);
    const { id } = (await user.post('/bookmarks/add', { url: url('a') })).body;
    await collection.sync();
    await expect(collection.undelete(id)).rejects.toThrow('no deletion');
    await collection.edit(id, { title: 'edited' });
    await collection.delete(id);
    expect(await collection.undelete(id)).toMatchObject({ id, title: 'edited' });
    expect(await collection.pending()).toHaveLength(1);
    const added = await collection.add({ url: url('b') });
    await collection.delete(added.id);
    await collection.undelete(added.id);
    expect(await collection.sync()).toEqual([]);
    expect(await readAll(user)).toMatchObject([{ title: 'edited' }, { url: url('b') }]);

    await collection.delete(id);
    const lost = new Client({
      baseUrl: `${service.origin}/api/v1`,
      token: user.token,
      retryForMs: 0,
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        if (String(input).endsWith('/batch')) throw new TypeError('the response was lost');
        return response;
      },
    });
    await expect(lost.collection(store).sync()).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
    await expect(collection.undelete(id)).rejects.toThrow('no deletion');
    expect(await collection.sync()).toEqual([]);
    expect(await readAll(user)).toMatchObject([{ url: url('b') }]);
  });
});
