import { describe, expect, test } from 'vitest';
import { BookmarkClient, type Collection, MemoryStore } from '../src/client/index.ts';
import { runOn } from './support/database.ts';
import { type TestUser, useService } from './support/service.ts';

/** Tests how `client.collection` sends its outbox by `/bookmarks/batch`. */

const CAP = 3;
const service = useService({ freeBookmarkLimit: CAP });
const second = useService({ freeBookmarkLimit: CAP }, { beside: service });

interface Sent {
  path: string;
  text: string;
  operations: { do: string; key: string }[];
}

/** What happens to a request: it is lost, its response is lost, or neither. */
type Fate = (sent: Sent) => 'lost' | 'answer lost' | undefined;

/** Opens a collection of a user. Records the requests that it sends, and lets `fate` decide about each. */
function open(
  user: TestUser,
  { store = new MemoryStore(), fate = (() => undefined) as Fate, onResponse = async () => {} } = {},
) {
  const sent: Sent[] = [];
  let at = 0;
  const client = new BookmarkClient({
    baseUrl: `${service.origin}/api/v1`,
    token: user.token,
    random: () => 0,
    fetch: async (url, init) => {
      const text = String(init?.body);
      const path = String(url).replace(`${service.origin}/api/v1`, '');
      const request = { path, text, operations: JSON.parse(text).operations };
      sent.push(request);
      const happens = fate(request);
      if (happens === 'lost') throw new TypeError('fetch failed');
      at += 1;
      const response = await fetch(
        String(url).replace(service.origin, [service, second][at % 2]!.origin),
        init,
      );
      await onResponse();
      if (happens === undefined) return response;
      await response.text();
      throw new TypeError('fetch failed');
    },
  });
  const collection = client.collection(store);
  const batches = () => sent.filter(({ path }) => path === '/bookmarks/batch');
  return { collection, store, sent, batches };
}

const readAll = async (user: TestUser) => (await user.post('/export')).body.bookmarks;
const url = (name: unknown) => `https://example.org/${name}`;

async function addMany(collection: Collection, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await collection.add({ url: url(n) });
}

