import type { Bookmark, BookmarkTag, Tag } from '../domain/resources.ts';
import type { IdRange } from './digests.ts';
import { type StoredBookmark, showStored, sortTags } from './memory-store.ts';
import {
  findChangedTags,
  type MirrorPage,
  omitBookmarksOf,
  omitOutdated,
  requireNext,
  requireNoAttempt,
} from './mirror.ts';
import {
  type BookmarkState,
  type CollectionStore,
  type PendingWrite,
  type Report,
  type StateChange,
  toStates,
} from './outbox.ts';
import { type ChangedIds, changedBy, distinct, isChange } from './watchers.ts';

const openTables = (transaction: IDBTransaction) => ({
  position: transaction.objectStore('position'),
  bookmarks: transaction.objectStore('bookmarks'),
  tags: transaction.objectStore('tags'),
  outbox: transaction.objectStore('outbox'),
  localIds: transaction.objectStore('localIds'),
  ahead: transaction.objectStore('ahead'),
  reports: transaction.objectStore('reports'),
});

type Tables = ReturnType<typeof openTables>;

/** The version of the tables. A browser refuses to open a database whose tables have a higher version. */
const VERSION = 1;

function createTables(db: IDBDatabase): void {
  db.createObjectStore('position');
  db.createObjectStore('bookmarks', { keyPath: 'id' }).createIndex('tagIds', 'tagIds', { multiEntry: true });
  db.createObjectStore('tags', { keyPath: 'id' });
  db.createObjectStore('outbox', { keyPath: 'seq', autoIncrement: true }).createIndex('id', 'id');
  db.createObjectStore('localIds');
  db.createObjectStore('ahead');
  db.createObjectStore('reports', { autoIncrement: true }).createIndex('seq', 'seq');
}

const CURSOR = 'cursor';

/**
 * A local copy in an IndexedDB database, for browsers. Each method that changes the copy runs one transaction, which is
 * on disk when the method's promise resolves. Any number of tabs may use the same database at the same time.
 */
export class IndexedDbStore implements CollectionStore {
  readonly #name: string;
  #db: Promise<IDBDatabase> | undefined;
  #sender: BroadcastChannel | undefined;

  /** `name` is the name of the database. The first use of the store opens or creates the database. */
  constructor(name: string) {
    this.#name = name;
  }

  readCursor(): Promise<string | undefined> {
    return this.#read(({ position }) => resultOf(position.get(CURSOR)));
  }

