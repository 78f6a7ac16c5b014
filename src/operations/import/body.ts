import { invalid } from '../../domain/errors.ts';
import { BOUNDS } from '../../domain/fields.ts';
import { parseJsonText } from '../../domain/json.ts';

/** The body of an import, parsed; its entries are not checked yet. */
export interface ImportBody {
  replace: boolean;
  entries: readonly unknown[];
}

/** Parses a body; throws `VALIDATION_ERROR` for a fault that is not one of its entries (section 4.4). */
export function parseImport(text: string): ImportBody {
  const body = parseJsonText(text);
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw invalid('body: expected an object');
  const { bookmarks, mode = 'merge' } = body as { bookmarks?: unknown; mode?: unknown };
  if (bookmarks === undefined) throw invalid('bookmarks: is required');
  if (!Array.isArray(bookmarks)) throw invalid('bookmarks: expected an array');
  if (bookmarks.length > BOUNDS.importEntries)
    throw invalid(`bookmarks: at most ${BOUNDS.importEntries} entries`);
  if (mode !== 'merge' && mode !== 'replace') throw invalid('mode: expected "merge" or "replace"');
  return { replace: mode === 'replace', entries: bookmarks };
}

/** An entry with more bytes is an error of its own (decision 33). */
export const MAX_ENTRY_BYTES = 524_288;

/** A code unit of a string takes at most so many bytes in JSON. */
const LONGEST_UNIT_BYTES = 6;

/** What JSON has around a value and its key: quotes, colon, comma, or a number. */
const VALUE_BYTES = 30;

/** Whether an entry takes too many bytes as JSON. Only an entry that might be too large is written to find out. */
export function isOversized(entry: unknown): boolean {
  if (!mayBeLonger(entry, MAX_ENTRY_BYTES)) return false;
  try {
    return Buffer.byteLength(JSON.stringify(entry)) > MAX_ENTRY_BYTES;
  } catch {
    // Nested too deeply to be written.
    return true;
  }
}

/** Adds up upper bounds; stops as soon as the sum is above the limit. */
function mayBeLonger(entry: unknown, limitBytes: number): boolean {
  const waiting = [entry];
  let bytes = 0;
  const add = (value: unknown) => {
    bytes += VALUE_BYTES;
    if (typeof value === 'string') bytes += value.length * LONGEST_UNIT_BYTES;
    else if (typeof value === 'object' && value !== null) waiting.push(value);
    return bytes <= limitBytes;
  };
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (Array.isArray(value)) {
      if (!value.every(add)) return true;
    } else if (typeof value === 'object' && value !== null)
      for (const key in value) {
        bytes += key.length * LONGEST_UNIT_BYTES;
        if (!add((value as Record<string, unknown>)[key])) return true;
      }
    else add(value);
  }
  return bytes > limitBytes;
}
