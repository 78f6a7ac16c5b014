import { invalid } from '../domain/errors.ts';

/** The cursor of `/bookmarks/list` (decision 14): opaque to clients, versioned, naming its user. */

const VERSION = 1;

export const formatCursor = (userId: number, afterId: number): string =>
  Buffer.from(`${VERSION}:${userId}:${afterId}`).toString('base64url');

/** The id that a cursor stands after; throws `VALIDATION_ERROR` for a malformed one and for another user's. */
export function parseCursor(cursor: string, userId: number): number {
  const match = /^1:(\d{1,16}):(\d{1,16})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'));
  const afterId = Number(match?.[2]);
  const isCanonical = match !== null && formatCursor(Number(match[1]), afterId) === cursor;
  if (!isCanonical || !Number.isSafeInteger(afterId)) throw invalid('cursor: is malformed');
  if (Number(match[1]) !== userId) throw invalid('cursor: belongs to another user');
  return afterId;
}
