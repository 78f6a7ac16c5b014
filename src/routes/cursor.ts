import { z } from 'zod';
import { invalid } from '../domain/errors.ts';
import { isStorable } from '../domain/text.ts';
import type { ChangesPosition } from '../store/changes.ts';
import type { TrashPosition } from '../store/trash.ts';

/**
 * The cursors of `/bookmarks/list` (docs/contract.md, decision 14), `/bookmarks/changes`, `/bookmarks/search` and
 * `/trash/list`. They are opaque to clients. Each encodes a list of parts. The first part is the number of the cursor's
 * format, and the second is the user's id.
 */

/** Long enough for the number of the format and six numbers of 16 digits, in base64url. */
const MAX_LENGTH = 200;

/**
 * Makes the schemas of a cursor: `given` in a request, and `next` in a response. Either may be absent. An empty `given`
 * begins at the start.
 */
export const cursorSchemas = (example: string, maxLength = MAX_LENGTH) => {
  const next = z.string().meta({ examples: [example] });
  const given = z
    .string()
    .max(maxLength, 'is malformed')
    .meta({ examples: [example] });
  return { given: given.optional(), next: next.optional() };
};

/** Returns the last fields of a page as JSON. `cursor` is the cursor of the next page; undefined on the last page. */
export const formatNext = (cursor: string | undefined): string =>
  cursor === undefined ? '"has_more":false' : `"has_more":true,"next_cursor":"${cursor}"`;

const natural = z.int().min(0);

/** The last millisecond of the year 9999. */
const LATEST_MS = 253_402_300_799_999;

/** The decoded parts of each kind of cursor. `formatCursor` and the other formatting functions name these parts. */
const LIST = z.tuple([z.literal(1), natural, natural]);
const CHANGES = z.tuple([z.literal(2), natural, natural, natural, natural, natural, natural]);
const SEARCH = z.tuple([
  z.literal(3),
  natural,
  z.string(),
  natural,
  natural,
  natural,
  z.string().refine(isStorable).nullable(),
]);
const TRASH = z.tuple([z.literal(4), natural, natural.max(LATEST_MS), natural]);

const encode = (text: string): string => Buffer.from(text).toString('base64url');
const encodeNumbers = (parts: readonly unknown[]): string => encode(parts.join(':'));
const encodeJson = (parts: readonly unknown[]): string => encode(JSON.stringify(parts));

/**
 * Returns the decoded parts of a cursor. Throws `VALIDATION_ERROR` if the cursor is malformed or belongs to another
 * user. A cursor is also malformed if `encodeParts` does not turn its parts into the same text again.
 */
function checkParts<Parts extends readonly [number, number, ...unknown[]]>(
  cursor: string,
  userId: number,
  schema: z.ZodType<Parts>,
  parts: unknown,
  encodeParts: (parts: Parts) => string,
): Parts {
  const { data } = schema.safeParse(parts);
  if (data === undefined || encodeParts(data) !== cursor) throw invalid('cursor: is malformed');
  const [, ownerId] = data;
  if (ownerId !== userId) throw invalid('cursor: belongs to another user');
  return data;
}

/** Decodes a cursor whose parts are all numbers. Throws like `checkParts`. */
function decodeNumbers<Parts extends readonly [number, number, ...unknown[]]>(
  cursor: string,
  userId: number,
  schema: z.ZodType<Parts>,
): Parts {
  const numbers = Buffer.from(cursor, 'base64url').toString('latin1').split(':').map(Number);
  return checkParts(cursor, userId, schema, numbers, encodeNumbers);
}

export const formatCursor = (userId: number, afterId: number): string => encodeNumbers([1, userId, afterId]);

/** Returns the id after which a page starts. Throws like `checkParts`. */
export function parseCursor(cursor: string, userId: number): number {
  const [, , afterId] = decodeNumbers(cursor, userId, LIST);
  return afterId;
}

export const formatChangesCursor = (userId: number, position: ChangesPosition): string => {
  const { epoch, generation, change, bookmarkId, tagId } = position;
  return encodeNumbers([2, userId, epoch, generation, change, bookmarkId, tagId]);
};

/** Returns the position that a cursor encodes. Throws like `checkParts`. */
export function parseChangesCursor(cursor: string, userId: number): ChangesPosition {
  const [, , epoch, generation, change, bookmarkId, tagId] = decodeNumbers(cursor, userId, CHANGES);
  return { epoch, generation, change, bookmarkId, tagId };
}

export const formatTrashCursor = (userId: number, { deletedAtMs, id }: TrashPosition): string =>
  encodeNumbers([4, userId, deletedAtMs, id]);

/** Returns the position that a cursor encodes. Throws like `checkParts`. */
export function parseTrashCursor(cursor: string, userId: number): TrashPosition {
  const [, , deletedAtMs, id] = decodeNumbers(cursor, userId, TRASH);
  return { deletedAtMs, id };
}

/** The start of a search's next page. */
export interface SearchPlace {
  /** The number of the next page. */
  page: number;
  /** The number of matches when the first page was read. */
  total: number;
  /** The id of the last bookmark before the next page. */
  lastId: number;
  /** The value by which the bookmark `lastId` is sorted. Null if the search is sorted by id. */
  lastKey: string | null;
}

/** Makes the cursor of a search. It contains the hash of the search, so that it works only with this search. */
export const formatSearchCursor = (userId: number, searchHash: string, place: SearchPlace): string =>
  encodeJson([3, userId, searchHash, place.page, place.total, place.lastId, place.lastKey]);

/** Returns the place that a cursor encodes. Throws like `checkParts`, and if the cursor is for another search. */
export function parseSearchCursor(cursor: string, userId: number, searchHash: string): SearchPlace {
  const parts = readJson(Buffer.from(cursor, 'base64url').toString('utf8'));
  const [, , hash, page, total, lastId, lastKey] = checkParts(cursor, userId, SEARCH, parts, encodeJson);
  if (hash !== searchHash) throw invalid('cursor: belongs to another search');
  return { page, total, lastId, lastKey };
}

/** Parses JSON. Returns undefined if the text is not JSON. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
