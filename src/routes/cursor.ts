import { invalid } from '../domain/errors.ts';
import type { ChangesPosition } from '../store/changes.ts';

/**
 * The cursors of `/bookmarks/list` (decision 14) and `/bookmarks/changes`: opaque to clients, with a version and the
 * id of their user.
 */

const LIST_VERSION = 1;
const CHANGES_VERSION = 2;

/** The longest cursor holds six numbers of 16 digits. */
export const MAX_CURSOR_LENGTH = 200;

export const formatCursor = (userId: number, afterId: number): string =>
  encode(LIST_VERSION, [userId, afterId]);

/** The id after which a page begins; throws `VALIDATION_ERROR` for a malformed cursor and for another user's. */
export function parseCursor(cursor: string, userId: number): number {
  const [afterId] = decode(cursor, LIST_VERSION, 1, userId);
  return afterId!;
}

export const formatChangesCursor = (userId: number, position: ChangesPosition): string =>
  encode(CHANGES_VERSION, [
    userId,
    position.epoch,
    position.generation,
    position.change,
    position.bookmarkId,
    position.tagId,
  ]);

/** The position of a cursor; throws like `parseCursor`. */
export function parseChangesCursor(cursor: string, userId: number): ChangesPosition {
  const [epoch, generation, change, bookmarkId, tagId] = decode(cursor, CHANGES_VERSION, 5, userId);
  return {
    epoch: epoch!,
    generation: generation!,
    change: change!,
    bookmarkId: bookmarkId!,
    tagId: tagId!,
  };
}

const encode = (version: number, numbers: readonly number[]): string =>
  Buffer.from([version, ...numbers].join(':')).toString('base64url');

/** Reads the numbers after the user's; accepts only what `encode` wrote. */
function decode(cursor: string, version: number, count: number, userId: number): number[] {
  const parts = Buffer.from(cursor, 'base64url').toString('latin1').split(':');
  const numbers = parts.filter((part) => /^\d{1,16}$/.test(part)).map(Number);
  const [givenVersion, owner, ...rest] = numbers;
  const isWhole = givenVersion === version && rest.length === count && numbers.every(Number.isSafeInteger);
  if (!isWhole || encode(version, [owner!, ...rest]) !== cursor) throw invalid('cursor: is malformed');
  if (owner !== userId) throw invalid('cursor: belongs to another user');
  return rest;
}
