import { z } from 'zod';
import { BOOKMARK_FIELDS, namesGivenTo } from '../../domain/bookmark-fields.ts';
import { importedEntry } from '../../domain/bookmark-schemas.ts';
import { BOUNDS, type TagNames } from '../../domain/fields.ts';
import type { ImportError } from '../../domain/resources.ts';
import { cutText, searchText } from '../../domain/text.ts';
import { describeIssue, formatIssue } from '../../domain/validation.ts';
import { hrefHost, hrefKey } from '../../store/bookmarks.ts';
import { isOversized, MAX_ENTRY_BYTES } from './body.ts';

/** What an entry of an import has to be, and what becomes of it (decision 18). */

/** The body's schema as the reference shows it: entries are checked one by one, so that one never fails the rest. */
export const importBody = z.object({
  bookmarks: z.array(importedEntry).max(BOUNDS.importEntries),
  mode: z.enum(['merge', 'replace']).default('merge'),
});

/** An entry, checked: what its row in the database needs. */
export interface CheckedEntry {
  urlKey: string;
  /** In the order of `COLUMN_NAMES`; an empty one stands for the field's default. */
  texts: string[];
  tags: TagNames;
}

/** The fields that are a column as they are, which tags are not. */
const TEXT_NAMES = namesGivenTo('import').filter((name) => BOOKMARK_FIELDS[name].kind !== 'tags');

/** The columns of an entry's texts. */
export const COLUMN_NAMES: readonly string[] = [...TEXT_NAMES, 'host', 'search_text'];

/** Code points of an entry's url, and of what is wrong with it, in an error: a response is no store (decision 33). */
const ERROR_TEXT_LENGTH = 200;

/** Checks a parsed entry; returns what its row needs, or its error in the response. */
export function checkEntry(index: number, raw: unknown): CheckedEntry | ImportError {
  if (isOversized(raw)) return toError(index, null, `at most ${MAX_ENTRY_BYTES} bytes`);
  const result = importedEntry.safeParse(raw, { error: describeIssue });
  if (result.success) return toRow(result.data, new URL(result.data.url).href);
  return toError(index, urlOf(raw), wordIssue(result.error.issues[0]!));
}

const toRow = (entry: z.output<typeof importedEntry>, href: string): CheckedEntry => ({
  urlKey: hrefKey(href),
  texts: [...TEXT_NAMES.map((name) => String(entry[name] ?? '')), hrefHost(href), searchText(entry)],
  tags: entry.tags,
});

const toError = (index: number, url: string | null, error: string): ImportError => ({
  index,
  url: url === null ? null : cutText(url, ERROR_TEXT_LENGTH),
  code: 'VALIDATION_ERROR',
  error: cutText(error, ERROR_TEXT_LENGTH),
});

const wordIssue = (issue: z.core.$ZodIssue): string =>
  issue.path.length === 0 ? issue.message : formatIssue(issue);

function urlOf(raw: unknown): string | null {
  const given = typeof raw === 'object' && raw !== null && 'url' in raw ? raw.url : undefined;
  return typeof given === 'string' ? given : null;
}
