import type { Bookmark, BookmarkTag, Tag } from '../domain/resources.ts';
import { compareByCodePoints, foldText } from '../domain/text.ts';
import { type IdRange, isInRange } from './digests.ts';
import {
  findChangedTags,
  type MirrorPage,
  omitBookmarksOf,
  omitOutdated,
  requireNext,
  requireNoAttempt,
} from './mirror.ts';
import type { BookmarkState, CollectionStore, PendingWrite, Report, StateChange } from './outbox.ts';
import { type ChangedIds, changedBy, isChange, Watchers } from './watchers.ts';

/** A bookmark as a store keeps it, with the ids of its tags. The name of each tag is stored only once. */
export type StoredBookmark = Omit<Bookmark, 'tags'> & { tagIds: number[] };

/** A local copy in memory. */
export class MemoryStore implements CollectionStore {
  readonly #bookmarks = new Map<number, StoredBookmark>();
  readonly #nameByTag = new Map<number, string>();
  #cursor: string | undefined;
  /** The pending writes of each bookmark, in order of `seq`. */
  readonly #writes = new Map<number, PendingWrite[]>();
  #lastSeq = 0;
  /** The ids that the service has assigned, keyed by the negative ids that the bookmarks had before. */
  readonly #idByLocal = new Map<number, number>();
  /** The ids that `readAhead` returns. */
  readonly #ahead = new Set<number>();
  #reports: Report[] = [];
  readonly #watchers = new Watchers();

  async readCursor(): Promise<string | undefined> {
    return this.#cursor;
  }

