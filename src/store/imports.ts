import { BOUNDS } from '../domain/fields.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import type { Database } from './database.ts';
import { type JoinedColumns, plainArray } from './joined-texts.ts';
import { type Outcome, requireSuccess } from './outcomes.ts';
import type { StagedImport } from './staged-imports.ts';
import type { PrincipalKey } from './tokens.ts';

/** What writes bookmarks of an import: all of it in one transaction, by `import_bookmarks`. */

/**
 * Some entries of an import as values of a statement: columns in step, each joined into one text, because the driver would
 * escape each text of an array.
 */
export interface ImportPiece extends JoinedColumns {
  /** The names of the columns. An empty text stands for the field's default. */
  names: string[];
  /** An array literal of the keys of the entries' urls. */
  urlKeys: string;
  /** An array literal: the place of each entry's tag set in `setRefs`, from 1; 0 for no tags. */
  tagSets: string;
  /** Array literals of places of tags, from 1, in the order of the folded names, separated by semicolons. */
  setRefs: string;
  /** An array literal of the keys of entries whose url the user already has. They are not in the columns. */
  knownKeys: string;
}

/** An import, checked and ready to be written. */
export interface PreparedImport {
  replace: boolean;
  /** As many as were sent. */
  entries: number;
  /** Pieces that are staged, and the last one, which is not. */
  pieces: number;
  piece: ImportPiece;
  tagNames: readonly string[];
  tagKeys: readonly string[];
  /** The account's version when known urls were looked for; null where there were several, or nobody looked. */
  knownAt: string | null;
  /** Entries of a merge whose url came earlier in the same array. */
  skipped: number;
  /** The errors that are not staged: JSON with commas between. */
  errors: string;
}

/** What an import did, as JSON text without its errors; `errorBytes` of them lie in the database. */
export interface ImportResult {
  result: string;
  errorBytes: number;
}

/** Something that was looked at before has changed: the import is to be prepared again, without looking ahead. */
export class ImportChanged extends Error {
  override readonly name = 'ImportChanged';
}

/** Under what an import is written: the principal's token, or a worker's lease. */
type Authority = StagedImport & { hash: Buffer | null; leaseId: string | null };

/**
 * Imports at once, for the principal, under a fresh id; throws `LIMIT_EXCEEDED` at a cap, and `ImportChanged`. Where the
 * response is lost, `cancelImport` of the same id tells or decides whether it happened.
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
 * Writes a staged import and its result; throws `LIMIT_EXCEEDED` at a cap, `INVALID_TOKEN` where its token was revoked, and
 * `ImportChanged`. False where the lease is lost: the import is done, cancelled, or another worker's.
 */
export async function finishImport(
  db: Database,
  lease: StagedImport & { leaseId: string },
  prepared: PreparedImport,
  freeBookmarkLimit: number,
): Promise<boolean> {
  const rows = await write(db, { ...lease, hash: null }, prepared, freeBookmarkLimit, undefined);
  if (rows[0]!.outcome === 'import_over') return false;
  requireSuccess(rows);
  return true;
}

async function write(
  db: Database,
  { userId, hash, id, leaseId }: Authority,
  { replace, pieces, piece, knownAt, tagNames, tagKeys, skipped, errors }: PreparedImport,
  freeBookmarkLimit: number,
  idempotency: Idempotency | undefined,
): Promise<readonly (ImportResult & { outcome: Outcome | null })[]> {
  const { names, text, columnSeparator, separator, urlKeys, tagSets, setRefs, knownKeys } = piece;
  const rows = await db.write(
    (sql) => sql<(ImportResult & { outcome: Outcome | null })[]>`
      select outcome, result, error_bytes as "errorBytes"
      from import_bookmarks(
        p_user_id => ${userId}, p_token_hash => ${hash}, p_import_id => ${id}, p_lease_id => ${leaseId},
        p_replace => ${replace}, p_pieces => ${pieces}, p_names => ${names}, p_columns => ${text},
        p_column_separator => ${columnSeparator}, p_separator => ${separator}, p_url_keys => ${urlKeys},
        p_tag_sets => ${tagSets}, p_set_refs => ${setRefs}, p_known_keys => ${knownKeys},
        p_known_at => ${knownAt}, p_tag_names => ${[...tagNames]}, p_tag_keys => ${[...tagKeys]},
        p_skipped => ${skipped}, p_errors => ${errors}, p_free_limit => ${freeBookmarkLimit},
        p_tag_limit => ${BOUNDS.tagsPerUser}, p_idempotency_key => ${idempotency?.key ?? null},
        p_request_hash => ${idempotency?.requestHash ?? null}
      )`,
  );
  if (rows[0]!.outcome === 'import_changed') throw new ImportChanged('what an import looked at has changed');
  return rows;
}

/** Urls that a user has, by their keys, and the account's version, which changes before any of them can go. */
export interface KnownUrls {
  keys: ReadonlySet<string>;
  version: string | null;
}

/** Those of some urls that the user has already. */
export async function findKnownUrls(
  db: Database,
  userId: number,
  urlKeys: readonly string[],
): Promise<KnownUrls> {
  const [row] = await db.read(
    (sql) => sql<{ known: string; version: string | null }[]>`
      select array_to_string(known_url_keys(${userId}, ${plainArray(urlKeys)}::uuid[]), ',') as known,
        (select generation || '.' || last_change from accounts where user_id = ${userId}) as version`,
  );
  const { known, version } = row!;
  return { keys: new Set(known === '' ? [] : known.split(',')), version };
}
