import type { Random } from './random.ts';

/** What the writers of one user know in common: they work on each other's bookmarks and tags. */
export interface SharedUser {
  id: number;
  /** Bookmarks that were acknowledged, and not deleted by one of them since. */
  known: { id: number; url: string }[];
  /** Tags that may be renamed and deleted, by id. */
  passing: { id: number; name: string }[];
}

/** Tags that nobody renames or deletes: what a bookmark carries of them can be told exactly. */
export const LASTING_TAGS = ['lasting-a', 'lasting-b', 'lasting-c'];

/** Begins the names of tags that come and go. */
export const PASSING_PREFIX = 'passing-';

/** Takes one of them out, or leaves it in place. */
export function drawKnown(
  user: SharedUser,
  draw: Random,
  take: boolean,
): SharedUser['known'][number] | undefined {
  if (user.known.length === 0) return undefined;
  const place = draw.integer(0, user.known.length - 1);
  return take ? user.known.splice(place, 1)[0] : user.known[place];
}

/** The ids of two to five of them, without repeats; fewer where there are not so many. */
export function drawIds(user: SharedUser, draw: Random, take: boolean): number[] {
  const drawn = Array.from({ length: draw.integer(2, 5) }, () => drawKnown(user, draw, take));
  return [...new Set(drawn.flatMap((known) => (known === undefined ? [] : [known.id])))];
}

/** Some tags, mostly lasting ones, without repeats. */
export function drawTags(user: SharedUser, draw: Random): string[] {
  const tags = LASTING_TAGS.filter(() => draw.chance(0.3));
  if (user.passing.length > 0 && draw.chance(0.3)) tags.push(draw.pick(user.passing).name);
  return tags;
}
