// biome-ignore lint/style/noRestrictedImports: loads node:sqlite only when a store opens
import { createRequire } from 'node:module';
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Bookmark, BookmarkTag, Tag } from '../domain/resources.ts';
import { messageOf } from '../domain/thrown.ts';
import type { IdRange } from './digests.ts';
import { sortTags } from './memory-store.ts';
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
import { type ChangedIds, changedBy, isChange, Watchers } from './watchers.ts';

/** The version of the tables. A file with another version is refused. */
const VERSION = 2;

/**
 * The tables. Users may directly read `bookmarks` (a row per bookmark), `tags` (a row per tag) and `bookmark_tags` (a
 * row per tag of a bookmark).
 */
const SCHEMA = `
  create table position (only_row integer primary key check (only_row = 1), cursor text not null) strict;
  create table bookmarks (
    id integer primary key,
    url text not null,
    title text not null,
    comment text not null,
    created_at text not null,
    updated_at text not null
  ) strict;
  create table tags (id integer primary key, name text not null) strict;
  create table bookmark_tags (
    bookmark_id integer not null references bookmarks (id) on delete cascade,
    tag_id integer not null references tags (id) on delete cascade,
    primary key (bookmark_id, tag_id)
  ) strict, without rowid;
  create index bookmark_tags_tag_id on bookmark_tags (tag_id);
  create table outbox (
    seq integer primary key autoincrement,
    bookmark_id integer not null,
    pending text not null
  ) strict;
  create index outbox_bookmark_id on outbox (bookmark_id);
  create table local_ids (
    local_id integer primary key,
    bookmark_id integer not null
  ) strict;
  create table ahead (bookmark_id integer primary key) strict;
  create table reports (
    number integer primary key autoincrement,
    seq integer not null,
    report text not null
  ) strict;
  pragma user_version = ${VERSION};
`;

const SELECT_BOOKMARKS = `
  select b.id, b.url, b.title, b.comment, b.created_at, b.updated_at,
    (
      select json_group_array(json_object('id', t.id, 'name', t.name))
      from bookmark_tags bt join tags t on t.id = bt.tag_id
      where bt.bookmark_id = b.id
    ) as tags
  from bookmarks b`;

const SELECT_CURSOR = 'select cursor from position';

/** How often a watched store looks for changes of other processes, in ms. */
const OTHERS_CHECK_MS = 1_000;

const SELECT_WRITES = 'select seq, bookmark_id, pending from outbox';

type Row = Record<string, SQLOutputValue>;

const showBookmark = (row: Row): Bookmark => ({
  id: Number(row.id),
  url: String(row.url),
  title: String(row.title),
  comment: String(row.comment),
  tags: sortTags(JSON.parse(String(row.tags))),
  created_at: String(row.created_at),
  updated_at: String(row.updated_at),
});

const showWrite = (row: Row): PendingWrite => ({
  ...JSON.parse(String(row.pending)),
  seq: Number(row.seq),
  id: Number(row.bookmark_id),
});

/**
 * Thrown if this version of Node has no SQLite. The module is loaded only when a store is opened, because an `import`
 * of a missing module would fail without a word about what to do.
 */
export class MissingSqlite extends Error {
  override readonly name = 'MissingSqlite';
}

function openDatabase(path: string): DatabaseSync {
  let sqlite: typeof import('node:sqlite');
  try {
    sqlite = createRequire(import.meta.url)('node:sqlite');
  } catch (cause) {
    const message = `SqliteStore needs Node 22.13 or newer, and this is Node ${process.versions.node}`;
    throw new MissingSqlite(message, { cause });
  }
  return new sqlite.DatabaseSync(path);
}

/** Thrown if a file is not a local copy, or if another version of this program wrote it. */
export class UnusableMirror extends Error {
  override readonly name = 'UnusableMirror';
}

/** SQLite's code for a damaged file. */
const SQLITE_CORRUPT = 11;
/** SQLite's code for a file that is not a SQLite file. */
const SQLITE_NOTADB = 26;

/** Returns whether an error says that the file is damaged or is not a SQLite file. */
function isUnusable(error: unknown): boolean {
  if (!(error instanceof Error && 'errcode' in error)) return false;
  // The higher bytes of a code may contain details.
  const code = Number(error.errcode) & 0xff;
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
}

/**
 * A local copy in a SQLite file, for Node. Each page of changes is applied in one transaction, so the copy continues
 * from its cursor after a crash. Several processes can read and write a file at the same time. But only one mirror can
 * use a file at a time: after one mirror has applied a page, `apply` throws `MirrorConflict` for the next page of any
 * other mirror.
 */
