import { invalid } from '../domain/errors.ts';
import { BOUNDS } from '../domain/fields.ts';
import { decodeJson, parseJsonText } from '../domain/json.ts';
import { dropNulls } from '../domain/validation.ts';

/** The body of an import, parsed. Its entries are not checked yet. */
export interface ImportBody {
  replace: boolean;
  entries: readonly unknown[];
}

/** Parses a body. Throws `VALIDATION_ERROR` for a fault outside of the entries (docs/contract.md, section 4.4). */
export function parseImport(bytes: Buffer): ImportBody {
  const body = parseJsonText(decodeJson(bytes));
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw invalid('body: expected an object');
  const { bookmarks, mode = 'merge' } = dropNulls(body) as { bookmarks?: unknown; mode?: unknown };
  if (bookmarks === undefined) throw invalid('bookmarks: is required');
  if (!Array.isArray(bookmarks)) throw invalid('bookmarks: expected an array');
  if (bookmarks.length > BOUNDS.importEntries)
    throw invalid(`bookmarks: at most ${BOUNDS.importEntries} entries`);
  if (mode !== 'merge' && mode !== 'replace') throw invalid('mode: expected "merge" or "replace"');
  return { replace: mode === 'replace', entries: bookmarks };
}

/**
 * Frees the memory of bytes that nobody uses any more. Garbage collection would free it too. But V8 would then run a
 * full collection for every few megabytes of an import (docs/decisions/0073-memory-of-imports.md).
 */
export function freeBytes({ buffer, byteLength }: Buffer): void {
  // A short buffer shares its memory with other buffers, so it must not be freed.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
