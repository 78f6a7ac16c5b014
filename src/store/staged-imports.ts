import type { Idempotency } from '../domain/idempotency.ts';
import type { Database } from './database.ts';
import { type Outcome, requireSuccess, requireValidToken } from './outcomes.ts';
import { type PrincipalKey, tokenIsValid } from './tokens.ts';

/** Large imports between their receipt and their result: what of them lies in Postgres, and where they stand. */

/** A staged import, by its keys. */
export interface StagedImport {
  userId: number;
  id: string;
}

/** Where a staged import stands. */
export interface ImportState {
  state: 'receiving' | 'queued' | 'done' | 'cancelled';
  /** Once it is done: what it did, as JSON text without its errors, or the error that it ended with. */
  result: string | null;
  /** Of its errors, in the database. */
  errorBytes: number;
}

/** Begins staging; throws `RATE_LIMITED` while the user has another large import, `UNAVAILABLE` at the cap of bytes. */
export async function beginImport(
  db: Database,
  principal: PrincipalKey,
  id: string,
  {
    bytes,
    stagedLimit,
    idempotencyKey,
  }: { bytes: number; stagedLimit: number; idempotencyKey?: string | undefined },
): Promise<void> {
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null }[]>`
      select outcome
      from begin_import(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, p_import_id => ${id},
        p_bytes => ${bytes}, p_staged_limit => ${stagedLimit},
        p_idempotency_key => ${idempotencyKey ?? null}
      )`,
  );
  requireSuccess(rows);
}

/** Stages the next bytes of a body; false where the import was cancelled meanwhile. */
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
      select user_id, id, ${position}, ${bytes} from receiving
      returning position`,
  );
  return rows.length > 0;
}

/** The upload goes on, though there was nothing to stage; false where the import was cancelled meanwhile. */
export async function touchImport(db: Database, { userId, id }: StagedImport): Promise<boolean> {
  const rows = await db.write(
    (sql) => sql`
      update imports set touched_at = now()
      where user_id = ${userId} and id = ${id} and state = 'receiving'
      returning id`,
  );
  return rows.length > 0;
}

/** What is known of an import once all of it has arrived. */
interface ReceivedWhole {
  idempotency?: Idempotency | undefined;
  traceParent?: string | undefined;
}

/**
 * The whole body is there: from now on a worker may run the import. Does nothing to one that is past that; throws
 * `INVALID_TOKEN` where the token was revoked while they arrived.
 */
export async function queueImport(
  db: Database,
  principal: PrincipalKey,
  id: string,
  { idempotency, traceParent }: ReceivedWhole,
): Promise<void> {
  const { userId } = principal;
  const rows = await db.write(
    (sql) => sql<{ valid: boolean }[]>`
      with queued as (
        update imports
        set state = 'queued',
          touched_at = now(),
          token_hash = ${principal.hash},
          bytes = (
            select coalesce(sum(octet_length(c.bytes)), 0)
            from import_chunks c
            where c.user_id = ${userId} and c.import_id = ${id}
          ),
          idempotency_key = ${idempotency?.key ?? null},
          request_hash = ${idempotency?.requestHash ?? null},
          trace_parent = ${traceParent ?? null}
        where user_id = ${userId} and id = ${id} and state = 'receiving' and ${tokenIsValid(sql, principal)}
        returning id
      )
      select ${tokenIsValid(sql, principal)} as valid`,
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
      select state, result, error_bytes as "errorBytes"
      from imports
      where user_id = ${userId} and id = ${id}`,
  );
  return row;
}

/** Chunks that are read together: one by one they take twice as long. */
const CHUNKS_TOGETHER = 16;

/** Some of the staged chunks, those after a position; none past the last. The first one is at any position. */
export async function readChunks(
  db: Database,
  { userId, id }: StagedImport,
  afterPosition: number,
): Promise<{ position: number; bytes: Buffer }[]> {
  const rows = await db.read(
    (sql) => sql<{ position: number; bytes: Buffer }[]>`
      select position, bytes
      from import_chunks
      where user_id = ${userId} and import_id = ${id} and position > ${afterPosition}
      order by position
      limit ${CHUNKS_TOGETHER}`,
  );
  return [...rows];
}

/** Some errors of an import that is done, those after a position: JSON with commas between. Undefined past the last. */
export async function readErrors(
  db: Database,
  { userId, id }: StagedImport,
  afterPosition: number,
): Promise<{ position: number; errors: string } | undefined> {
  const [row] = await db.read(
    (sql) => sql<{ position: number; errors: string }[]>`
      select position, errors
      from import_errors
      where user_id = ${userId} and import_id = ${id} and position > ${afterPosition}
      order by position
      limit 1`,
  );
  return row;
}

/** The response has been sent, or nobody is left who could read it. */
export async function deleteErrors(db: Database, { userId, id }: StagedImport): Promise<void> {
  await db.write(
    (sql) => sql`
      with sent as (
        update imports set error_bytes = 0
        where user_id = ${userId} and id = ${id} and state = 'done'
        returning id
      )
      delete from import_errors
      where user_id = ${userId} and import_id in (select id from sent)`,
  );
}

/**
 * Cancels an import that has not been done: it never runs from here on. Returns where it then stands, so a result that
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
        set state = 'cancelled', touched_at = excluded.touched_at, lease_id = null, lease_until = null
        where i.state in ('receiving', 'queued')
        returning id
      ), chunks as (
        delete from import_chunks where user_id = ${userId} and import_id in (select id from cancelled)
      ), pieces as (
        delete from import_pieces where user_id = ${userId} and import_id in (select id from cancelled)
      ), errors as (
        delete from import_errors where user_id = ${userId} and import_id in (select id from cancelled)
      )
      select 'cancelled' as state, null as result, 0 as "errorBytes" from cancelled`,
  );
  return row ?? readImport(db, { userId, id });
}
