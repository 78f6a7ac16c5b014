import { BOUNDS } from '../domain/fields.ts';
import type { Database } from './driver/database.ts';
import { type Outcome, onlyRow, requireSuccess } from './outcomes.ts';
import type { Lease } from './staged-imports.ts';

/** Writes the bookmarks and the result of an import in one transaction, with the SQL function `import_bookmarks`. */

/**
 * Valid entries of an import in the form that SQL receives, and the errors of invalid entries. The first three fields
 * hold one value for each valid entry, in the same order.
 */
export interface ImportBatch {
  /** The url keys of the entries, as an array literal of Postgres. */
  urlKeys: string;
  /**
   * The tags of the entries, as an array literal of Postgres. The value of an entry holds the positions of its tags in
   * the import's list of tags, counted from 1 and separated by blanks.
   */
  tagSets: string;
  /** A JSON array, in UTF-8, with the result of `storedBookmark` for each entry. */
  entries: Uint8Array;
  /** The errors of invalid entries: JSON objects in UTF-8, separated by commas. */
  errors: Uint8Array;
}

/** An import whose entries have been checked and can be written. */
export interface PreparedImport {
  replace: boolean;
  /** The number of entries in the request. */
  entries: number;
  /** The number of staged batches. The last batch is not staged: it is in `batch`. */
  batches: number;
  batch: ImportBatch;
  /** All tags of the entries: their names, and their normalized names in the same order. */
  tags: { names: string[]; keys: string[] };
  /** The number of entries whose url occurs earlier in the request. A `replace` skips none. */
  skipped: number;
}

/** Returns the entries of a batch as text. The driver would send bytes as hexadecimal digits, which are twice as long. */
export const entriesText = ({ entries }: ImportBatch): string => new TextDecoder().decode(entries);

/** How an import was written. */
interface WrittenImport {
  /** The result as JSON text, without its list of errors. */
  result: string;
  /** The earlier import with the same idempotency key, if the result is that import's. */
  repeats: string | null;
}

/** The limits of a free account. */
interface ImportLimits {
  bookmarks: number;
  /** See `trashLimitOf`. */
  trash: number | null;
}

/**
 * Writes the bookmarks and the result of an import. Throws `LIMIT_EXCEEDED` if a cap would be exceeded, and
 * `INVALID_TOKEN` if the token of the import was revoked. Returns undefined if the lease is lost, because the import has
 * ended or another worker runs it. Also returns undefined if a crash of the database has deleted the staged batches.
 */
export async function finishImport(
  db: Database,
  { userId, id, leaseId }: Lease,
  { replace, batches, batch, tags, skipped }: PreparedImport,
  limits: ImportLimits,
): Promise<WrittenImport | undefined> {
  const rows = await db.write(
    (sql) => sql<(WrittenImport & { outcome: Outcome | null })[]>`
      select outcome, result, repeats
      from import_bookmarks(
        p_user_id => ${userId}, p_import_id => ${id}, p_lease_id => ${leaseId},
        p_replace => ${replace}, p_batches => ${batches}, p_url_keys => ${batch.urlKeys},
        p_tag_sets => ${batch.tagSets}, p_entries => ${entriesText(batch)}, p_errors => ${batch.errors},
        p_tag_names => ${tags.names}, p_tag_keys => ${tags.keys}, p_skipped => ${skipped},
        p_free_limit => ${limits.bookmarks}, p_trash_limit => ${limits.trash}::bigint, p_tag_limit => ${BOUNDS.tagsPerUser}
      )`,
  );
  return onlyRow(rows).outcome === 'import_over' ? undefined : requireSuccess(rows);
}
