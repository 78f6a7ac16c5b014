import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, test } from 'vitest';
import {
  type Bookmark,
  type BookmarkTag,
  type CollectionStore,
  type IdRange,
  type IndexedDbStore,
  MirrorConflict,
  type MirrorPage,
  type MirrorStore,
} from '../../src/client/index.ts';
import { MemoryStore } from '../../src/client/memory-store.ts';
import { SqliteStore } from '../../src/client/sqlite-store.ts';
import { type Browsers, browserTest, useBrowser } from './browser.ts';
import { makeFolder, removeFolder } from './folders.ts';
import { usePageServer } from './pages.ts';
import type { TestService } from './service.ts';

/** The three stores of the client, each with a name, a function that opens an empty one, and the `test` to use. */

/** The methods of a store that tests use. */
export interface ReadableStore extends MirrorStore {
  bookmarks(): Iterable<Bookmark> | Promise<Bookmark[]>;
  tags(): BookmarkTag[] | Promise<BookmarkTag[]>;
  find(id: number): Bookmark | undefined | Promise<Bookmark | undefined>;
}

/** A store that tests also use as the store of a collection. */
interface ReadableCollection extends ReadableStore {
  /** Stores a bookmark that the service has returned for an add. */
  storeAdded(bookmark: Bookmark): Promise<void>;
  readAhead(): Promise<number[]>;
  readVersions: Required<MirrorStore>['readVersions'];
  readTags: Required<MirrorStore>['readTags'];
}

/** Adds a bookmark to the copy, and stores the bookmark that the service has returned. */
async function storeAdded(store: CollectionStore, bookmark: Bookmark): Promise<void> {
  const { tags: _tags, ...fields } = bookmark;
  const intent = { kind: 'add' as const, bookmark: { ...fields, tags: [] }, onDuplicate: 'return' as const };
  const [added] = await store.update([0], () => ({ writes: [{ id: 0, intent, seen: undefined }] }));
  await store.update([added!.id], () => ({ writes: [], row: bookmark }));
}

const withStoreAdded = <Store extends CollectionStore>(store: Store) =>
  Object.assign(store, { storeAdded: (bookmark: Bookmark) => storeAdded(store, bookmark) });

declare global {
  /** This variable exists only in the browser's page. */
  var store: IndexedDbStore;
}

/** A store in a page of the browser, with its own database. */
class PageStore implements ReadableCollection {
  readonly #page: Page;

  private constructor(page: Page) {
    this.#page = page;
  }

  static async open(browsers: Browsers, origin: string): Promise<PageStore> {
    const page = await (await browsers.visitor({} as TestService)).open('/', origin);
    await page.evaluate(async (module) => {
      globalThis.store = new (await import(module)).IndexedDbStore('test');
    }, '/client.js');
    return new PageStore(page);
  }

  async apply(page: MirrorPage, after?: string | undefined): Promise<number[]> {
    const applied = await this.#page.evaluate(
      ([page, after]) => globalThis.store.apply(page!, after).catch(({ name }) => name as string),
      [page, after] as const,
    );
    if (applied === 'MirrorConflict') throw new MirrorConflict();
    if (typeof applied === 'string') throw new Error(applied);
    return applied;
  }

  readCursor = () => this.#page.evaluate(() => globalThis.store.readCursor());
  bookmarks = () => this.#page.evaluate(() => globalThis.store.bookmarks());
  tags = () => this.#page.evaluate(() => globalThis.store.tags());
  find = (id: number) => this.#page.evaluate((id) => globalThis.store.find(id), id);
  readAhead = () => this.#page.evaluate(() => globalThis.store.readAhead());
  readVersions = (range: IdRange, limit?: number) =>
    this.#page.evaluate(([range, limit]) => globalThis.store.readVersions(range, limit), [
      range,
      limit,
    ] as const);
  readTags = () => this.#page.evaluate(() => globalThis.store.readTags());
  storeAdded = async (bookmark: Bookmark): Promise<void> =>
    this.#page.evaluate(([code, bookmark]) => new Function(`return ${code}`)()(globalThis.store, bookmark), [
      storeAdded.toString(),
      bookmark,
    ] as const);
}

/** Lets the tests of a file open stores. `nextFile` returns the path of a new file, which is deleted after the tests. */
export function useStores() {
  const pages = usePageServer();
  const browsers = useBrowser();
  let folder: string;
  beforeAll(() => {
    folder = makeFolder('mirrors');
  });
  afterAll(() => removeFolder(folder));
  const nextFile = (): string => join(folder, `${randomUUID()}.sqlite`);
  const stores: [string, () => Promise<ReadableCollection>, typeof browserTest][] = [
    ['in memory', async () => withStoreAdded(new MemoryStore()), test],
    ['in a file', async () => withStoreAdded(new SqliteStore(nextFile())), test],
    ['in IndexedDB', () => PageStore.open(browsers, pages.origin), browserTest],
  ];
  return { stores, nextFile };
}
