import type { Notifier } from './port.ts';

/** The names of the channels. A waiting request registers on a channel, and wakes when that channel is notified. */

/** Returns the channel that is notified when a user gets new bookmarks, or when one of their tokens is revoked. */
export const additionsChannel = (userId: number): string => `user:${userId}`;

/** Returns the channel that is notified when a user's bookmarks or tags change, or a token of the user is revoked. */
export const changesChannel = (userId: number): string => `changes:${userId}`;

/** Returns the channel that is notified when a staged import has ended. */
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
