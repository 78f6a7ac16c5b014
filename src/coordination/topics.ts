import type { WakeBus } from './port.ts';

/** What wakes are about: the names that waiters register under. */

/** New bookmarks of a user, and the end of one of their tokens. */
export const additionsTopic = (userId: number): string => `user:${userId}`;

/** Every change of a user's collection, and the end of one of their tokens. */
export const changesTopic = (userId: number): string => `changes:${userId}`;

export const importTopic = (importId: string): string => `import:${importId}`;

type Wakes = Pick<WakeBus, 'wake'>;

/** Wakes all polls of a user: after bookmarks were added, or a token was revoked. */
export function wakePolls(wakes: Wakes, userId: number): void {
  wakes.wake(additionsTopic(userId));
  wakes.wake(changesTopic(userId));
}

/** Wakes the polls of `changes` alone: after an edit, a deletion or a change of a tag. */
export function wakeChangesPolls(wakes: Wakes, userId: number): void {
  wakes.wake(changesTopic(userId));
}
