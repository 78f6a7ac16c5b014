import type { BookmarkTag } from '../domain/resources.ts';
import { toHex } from './requester.ts';

/** What a digest covers of a bookmark (docs/contract.md, section 4.2). */
export interface BookmarkVersion {
  id: number;
  updated_at: string;
  /** In any order. */
  tagIds: readonly number[];
}

/** A range of ids, which excludes `afterId` and includes `upToId`. */
export interface IdRange {
  afterId: number;
  upToId: number;
}

export const isInRange = (id: number, { afterId, upToId }: IdRange): boolean => id > afterId && id <= upToId;

/** Returns the digest of bookmarks, which are in ascending order of ids. */
export const digestBookmarks = (versions: readonly BookmarkVersion[]): Promise<string> =>
  digestLines(versions.map(({ id, updated_at, tagIds }) => `${id} ${updated_at} ${joinTagIds(tagIds)}`));

/** Returns the digest of all tags of an account. */
export const digestTags = (tags: readonly BookmarkTag[]): Promise<string> =>
  digestLines([...tags].sort((a, b) => a.id - b.id).map(({ id, name }) => `${id} ${name}`));

export const joinTagIds = (tagIds: readonly number[]): string => [...tagIds].sort((a, b) => a - b).join(',');

async function digestLines(lines: readonly string[]): Promise<string> {
  // Browsers have no `subtle` on pages without TLS.
  if (crypto.subtle === undefined) throw new TypeError('verify: expected a page with https, or on localhost');
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(lines.join('\n')));
  return toHex(new Uint8Array(hash));
}
