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

/** The maximum length of an entry. The response reports a longer entry as an error (docs/contract.md, decision 33). */
export const MAX_ENTRY_BYTES = 524_288;

/** Whether an entry has too many bytes as JSON, or is nested too deeply for `JSON.stringify`. */
export function isOversized(entry: unknown): boolean {
  if (estimateMaxBytes(entry, 3) <= MAX_ENTRY_BYTES) return false;
  try {
    return Buffer.byteLength(JSON.stringify(entry)) > MAX_ENTRY_BYTES;
  } catch {
    return true;
  }
}

/**
 * Estimates quickly how many bytes a value has as JSON. The result is never too small. It is infinite if the value is
 * nested more deeply than `depth`. JSON needs at most 6 bytes for a character, and at most 25 for a number.
 */
function estimateMaxBytes(value: unknown, depth: number): number {
  if (typeof value === 'string') return 6 * value.length + 3;
  if (typeof value !== 'object' || value === null) return 25;
  if (depth === 0) return Number.POSITIVE_INFINITY;
  let bytes = 2;
  if (Array.isArray(value)) for (const item of value) bytes += 1 + estimateMaxBytes(item, depth - 1);
  else
    for (const key of Object.keys(value))
      bytes += 6 * key.length + 4 + estimateMaxBytes((value as Record<string, unknown>)[key], depth - 1);
  return bytes;
}

/**
 * Frees the memory of bytes that nobody uses any more. Garbage collection would free it too. But V8 would then run a
 * full collection for every few megabytes of an import (docs/decisions/0073-memory-of-imports.md).
 */
export function freeBytes({ buffer, byteLength }: Buffer): void {
  // A short buffer shares its memory with other buffers, so it must not be freed.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
