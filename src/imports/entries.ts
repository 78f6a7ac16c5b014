import { z } from 'zod';
import { importedEntry } from '../domain/bookmark-schemas.ts';
import { BOUNDS } from '../domain/fields.ts';
import type { ImportError } from '../domain/resources.ts';
import { cutText } from '../domain/text.ts';
import { describeIssue, dropNulls, formatIssue } from '../domain/validation.ts';
import { storedBookmark } from '../store/bookmarks.ts';

/**
 * The schema of the body, only for the API reference. Bodies are not checked against it: `checkEntry` checks entries
 * one by one, so that an invalid entry does not make the others fail.
 */
export const importBody = z.object({
  bookmarks: z.array(importedEntry).max(BOUNDS.importEntries),
  mode: z.enum(['merge', 'replace']).default('merge'),
});

/** A parser that is generated from the entry's schema. For valid entries, it is faster than the schema. */
const compiledEntry = z.compile(importedEntry);

/** A valid entry (docs/contract.md, decision 18). */
interface CheckedEntry {
  urlKey: string;
  tags: z.output<typeof importedEntry>['tags'];
  /** The columns of the row as JSON, without the tags. */
  row: string;
}

/** The maximum length of an entry. The response reports a longer entry as an error (docs/contract.md, decision 33). */
export const MAX_ENTRY_BYTES = 524_288;

/**
 * The maximum length of a text in an error, in code points. Longer texts are cut, so that responses stay short
 * (docs/contract.md, decision 33).
 */
const ERROR_TEXT_LENGTH = 200;

/** Checks a parsed entry. Returns the row to store, or the error for the response. */
export function checkEntry(index: number, raw: unknown): CheckedEntry | ImportError {
  if (isOversized(raw)) return toError(index, null, `at most ${MAX_ENTRY_BYTES} bytes`);
  const result = compiledEntry.safeParse(dropNulls(raw), { error: describeIssue });
  if (!result.success) {
    const [issue] = result.error.issues;
    // An issue with the whole entry has no path.
    const message = issue!.path.length === 0 ? issue!.message : formatIssue(issue!);
    return toError(index, urlOf(raw), message);
  }
  const { tags, ...fields } = result.data;
  const row = storedBookmark(fields);
  return { urlKey: row.url_key, tags, row: JSON.stringify(row) };
}

const toError = (index: number, url: string | null, error: string): ImportError => ({
  index,
  url: url === null ? null : cutText(url, ERROR_TEXT_LENGTH),
  code: 'VALIDATION_ERROR',
  error: cutText(error, ERROR_TEXT_LENGTH),
});

function urlOf(raw: unknown): string | null {
  const url = typeof raw === 'object' && raw !== null && 'url' in raw ? raw.url : undefined;
  return typeof url === 'string' ? url : null;
}

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
