import type { Database, Sql } from './database.ts';
import { LEASE_MS, type Lease } from './import-leases.ts';
import type { ImportPiece } from './imports.ts';

/** What a worker writes of a staged import before it is done, all of it under its lease. */

/** Prolongs a lease and counts what is staged under it; the import's row, none where the lease is lost. */
const prolong = (sql: Sql, { userId, id, leaseId }: Lease, stagedBytes: number) => sql`
  update imports
  set bytes = bytes + ${stagedBytes}::bigint,
    lease_until = now() + ${LEASE_MS} * interval '1 millisecond'
  where user_id = ${userId} and id = ${id} and state = 'queued' and lease_id = ${leaseId}
  returning user_id, id`;

/** Stages a piece of checked entries, and prolongs the lease; false where that is lost. */
export async function stagePiece(
  db: Database,
  lease: Lease,
  position: number,
  piece: ImportPiece,
): Promise<boolean> {
  const { names, text, columnSeparator, separator, urlKeys, tagSets, setRefs, knownKeys } = piece;
  const rows = await db.write(
    (sql) => sql`
      with held as (${prolong(sql, lease, text.length)})
      insert into import_pieces (
        user_id, import_id, position, names, columns, column_separator, separator, url_keys, tag_sets, set_refs, known_keys
      )
      select
        user_id, id, ${position}, ${names}, ${text}, ${columnSeparator}, ${separator},
        ${urlKeys}::uuid[], ${tagSets}::integer[], ${setRefs}, ${knownKeys}::uuid[]
      from held
      returning position`,
  );
  return rows.length > 0;
}

/** Stages errors, JSON with commas between, and prolongs the lease; false where that is lost. */
export async function stageErrors(
  db: Database,
  lease: Lease,
  position: number,
  errors: string,
): Promise<boolean> {
  const rows = await db.write(
    (sql) => sql`
      with held as (${prolong(sql, lease, errors.length)})
      insert into import_errors (user_id, import_id, position, errors)
      select user_id, id, ${position}, ${errors} from held
      returning position`,
  );
  return rows.length > 0;
}

/** Drops what was staged of checked entries, so that the import can be prepared anew; nothing where the lease is lost. */
export async function dropPieces(db: Database, { userId, id, leaseId }: Lease): Promise<void> {
  await db.write(
    (sql) => sql`
      with held as (
        select user_id, id
        from imports
        where user_id = ${userId} and id = ${id} and state = 'queued' and lease_id = ${leaseId}
        for update
      ), errors as (
        delete from import_errors where user_id = ${userId} and import_id in (select id from held)
      )
      delete from import_pieces where user_id = ${userId} and import_id in (select id from held)`,
  );
}

/** Ends a staged import that changes nothing with an error, as JSON text; nothing where the lease is lost. */
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
      ), chunks as (
        delete from import_chunks where user_id = ${userId} and import_id in (select id from refused)
      ), errors as (
        delete from import_errors where user_id = ${userId} and import_id in (select id from refused)
      )
      delete from import_pieces where user_id = ${userId} and import_id in (select id from refused)`,
  );
}