  async apply(page: MirrorPage, after?: string | undefined): Promise<number[]> {
    const retagged = await this.#write(async (tables) => {
      requireNext(page, after, await resultOf(tables.position.get(CURSOR)));
      requireNoAttempt((await readFirstWrite(tables))?.attempt);
      const taggedIds = await findTagged(tables, page);
      await applyPage(tables, page);
      tables.position.put(page.cursor, CURSOR);
      return omitBookmarksOf(page, taggedIds);
    });
    this.#tell(changedBy(page, retagged));
    return retagged;
  }

  async update(
    ids: readonly number[],
    work: (state: BookmarkState) => StateChange,
  ): Promise<BookmarkState[]> {
    const changedIds: number[] = [];
    const states = await this.#write(async (tables) => {
      const written: BookmarkState[] = [];
      for (const requestedId of ids) {
        const before = await readState(tables, requestedId);
        const change = work(before);
        const id = await writeChange(tables, before, change);
        if (isChange(change)) changedIds.push(before.id, id);
        written.push(await readState(tables, id));
      }
      return written;
    });
    this.#tell(changedIds);
    return states;
  }

  read(id: number): Promise<BookmarkState> {
    return this.#read((tables) => readState(tables, id));
  }

  readOutbox(limit?: number): Promise<PendingWrite[]> {
    return this.#read(({ outbox }) => resultOf(outbox.getAll(null, limit)));
  }

  readPage(afterId: number, limit: number): Promise<BookmarkState[]> {
    return this.#read(async ({ bookmarks, tags, outbox }) => {
      // A limit of IndexedDB has 32 bits.
      const count = Math.min(limit, 0xffff_ffff);
      const stored: StoredBookmark[] = await resultOf(
        bookmarks.getAll(IDBKeyRange.lowerBound(afterId, true), count),
      );
      const lastId = stored.length < limit ? Number.MAX_SAFE_INTEGER : stored.at(-1)!.id;
      const range = IDBKeyRange.bound(afterId, lastId, true);
      const [names, writes] = await Promise.all([
        resultOf<BookmarkTag[]>(tags.getAll()),
        resultOf<PendingWrite[]>(outbox.index('id').getAll(range)),
      ]);
      const nameByTag = new Map(names.map(({ id, name }) => [id, name]));
      const rows = stored.map((bookmark) => showStored(bookmark, nameByTag));
      return toStates(
        rows,
        writes.sort((a, b) => a.seq - b.seq),
      ).slice(0, limit);
    });
  }

  readTagCounts(): Promise<{ tags: Tag[]; written: BookmarkState[] }> {
    return this.#read(async (tables) => {
      const names: BookmarkTag[] = await resultOf(tables.tags.getAll());
      const counts = tables.bookmarks.index('tagIds');
      const counted = await Promise.all(
        names.map(async ({ id, name }) => ({ id, name, bookmark_count: await resultOf(counts.count(id)) })),
      );
      const writes: PendingWrite[] = await resultOf(tables.outbox.getAll());
      const written = await Promise.all(
        [...new Set(writes.map(({ id }) => id))].map((id) => readState(tables, id)),
      );
      return { tags: counted, written };
    });
  }

  /** Other tabs are told by a `BroadcastChannel`. So is this tab. */
  watch(listener: (ids: ChangedIds) => void): () => void {
    const channel = new BroadcastChannel(this.#channelName);
    channel.onmessage = ({ data }: MessageEvent<ChangedIds>) => listener(data);
    return () => channel.close();
  }

  #tell(ids: ChangedIds): void {
    if (ids.length === 0) return;
    // A channel does not receive its own messages, so this one is never the channel of a watcher.
    this.#sender ??= new BroadcastChannel(this.#channelName);
    this.#sender.postMessage(distinct(ids));
  }

  get #channelName(): string {
    return `bookmark-service ${this.#name}`;
  }

  readAhead(): Promise<number[]> {
    return this.#read(async ({ ahead }) => (await resultOf(ahead.getAllKeys())).map(Number));
  }

  readVersions({ afterId, upToId }: IdRange, limit?: number) {
    return this.#read(async ({ position, bookmarks }) => {
      const range = IDBKeyRange.bound(afterId, upToId, true);
      const [cursor, versions] = await Promise.all([
        resultOf<string | undefined>(position.get(CURSOR)),
        resultOf<StoredBookmark[]>(bookmarks.getAll(range, limit)),
      ]);
      return { cursor, versions };
    });
  }

  readTags() {
    return this.#read(async ({ position, tags }) => {
      const [cursor, all] = await Promise.all([
        resultOf<string | undefined>(position.get(CURSOR)),
        resultOf<BookmarkTag[]>(tags.getAll()),
      ]);
      return { cursor, tags: all };
    });
  }

  readReports(): Promise<Report[]> {
    return this.#read(({ reports }) => resultOf(reports.getAll()));
  }

  dropReports(seqs: readonly number[]): Promise<void> {
    return this.#write(async ({ reports }) => {
      const keys = await Promise.all(seqs.map((seq) => resultOf(reports.index('seq').getAllKeys(seq))));
      for (const key of keys.flat()) reports.delete(key);
    });
  }

  /** Returns the bookmark with this id as the service would, with its tags sorted by name. */
  find(id: number): Promise<Bookmark | undefined> {
    return this.#read((tables) => findBookmark(tables, id));
  }

  /** Returns all bookmarks, in order of ids. */
  async bookmarks(): Promise<Bookmark[]> {
    const states = await this.readPage(Number.MIN_SAFE_INTEGER, Number.POSITIVE_INFINITY);
    return states.flatMap(({ row }) => row ?? []);
  }

  /** Returns all tags sorted by name, including those without bookmarks. */
  async tags(): Promise<BookmarkTag[]> {
    return sortTags(await this.#read(({ tags }) => resultOf(tags.getAll())));
  }

  #read<T>(work: (tables: Tables) => Promise<T>): Promise<T> {
    return this.#transact('readonly', work);
  }

  #write<T>(work: (tables: Tables) => Promise<T>): Promise<T> {
    return this.#transact('readwrite', work);
  }

  /**
   * Runs `work` in a transaction. IndexedDB ends a transaction as soon as it has no pending request. So `work` must
   * await only requests of this transaction.
   */
  async #transact<T>(mode: IDBTransactionMode, work: (tables: Tables) => Promise<T>): Promise<T> {
    const db = await this.#open();
    const transaction = db.transaction([...db.objectStoreNames], mode, { durability: 'strict' });
    const end = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
    try {
      const [workResult] = await Promise.all([work(openTables(transaction)), end]);
      return workResult;
    } catch (error) {
      // If the transaction has no error, `work` threw, and the transaction may still be open.
      if (transaction.error === null) abort(transaction);
      throw error;
    }
  }

  /** Returns the open database. Opens it if there is no connection. */
  #open(): Promise<IDBDatabase> {
    const forget = () => {
      this.#db = undefined;
    };
    this.#db ??= open(this.#name, forget).catch((error) => {
      forget();
      throw error;
    });
    return this.#db;
  }
}

