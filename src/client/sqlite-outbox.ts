import type { DatabaseSync } from 'node:sqlite';
import { type MirrorPage, requireNoAttempt } from './mirror.ts';
import type { BookmarkState, PendingWrite, Report, StateChange } from './outbox.ts';

/** The tables of pending writes, local ids and reports. */
export const OUTBOX_SCHEMA = `
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
`;

interface OutboxRow {
  seq: number;
  bookmark_id: number;
  pending: string;
}

const showWrite = ({ seq, bookmark_id, pending }: OutboxRow): PendingWrite => ({
  ...JSON.parse(pending),
  seq,
  id: bookmark_id,
});

type Pending = Pick<BookmarkState, 'id' | 'writes'>;

/** The outbox of a `SqliteStore`. Its methods run in the store's transactions. */
export class SqliteOutbox {
  readonly #db: DatabaseSync;

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  all(): PendingWrite[] {
    const rows = this.#db.prepare('select seq, bookmark_id, pending from outbox order by seq').all();
    return (rows as unknown as OutboxRow[]).map(showWrite);
  }

  first(): PendingWrite | undefined {
    const row = this.#db.prepare('select seq, bookmark_id, pending from outbox order by seq limit 1').get();
    return row && showWrite(row as unknown as OutboxRow);
  }

  ahead(): number[] {
    const rows = this.#db.prepare('select bookmark_id from ahead').all() as { bookmark_id: number }[];
    return rows.map((row) => row.bookmark_id);
  }

  /** Returns the pending writes of a bookmark, by its current or its earlier local id. */
  read(given: number): Pending {
    const known = this.#db.prepare('select bookmark_id from local_ids where local_id = ?').get(given);
    const id = (known as { bookmark_id: number } | undefined)?.bookmark_id ?? given;
    const rows = this.#db
      .prepare('select seq, bookmark_id, pending from outbox where bookmark_id = ? order by seq')
      .all(id);
    return { id, writes: (rows as unknown as OutboxRow[]).map(showWrite) };
  }

  /** Writes a change. `isKnown` is true if the store already has the service's copy of the bookmark. */
  write({ id: before, writes: old }: Pending, change: StateChange, isKnown: boolean): Pending {
    const id = change.row?.id ?? before;
    if (id !== before) {
      this.#db.prepare('insert into local_ids (local_id, bookmark_id) values (?, ?)').run(before, id);
      this.#db.prepare('update outbox set bookmark_id = ? where bookmark_id = ?').run(id, before);
    }
    if (change.row && !isKnown) {
      this.#db.prepare('insert into ahead (bookmark_id) values (?) on conflict do nothing').run(id);
    }
    for (const report of change.reports ?? []) {
      this.#db
        .prepare('insert into reports (seq, report) values (?, ?)')
        .run(report.seq, JSON.stringify(report));
    }
    if (change.row === null) this.#forget([id]);
    return this.read(this.#replaceWrites(id, old, change.writes));
  }

  #replaceWrites(given: number, old: readonly PendingWrite[], writes: StateChange['writes']): number {
    let id = given;
    const kept = new Set(writes?.map(({ seq }) => seq));
    const remove = this.#db.prepare('delete from outbox where seq = ?');
    for (const { seq } of old) if (writes && !kept.has(seq)) remove.run(seq);
    for (const { seq, id: _, ...pending } of writes ?? []) {
      const text = JSON.stringify(pending);
      if (seq !== undefined) {
        this.#db.prepare('update outbox set pending = ? where seq = ?').run(text, seq);
        continue;
      }
      const added = this.#db.prepare('insert into outbox (bookmark_id, pending) values (?, ?)').run(id, text);
      if (id !== 0) continue;
      id = -Number(added.lastInsertRowid);
      this.#db.prepare('update outbox set bookmark_id = ? where seq = ?').run(id, -id);
    }
    return id;
  }

  notePage({ reset, bookmarks, deleted }: MirrorPage): void {
    requireNoAttempt(this.first()?.attempt);
    if (reset) this.#db.exec('delete from ahead');
    this.#forget([...bookmarks.map(({ id }) => id), ...deleted]);
  }

  #forget(ids: readonly number[]): void {
    const remove = this.#db.prepare('delete from ahead where bookmark_id = ?');
    for (const id of ids) remove.run(id);
  }

  reports(): Report[] {
    const rows = this.#db.prepare('select report from reports order by number').all() as { report: string }[];
    return rows.map(({ report }) => JSON.parse(report));
  }

  dropReports(seq: number): void {
    this.#db.prepare('delete from reports where seq <= ?').run(seq);
  }
}
