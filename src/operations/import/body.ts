import { invalid } from '../../domain/errors.ts';
import { BOUNDS } from '../../domain/fields.ts';
import { decodeJson, parseJsonText } from '../../domain/json.ts';

/** The body of an import, parsed. Its entries are not checked yet. */
export interface ImportBody {
  replace: boolean;
  entries: readonly unknown[];
}

/** Parses a body. Throws `VALIDATION_ERROR` for a fault that is not one of its entries (section 4.4). */
export function parseImport(bytes: Buffer): ImportBody {
  const body = parseJsonText(decodeJson(bytes));
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

/** Whether an entry has too many bytes as JSON, or is nested too deeply to be written. */
export function isOversized(entry: unknown): boolean {
  try {
    return Buffer.byteLength(JSON.stringify(entry)) > MAX_ENTRY_BYTES;
  } catch {
    return true;
  }
}