/** Opens a database. Calls `onClose` when the connection is closed, so that the next use opens a new one. */
async function open(name: string, onClose: () => void): Promise<IDBDatabase> {
  const request = indexedDB.open(name, VERSION);
  request.onupgradeneeded = () => createTables(request.result);
  const db = await resultOf(request);
  db.onclose = onClose;
  // This event means that another tab wants to delete the database, or to open it with a newer version.
  db.onversionchange = () => {
    onClose();
    db.close();
  };
  return db;
}

/** Resolves with the result of a request. */
const resultOf = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Undoes a transaction, unless it has already ended. */
function abort(transaction: IDBTransaction): void {
  try {
    transaction.abort();
  } catch {
    // `abort` throws if the transaction has already ended.
  }
}

const readFirstWrite = async ({ outbox }: Tables): Promise<PendingWrite | undefined> =>
  (await resultOf<PendingWrite[]>(outbox.getAll(null, 1)))[0];

/** Reads a bookmark. `requestedId` may be a negative id that the service's id has replaced. */
async function readState(tables: Tables, requestedId: number): Promise<BookmarkState> {
  const id = (await resultOf<number | undefined>(tables.localIds.get(requestedId))) ?? requestedId;
  const row = await findBookmark(tables, id);
  return { id, row, writes: await resultOf(tables.outbox.index('id').getAll(id)) };
}

async function findBookmark({ bookmarks, tags }: Tables, id: number): Promise<Bookmark | undefined> {
  const stored = await resultOf<StoredBookmark | undefined>(bookmarks.get(id));
  if (stored === undefined) return undefined;
  const names = await Promise.all(stored.tagIds.map((tagId) => resultOf<BookmarkTag>(tags.get(tagId))));
  return showStored(stored, new Map(names.map((tag) => [tag.id, tag.name])));
}