export class SqliteStore implements CollectionStore, Disposable {
  readonly #db: DatabaseSync;
  readonly #watchers = new Watchers();
  readonly #timers = new Set<NodeJS.Timeout>();

  /**
   * Opens or creates a file. Throws `UnusableMirror` if it is neither empty nor a local copy of this version, and
   * `MissingSqlite` if Node is older than 22.13.
   */
  constructor(path: string) {
    this.#db = openDatabase(path);
    try {
      this.#db.exec('pragma busy_timeout = 5000; pragma journal_mode = wal; pragma foreign_keys = on;');
      // Opening an existing copy takes no lock, so it does not wait for another process that writes.
      if (this.#readVersion() !== VERSION) this.#transact(() => this.#create(path));
    } catch (error) {
      this.#db.close();
      if (!isUnusable(error)) throw error;
      throw new UnusableMirror(`${path} is not a local copy: ${messageOf(error)}`);
    }
  }

  #create(path: string): void {
    const version = this.#readVersion();
    // Another process may have created the tables in the meantime.
    if (version === VERSION) return;
    const [tables] = this.#listNumbers('select count(*) from sqlite_schema');
    if (version !== 0 || tables !== 0)
      throw new UnusableMirror(`${path} has other content, or another version of this program wrote it`);
    this.#db.exec(SCHEMA);
  }

