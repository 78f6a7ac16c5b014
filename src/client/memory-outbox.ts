import { type MirrorPage, requireNoAttempt } from './mirror.ts';
import type { BookmarkState, PendingWrite, Report, StateChange } from './outbox.ts';

type Pending = Pick<BookmarkState, 'id' | 'writes'>;

/** The outbox of a `MemoryStore`. */
export class MemoryOutbox {
  readonly #writes = new Map<number, PendingWrite>();
  readonly #idByLocal = new Map<number, number>();
  readonly ahead = new Set<number>();
  reports: Report[] = [];
  #lastSeq = 0;

  all(): PendingWrite[] {
    return [...this.#writes.values()];
  }

  first(): PendingWrite | undefined {
    return this.#writes.values().next().value;
  }

  /** Returns the pending writes of a bookmark, by its current or its earlier local id. */
  read(given: number): Pending {
    const id = this.#idByLocal.get(given) ?? given;
    return { id, writes: this.all().filter((write) => write.id === id) };
  }

  /** Writes a change. `isKnown` is true if the store already has the service's copy of the bookmark. */
  write({ id: before, writes: old }: Pending, change: StateChange, isKnown: boolean): Pending {
    let id = change.row?.id ?? before;
    if (id !== before) this.#idByLocal.set(before, id);
    if (change.row && !isKnown) this.ahead.add(id);
    if (change.row === null) this.ahead.delete(id);
    this.reports.push(...(change.reports ?? []));
    const kept = new Set(change.writes?.map(({ seq }) => seq));
    for (const { seq } of old) if (change.writes && !kept.has(seq)) this.#writes.delete(seq);
    for (const write of change.writes ?? old) {
      const seq = write.seq ?? ++this.#lastSeq;
      if (id === 0) id = -seq;
      this.#writes.set(seq, { ...write, seq, id });
    }
    return this.read(id);
  }

  notePage(page: MirrorPage): void {
    requireNoAttempt(this.first()?.attempt);
    if (page.reset) this.ahead.clear();
    for (const { id } of page.bookmarks) this.ahead.delete(id);
    for (const id of page.deleted) this.ahead.delete(id);
  }

  dropReports(seq: number): void {
    this.reports = this.reports.filter((report) => report.seq > seq);
  }
}
