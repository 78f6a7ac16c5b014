import type { Bookmark, BookmarkTag, Changes, Tag } from '../domain/resources.ts';
import { foldText } from '../domain/text.ts';

/** Updates the counts of the user's tags when bookmarks change. */

interface TagCounts {
  /** Remembers the tags of bookmarks that were read. */
  note(bookmarks: readonly Bookmark[]): void;
  /** Forgets all bookmarks. Call it if changes were skipped. */
  forget(): void;
  /** Applies a page of changes to the tags and returns the result. If `isSure` is false, read the counts again. */
  apply(tags: readonly Tag[], page: Changes): { tags: readonly Tag[]; isSure: boolean };
}

interface Known {
  ids: readonly number[];
  updatedAt: string;
  /** True if the bookmark came with a page of changes. In that case, the counts include its tags. */
  isCounted: boolean;
}

export function createTagCounts(): TagCounts {
  const known = new Map<number, Known>();
  const noteOne = ({ id, tags, updated_at }: Bookmark, isCounted: boolean) =>
    known.set(id, { ids: tags.map((tag) => tag.id), updatedAt: updated_at, isCounted });

  return {
    note(bookmarks) {
      for (const bookmark of bookmarks) if (!known.has(bookmark.id)) noteOne(bookmark, false);
    },
    forget: () => known.clear(),
    apply(tags, page) {
      // If a tag was deleted or merged, the counts are uncertain: the page does not contain all bookmarks of the tag.
      let isSure = !page.reset && !page.has_more && page.deleted_tags.length === 0;
      const after = new Map(tags.map((tag) => [tag.id, tag]));
      const setName = ({ id, name }: BookmarkTag) => {
        const tag = after.get(id) ?? { id, name: '', bookmark_count: 0 };
        if (tag.name !== name) after.set(id, { ...tag, name });
      };
      const addToCounts = (ids: readonly number[], difference: number) => {
        for (const id of ids) {
          const tag = after.get(id);
          if (tag) after.set(id, { ...tag, bookmark_count: Math.max(0, tag.bookmark_count + difference) });
        }
      };
      for (const tag of page.tags) setName(tag);
      for (const bookmark of page.bookmarks) {
        const before = known.get(bookmark.id);
        const isSameVersion = before?.updatedAt === bookmark.updated_at;
        const isEdited = bookmark.created_at !== bookmark.updated_at;
        // The counts are uncertain in two cases. If this version of the bookmark was read before, its tags may already
        // be counted. If the bookmark was edited, its previous tags may be unknown.
        if (isSameVersion ? !before.isCounted : !before && isEdited) isSure = false;
        for (const tag of bookmark.tags) if (!after.has(tag.id)) setName(tag);
        if (!isSameVersion) {
          addToCounts(before?.ids ?? [], -1);
          addToCounts(
            bookmark.tags.map(({ id }) => id),
            1,
          );
        }
        noteOne(bookmark, true);
      }
      for (const id of page.deleted) {
        const before = known.get(id);
        if (before) addToCounts(before.ids, -1);
        else isSure = false;
        known.delete(id);
      }
      for (const id of page.deleted_tags) after.delete(id);
      const isChanged = after.size !== tags.length || tags.some((tag) => after.get(tag.id) !== tag);
      return { tags: isChanged ? sortByName([...after.values()]) : tags, isSure };
    },
  };
}

const sortByName = (tags: readonly Tag[]): Tag[] =>
  tags
    .map((tag) => ({ tag, key: foldText(tag.name) }))
    .sort((one, other) => (one.key < other.key ? -1 : 1))
    .map(({ tag }) => tag);