  #readVersion(): number | undefined {
    return this.#listNumbers('pragma user_version')[0];
  }

  async readCursor(): Promise<string | undefined> {
    return this.#finder(SELECT_CURSOR)();
  }

  async apply(page: MirrorPage, after?: string | undefined): Promise<number[]> {
    const retagged = this.#transact(() => {
      requireNext(page, after, this.#finder(SELECT_CURSOR)());
      requireNoAttempt(this.#findWrites('order by seq limit 1')[0]?.attempt);
      const taggedIds = this.#findTagged(page);
      const bookmarks = omitOutdated(page, this.#finder('select updated_at from bookmarks where id = ?'));
      if (page.reset) this.#db.exec('delete from ahead');
      this.#forgetAhead(page.bookmarks.map(({ id }) => id));
      this.#write({ ...page, bookmarks });
      this.#db
        .prepare(
          'insert into position (only_row, cursor) values (1, ?) on conflict do update set cursor = excluded.cursor',
        )
        .run(page.cursor);
      return omitBookmarksOf(page, taggedIds);
    });
    this.#watchers.tell(changedBy(page, retagged));
    return retagged;
  }

  /** Returns the ids of the stored bookmarks that have a tag which the page of changes renames or deletes. */
  #findTagged(page: MirrorPage): number[] {
    const changed = findChangedTags(page, this.#finder('select name from tags where id = ?'));
    return [...changed].flatMap((id) =>
      this.#listNumbers('select bookmark_id from bookmark_tags where tag_id = ?', id),
    );
  }

  /** Writes everything that a page contains, except its cursor. */
  #write({ reset, bookmarks, deleted, tags, deleted_tags }: Omit<MirrorPage, 'cursor'>): void {
    if (reset) this.#db.exec('delete from bookmark_tags; delete from bookmarks; delete from tags;');
    const putTag = this.#db.prepare(
      'insert into tags (id, name) values (?, ?) on conflict (id) do update set name = excluded.name',
    );
    const putBookmark = this.#db.prepare(
      `insert into bookmarks (id, url, title, comment, created_at, updated_at) values (?, ?, ?, ?, ?, ?)
      on conflict (id) do update set url = excluded.url, title = excluded.title, comment = excluded.comment,
        created_at = excluded.created_at, updated_at = excluded.updated_at`,
    );
    const dropTags = this.#db.prepare('delete from bookmark_tags where bookmark_id = ?');
    const putBookmarkTag = this.#db.prepare('insert into bookmark_tags (bookmark_id, tag_id) values (?, ?)');
    for (const { id, url, title, comment, tags: bookmarkTags, created_at, updated_at } of bookmarks) {
      putBookmark.run(id, url, title, comment, created_at, updated_at);
      dropTags.run(id);
      for (const tag of bookmarkTags) {
        putTag.run(tag.id, tag.name);
        putBookmarkTag.run(id, tag.id);
      }
    }
    this.#runEach('delete from bookmarks where id = ?', deleted);
    this.#forgetAhead(deleted);
    for (const { id, name } of tags) putTag.run(id, name);
    this.#runEach('delete from tags where id = ?', deleted_tags);
  }

  #forgetAhead(ids: readonly number[]): void {
    this.#runEach('delete from ahead where bookmark_id = ?', ids);
  }

  #runEach(sql: string, values: readonly number[]): void {
    const statement = this.#db.prepare(sql);
    for (const value of values) statement.run(value);
  }

  async update(
    ids: readonly number[],
    work: (state: BookmarkState) => StateChange,
  ): Promise<BookmarkState[]> {
    const changedIds: number[] = [];
    const states = this.#transact(() =>
      ids.map((requestedId) => {
        const before = this.#readState(requestedId);
        const change = work(before);
        const id = this.#writeChange(before, change);
        if (isChange(change)) changedIds.push(before.id, id);
        return this.#readState(id);
      }),
    );
    this.#watchers.tell(changedIds);
    return states;
  }

  /** Writes the changes that an `update` makes to a bookmark. Returns the bookmark's id, which may be new. */
  #writeChange(before: BookmarkState, { row, writes, reports = [] }: StateChange): number {
    const id = row?.id ?? before.id;
    if (id !== before.id)
      this.#db.prepare('insert into local_ids (local_id, bookmark_id) values (?, ?)').run(before.id, id);
    // An add that was a duplicate returns a bookmark that the copy may have already.
    if (row && this.find(id) === undefined)
      this.#runEach('insert into ahead (bookmark_id) values (?) on conflict do nothing', [id]);
    const bookmarks = row ? [row] : [];
    const deleted = row === null ? [id] : [];
    this.#write({ reset: false, bookmarks, deleted, tags: [], deleted_tags: [] });
    for (const report of reports) {
      this.#db
        .prepare('insert into reports (seq, report) values (?, ?)')
        .run(report.seq, JSON.stringify(report));
    }
    if (writes === undefined) return id;
    this.#runEach('delete from outbox where bookmark_id = ?', [before.id]);
    return this.#appendWrites(id, writes);
  }

  /** Reads a bookmark. `requestedId` may be a negative id that the service's id has replaced. */
  #readState(requestedId: number): BookmarkState {
    const [assignedId] = this.#listNumbers(
      'select bookmark_id from local_ids where local_id = ?',
      requestedId,
    );
    const id = assignedId ?? requestedId;
    return { id, row: this.find(id), writes: this.#findWrites('where bookmark_id = ? order by seq', id) };
  }

  #findBookmarks(clauses: string, ...values: number[]): Bookmark[] {
    return this.#db
      .prepare(`${SELECT_BOOKMARKS} ${clauses}`)
      .all(...values)
      .map(showBookmark);
  }

  #findWrites(clauses: string, ...values: number[]): PendingWrite[] {
    return this.#db
      .prepare(`${SELECT_WRITES} ${clauses}`)
      .all(...values)
      .map(showWrite);
  }

  /**
   * Stores the writes of a bookmark. Returns the bookmark's id. If `currentId` is 0, the bookmark is new, and its id is
   * minus the `seq` of the write that adds it.
   */
  #appendWrites(currentId: number, writes: NonNullable<StateChange['writes']>): number {
    const insertWrite = this.#db.prepare('insert into outbox (seq, bookmark_id, pending) values (?, ?, ?)');
    const setId = this.#db.prepare('update outbox set bookmark_id = ? where seq = ?');
    let id = currentId;
    for (const { seq, id: _, ...pending } of writes) {
      // If `seq` is null, SQLite assigns the next number.
      const { lastInsertRowid } = insertWrite.run(seq ?? null, id, JSON.stringify(pending));
      if (id !== 0) continue;
      id = -Number(lastInsertRowid);
      setId.run(id, lastInsertRowid);
    }
    return id;
  }

  // A plain `begin` reads one snapshot and does not wait for writers. `begin immediate` would wait.
  read = async (id: number): Promise<BookmarkState> => this.#transact(() => this.#readState(id), 'begin');
  // SQLite takes -1 for no limit.
  readOutbox = async (limit = -1): Promise<PendingWrite[]> => this.#findWrites('order by seq limit ?', limit);
  readAhead = async (): Promise<number[]> => this.#listNumbers('select bookmark_id from ahead');

  async readPage(afterId: number, limit: number): Promise<BookmarkState[]> {
    return this.#transact(() => {
      const rows = this.#findBookmarks('where b.id > ? order by b.id limit ?', afterId, limit);
      const lastId = rows.length < limit ? Number.MAX_SAFE_INTEGER : rows.at(-1)!.id;
      const writes = this.#findWrites(
        'where bookmark_id > ? and bookmark_id <= ? order by seq',
        afterId,
        lastId,
      );
      return toStates(rows, writes).slice(0, limit);
    }, 'begin');
  }

  async readTagCounts(): Promise<{ tags: Tag[]; written: BookmarkState[] }> {
    return this.#transact(() => {
      const tags = this.#db
        .prepare(
          `select id, name, (select count(*) from bookmark_tags where tag_id = id) as bookmark_count
          from tags`,
        )
        .all()
        .map(({ id, name, bookmark_count }) => ({
          id: Number(id),
          name: String(name),
          bookmark_count: Number(bookmark_count),
        }));
      const rows = this.#findBookmarks('where b.id in (select bookmark_id from outbox)');
      return { tags, written: toStates(rows, this.#findWrites('order by seq')) };
    }, 'begin');
  }

  /**
   * Notices changes of other processes once a second, and then calls `listener` with `all`. While a store is watched,
   * the process can still end.
   */
  watch(listener: (ids: ChangedIds) => void): () => void {
    const unwatch = this.#watchers.watch(listener);
    // This number changes if another connection has changed the file.
    const readVersion = () => this.#listNumbers('pragma data_version')[0];
    let version = readVersion();
    const timer = setInterval(() => {
      const newVersion = readVersion();
      if (newVersion !== version) listener('all');
      version = newVersion;
    }, OTHERS_CHECK_MS);
    timer.unref();
    this.#timers.add(timer);
    return () => {
      clearInterval(timer);
      this.#timers.delete(timer);
      unwatch();
    };
  }

  async readVersions({ afterId, upToId }: IdRange, limit = -1) {
    // A negative limit is none.
    const query = this.#db.prepare(`
      select b.id, b.updated_at,
        (select group_concat(bt.tag_id) from bookmark_tags bt where bt.bookmark_id = b.id) as tag_ids
      from bookmarks b
      where b.id > ? and b.id <= ?
      order by b.id
      limit ?`);
    return this.#transact(() => {
      const rows = query.all(afterId, upToId, limit);
      const versions = rows.map(({ id, updated_at, tag_ids }) => ({
        id: Number(id),
        updated_at: String(updated_at),
        tagIds: tag_ids === null ? [] : String(tag_ids).split(',').map(Number),
      }));
      return { cursor: this.#finder(SELECT_CURSOR)(), versions };
    }, 'begin');
  }

  async readTags() {
    return this.#transact(() => ({ cursor: this.#finder(SELECT_CURSOR)(), tags: this.tags() }), 'begin');
  }

  async readReports(): Promise<Report[]> {
    const rows = this.#db.prepare('select report from reports order by number').all();
    return rows.map(({ report }) => JSON.parse(String(report)));
  }

  async dropReports(seqs: readonly number[]): Promise<void> {
    this.#transact(() => this.#runEach('delete from reports where seq = ?', seqs));
  }

  /** The number of bookmarks in the copy. */
  get size(): number {
    return this.#listNumbers('select count(*) from bookmarks')[0] ?? 0;
  }

  /** Returns the bookmark with this id as the service would, with its tags sorted by name. */
  find(id: number): Bookmark | undefined {
    const row = this.#db.prepare(`${SELECT_BOOKMARKS} where b.id = ?`).get(id);
    return row && showBookmark(row);
  }

  /** Yields all bookmarks, in order of ids. */
  *bookmarks(): Generator<Bookmark, void, undefined> {
    for (const row of this.#db.prepare(`${SELECT_BOOKMARKS} order by b.id`).iterate())
      yield showBookmark(row);
  }

  /** Returns all tags sorted by name, including those without bookmarks. */
  tags(): BookmarkTag[] {
    const rows = this.#db.prepare('select id, name from tags').all();
    return sortTags(rows.map(({ id, name }) => ({ id: Number(id), name: String(name) })));
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#db.close();
  }

  /**
   * Prepares a query. Returns a function that runs it and returns the first column of the first row, or undefined if
   * there is no row.
   */
  #finder(sql: string): (...values: number[]) => string | undefined {
    const statement = this.#db.prepare(sql);
    return (...values) => {
      const [text] = Object.values(statement.get(...values) ?? {});
      return text === undefined ? undefined : String(text);
    };
  }

  /** Runs a query and returns the first column of all rows. */
  #listNumbers(sql: string, ...values: number[]): number[] {
    return this.#db
      .prepare(sql)
      .all(...values)
      .map((row) => Number(Object.values(row)[0]));
  }

  /**
   * Runs `work` in a transaction. `begin immediate` takes the write lock before `work` runs. If another process has the
   * lock, this process waits for up to 5 s (`busy_timeout`), instead of failing later in the transaction.
   */
  #transact<T>(work: () => T, begin = 'begin immediate'): T {
    this.#db.exec(begin);
    try {
      const result = work();
      this.#db.exec('commit');
      return result;
    } catch (error) {
      this.#db.exec('rollback');
      throw error;
    }
  }
}
