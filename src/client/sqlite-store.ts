import { DatabaseSync } from 'node:sqlite';
import type { Bookmark, BookmarkTag } from '../domain/resources.ts';
import { sortTags } from './memory-store.ts';
import { findChangedTags, type MirrorPage, omitBookmarksOf, omitOutdated, requireNext } from './mirror.ts';
import type { BookmarkState, CollectionStore, PendingWrite, Report, StateChange } from './outbox.ts';
import { OUTBOX_SCHEMA, SqliteOutbox } from './sqlite-outbox.ts';

/** The version of the tables. A file with another version is refused. */
const VERSION = 2;

/** Users may read these tables directly. There is one row per bookmark, per tag, and per tag of a bookmark. */
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
  ${OUTBOX_SCHEMA}
  pragma user_version = ${VERSION};
`;

interface BookmarkRow extends Omit<Bookmark, 'tags'> {
  tags: string;
}

const SELECT_BOOKMARKS = `
  select b.id, b.url, b.title, b.comment, b.created_at, b.updated_at,
    (
      select json_group_array(json_object('id', t.id, 'name', t.name))
      from bookmark_tags bt join tags t on t.id = bt.tag_id
      where bt.bookmark_id = b.id
    ) as tags
  from bookmarks b`;

/** The file is not a local copy, or another version of this program wrote it. */
export class UnusableMirror extends Error {
  override readonly name = 'UnusableMirror';
}

/**
 * A local copy in a SQLite file, for Node. Each page is one transaction, so the copy continues from its cursor after
 * a crash. Several processes can read and write a file at once. If several mirrors use it, all but the first to write
 * throw `MirrorConflict`.
 */
export class SqliteStore implements CollectionStore, Disposable {
  readonly #db: DatabaseSync;
  readonly #outbox: SqliteOutbox;

  /** Opens or creates a file. Throws `UnusableMirror` if the file has other content. */
  constructor(path: string) {
    this.#db = new DatabaseSync(path);
    this.#outbox = new SqliteOutbox(this.#db);
    try {
      this.#prepare();
    } catch (error) {
      this.#db.close();
      if (error instanceof UnusableMirror) throw error;
      throw new UnusableMirror(`${path} is not a local copy: ${(error as Error).message}`);
    }
  }

  #prepare(): void {
    this.#db.exec('pragma busy_timeout = 5000; pragma journal_mode = wal; pragma foreign_keys = on;');
    this.#transact(() => {
      const { user_version: version } = this.#db.prepare('pragma user_version').get() as {
        user_version: number;
      };
      if (version === VERSION) return;
      const { count } = this.#db.prepare('select count(*) as count from sqlite_schema').get() as {
        count: number;
      };
      if (version !== 0 || count > 0) throw new UnusableMirror('the file has other content');
      this.#db.exec(SCHEMA);
    });
  }

  async readCursor(): Promise<string | undefined> {
    return this.#findCursor();
  }

  async apply(page: MirrorPage, after?: string | undefined): Promise<number[]> {
    return this.#transact(() => {
      requireNext(page, after, this.#findCursor());
      this.#outbox.notePage(page);
      const tagged = this.#findTagged(page);
      this.#write({ ...page, bookmarks: omitOutdated(page, this.#findVersions()) });
      this.#writeCursor(page.cursor);
      return omitBookmarksOf(page, tagged);
    });
  }

  /** A function that returns the stored version of a bookmark. */
  #findVersions(): (id: number) => string | undefined {
    const find = this.#db.prepare('select updated_at from bookmarks where id = ?');
    return (id) => (find.get(id) as { updated_at: string } | undefined)?.updated_at;
  }

  /** Returns the ids of bookmarks with a tag that the page renames or deletes. */
  #findTagged(page: MirrorPage): number[] {
    const name = this.#db.prepare('select name from tags where id = ?');
    const changed = findChangedTags(page, (id) => (name.get(id) as { name: string } | undefined)?.name);
    const tagged = this.#db.prepare('select bookmark_id as id from bookmark_tags where tag_id = ?');
    return [...changed].flatMap((id) => (tagged.all(id) as { id: number }[]).map((row) => row.id));
  }

  #findCursor(): string | undefined {
    const row = this.#db.prepare('select cursor from position').get() as { cursor: string } | undefined;
    return row?.cursor;
  }

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
    const removeBookmark = this.#db.prepare('delete from bookmarks where id = ?');
    for (const id of deleted) removeBookmark.run(id);
    for (const { id, name } of tags) putTag.run(id, name);
    const removeTag = this.#db.prepare('delete from tags where id = ?');
    for (const id of deleted_tags) removeTag.run(id);
  }

  #writeCursor(cursor: string): void {
    this.#db
      .prepare(
        'insert into position (only_row, cursor) values (1, ?) on conflict do update set cursor = excluded.cursor',
      )
      .run(cursor);
  }

  async update(id: number, work: (state: BookmarkState) => StateChange): Promise<BookmarkState> {
    return this.#transact(() => {
      const pending = this.#outbox.read(id);
      const row = this.find(pending.id);
      const change = work({ ...pending, row });
      const after = this.#outbox.write(pending, change, row !== undefined);
      const bookmarks = change.row ? [change.row] : [];
      const deleted = change.row === null ? [after.id] : [];
      this.#write({ reset: false, bookmarks, deleted, tags: [], deleted_tags: [] });
      return { ...after, row: this.find(after.id) };
    });
  }

  readNext = async (): Promise<PendingWrite | undefined> => this.#outbox.first();
  readOutbox = async (): Promise<PendingWrite[]> => this.#outbox.all();
  readAll = async () => ({ rows: [...this.bookmarks()], writes: this.#outbox.all() });
  readAhead = async (): Promise<number[]> => this.#outbox.ahead();
  readReports = async (): Promise<Report[]> => this.#outbox.reports();
  dropReports = async (seq: number): Promise<void> => this.#outbox.dropReports(seq);

  /** The number of bookmarks in the copy. */
  get size(): number {
    const { count } = this.#db.prepare('select count(*) as count from bookmarks').get() as { count: number };
    return count;
  }

  /** Returns the bookmark with this id as the service would, with its tags sorted by name. */
  find(id: number): Bookmark | undefined {
    const row = this.#db.prepare(`${SELECT_BOOKMARKS} where b.id = ?`).get(id);
    return row && showBookmark(row as unknown as BookmarkRow);
  }

  /** Yields all bookmarks, in order of ids. */
  *bookmarks(): Generator<Bookmark, void, undefined> {
    for (const row of this.#db.prepare(`${SELECT_BOOKMARKS} order by b.id`).iterate()) {
      yield showBookmark(row as unknown as BookmarkRow);
    }
  }

  /** Returns all tags sorted by name, including those without bookmarks. */
  tags(): BookmarkTag[] {
    const rows = this.#db.prepare('select id, name from tags').all() as unknown as BookmarkTag[];
    return sortTags(rows.map(({ id, name }) => ({ id, name })));
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }

  #transact<T>(work: () => T): T {
    // `immediate` takes the write lock at once. A second process then waits here instead of failing later in the
    // transaction.
    this.#db.exec('begin immediate');
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

const showBookmark = ({ id, url, title, comment, tags, created_at, updated_at }: BookmarkRow): Bookmark => ({
  id,
  url,
  title,
  comment,
  tags: sortTags(JSON.parse(tags)),
  created_at,
  updated_at,
});
