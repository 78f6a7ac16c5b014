import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import { BOOKMARK_FIELDS, namesGivenTo } from '../../domain/bookmark-fields.ts';
import { importedEntry } from '../../domain/bookmark-schemas.ts';
import { invalid } from '../../domain/errors.ts';
import { BOUNDS } from '../../domain/fields.ts';
import type { ImportError } from '../../domain/resources.ts';
import { searchText } from '../../domain/text.ts';
import { describeIssue, formatIssue, parseBody } from '../../domain/validation.ts';
import { hrefKey } from '../../store/bookmarks.ts';
import type { ImportColumns } from '../../store/imports.ts';
import { PlainEntries, type PlainEntry } from './plain-entry.ts';
import { TagSets } from './tag-sets.ts';

/** From the body of an import to columns that Postgres takes whole (decisions 18 to 20). */

/** Other requests come in between: entries are checked for so long at a time. */
const TURN_MS = 5;

const envelope = z.object({
  bookmarks: z.array(z.unknown()).max(BOUNDS.importEntries),
  mode: z.enum(['merge', 'replace']).default('merge'),
});

/** The body's schema as the reference shows it: entries are checked one by one, so that one never fails the rest. */
export const importBody = z.object({
  bookmarks: z.array(importedEntry).max(BOUNDS.importEntries),
  mode: z.enum(['merge', 'replace']).default('merge'),
});

/** An import, checked and ready to be written. */
export interface PreparedImport {
  replace: boolean;
  columns: ImportColumns;
  /** Entries of a merge whose url came earlier in the same array. */
  skipped: number;
  errors: ImportError[];
}

/**
 * Checks an import's body. Throws `VALIDATION_ERROR` where it is no import at all, and for a `replace` with an invalid
 * entry, naming the first and how many there are; the errors of a `merge` are in its result.
 */
export async function prepareImport(body: unknown): Promise<PreparedImport> {
  const { bookmarks, mode } = parseBody(envelope, body);
  const plainEntries = new PlainEntries();
  const columns = new Columns(mode === 'merge');
  const errors: ImportError[] = [];
  let turnBegan = performance.now();
  for (const [index, raw] of bookmarks.entries()) {
    if (performance.now() - turnBegan > TURN_MS) {
      await nextTurn();
      turnBegan = performance.now();
    }
    const plain = plainEntries.read(raw);
    if (plain !== undefined) {
      columns.add(plain);
      continue;
    }
    const result = importedEntry.safeParse(raw, { error: describeIssue });
    if (result.success) columns.add({ ...result.data, href: new URL(result.data.url).href });
    else
      errors.push({
        index,
        url: urlOf(raw),
        code: 'VALIDATION_ERROR',
        error: wordIssue(result.error.issues[0]!),
      });
  }
  if (mode === 'replace' && errors.length > 0) throw refuseReplace(errors);
  return { replace: mode === 'replace', columns: columns.take(), skipped: columns.skipped, errors };
}

const wordIssue = (issue: z.core.$ZodIssue): string =>
  issue.path.length === 0 ? issue.message : formatIssue(issue);

function refuseReplace(errors: readonly ImportError[]) {
  const [{ index, error }] = errors as [ImportError];
  const count = errors.length === 1 ? '1 entry is' : `${errors.length} entries are`;
  return invalid(`bookmarks[${index}]: ${error}; ${count} invalid and nothing was changed`);
}

/** The url to name in an error. Many clients could not read a lone surrogate that came back. */
function urlOf(raw: unknown): string | null {
  const given = typeof raw === 'object' && raw !== null && 'url' in raw ? raw.url : undefined;
  return typeof given === 'string' ? given.toWellFormed() : null;
}

/** The fields that are a column as they are; tags are the column `tag_set`. */
const COLUMN_NAMES = namesGivenTo('import').filter((name) => BOOKMARK_FIELDS[name].kind !== 'tags');

/** Gathers entries as columns in step. */
class Columns {
  skipped = 0;
  readonly #keys: Set<string> | undefined;
  readonly #sets = new TagSets();
  readonly #columns = COLUMN_NAMES.map((name) => ({ name, values: [] as string[] }));
  readonly #urlKeys: string[] = [];
  readonly #searchTexts: string[] = [];
  readonly #tagSets: string[] = [];

  constructor(skipsRepeated: boolean) {
    this.#keys = skipsRepeated ? new Set() : undefined;
  }

  add(entry: PlainEntry): void {
    const key = hrefKey(entry.href);
    if (this.#keys?.has(key)) {
      this.skipped += 1;
      return;
    }
    this.#keys?.add(key);
    for (const { name, values } of this.#columns) values.push(String(entry[name] ?? ''));
    this.#urlKeys.push(key);
    this.#searchTexts.push(searchText(entry));
    this.#tagSets.push(String(this.#sets.add(entry.tags)));
  }

  take(): ImportColumns {
    return {
      urlKeys: this.#urlKeys,
      columns: {
        ...Object.fromEntries(this.#columns.map(({ name, values }) => [name, values])),
        url_key: this.#urlKeys,
        search_text: this.#searchTexts,
        tag_set: this.#tagSets,
      },
      ...this.#sets.take(),
    };
  }
}
