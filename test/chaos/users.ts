import type { Random } from './random.ts';

/** What the writers of one user share. They change each other's bookmarks and tags. */
export interface SharedUser {
  id: number;
  /** Bookmarks whose add was acknowledged. A writer that deletes a bookmark usually removes it from this list. */
  known: { id: number; url: string }[];
  /** Tags that writers may rename and delete. */
  passing: { id: number; name: string }[];
}

/** Tags that nobody renames or deletes, so that checks know exactly which bookmarks have them. */
export const LASTING_TAGS = ['lasting-a', 'lasting-b', 'lasting-c'];

/** The prefix of tags that writers rename and delete. */
export const PASSING_PREFIX = 'passing-';

/** Returns a known bookmark, and removes it from the list if `take` is set. */
export function drawKnown(
  user: SharedUser,
  draw: Random,
  take: boolean,
): SharedUser['known'][number] | undefined {
  if (user.known.length === 0) return undefined;
  const place = draw.integer(0, user.known.length - 1);
  return take ? user.known.splice(place, 1)[0] : user.known[place];
}

/** Draws up to five different ids of known bookmarks. */
export function drawIds(user: SharedUser, draw: Random, take: boolean): number[] {
  const drawn = Array.from({ length: draw.integer(2, 5) }, () => drawKnown(user, draw, take));
  return [...new Set(drawn.flatMap((known) => (known === undefined ? [] : [known.id])))];
}

/** Draws a few different tags, most of them from `LASTING_TAGS`. */
export function drawTags(user: SharedUser, draw: Random): string[] {
  const tags = LASTING_TAGS.filter(() => draw.chance(0.3));
  if (user.passing.length > 0 && draw.chance(0.3)) tags.push(draw.pick(user.passing).name);
  return tags;
}
