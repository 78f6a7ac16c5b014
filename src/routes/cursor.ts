import { invalid } from '../domain/errors.ts';
import { isStorable } from '../domain/text.ts';
import type { ChangesPosition } from '../store/changes.ts';
import type { TrashPosition } from '../store/trash.ts';

/**
 * The cursors of `/bookmarks/list` (decision 14), `/bookmarks/changes`, `/bookmarks/search` and `/trash/list`. They
 * are opaque to clients, and contain a version and the user's id.
 */

const LIST_VERSION = 1;
const CHANGES_VERSION = 2;

/** The longest cursor contains six numbers of 16 digits. */
export const MAX_CURSOR_LENGTH = 200;

export const formatCursor = (userId: number, afterId: number): string =>
  encode(LIST_VERSION, [userId, afterId]);

/** Returns the id after which a page starts. Throws `VALIDATION_ERROR` for a malformed cursor or another user's. */
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

/** Returns the position of a cursor. Throws like `parseCursor`. */
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

const TRASH_VERSION = 4;

export const formatTrashCursor = (userId: number, { deletedAtMs, id }: TrashPosition): string =>
  encode(TRASH_VERSION, [userId, deletedAtMs, id]);

/** Returns the position of a cursor. Throws like `parseCursor`. */
export function parseTrashCursor(cursor: string, userId: number): TrashPosition {
  const [deletedAtMs, id] = decode(cursor, TRASH_VERSION, 2, userId);
  if (deletedAtMs! > LATEST_MS) throw invalid('cursor: is malformed');
  return { deletedAtMs: deletedAtMs!, id: id! };
}

/** The last millisecond of the year 9999. */
const LATEST_MS = 253_402_300_799_999;

const SEARCH_VERSION = 3;

/** The longest cursor contains the first 200 characters of a title. */
export const MAX_SEARCH_CURSOR_LENGTH = 2_000;

/** The start of a search's next page. */
export interface SearchPlace {
  /** The number of that page, and the total that the first page counted. */
  page: number;
  total: number;
  /** The last bookmark before that page, and its sort key. */
  lastId: number;
  lastKey: string | null;
}

/** Makes the cursor of a search. It contains a hash of the search. */
export const formatSearchCursor = (userId: number, search: string, place: SearchPlace): string =>
  Buffer.from(
    JSON.stringify([SEARCH_VERSION, userId, search, place.page, place.total, place.lastId, place.lastKey]),
  ).toString('base64url');

/** Returns the place of a cursor. Throws like `parseCursor`, and for a cursor of another search. */
export function parseSearchCursor(cursor: string, userId: number, search: string): SearchPlace {
  const malformed = () => invalid('cursor: is malformed');
  const parts = readJson(Buffer.from(cursor, 'base64url').toString('utf8'));
  if (!Array.isArray(parts)) throw malformed();
  const [version, owner, hash, page, total, lastId, lastKey] = parts;
  const isWhole =
    version === SEARCH_VERSION &&
    typeof hash === 'string' &&
    [owner, page, total, lastId].every((each) => Number.isSafeInteger(each) && each >= 0) &&
    (lastKey === null || (typeof lastKey === 'string' && isStorable(lastKey)));
  if (!isWhole) throw malformed();
  if (formatSearchCursor(owner, hash, { page, total, lastId, lastKey }) !== cursor) throw malformed();
  if (owner !== userId) throw invalid('cursor: belongs to another user');
  if (hash !== search) throw invalid('cursor: belongs to another search');
  return { page, total, lastId, lastKey };
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const encode = (version: number, numbers: readonly number[]): string =>
  Buffer.from([version, ...numbers].join(':')).toString('base64url');

/** Reads the numbers after the user's id. Accepts only output of `encode`. */
function decode(cursor: string, version: number, count: number, userId: number): number[] {
  const parts = Buffer.from(cursor, 'base64url').toString('latin1').split(':');
  const numbers = parts.filter((part) => /^\d{1,16}$/.test(part)).map(Number);
  const [givenVersion, owner, ...rest] = numbers;
  const isWhole = givenVersion === version && rest.length === count && numbers.every(Number.isSafeInteger);
  if (!isWhole || encode(version, [owner!, ...rest]) !== cursor) throw invalid('cursor: is malformed');
  if (owner !== userId) throw invalid('cursor: belongs to another user');
  return rest;
}
