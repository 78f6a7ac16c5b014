import { randomUUID } from 'node:crypto';
import type { Idempotency } from '../domain/idempotency.ts';
import type { Database } from './driver/database.ts';
import { type Outcome, onlyRow, requireSuccess, requireValidToken } from './outcomes.ts';
import { type PrincipalKey, tokenIsValid } from './tokens.ts';

/**
 * The SQL statements for a large import, from the first bytes of its body to the end of the response. The body of a
 * large import is staged in Postgres.
 */

/** The key of an import in the table `imports`. */
export interface ImportKey {
  userId: number;
  id: string;
}

/** A process's claim of an import. Only the process that holds the lease may write the data of this import. */
export interface Lease extends ImportKey {
  /** A new id for each claim. */
  leaseId: string;
}

/** Returns the key of a new import. Nothing is stored yet. */
export const newImport = (userId: number): ImportKey => ({ userId, id: randomUUID() });

/**
 * Returns the name of a staged import in the queue. The name contains the user's id, because every statement for the
 * import needs that id.
 */
export const jobIdOf = ({ userId, id }: ImportKey): string => `${userId}-${id}`;

/** A name that `jobIdOf` returns. */
const JOB_ID = /^(?<userId>\d{1,16})-(?<id>[0-9a-f-]{36})$/;

/** Returns the staged import with this name in the queue. Returns undefined if `jobIdOf` cannot return the name. */
export function parseJobId(jobId: string): ImportKey | undefined {
  const { userId, id } = JOB_ID.exec(jobId)?.groups ?? {};
  return userId === undefined || id === undefined ? undefined : { userId: Number(userId), id };
}

/** The state of an import. */
export interface ImportState {
  state: 'receiving' | 'queued' | 'done' | 'cancelled';
  /**
   * Null until the import is done. Then either the result as JSON text, without its list of errors, or the error with
   * which the import ended.
   */
  result: string | null;
  /** The import whose row has the errors of the result: this one, or an earlier one with the same idempotency key. */
  errorsId: string;
  /** The size of the stored errors in bytes. */
  errorBytes: number;
}

/**
 * Begins to stage an import. Throws `UNAVAILABLE` if the staged bytes would exceed `stagedLimit`. Throws `RATE_LIMITED`
 * if another large import of the user is in progress, or if too many errors of earlier imports have not been sent yet.
 */
export async function beginImport(
  db: Database,
  principal: PrincipalKey,
  id: string,
  bytes: number,
  stagedLimit: number,
): Promise<void> {
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null }[]>`
      select outcome
      from begin_import(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, p_import_id => ${id},
        p_bytes => ${bytes}, p_staged_limit => ${stagedLimit}
      )`,
  );
  requireSuccess(rows);
}

/** Stages the next bytes of a body. Returns false if the import was cancelled meanwhile. */
export async function stageChunk(
  db: Database,
  { userId, id }: ImportKey,
  position: number,
  bytes: Buffer,
): Promise<boolean> {
  const rows = await db.write(
    (sql) => sql`
      with receiving as (
        update imports set expires_at = now() + interval '1 minute'
        where user_id = ${userId} and id = ${id} and state = 'receiving'
        returning user_id, id
      )
      insert into import_chunks (user_id, import_id, position, bytes)
      select user_id, id, ${position}, ${bytes} from receiving
      returning position`,
  );
  return rows.length > 0;
}

/** What is stored with an import when its body is complete. */
interface ReceivedWhole {
  idempotency?: Idempotency | undefined;
  traceParent?: string | undefined;
}

/**
 * Queues an import whose body is complete. From then on, a worker may run the import. Does nothing if the state is no
 * longer `receiving`. Throws `INVALID_TOKEN` if the token was revoked meanwhile.
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
          expires_at = now() + interval '1 day',
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

/** Reads the state of an import. Returns undefined if there is no such import. */
export async function readImport(db: Database, { userId, id }: ImportKey): Promise<ImportState | undefined> {
  const [row] = await db.read(
    (sql) => sql<ImportState[]>`
      select i.state, i.result, coalesce(i.repeats, i.id) as "errorsId",
        coalesce(octet_length(kept.errors), 0) as "errorBytes"
      from imports i
      left join imports kept on kept.user_id = ${userId} and kept.id = coalesce(i.repeats, i.id)
      where i.user_id = ${userId} and i.id = ${id}`,
  );
  return row;
}

/** How many chunks one statement reads. Reading the chunks one by one takes twice as long. */
const CHUNKS_TOGETHER = 16;

/** Reads some of the staged chunks after a position. The result is empty after the last chunk. */
export async function readChunks(
  db: Database,
  { userId, id }: ImportKey,
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

/** How many bytes of the errors one statement reads. */
const ERRORS_TOGETHER = 65_536;

/** Reads the next bytes of an import's errors, from an offset. Returns undefined if the errors were deleted. */
export async function readErrors(
  db: Database,
  { userId, id }: ImportKey,
  offset: number,
): Promise<Buffer | undefined> {
  const [row] = await db.read(
    (sql) => sql<{ errors: Buffer | null }[]>`
      select substring(errors from ${offset}::integer + 1 for ${ERRORS_TOGETHER}) as errors
      from imports
      where user_id = ${userId} and id = ${id}`,
  );
  return row?.errors ?? undefined;
}

/** Deletes the errors of an import that have been sent, unless they are kept for an idempotency key. */
export async function deleteErrors(db: Database, { userId, id }: ImportKey): Promise<void> {
  await db.write(
    (sql) => sql`
      update imports set errors = null
      where user_id = ${userId} and id = ${id} and idempotency_key is null`,
  );
}

/**
 * Cancels an import that is not done, so that the import never happens. If a transaction is writing the import, waits
 * until that transaction ends. A transaction that begins later finds the import cancelled. Returns the state, with the
 * result if the import was done. Returns undefined if the account was deleted, or if the import has not begun.
 */
export async function cancelImport(db: Database, key: ImportKey): Promise<ImportState | undefined> {
  const rows = await db.write(
    (sql) => sql<{ isCancelled: boolean }[]>`
      select end_import(p_user_id => ${key.userId}, p_import_id => ${key.id}, p_state => 'cancelled')
        as "isCancelled"`,
  );
  if (onlyRow(rows).isCancelled) return { state: 'cancelled', result: null, errorsId: key.id, errorBytes: 0 };
  return readImport(db, key);
}
