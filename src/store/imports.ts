import { BOUNDS } from '../domain/fields.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import type { Database } from './database.ts';
import type { Lease } from './import-leases.ts';
import { joinColumns, plainArray } from './joined-texts.ts';
import { type Outcome, requireSuccess } from './outcomes.ts';
import type { StagedImport } from './staged-imports.ts';
import type { Owner } from './tokens.ts';

/** The entries of an import, as `import_bookmarks` takes them. */
export interface ImportColumns {
  urlKeys: string[];
  /**
   * By name a text for each entry, in step; an empty one stands for the field's default. Beside the fields of a bookmark:
   * `url_key`, `search_text`, and `tag_set`, the place of an entry's tag set in `setRefs`, from 1, or 0 for no tags.
   */
  columns: Readonly<Record<string, readonly string[]>>;
  setRefs: string[];
  tagNames: string[];
  tagKeys: string[];
}

/** What is to be written in one transaction. */
export interface ImportWork {
  replace: boolean;
  columns: ImportColumns;
  skipped: number;
  /** JSON text of the answer's `errors`. */
  errors: string;
  /** Of a small import; a staged one keeps its own. */
  idempotency?: Idempotency | undefined;
}

interface Written {
  outcome: Outcome | null;
  result: string;
}

/**
 * Imports at once, for the caller, under a fresh id, and answers the result's JSON text; throws `LIMIT_EXCEEDED` at a
 * cap. Where the answer is lost, `cancelImport` of the same id tells or decides whether it happened.
 */
export async function importBookmarks(
  db: Database,
  { userId, hash }: Owner,
  id: string,
  work: ImportWork,
  freeBookmarkLimit: number,
): Promise<string> {
  const of = { userId, id, hash, leaseId: null };
  return requireSuccess(await writeImport(db, of, work, freeBookmarkLimit)).result;
}

/**
 * Writes a staged import and its answer in one transaction; throws `LIMIT_EXCEEDED` at a cap, and `INVALID_TOKEN` where
 * its token was revoked. False where the lease does not hold it any more: it is done, cancelled, or another worker's.
 */
export async function finishImport(
  db: Database,
  lease: Lease,
  work: ImportWork,
  freeBookmarkLimit: number,
): Promise<boolean> {
  const rows = await writeImport(db, { ...lease, hash: null }, work, freeBookmarkLimit);
  if (rows[0]?.outcome === 'import_over') return false;
  requireSuccess(rows);
  return true;
}

/** Below this a look ahead costs more than it spares. */
const LOOK_AHEAD_ENTRIES = 200;

async function writeImport(
  db: Database,
  of: StagedImport & { hash: Buffer | null; leaseId: string | null },
  work: ImportWork,
  freeBookmarkLimit: number,
) {
  const { replace, columns, skipped, errors, idempotency } = await dropKnown(db, of.userId, work);
  const names = Object.keys(columns.columns);
  const { text, columnSeparator, separator } = joinColumns(Object.values(columns.columns));
  return db.write(
    (sql) => sql<Written[]>`
      select outcome, result
      from import_bookmarks(
        ${of.userId}, ${of.hash}, ${of.id}, ${of.leaseId}, ${replace},
        ${names}, ${text}, ${columnSeparator}, ${separator},
        ${columns.setRefs}, ${columns.tagNames}, ${columns.tagKeys},
        ${skipped}, ${errors},
        ${freeBookmarkLimit}, ${BOUNDS.tagsPerUser},
        ${idempotency?.key ?? null}, ${idempotency?.requestHash ?? null}
      )`,
  );
}

const NO_COLUMNS: ImportColumns = { urlKeys: [], columns: {}, setRefs: [], tagNames: [], tagKeys: [] };

/**
 * A merge of nothing new, as a sync of two services repeats it, is told by its keys alone. It then writes nothing, so
 * it is as if it had been done at the moment of this look, whatever is deleted before its answer is written.
 */
async function dropKnown(db: Database, userId: number, work: ImportWork): Promise<ImportWork> {
  const { replace, columns, skipped } = work;
  if (replace || columns.urlKeys.length < LOOK_AHEAD_ENTRIES) return work;
  const [row] = await db.read(
    (sql) => sql<{ known: number }[]>`
      select cardinality(known_url_keys(${userId}, ${plainArray(columns.urlKeys)}::uuid[])) as known`,
  );
  return row?.known === columns.urlKeys.length
    ? { ...work, columns: NO_COLUMNS, skipped: skipped + columns.urlKeys.length }
    : work;
}

/** Writes the answer of a staged import that changes nothing: an error's JSON text; nothing where the lease is lost. */
export async function refuseImport(
  db: Database,
  { userId, id, leaseId }: Lease,
  result: string,
): Promise<void> {
  await db.write(
    (sql) => sql`
      with refused as (
        update imports
        set state = 'done', result = ${result}, touched_at = now(), lease_id = null, lease_until = null
        where user_id = ${userId} and id = ${id} and state = 'queued' and lease_id = ${leaseId}
        returning id
      )
      delete from import_chunks
      where user_id = ${userId} and import_id in (select id from refused)`,
  );
}
