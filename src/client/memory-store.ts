import type { Bookmark, BookmarkTag } from '../domain/resources.ts';
import { compareByCodePoints, foldText } from '../domain/text.ts';
import { MemoryOutbox } from './memory-outbox.ts';
import { findChangedTags, type MirrorPage, omitBookmarksOf, omitOutdated, requireNext } from './mirror.ts';
import type { BookmarkState, CollectionStore, PendingWrite, Report, StateChange } from './outbox.ts';

/** A bookmark with the ids of its tags. Tag names are stored once for all bookmarks. */
type StoredBookmark = Omit<Bookmark, 'tags'> & { tagIds: number[] };

/** A local copy in memory. */
export class MemoryStore implements CollectionStore {
  readonly #outbox = new MemoryOutbox();
  readonly #bookmarks = new Map<number, StoredBookmark>();
  readonly #nameByTag = new Map<number, string>();
  /** The ids of each tag's bookmarks. */
  readonly #bookmarksByTag = new Map<number, Set<number>>();
  #cursor: string | undefined;

  async readCursor(): Promise<string | undefined> {
    return this.#cursor;
  }

  async apply(page: MirrorPage, after?: string | undefined): Promise<number[]> {
    requireNext(page, after, this.#cursor);
    this.#outbox.notePage(page);
    const { reset, deleted, tags, deleted_tags, cursor } = page;
    const bookmarks = omitOutdated(page, (id) => this.#bookmarks.get(id)?.updated_at);
    const changedTags = findChangedTags(page, (id) => this.#nameByTag.get(id));
    const tagged = [...changedTags].flatMap((id) => [...(this.#bookmarksByTag.get(id) ?? [])]);
    if (reset) {
      this.#bookmarks.clear();
      this.#nameByTag.clear();
      this.#bookmarksByTag.clear();
    }
    for (const bookmark of bookmarks) this.#put(bookmark);
    for (const id of deleted) this.#remove(id);
    for (const { id, name } of tags) this.#nameByTag.set(id, name);
    for (const id of deleted_tags) this.#removeTag(id);
    this.#cursor = cursor;
    return omitBookmarksOf(page, tagged);
  }

  async update(id: number, work: (state: BookmarkState) => StateChange): Promise<BookmarkState> {
    const state = this.#outbox.read(id);
    const row = this.find(state.id);
    const change = work({ ...state, row });
    const after = this.#outbox.write(state, change, row !== undefined);
    if (change.row === null) this.#remove(after.id);
    else if (change.row !== undefined) this.#put(change.row);
    return { ...after, row: this.find(after.id) };
  }

  readNext = async (): Promise<PendingWrite | undefined> => this.#outbox.first();
  readOutbox = async (): Promise<PendingWrite[]> => this.#outbox.all();
  readAll = async () => ({ rows: [...this.bookmarks()], writes: this.#outbox.all() });
  readAhead = async (): Promise<number[]> => [...this.#outbox.ahead];
  readReports = async (): Promise<Report[]> => [...this.#outbox.reports];
  dropReports = async (seq: number): Promise<void> => this.#outbox.dropReports(seq);

  #put({ tags, ...fields }: Bookmark): void {
    this.#remove(fields.id);
    for (const { id, name } of tags) {
      this.#nameByTag.set(id, name);
      const ids = this.#bookmarksByTag.get(id) ?? new Set();
      this.#bookmarksByTag.set(id, ids.add(fields.id));
    }
    this.#bookmarks.set(fields.id, { ...fields, tagIds: tags.map(({ id }) => id) });
  }

  #remove(id: number): void {
    for (const tagId of this.#bookmarks.get(id)?.tagIds ?? []) this.#bookmarksByTag.get(tagId)?.delete(id);
    this.#bookmarks.delete(id);
  }

  #removeTag(tagId: number): void {
    for (const id of this.#bookmarksByTag.get(tagId) ?? []) {
      const bookmark = this.#bookmarks.get(id)!;
      bookmark.tagIds = bookmark.tagIds.filter((other) => other !== tagId);
    }
    this.#bookmarksByTag.delete(tagId);
    this.#nameByTag.delete(tagId);
  }

  /** The number of bookmarks in the copy. */
  get size(): number {
    return this.#bookmarks.size;
  }

  /** Returns the bookmark with this id as the service would, with its tags sorted by name. */
  find(id: number): Bookmark | undefined {
    const held = this.#bookmarks.get(id);
    return held && this.#show(held);
  }

  /** Yields all bookmarks, in order of ids. */
  *bookmarks(): Generator<Bookmark, void, undefined> {
    for (const id of [...this.#bookmarks.keys()].sort((a, b) => a - b)) {
      yield this.#show(this.#bookmarks.get(id)!);
    }
  }

  /** Returns all tags sorted by name, including those without bookmarks. */
  tags(): BookmarkTag[] {
    return sortTags([...this.#nameByTag].map(([id, name]) => ({ id, name })));
  }

  #show({ id, url, title, comment, tagIds, created_at, updated_at }: StoredBookmark): Bookmark {
    const tags = tagIds.map((tagId) => ({ id: tagId, name: this.#nameByTag.get(tagId)! }));
    return { id, url, title, comment, tags: sortTags(tags), created_at, updated_at };
  }
}

/** Sorts tags by name as the service does: by code points, ignoring case. */
export const sortTags = (tags: BookmarkTag[]): BookmarkTag[] =>
  tags
    .map((tag) => ({ tag, key: foldText(tag.name) }))
    // Two tags may share a name between two pages of a catch-up.
    .sort((a, b) => compareByCodePoints(a.key, b.key) || a.tag.id - b.tag.id)
    .map(({ tag }) => tag);
