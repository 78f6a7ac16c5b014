import type { Database } from './database.ts';
import type { ImportState, StagedImport } from './staged-imports.ts';

/** Which worker has a staged import, and for how long: one at a time, with Redis or without (decision 34). */

/** A worker's claim: only who holds it may write of the import. */
export interface Lease extends StagedImport {
  /** Fresh for each claim. */
  leaseId: string;
}

/** A worker that died is missed after this time. */
export const LEASE_MS = 9_000;

/** A lease is renewed so often. */
export const LEASE_RENEWAL_MS = 3_000;

/** An import that ended so many workers would end the next one as well. */
const MAX_ATTEMPTS = 3;

/** What came of a claim: an import is the claimer's, was given up by it just now, or stands as others left it. */
export interface Claim {
  outcome: 'claimed' | 'given up' | ImportState['state'];
  /** Counts the workers that began the import. */
  attempts: number;
  /** The trace that its request belongs to, as a W3C `traceparent`. */
  traceParent: string | null;
}

/**
 * Claims a staged import for one attempt; gives it up for good where it has had all of them. Neither happens while another
 * worker holds it: its lease, or the row, which the transaction that writes the import locks. What a worker before this one
 * had staged is dropped. Undefined where there is no such import.
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

/** Prolongs a lease, unless the import's own transaction has its row locked: nobody can claim it then. False: it is lost. */
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

/** Ends a lease, if it is still held: the import is free at once. `returnsAttempt`: it had no part in its end. */
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