/** Returns the ids of the stored bookmarks that have a tag which the page of changes renames or deletes. */
async function findTagged({ bookmarks, tags }: Tables, page: MirrorPage): Promise<number[]> {
  const tagsOnPage = [...page.bookmarks.flatMap((bookmark) => bookmark.tags), ...page.tags];
  const tagIds = [...new Set(tagsOnPage.map(({ id }) => id))];
  const stored = await Promise.all(tagIds.map((id) => resultOf<BookmarkTag | undefined>(tags.get(id))));
  const storedNames = new Map(stored.filter((tag) => tag !== undefined).map(({ id, name }) => [id, name]));
  const changedTags = [...findChangedTags(page, (id) => storedNames.get(id))];
  const readIds = changedTags.map((id) => resultOf(bookmarks.index('tagIds').getAllKeys(id)));
  return (await Promise.all(readIds)).flat().map(Number);
}

/** Returns the stored `updated_at` of each bookmark that the page also contains. */
async function findVersions({ bookmarks }: Tables, page: MirrorPage): Promise<Map<number, string>> {
  const reads = page.bookmarks.map(({ id }) => resultOf<StoredBookmark | undefined>(bookmarks.get(id)));
  const storedBookmarks = (await Promise.all(reads)).filter((bookmark) => bookmark !== undefined);
  return new Map(storedBookmarks.map(({ id, updated_at }) => [id, updated_at]));
}

/**
 * Writes everything that a page contains, except its cursor. Does not await the writes: IndexedDB runs the requests of
 * a transaction in order, and a failed request aborts the transaction.
 */
async function applyPage(tables: Tables, page: MirrorPage): Promise<void> {
  const { bookmarks, tags, ahead } = tables;
  if (page.reset) {
    bookmarks.clear();
    tags.clear();
    ahead.clear();
  }
  const versions = await findVersions(tables, page);
  for (const bookmark of omitOutdated(page, (id) => versions.get(id))) putBookmark(tables, bookmark);
  for (const { id } of page.bookmarks) ahead.delete(id);
  for (const id of page.deleted) removeBookmark(tables, id);
  for (const { id, name } of page.tags) tags.put({ id, name });
  for (const tagId of page.deleted_tags) {
    tags.delete(tagId);
    const tagged: StoredBookmark[] = await resultOf(bookmarks.index('tagIds').getAll(tagId));
    for (const bookmark of tagged)
      bookmarks.put({ ...bookmark, tagIds: bookmark.tagIds.filter((id) => id !== tagId) });
  }
}

function putBookmark({ bookmarks, tags }: Tables, { tags: bookmarkTags, ...fields }: Bookmark): void {
  for (const { id, name } of bookmarkTags) tags.put({ id, name });
  bookmarks.put({ ...fields, tagIds: bookmarkTags.map(({ id }) => id) });
}

function removeBookmark({ bookmarks, ahead }: Tables, id: number): void {
  bookmarks.delete(id);
  ahead.delete(id);
}

/**
 * Writes the changes that an `update` makes to a bookmark. `before` is the bookmark's state before the update. Returns
 * the bookmark's id, which may be new.
 */
async function writeChange(
  tables: Tables,
  before: BookmarkState,
  { row, writes, reports = [] }: StateChange,
): Promise<number> {
  const { outbox, localIds, ahead } = tables;
  let id = row?.id ?? before.id;
  if (id !== before.id) localIds.put(id, before.id);
  // An add that was a duplicate returns a bookmark that the copy may have already.
  if (row && (await resultOf(tables.bookmarks.count(id))) === 0) ahead.put(true, id);
  if (row) putBookmark(tables, row);
  if (row === null) removeBookmark(tables, id);
  for (const report of reports) tables.reports.add(report);
  if (writes === undefined) return id;
  for (const { seq } of before.writes) outbox.delete(seq);
  for (const write of writes) {
    const seq = Number(await resultOf(outbox.put({ ...write, id })));
    // A new bookmark has the id 0 until the write that adds it has a `seq`.
    if (id !== 0) continue;
    id = -seq;
    outbox.put({ ...write, seq, id });
  }
  return id;
}
