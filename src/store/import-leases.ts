import type { Idempotency } from '../domain/idempotency.ts';
import type { Database } from './driver/database.ts';
import { entriesText, type ImportBatch } from './imports.ts';
import { requireValidToken } from './outcomes.ts';
import type { ImportState, Lease } from './staged-imports.ts';
import { type PrincipalKey, tokenIsValid } from './tokens.ts';

/**
 * The leases of imports (docs/contract.md, decision 34). A lease says which process runs an import, and until when. This
 * file also has the statements that stage batches, and that end an import with an error. `finishImport` in `imports.ts`
 * writes the bookmarks.
 */

/** The duration of a lease. If a worker dies, another one can claim its import after this time at the latest. */
export const LEASE_MS = 9_000;

/** How often a worker renews its lease. */
export const LEASE_RENEWAL_MS = 3_000;

/**
 * How many workers may begin an import. If this many have failed, the import would probably make the next one fail too.
 */
const MAX_ATTEMPTS = 3;

/**
 * Adds the row of a small import, together with a lease that never ends. So the import can be written only with this
 * lease, or be cancelled. Throws `INVALID_TOKEN` if the token was revoked.
 */
export async function beginSmallImport(
  db: Database,
  principal: PrincipalKey,
  { id, leaseId }: Lease,
  idempotency: Idempotency | undefined,
): Promise<void> {
  const rows = await db.write(
    (sql) => sql<{ valid: boolean }[]>`
      insert into imports (
        user_id, id, is_staged, state, token_hash, idempotency_key, request_hash, lease_id, lease_until, expires_at
      )
      select
        ${principal.userId}, ${id}, false, 'queued', ${principal.hash}, ${idempotency?.key ?? null},
        ${idempotency?.requestHash ?? null}, ${leaseId}, 'infinity', now() + interval '1 day'
      where ${tokenIsValid(sql, principal)}
      returning true as valid`,
  );
  requireValidToken(rows);
}

/** The outcome of a claim: `claimed`, `given up`, or the state of an import that could not be claimed. */
export interface Claim {
  outcome: 'claimed' | 'given up' | ImportState['state'];
  /** How many workers have begun the import. */
  attempts: number;
  /** The trace that the request of the import belongs to, as a W3C `traceparent`. */
  traceParent: string | null;
}

/**
 * Claims a staged import for one attempt. If three workers have already begun the import, cancels it instead. The
 * import stays as it is if another worker holds its lease, or if the transaction that writes the import holds the lock
 * on the import's row. A claim deletes the batches that an earlier worker prepared. Returns undefined if there is no
 * such import.
 */
export async function claimImport(db: Database, { userId, id, leaseId }: Lease): Promise<Claim | undefined> {
  const [row] = await db.write(
    (sql) => sql<Claim[]>`
      select outcome, attempts, trace_parent as "traceParent"
      from claim_import(
        p_user_id => ${userId}, p_id => ${id}, p_lease_id => ${leaseId}, p_max_attempts => ${MAX_ATTEMPTS},
        p_lease_ms => ${LEASE_MS}
      )
      where outcome is not null`,
  );
  return row;
}

/**
 * Renews a lease. Returns false if the lease is lost. If the transaction that writes the import locks the import's
 * row, the call does not wait. It then renews nothing and returns true, because nobody can claim the import meanwhile.
 */
export async function renewLease(db: Database, { userId, id, leaseId }: Lease): Promise<boolean> {
  const rows = await db.write(
    (sql) => sql`
      with held as (
        select id
        from imports
        where user_id = ${userId} and id = ${id} and lease_id = ${leaseId} and state = 'queued'
        for no key update skip locked
      ), renewed as (
        update imports
        set lease_until = now() + ${LEASE_MS} * interval '1 millisecond'
        where user_id = ${userId} and id in (select id from held)
      )
      select id
      from imports
      where user_id = ${userId} and id = ${id} and lease_id = ${leaseId} and state = 'queued'`,
  );
  return rows.length > 0;
}

/**
 * Ends a lease if it is still held. If `returnsAttempt` is true, the attempt does not count. Pass true if something
 * other than the import made the attempt fail.
 */
export async function releaseLease(
  db: Database,
  { userId, id, leaseId }: Lease,
  returnsAttempt: boolean,
): Promise<void> {
  await db.write(
    (sql) => sql`
      update imports
      set lease_id = null, lease_until = null, attempts = attempts - ${returnsAttempt ? 1 : 0}
      where user_id = ${userId} and id = ${id} and lease_id = ${leaseId} and state = 'queued'`,
  );
}

/** Stages a batch, and adds its length to the staged bytes of the import. Returns false if the lease is lost. */
export async function stageBatch(
  db: Database,
  { userId, id, leaseId }: Lease,
  position: number,
  batch: ImportBatch,
): Promise<boolean> {
  const { urlKeys, tagSets, entries, errors } = batch;
  const rows = await db.write(
    (sql) => sql`
      with held as (
        update imports
        set bytes = bytes + ${entries.length + errors.length}::bigint
        where user_id = ${userId} and id = ${id} and state = 'queued' and lease_id = ${leaseId}
        returning user_id, id
      )
      insert into import_batches (user_id, import_id, position, url_keys, tag_sets, entries, errors)
      select user_id, id, ${position}, ${urlKeys}::uuid[], ${tagSets}::text[], ${entriesText(batch)}, ${errors}
      from held
      returning position`,
  );
  return rows.length > 0;
}

/** Ends a staged import with an error. `result` is the error as JSON text. Does nothing if the lease is lost. */
export async function refuseImport(
  db: Database,
  { userId, id, leaseId }: Lease,
  result: string,
): Promise<void> {
  await db.write(
    (sql) => sql`
      with refused as (
        update imports
        set state = 'done', result = ${result}, touched_at = now(), expires_at = now() + interval '1 hour',
          lease_id = null, lease_until = null
        where user_id = ${userId} and id = ${id} and state = 'queued' and lease_id = ${leaseId}
        returning id
      ), chunks as (
        delete from import_chunks where user_id = ${userId} and import_id in (select id from refused)
      )
      delete from import_batches where user_id = ${userId} and import_id in (select id from refused)`,
  );
}
