import type { IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import type {
  Bookmark,
  BookmarkClient,
  ChangedIds,
  Collection,
  IndexedDbStore,
  Report,
} from '../src/client/index.ts';
import { browserTest, useBrowser } from './support/browser.ts';
import { usePageServer } from './support/pages.ts';
import { type TestUser, useService } from './support/service.ts';

/** Tests of `client.collection` with an `IndexedDbStore` in a browser, in several tabs and in tabs that are closed. */

const service = useService();
const browsers = useBrowser();

/** Called before and after each request of a page to the service. */
let onRequest: (moment: 'before' | 'after') => void = () => {};

async function send(request: IncomingMessage): Promise<Response> {
  const { host: _, connection: __, ...headers } = request.headers;
  const body = (await buffer(request)) as Buffer<ArrayBuffer>;
  return fetch(service.origin + request.url, {
    method: 'POST',
    headers: headers as Record<string, string>,
    body,
  });
}

const pages = usePageServer(async (request, response) => {
  onRequest('before');
  const received = await send(request);
  const body = Buffer.from(await received.arrayBuffer());
  onRequest('after');
  if (!response.destroyed)
    response.writeHead(received.status, { 'content-type': 'application/json' }).end(body);
});

declare global {
  /** These variables exist only in the browser's page. */
  var collection: Collection;
  /** What the page's watcher was told first. */
  var told: Promise<ChangedIds>;
}

/** Opens a tab with a collection in the database `name`. */
async function openTab(open: () => Promise<Page>, user: TestUser, name: string): Promise<Page> {
  const page = await open();
  await page.evaluate(
    async ([token, name, module]) => {
      const client: {
        BookmarkClient: typeof BookmarkClient;
        IndexedDbStore: typeof IndexedDbStore;
      } = await import(module!);
      const { BookmarkClient: Client, IndexedDbStore: Store } = client;
      const baseUrl = `${location.origin}/api/v1`;
      globalThis.collection = new Client({ baseUrl, token }).collection(new Store(name!));
    },
    [user.token, name, '/client.js'],
  );
  return page;
}

const list = (page: Page): Promise<Bookmark[]> => page.evaluate(() => globalThis.collection.list());
const sync = (page: Page): Promise<Report[]> => page.evaluate(() => globalThis.collection.sync());
const readAll = async (user: TestUser): Promise<Bookmark[]> =>
  (await user.post('/bookmarks/list', { limit: 500 })).body.bookmarks;

describe('a collection in IndexedDB', () => {
  browserTest(
    'is there after a reload, with its pending writes, and contains the changes of both sides after a sync',
    async () => {
      const user = await service.user();
      await user.post('/bookmarks/add', { url: 'http://there/', tags: ['b', 'A'] });
      const browser = await browsers.visitor(service);
      const page = await openTab(() => browser.open('/', pages.origin), user, 'one');
      expect(await sync(page)).toEqual([]);
      await page.evaluate(async () => {
        const { collection } = globalThis;
        const [there] = await collection.list();
        await collection.edit(there!.id, { title: 'There', tags: ['A'] });
        await collection.add({ url: 'http://here/', tags: ['new'] });
      });
      await page.close();
      const again = await openTab(() => browser.open('/', pages.origin), user, 'one');
      expect(await list(again)).toMatchObject([
        { url: 'http://here/', tags: [{ name: 'new' }] },
        { title: 'There', tags: [{ name: 'A' }] },
      ]);
      expect(await sync(again)).toEqual([]);
      expect(await list(again)).toEqual(await readAll(user));
      expect(await again.evaluate(() => globalThis.collection.pending())).toEqual([]);
    },
  );

  browserTest('that two tabs change and synchronise at once applies each write once', async () => {
    const user = await service.user();
    const browser = await browsers.visitor(service);
    const { id } = (await user.post('/bookmarks/add', { url: 'http://shared/' })).body;
    const tabs = [];
    for (const _ of 'ab') tabs.push(await openTab(() => browser.open('/', pages.origin), user, 'two'));
    await sync(tabs[0]!);
    await Promise.all(
      tabs.map((tab, at) =>
        tab.evaluate(
          async ([at, id]) => {
            const { collection } = globalThis;
            for (let n = 0; n < 10; n += 1) {
              await collection.add({ url: `http://tab/${at}/${n}` });
              await collection.edit(id!, { title: `${at} ${n}`, tags: [`${at}-${n}`] });
              if (n % 3 === 0) await collection.sync();
            }
            await collection.sync();
          },
          [at, id],
        ),
      ),
    );
    for (const tab of tabs) {
      await sync(tab);
      expect(await tab.evaluate(() => globalThis.collection.pending())).toEqual([]);
      expect(await list(tab)).toEqual(await readAll(user));
    }
    const urls = (await readAll(user)).map(({ url }) => url).sort();
    const added = [0, 1].flatMap((at) => Array.from({ length: 10 }, (_, n) => `http://tab/${at}/${n}`));
    expect(urls).toEqual(['http://shared/', ...added]);
    // Each tab immediately showed the other tab's edits. So every edit was made after its tab had shown the previous
    // edit.
    expect(await tabs[0]!.evaluate(() => globalThis.collection.reports())).toEqual([]);
  });

  browserTest('tells each tab which bookmarks another tab has changed', async () => {
    const user = await service.user();
    const browser = await browsers.visitor(service);
    const tabs = [];
    for (const _ of 'ab') tabs.push(await openTab(() => browser.open('/', pages.origin), user, 'watched'));
    const [one, other] = tabs as [Page, Page];
    await other.evaluate(() => {
      globalThis.told = new Promise((resolve) => globalThis.collection.watch(resolve));
    });
    const { id } = await one.evaluate(() => globalThis.collection.add({ url: 'http://added/' }));
    expect(await other.evaluate(() => globalThis.told)).toEqual([id]);
  });

  browserTest('whose tab is closed at any request loses no write and applies none twice', async () => {
    const user = await service.user();
    const browser = await browsers.visitor(service);
    const open = () => openTab(() => browser.open('/', pages.origin), user, 'three');
    const { id } = (await user.post('/bookmarks/add', { url: 'http://edited/' })).body;
    await sync(await open());
    let rounds = 0;
    for (const moment of ['before', 'after'] as const) {
      // Round `at` closes the tab at request number `at`. The last round makes fewer than `at` requests, so it
      // closes no tab.
      for (let at = 1, wasClosed = true; wasClosed; at += 1, rounds += 1) {
        const page = await open();
        await page.evaluate(
          async ([id, n]) => {
            const { collection } = globalThis;
            await collection.add({ url: `http://round/${n}` });
            await collection.edit(id!, { title: `round ${n}` });
          },
          [id, rounds],
        );
        wasClosed = false;
        let left = at;
        const closed = Promise.withResolvers<void>();
        onRequest = (now) => {
          if (now !== moment) return;
          left -= 1;
          if (left !== 0) return;
          wasClosed = true;
          page.close().then(closed.resolve, closed.reject);
        };
        await sync(page).catch(() => closed.promise);
        onRequest = () => {};
        await page.close();
      }
    }
    const page = await open();
    expect(await sync(page)).toEqual([]);
    const all = await readAll(user);
    expect(await list(page)).toEqual(all);
    expect(all.map(({ url }) => url)).toEqual([
      'http://edited/',
      ...Array.from({ length: rounds }, (_, n) => `http://round/${n}`),
    ]);
    expect(all[0]!.title).toBe(`round ${rounds - 1}`);
    expect(rounds).toBeGreaterThan(8);
  });

  browserTest('opens its database again after another page has deleted it', async () => {
    const user = await service.user();
    await user.post('/bookmarks/add', { url: 'http://there/' });
    const browser = await browsers.visitor(service);
    const page = await openTab(() => browser.open('/', pages.origin), user, 'four');
    await sync(page);
    const other = await browser.open('/', pages.origin);
    await other.evaluate(
      () =>
        new Promise((resolve, reject) => {
          const request = indexedDB.deleteDatabase('four');
          request.onsuccess = resolve;
          request.onerror = reject;
          request.onblocked = reject;
        }),
    );
    expect(await list(page)).toEqual([]);
    await sync(page);
    expect(await list(page)).toEqual(await readAll(user));
  });
});
