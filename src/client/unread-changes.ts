import type { BookmarkTag } from '../domain/resources.ts';
import { type BookmarkVersion, type IdRange, isInRange } from './digests.ts';
import { MirrorConflict, type MirrorStore } from './mirror.ts';
import type { Requester, RequestOptions } from './requester.ts';

/** The largest `limit` of `/bookmarks/changes` (docs/contract.md, section 8). */
const LIMIT = 500;

/**
 * The changes that a copy has not received yet: those after its cursor. They are read to compare the copy, and are not
 * applied to it. So the store's cursor stays, and a mirror of the same store still yields them.
 */
export class UnreadChanges {
  readonly #requester: Requester;
  readonly #store: MirrorStore;
  readonly #options: RequestOptions;
  /** The store's cursor. */
  #base = '';
  /** The cursor of the last read change. */
  #cursor = '';
  /** The changed bookmarks. Undefined for a deleted one. */
  readonly #bookmarks = new Map<number, BookmarkVersion | undefined>();
  /** The names of the changed tags. Undefined for a deleted one. */
  readonly #tags = new Map<number, string | undefined>();
  #seenId = 0;
  #knownId = 0;

  constructor(requester: Requester, store: MirrorStore, options: RequestOptions) {
    this.#requester = requester;
    this.#store = store;
    this.#options = options;
  }

  /** The store's cursor when `read` was called the last time. */
  get base(): string {
    return this.#base;
  }

  /**
   * The highest id of a bookmark that the service is known to have assigned before the last `read`. If a bookmark up to
   * this id exists after that `read`, and is not among the changes, then it is not newer than the store's cursor. So
   * later changes say if it is deleted.
   */
  get knownId(): number {
    return this.#knownId;
  }

  /** Notes the id of a bookmark that the service has or had. */
  noteId(id: number): void {
    this.#seenId = Math.max(this.#seenId, id);
  }

  /**
   * Reads the changes up to now. Throws `MirrorConflict` if the copy has never been filled, or if the service no longer
   * knows what has changed since the copy's cursor.
   */
  async read(): Promise<void> {
    const base = await this.#store.readCursor();
    if (base === undefined) throw new MirrorConflict('this copy has not been filled yet');
    if (base !== this.#base) {
      this.#bookmarks.clear();
      this.#tags.clear();
      this.#base = base;
      this.#cursor = base;
    }
    this.#knownId = this.#seenId;
    const aheadIds = (await this.#store.readAhead?.()) ?? [];
    for (let hasMore = true; hasMore; ) hasMore = await this.#readPage();
    // These bookmarks were added after the store's cursor: see `CollectionStore.readAhead`.
    for (const id of aheadIds) if (!this.#bookmarks.has(id)) this.#bookmarks.set(id, undefined);
  }

  /** Returns whether there are more pages. */
  async #readPage(): Promise<boolean> {
    const body = { cursor: this.#cursor, limit: LIMIT };
    const page = await this.#requester.request('/bookmarks/changes', body, this.#options);
    if (page.reset) throw new MirrorConflict('this copy must be filled again before it can be verified');
    for (const { id, updated_at, tags } of page.bookmarks) {
      this.#bookmarks.set(id, { id, updated_at, tagIds: tags.map((tag) => tag.id) });
      for (const tag of tags) this.#tags.set(tag.id, tag.name);
    }
    for (const id of page.deleted) this.#bookmarks.set(id, undefined);
    for (const { id, name } of page.tags) this.#tags.set(id, name);
    for (const id of page.deleted_tags) this.#tags.set(id, undefined);
    this.#cursor = page.cursor;
    return page.has_more;
  }

  hasBookmark = (id: number): boolean => this.#bookmarks.has(id);
  hasTag = (id: number): boolean => this.#tags.has(id);

  /** Returns the ids without the deleted tags. Pages name the deleted tags only, not the bookmarks that had them. */
  omitDeletedTags = (tagIds: readonly number[]): number[] =>
    tagIds.filter((id) => !this.#tags.has(id) || this.#tags.get(id) !== undefined);

  /** Returns the bookmarks of a range as they are after these changes. `versions` are the copy's, in the same range. */
  applyToBookmarks(versions: readonly BookmarkVersion[], range: IdRange): BookmarkVersion[] {
    const byId = new Map(versions.map((version) => [version.id, version]));
    for (const [id, version] of this.#bookmarks) {
      if (version === undefined) byId.delete(id);
      else if (isInRange(id, range)) byId.set(id, version);
    }
    return [...byId.values()]
      .map((version) => ({ ...version, tagIds: this.omitDeletedTags(version.tagIds) }))
      .sort((a, b) => a.id - b.id);
  }

  /** Returns all tags as they are after these changes. `tags` are the copy's. */
  applyToTags(tags: readonly BookmarkTag[]): BookmarkTag[] {
    const nameById = new Map<number, string | undefined>([
      ...tags.map(({ id, name }) => [id, name] as const),
      ...this.#tags,
    ]);
    return [...nameById].flatMap(([id, name]) => (name === undefined ? [] : { id, name }));
  }
}