  async apply(page: MirrorPage, after?: string | undefined): Promise<number[]> {
    requireNext(page, after, this.#cursor);
    requireNoAttempt(this.#outbox()[0]?.attempt);
    const bookmarks = omitOutdated(page, (id) => this.#bookmarks.get(id)?.updated_at);
    const changedTags = findChangedTags(page, (id) => this.#nameByTag.get(id));
    const retagged = this.#findTagged(changedTags);
    if (page.reset) {
      this.#bookmarks.clear();
      this.#nameByTag.clear();
      this.#ahead.clear();
    }
    for (const bookmark of bookmarks) this.#put(bookmark);
    for (const { id } of page.bookmarks) this.#ahead.delete(id);
    for (const id of page.deleted) this.#remove(id);
    for (const { id, name } of page.tags) this.#nameByTag.set(id, name);
    const deletedTags = new Set(page.deleted_tags);
    for (const { tagIds, ...bookmark } of this.#findTagged(deletedTags))
      this.#bookmarks.set(bookmark.id, { ...bookmark, tagIds: tagIds.filter((id) => !deletedTags.has(id)) });
    for (const id of deletedTags) this.#nameByTag.delete(id);
    this.#cursor = page.cursor;
    const retaggedIds = omitBookmarksOf(
      page,
      retagged.map(({ id }) => id),
    );
    this.#watchers.tell(changedBy(page, retaggedIds));
    return retaggedIds;
  }

  async update(
    ids: readonly number[],
    work: (state: BookmarkState) => StateChange,
  ): Promise<BookmarkState[]> {
    const changedIds: number[] = [];
    const states = ids.map((requestedId) => {
      const before = this.#readState(requestedId);
      const change = work(before);
      const id = this.#writeChange(before, change);
      if (isChange(change)) changedIds.push(before.id, id);
      return this.#readState(id);
    });
    this.#watchers.tell(changedIds);
    return states;
  }

  /** Writes the changes that an `update` makes to a bookmark. Returns the bookmark's id, which may be new. */
  #writeChange(before: BookmarkState, { row, writes, reports = [] }: StateChange): number {
    let id = row?.id ?? before.id;
    if (id !== before.id) this.#idByLocal.set(before.id, id);
    // An add that was a duplicate returns a bookmark that the copy may have already.
    if (row && !this.#bookmarks.has(id)) this.#ahead.add(id);
    if (row) this.#put(row);
    if (row === null) this.#remove(id);
    this.#reports.push(...reports);
    if (writes === undefined) return id;
    this.#writes.delete(before.id);
    const pending: PendingWrite[] = [];
    for (const write of writes) {
      if (write.seq === undefined) this.#lastSeq += 1;
      const seq = write.seq ?? this.#lastSeq;
      // A new bookmark has the id 0 until the write that adds it has a `seq`.
      if (id === 0) id = -seq;
      pending.push({ ...write, seq, id });
    }
    // The bookmark that an add has found may have pending writes of its own.
    const all = sortBySeq([...(this.#writes.get(id) ?? []), ...pending]);
    if (all.length > 0) this.#writes.set(id, all);
    return id;
  }

  read = async (id: number): Promise<BookmarkState> => this.#readState(id);
  readOutbox = async (limit?: number): Promise<PendingWrite[]> => this.#outbox().slice(0, limit);

  async readPage(afterId: number, limit: number): Promise<BookmarkState[]> {
    const ids = [...new Set([...this.#bookmarks.keys(), ...this.#writes.keys()])];
    const onPage = ids.filter((id) => id > afterId).sort((a, b) => a - b);
    return onPage.slice(0, limit).map((id) => this.#readState(id));
  }

  async readTagCounts(): Promise<{ tags: Tag[]; written: BookmarkState[] }> {
    const counts = new Map<number, number>();
    for (const { tagIds } of this.#bookmarks.values())
      for (const id of tagIds) counts.set(id, (counts.get(id) ?? 0) + 1);
    return {
      tags: [...this.#nameByTag].map(([id, name]) => ({ id, name, bookmark_count: counts.get(id) ?? 0 })),
      written: [...this.#writes.keys()].map((id) => this.#readState(id)),
    };
  }

  watch = (listener: (ids: ChangedIds) => void): (() => void) => this.#watchers.watch(listener);
  readAhead = async (): Promise<number[]> => [...this.#ahead];
  readTags = async () => ({ cursor: this.#cursor, tags: this.tags() });
  readReports = async (): Promise<Report[]> => [...this.#reports];

  async readVersions(range: IdRange, limit?: number) {
    const versions = [...this.#bookmarks.values()].filter(({ id }) => isInRange(id, range));
    return { cursor: this.#cursor, versions: versions.sort((a, b) => a.id - b.id).slice(0, limit) };
  }

  async dropReports(seqs: readonly number[]): Promise<void> {
    this.#reports = this.#reports.filter(({ seq }) => !seqs.includes(seq));
  }

  /** Reads a bookmark. `requestedId` may be a negative id that the service's id has replaced. */
  #readState(requestedId: number): BookmarkState {
    const id = this.#idByLocal.get(requestedId) ?? requestedId;
    return { id, row: this.find(id), writes: this.#writes.get(id) ?? [] };
  }

  #outbox = (): PendingWrite[] => sortBySeq([...this.#writes.values()].flat());

  #put({ tags, ...fields }: Bookmark): void {
    for (const { id, name } of tags) this.#nameByTag.set(id, name);
    this.#bookmarks.set(fields.id, { ...fields, tagIds: tags.map(({ id }) => id) });
  }

  #remove(id: number): void {
    this.#bookmarks.delete(id);
    this.#ahead.delete(id);
  }

  #findTagged(tagIds: ReadonlySet<number>): StoredBookmark[] {
    if (tagIds.size === 0) return [];
    return [...this.#bookmarks.values()].filter((bookmark) => bookmark.tagIds.some((id) => tagIds.has(id)));
  }

  /** The number of bookmarks in the copy. */
  get size(): number {
    return this.#bookmarks.size;
  }

  /** Returns the bookmark with this id as the service would, with its tags sorted by name. */
  find(id: number): Bookmark | undefined {
    const stored = this.#bookmarks.get(id);
    return stored && showStored(stored, this.#nameByTag);
  }

  /** Yields all bookmarks, in order of ids. */
  *bookmarks(): Generator<Bookmark, void, undefined> {
    for (const stored of [...this.#bookmarks.values()].sort((a, b) => a.id - b.id))
      yield showStored(stored, this.#nameByTag);
  }

  /** Returns all tags sorted by name, including those without bookmarks. */
  tags(): BookmarkTag[] {
    return sortTags([...this.#nameByTag].map(([id, name]) => ({ id, name })));
  }
}

const sortBySeq = (writes: PendingWrite[]): PendingWrite[] => writes.sort((a, b) => a.seq - b.seq);

/** Returns a stored bookmark as the service would, with its tags sorted by name. */
export function showStored(
  { tagIds, ...fields }: StoredBookmark,
  nameByTag: ReadonlyMap<number, string>,
): Bookmark {
  const { id, url, title, comment, created_at, updated_at } = fields;
  const tags = tagIds.map((tagId) => ({ id: tagId, name: nameByTag.get(tagId) ?? '' }));
  return { id, url, title, comment, tags: sortTags(tags), created_at, updated_at };
}

/** Sorts tags by name as the service does: by code points, ignoring case. */
export const sortTags = <T extends BookmarkTag>(tags: T[]): T[] =>
  tags
    .map((tag) => ({ tag, key: foldText(tag.name) }))
    // Between two pages of changes, two stored tags may briefly have the same name. Their ids then decide the order.
    .sort((a, b) => compareByCodePoints(a.key, b.key) || a.tag.id - b.tag.id)
    .map(({ tag }) => tag);