describe('the outbox', () => {
  test('sends the first write of 500 bookmarks at a time', async () => {
    const user = await service.user({ premium: true });
    const { collection, sent, batches } = open(user);
    await addMany(collection, 1_001);
    const [first] = await collection.list();
    await collection.edit(first!.id, { title: 'edited' });
    await collection.edit(first!.id, { comment: 'twice' });
    expect(await collection.sync()).toEqual([]);
    expect(batches().map(({ operations }) => operations.length)).toEqual([500, 500, 1, 1, 1]);
    const all = await readAll(user);
    expect(all.map((bookmark: { url: string }) => bookmark.url)).toEqual(
      Array.from({ length: 1_001 }, (_, n) => url(n)),
    );
    expect(all.at(-1)).toMatchObject({ title: 'edited', comment: 'twice' });
    expect(await collection.list()).toEqual(all);
    expect(sent.length).toBeLessThan(12);
  });

  test('keeps its batches within the size and the number of values that the service accepts', async () => {
    const user = await service.user({ premium: true });
    const { collection, batches } = open(user);
    for (let n = 0; n < 120; n += 1) await collection.add({ url: url(n), comment: 'ä'.repeat(9_000) });
    for (let n = 0; n < 20; n += 1) await collection.add({ url: url(n), comment: ',['.repeat(4_500) });
    const tags = Array.from({ length: 100 }, (_, n) => `${n}`);
    for (let n = 0; n < 200; n += 1) await collection.add({ url: url(n), tags });
    expect((await collection.sync()).map(({ kind }) => kind)).toEqual([]);
    expect(await collection.pending()).toEqual([]);
    expect(await readAll(user)).toHaveLength(340);
    expect(batches().length).toBeLessThan(15);
    for (const { text } of batches()) {
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_048_576);
      expect(text.match(/[,[{]/g)!.length).toBeLessThan(50_000);
    }
  });

  test('reports a write that is too large for any batch, and sends the others', async () => {
    const user = await service.user();
    const { collection } = open(user);
    await collection.add({ url: url('before') });
    const large = await collection.add({ url: url('large'), comment: 'a'.repeat(1_100_000) });
    await collection.edit(large.id, { title: 'of a bookmark that was refused' });
    await collection.add({ url: url('after') });
    expect(await collection.sync()).toMatchObject([
      { kind: 'refused', code: 'VALIDATION_ERROR', id: large.id, intent: { kind: 'add' } },
      { kind: 'refused', code: 'VALIDATION_ERROR', id: large.id, intent: { kind: 'edit' } },
    ]);
    expect(await readAll(user)).toMatchObject([{ url: url('before') }, { url: url('after') }]);
  });

  test('sends a batch whose response was lost again, with the same keys, and to another replica', async () => {
    const user = await service.user();
    let left = 2;
    const { collection, batches } = open(user, {
      fate: ({ path }) => {
        if (path !== '/bookmarks/batch' || left === 0) return undefined;
        left -= 1;
        return left === 1 ? 'lost' : 'answer lost';
      },
    });
    await addMany(collection, CAP);
    // Each sync is a new one, as after a restart of the program.
    for (const _ of [1, 2])
      await expect(collection.sync({ retryForMs: 0 })).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
    expect(await collection.sync()).toEqual([]);
    expect(batches()).toHaveLength(3);
    expect(new Set(batches().map(({ text }) => text)).size).toBe(1);
    expect(await readAll(user)).toHaveLength(CAP);
    expect(await collection.list()).toEqual(await readAll(user));
  });

  test('lets no add overtake a deletion that makes room for it', async () => {
    const user = await service.user();
    const { collection } = open(user);
    await addMany(collection, CAP);
    await collection.sync();
    const [first] = await collection.list();
    await collection.edit(first!.id, { title: 'edited' });
    await collection.delete(first!.id);
    await collection.add({ url: url('new') });
    expect(await collection.sync()).toEqual([]);
    expect(await readAll(user)).toMatchObject([{ url: url(1) }, { url: url(2) }, { url: url('new') }]);
  });

  test('lets no add overtake a new url that makes it a duplicate', async () => {
    const user = await service.user();
    const { collection } = open(user);
    const { id } = await collection.add({ url: url('old'), created_at: '2020-01-01' });
    await collection.edit(id, { url: url('new') });
    await collection.add({ url: url('new'), on_duplicate: 'return' });
    expect(await collection.sync()).toMatchObject([{ kind: 'duplicate' }]);
    expect(await readAll(user)).toMatchObject([{ url: url('new') }]);
  });

  test('merges writes that were refused as outdated after it has read the changes, in few requests', async () => {
    const user = await service.user({ premium: true });
    const elsewhere = open(user).collection;
    let isChangedElsewhere = true;
    const { collection, sent, batches } = open(user, {
      // Another client writes after this one has read the changes, and before it sends its batch.
      onResponse: async () => {
        if (isChangedElsewhere) return;
        isChangedElsewhere = true;
        await elsewhere.sync();
      },
    });
    await addMany(collection, 100);
    await collection.sync();
    await elsewhere.sync();
    const ids = (await readAll(user)).map(({ id }: { id: number }) => id);
    for (const id of ids) await collection.edit(id, { title: 'mine' });
    for (const id of ids.slice(0, 60)) await elsewhere.edit(id, { comment: 'theirs' });
    for (const id of ids.slice(60)) await elsewhere.delete(id);
    sent.length = 0;
    isChangedElsewhere = false;
    const reports = await collection.sync();
    expect(reports.map(({ kind }) => kind)).toEqual(Array.from({ length: 40 }, () => 'gone'));
    expect(await readAll(user)).toEqual(await collection.list());
    expect(await readAll(user)).toEqual(
      Array.from({ length: 60 }, () => expect.objectContaining({ title: 'mine', comment: 'theirs' })),
    );
    expect(batches()).toHaveLength(2);
    expect(sent.filter(({ path }) => path === '/bookmarks/get')).toEqual([]);
  });

  test('reads a bookmark that the copy has wrong, although no page of changes contains it', async () => {
    const user = await service.user();
    const { collection, store, sent } = open(user);
    await addMany(collection, 2);
    await collection.sync();
    const [one, two] = await readAll(user);
    const stale = { updated_at: '2020-01-01T00:00:00.000Z' };
    await store.update([one.id, two.id], ({ row }) => ({ row: { ...row!, ...stale } }));
    await collection.edit(one.id, { title: 'mine' });
    await collection.edit(two.id, { title: 'mine' });
    expect(await collection.sync()).toEqual([]);
    expect(await collection.list()).toEqual(await readAll(user));
    expect(sent.filter(({ path }) => path === '/bookmarks/get')).toHaveLength(2);
  });

  test('keeps the writes whose responses the service has no room for, and sends them later', async () => {
    const user = await service.user({ premium: true });
    const { collection } = open(user);
    await collection.sync();
    const setKept = (bytes: number) =>
      runOn(service.database.url, `update accounts set kept_bytes = ${bytes} where user_id = ${user.id}`);
    await setKept(16_777_216 - 524_288 - 500);
    await addMany(collection, 5);
    await expect(collection.sync()).rejects.toMatchObject({ code: 'RATE_LIMITED', retryAfterSeconds: 60 });
    const pending = (await collection.pending()).length;
    expect(pending).toBeGreaterThan(0);
    expect(pending).toBeLessThan(5);
    expect(await readAll(user)).toHaveLength(5 - pending);
    // The changes of other clients still arrive.
    await user.post('/bookmarks/add', { url: url('other') });
    await expect(collection.sync()).rejects.toMatchObject({ code: 'RATE_LIMITED' });
    expect((await collection.list()).map((bookmark) => bookmark.url)).toContain(url('other'));
    await setKept(0);
    expect(await collection.sync()).toEqual([]);
    expect(await readAll(user)).toHaveLength(6);
    expect(await collection.list()).toEqual(await readAll(user));
  });

  test('of two clients that push it at the same time is applied once', async () => {
    const user = await service.user({ premium: true });
    const store = new MemoryStore();
    const clients = [open(user, { store }), open(user, { store }), open(user, { store })];
    await addMany(clients[0]!.collection, 700);
    await Promise.all(clients.map(({ collection }) => collection.sync()));
    expect(await readAll(user)).toHaveLength(700);
    expect(await clients[0]!.collection.list()).toEqual(await readAll(user));
    expect(await clients[0]!.collection.pending()).toEqual([]);
  });
});
