import type { Idempotency } from '../domain/idempotency.ts';
import type { Database } from './database.ts';
import { type Outcome, requireSuccess, requireValidToken } from './outcomes.ts';
import { type Owner, tokenIsValid } from './tokens.ts';

/** Large imports between their receipt and their result: what of them lies in Postgres, and where they stand. */

/** A staged import, by its keys. */
export interface StagedImport {
  userId: number;
  id: string;
}

/** Where a staged import stands; `result` is the answer's JSON text once it is done. */
export interface ImportState {
  state: 'receiving' | 'queued' | 'done' | 'cancelled';
  result: string | null;
  /** The trace that its request belongs to, as a W3C `traceparent`. */
  traceParent: string | null;
}

/** Begins staging; throws `RATE_LIMITED` while the user has another large import, `UNAVAILABLE` at the cap of bytes. */
export async function beginImport(
  db: Database,
  owner: Owner,
  id: string,
  bytes: number,
  stagedLimit: number,
): Promise<void> {
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null }[]>`
      select outcome from begin_import(${owner.userId}, ${owner.hash}, ${id}, ${bytes}, ${stagedLimit})`,
  );
  requireSuccess(rows);
}

/** Stages the next bytes; false where the import was cancelled meanwhile. */
export async function stageChunk(
  db: Database,
  { userId, id }: StagedImport,
  position: number,
  bytes: Buffer,
): Promise<boolean> {
  const rows = await db.write(
    (sql) => sql`
      with receiving as (
        update imports set touched_at = now()
        where user_id = ${userId} and id = ${id} and state = 'receiving'
        returning user_id, id
      )
      insert into import_chunks (user_id, import_id, position, bytes)
      select user_id, id, ${position}, ${bytes}::bytea from receiving
      returning position`,
  );
  return rows.length > 0;
}

/**
 * All bytes are there: from now on a worker may run the import. Does nothing to one that is past that; throws
 * `INVALID_TOKEN` where the token was revoked while they arrived.
 */
export async function queueImport(
  db: Database,
  owner: Owner,
  id: string,
  { idempotency, traceParent }: { idempotency?: Idempotency | undefined; traceParent?: string | undefined },
): Promise<void> {
  const { userId } = owner;
  const rows = await db.write(
    (sql) => sql<{ valid: boolean }[]>`
      with queued as (
        update imports
        set state = 'queued',
          touched_at = now(),
          token_hash = ${owner.hash},
          bytes = (
            select sum(octet_length(c.bytes)) from import_chunks c where c.user_id = ${userId} and c.import_id = ${id}
          ),
          idempotency_key = ${idempotency?.key ?? null},
          request_hash = ${idempotency?.requestHash ?? null},
          trace_parent = ${traceParent ?? null}
        where user_id = ${userId} and id = ${id} and state = 'receiving' and ${tokenIsValid(sql, owner)}
      )
      select ${tokenIsValid(sql, owner)} as valid`,
  );
  requireValidToken(rows);
}

/** Where a staged import stands; undefined where there is none. */
export async function readImport(
  db: Database,
  { userId, id }: StagedImport,
): Promise<ImportState | undefined> {
  const [row] = await db.read(
    (sql) => sql<ImportState[]>`
      select state, result, trace_parent as "traceParent"
      from imports
      where user_id = ${userId} and id = ${id}`,
  );
  return row;
}

/** Chunks that are read together: one by one they take twice as long. */
const CHUNKS_TOGETHER = 16;

/** The staged chunks from a position on, some of them; none past the last. */
export async function readChunks(
  db: Database,
  { userId, id }: StagedImport,
  position: number,
): Promise<Buffer[]> {
  const rows = await db.read(
    (sql) => sql<{ bytes: Buffer }[]>`
      select bytes
      from import_chunks
      where user_id = ${userId} and import_id = ${id}
        and position >= ${position} and position < ${position + CHUNKS_TOGETHER}
      order by position`,
  );
  return rows.map(({ bytes }) => bytes);
}

/**
 * Cancels an import that has not been done: it never runs from here on. Answers where it then stands, so a result that
 * came first. Waits for a transaction that is writing it; one that comes later finds the place taken.
 */
export async function cancelImport(
  db: Database,
  { userId, id }: StagedImport,
): Promise<ImportState | undefined> {
  const [row] = await db.write(
    (sql) => sql<ImportState[]>`
      with cancelled as (
        insert into imports as i (user_id, id, state, bytes)
        select user_id, ${id}, 'cancelled', 0 from accounts where user_id = ${userId}
        on conflict (user_id, id) do update
        set state = 'cancelled', touched_at = now(), lease_id = null, lease_until = null
        where i.state in ('receiving', 'queued')
        returning id
      ), dropped as (
        delete from import_chunks where user_id = ${userId} and import_id in (select id from cancelled)
      )
      select 'cancelled' as state, null as result, null as "traceParent" from cancelled`,
  );
  return row ?? readImport(db, { userId, id });
}
