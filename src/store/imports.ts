import { BOUNDS } from '../domain/fields.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import type { Database } from './database.ts';
import { type Outcome, onlyRow, requireSuccess } from './outcomes.ts';
import type { StagedImport } from './staged-imports.ts';
import type { PrincipalKey } from './tokens.ts';

/** Writes imports: the bookmarks and the result in one transaction, by `import_bookmarks`. */

/** Some checked entries, as a statement takes them. The first three are in step. */
export interface ImportBatch {
  /** An array literal of the keys of the entries' urls. */
  urlKeys: string;
  /** An array literal: for each entry the places of its tags among those of the import, from 1, with blanks between. */
  tagSets: string;
  /** A JSON array of the entries' other columns. An absent column has the field's default. */
  entries: Uint8Array;
  /** Errors of other entries, as JSON with commas between. */
  errors: string;
}

/** An import, checked and ready to be written. */
export interface PreparedImport {
  replace: boolean;
  /** How many were sent. */
  entries: number;
  /** How many batches are staged; the last one, `batch`, is not. */
  batches: number;
  batch: ImportBatch;
  tags: { names: string[]; keys: string[] };
  /** Entries of a merge whose url came earlier in the same array. */
  skipped: number;
}

/** What an import did, as JSON text without its errors; `errorBytes` of them are in the database. */
export interface ImportResult {
  result: string;
  errorBytes: number;
}

/** What allows the import: the principal's token, or a worker's lease. */
type Authority = StagedImport & { hash: Buffer | null; leaseId: string | null };

/**
 * Imports at once, for the principal, under a fresh id. Throws `LIMIT_EXCEEDED` at a cap. If the response is lost,
 * `cancelImport` of the same id tells or decides whether it happened.
 */
export async function importBookmarks(
  db: Database,
  { userId, hash }: PrincipalKey,
  id: string,
  prepared: PreparedImport,
  freeBookmarkLimit: number,
  idempotency: Idempotency | undefined,
): Promise<ImportResult> {
  const rows = await write(db, { userId, id, hash, leaseId: null }, prepared, freeBookmarkLimit, idempotency);
  return requireSuccess(rows);
}

/**
 * Writes a staged import and its result. Throws `LIMIT_EXCEEDED` at a cap, and `INVALID_TOKEN` if its token was revoked. False if
 * the lease is lost (the import is done, cancelled, or another worker's), or the database has lost staged batches in a crash.
 */
export async function finishImport(
  db: Database,
  lease: StagedImport & { leaseId: string },
  prepared: PreparedImport,
  freeBookmarkLimit: number,
): Promise<boolean> {
  const rows = await write(db, { ...lease, hash: null }, prepared, freeBookmarkLimit, undefined);
  if (onlyRow(rows).outcome === 'import_over') return false;
  requireSuccess(rows);
  return true;
}

function write(
  db: Database,
  { userId, hash, id, leaseId }: Authority,
  { replace, batches, batch, tags, skipped }: PreparedImport,
  freeBookmarkLimit: number,
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
        p_free_limit => ${freeBookmarkLimit}, p_tag_limit => ${BOUNDS.tagsPerUser},
        p_idempotency_key => ${idempotency?.key ?? null}, p_request_hash => ${idempotency?.requestHash ?? null}
      )`,
  );
}
