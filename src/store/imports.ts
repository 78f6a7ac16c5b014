import { BOUNDS } from '../domain/fields.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import type { Database } from './driver/database.ts';
import { type Outcome, onlyRow, requireSuccess } from './outcomes.ts';
import type { StagedImport } from './staged-imports.ts';
import type { PrincipalKey } from './tokens.ts';

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
  /** A JSON array with the result of `storedBookmark` for each entry. */
  entries: Uint8Array;
  /** The errors of invalid entries: JSON objects, separated by commas. */
  errors: string;
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

/**
 * The result of an import as JSON text, without the errors. `errorBytes` is the size of the errors in `import_errors`.
 */
export interface ImportResult {
  result: string;
  errorBytes: number;
}

/** The limits of a free account. */
interface ImportLimits {
  bookmarks: number;
  /** See `trashLimitOf`. */
  trash: number | null;
}

/** What permits the import: the token of the principal, or the lease of a worker. */
type Authority = StagedImport & { hash: Buffer | null; leaseId: string | null };

/**
 * Writes a small import of the principal under a new id. Throws `LIMIT_EXCEEDED` if a cap would be exceeded. If the
 * response is lost, call `cancelImport` with the same id. That call returns the result if the import happened, and
 * otherwise prevents the import.
 */
export async function importBookmarks(
  db: Database,
  { userId, hash }: PrincipalKey,
  id: string,
  prepared: PreparedImport,
  limits: ImportLimits,
  idempotency: Idempotency | undefined,
): Promise<ImportResult> {
  const rows = await write(db, { userId, id, hash, leaseId: null }, prepared, limits, idempotency);
  return requireSuccess(rows);
}

/**
 * Writes a staged import and its result. Throws `LIMIT_EXCEEDED` if a cap would be exceeded, and `INVALID_TOKEN` if the
 * token of the import was revoked. Returns false if the import is already finished, was cancelled, or belongs to
 * another worker. Also returns false if a crash of the database has deleted the staged batches.
 */
export async function finishImport(
  db: Database,
  lease: StagedImport & { leaseId: string },
  prepared: PreparedImport,
  limits: ImportLimits,
): Promise<boolean> {
  const rows = await write(db, { ...lease, hash: null }, prepared, limits, undefined);
  if (onlyRow(rows).outcome === 'import_over') return false;
  requireSuccess(rows);
  return true;
}

function write(
  db: Database,
  { userId, hash, id, leaseId }: Authority,
  { replace, batches, batch, tags, skipped }: PreparedImport,
  limits: ImportLimits,
  idempotency: Idempotency | undefined,
) {
  return db.write(
    (sql) => sql<(ImportResult & { outcome: Outcome | null })[]>`
      select outcome, result, error_bytes as "errorBytes"
      from import_bookmarks(
        p_user_id => ${userId}, p_token_hash => ${hash}, p_import_id => ${id}, p_lease_id => ${leaseId},
        p_replace => ${replace}, p_batches => ${batches}, p_url_keys => ${batch.urlKeys},
        p_tag_sets => ${batch.tagSets}, p_entries => ${batch.entries}, p_errors => ${batch.errors},
        p_tag_names => ${tags.names}, p_tag_keys => ${tags.keys}, p_skipped => ${skipped},
        p_free_limit => ${limits.bookmarks}, p_trash_limit => ${limits.trash}::bigint, p_tag_limit => ${BOUNDS.tagsPerUser},
        p_idempotency_key => ${idempotency?.key ?? null}, p_request_hash => ${idempotency?.requestHash ?? null}
      )`,
  );
}
