import type { Bookmark, BookmarkTag, CopyFault, MirrorPage } from '../../src/client/index.ts';
import type { ReadableStore } from './stores.ts';

export interface Content {
  bookmarks: Bookmark[];
  tags: BookmarkTag[];
}

export const readCopy = async (store: ReadableStore): Promise<Content> => ({
  bookmarks: [...(await store.bookmarks())],
  tags: await store.tags(),
});

/** The ways in which a test damages a copy. */
export const DAMAGES = [
  'lost',
  'doubled',
  'below all ids',
  'stale',
  'newer',
  'mistagged',
  'misnamed tag',
  'lost tag',
  'unknown tag',
] as const;
export type Damage = (typeof DAMAGES)[number];

/** No account of a test has ids as large as this. */
const UNKNOWN_ID = 2 ** 50;

/**
 * Damages the bookmark or tag at a position of a copy. The position is taken modulo the number of bookmarks or tags. The
 * store's cursor stays.
 */
export async function damage(store: ReadableStore, kind: Damage, position: number): Promise<void> {
  const { bookmarks, tags } = await readCopy(store);
  const bookmark = bookmarks[position % bookmarks.length]!;
  const tag = tags[position % tags.length]!;
  const cursor = (await store.readCursor())!;
  const put = (page: Partial<MirrorPage>) =>
    store.apply({ reset: false, bookmarks: [], deleted: [], tags: [], deleted_tags: [], cursor, ...page });
  // Replaces the stored version by any other.
  const replace = (changed: Partial<Bookmark>) =>
    put({
      bookmarks: [{ ...bookmark, ...changed }],
      wrongVersions: { [bookmark.id]: bookmark.updated_at },
    });
  const isTagged = bookmark.tags.some(({ id }) => id === tag.id);
  const write: Record<Damage, () => Promise<unknown>> = {
    lost: () => put({ deleted: [bookmark.id] }),
    doubled: () => put({ bookmarks: [{ ...bookmark, id: UNKNOWN_ID + position }] }),
    'below all ids': () => put({ bookmarks: [{ ...bookmark, id: -position }] }),
    stale: () => replace({ title: 'old', updated_at: '2001-01-01T00:00:00.000Z' }),
    newer: () => replace({ title: 'new', updated_at: '9998-01-01T00:00:00.000Z' }),
    mistagged: () =>
      replace({ tags: isTagged ? bookmark.tags.filter(({ id }) => id !== tag.id) : [...bookmark.tags, tag] }),
    'misnamed tag': () => put({ tags: [{ id: tag.id, name: `not ${tag.name}` }] }),
    'lost tag': () => put({ deleted_tags: [tag.id] }),
    'unknown tag': () =>
      replace({ tags: [...bookmark.tags, { id: UNKNOWN_ID + position, name: 'unknown' }] }),
  };
  await write[kind]();
}

/** Returns what a verification has to find in a copy. `truth` is what the service has. */
export function findFaults(copy: Content, truth: Content): CopyFault[] {
  const [copiedTags, tags] = [copy, truth].map(
    (side) => new Map(side.tags.map(({ id, name }) => [id, name])),
  );
  const [copied, bookmarks] = [copy, truth].map(
    (side) => new Map(side.bookmarks.map((each) => [each.id, each])),
  );
  const faults: CopyFault[] = [];
  for (const id of new Set([...copiedTags!.keys(), ...tags!.keys()])) {
    if (!tags!.has(id)) faults.push({ kind: 'unknown', tag: id });
    else if (!copiedTags!.has(id)) faults.push({ kind: 'lost', tag: id });
    else if (copiedTags!.get(id) !== tags!.get(id)) faults.push({ kind: 'misnamed', tag: id });
  }
  // The tags that the service does not have are removed first. So a bookmark that had only these too many is right.
  const tagIdsOf = (bookmark: Bookmark) =>
    bookmark.tags
      .map(({ id }) => id)
      .filter((id) => tags!.has(id))
      .sort((a, b) => a - b)
      .join();
  for (const id of new Set([...copied!.keys(), ...bookmarks!.keys()])) {
    const [mine, theirs] = [copied!.get(id), bookmarks!.get(id)];
    if (theirs === undefined) faults.push({ kind: 'unknown', bookmark: id });
    else if (mine === undefined) faults.push({ kind: 'lost', bookmark: id });
    else if (mine.updated_at !== theirs.updated_at) faults.push({ kind: 'stale', bookmark: id });
    else if (tagIdsOf(mine) !== tagIdsOf(theirs)) faults.push({ kind: 'mistagged', bookmark: id });
  }
  return sortFaults(faults);
}

export const sortFaults = (faults: readonly CopyFault[]): CopyFault[] =>
  faults.toSorted((a, b) => Number(a.tag ?? a.bookmark) - Number(b.tag ?? b.bookmark) || (a.tag ? 1 : -1));
