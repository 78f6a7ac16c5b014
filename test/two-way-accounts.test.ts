import { describe, expect, test } from 'vitest';
import { BookmarkClient, MemoryStore } from '../src/client/index.ts';
import { type TestUser, useService } from './support/service.ts';

/**
 * Tests that `client.collection` keeps its pending writes when a token is revoked, and sends them only to the account
 * for which they were made.
 */

const service = useService();

/** Returns a client that calls `before` before each request to `path`. */
const clientThat = (token: string, path: string, before: () => Promise<unknown>): BookmarkClient =>
  new BookmarkClient({
    baseUrl: `${service.origin}/api/v1`,
    token,
    retryForMs: 0,
    fetch: async (url, init) => {
      if (String(url).endsWith(path)) await before();
      return fetch(url, init);
    },
  });

const clientOf = ({ token }: Pick<TestUser, 'token'>) =>
  new BookmarkClient({ baseUrl: `${service.origin}/api/v1`, token });

const urlsOf = async (user: TestUser): Promise<string[]> =>
  (await user.post('/bookmarks/list')).body.bookmarks.map(({ url }: { url: string }) => url);

describe('a token that is revoked in the middle of a push', () => {
  test('ends the sync, and another token of the account sends the rest', async () => {
    const user = await service.user();
    const { token } = await service.session(user.email);
    const store = new MemoryStore();
    let sent = 0;
    const revoked = clientThat(token, '/bookmarks/batch', async () => {
      sent += 1;
      if (sent === 2) await clientOf({ token }).logout();
    }).collection(store);
    const { id } = await revoked.add({ url: 'http://1/' });
    // The second write of a bookmark needs a second batch.
    await revoked.edit(id, { title: 'edited' });
    await revoked.edit(id, { url: 'http://edited/' });
    await revoked.add({ url: 'http://2/' });
    await expect(revoked.sync()).rejects.toMatchObject({ code: 'INVALID_TOKEN' });
    expect(await urlsOf(user)).toEqual(['http://1/']);
    expect(await revoked.pending()).toHaveLength(3);
    const collection = clientOf(user).collection(store);
    expect(await collection.sync()).toEqual([]);
    expect(await urlsOf(user)).toEqual(['http://edited/', 'http://2/']);
    expect(await collection.pending()).toEqual([]);
  });
});

describe('a store used with the token of another account', () => {
  test('sends nothing to that account, not even a request that was in progress', async () => {
    const [user, other] = [await service.user(), await service.user()];
    const store = new MemoryStore();
    const lost = () => Promise.reject(new TypeError('the connection is gone'));
    const collection = clientThat(user.token, '/bookmarks/batch', lost).collection(store);
    await collection.add({ url: 'http://mine/' });
    await expect(collection.sync()).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
    await expect(clientOf(other).collection(store).sync()).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
    });
    expect(await urlsOf(other)).toEqual([]);
    expect(await clientOf(user).collection(store).sync()).toEqual([]);
    expect(await urlsOf(user)).toEqual(['http://mine/']);
  });
});
