import type { Notifier } from './port.ts';

/** The names of the channels on which waiting requests register. A notification of a channel wakes these requests. */

/** Returns the channel for new bookmarks of a user, and for the revocation of one of their tokens. */
export const additionsChannel = (userId: number): string => `user:${userId}`;

/** Returns the channel for every change of the user's bookmarks and tags, and for the revocation of their tokens. */
export const changesChannel = (userId: number): string => `changes:${userId}`;

export const importChannel = (importId: string): string => `import:${importId}`;

type Sender = Pick<Notifier, 'notify'>;

/** Wakes all long polls of a user. Called after bookmarks were added or a token was revoked. */
export function notifyPolls(notifier: Sender, userId: number): void {
  notifier.notify(additionsChannel(userId));
  notifier.notify(changesChannel(userId));
}

/** Wakes only the user's long polls of `/bookmarks/changes`. Called after an edit, a deletion or a change of a tag. */
export function notifyChangesPolls(notifier: Sender, userId: number): void {
  notifier.notify(changesChannel(userId));
}
