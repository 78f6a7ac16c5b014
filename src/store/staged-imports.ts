import { randomUUID } from 'node:crypto';
import type { Idempotency } from '../domain/idempotency.ts';
import type { Database } from './driver/database.ts';
import { type Outcome, onlyRow, requireSuccess, requireValidToken } from './outcomes.ts';
import { type PrincipalKey, tokenIsValid } from './tokens.ts';

/**
 * The SQL statements for a large import, from the first bytes of its body to the end of the response. The body of a
 * large import is staged in Postgres.
 */

/** The key of a staged import in the table `imports`. */
export interface StagedImport {
  userId: number;
  id: string;
}

/** Returns the key of a new import. Nothing is stored yet. */
export const newImport = (userId: number): StagedImport => ({ userId, id: randomUUID() });

/**
 * Returns the name of a staged import in the queue. The name contains the user's id, because every statement for the
 * import needs that id.
 */
export const jobIdOf = ({ userId, id }: StagedImport): string => `${userId}-${id}`;

/** A name that `jobIdOf` returns. */
const JOB_ID = /^(?<userId>\d{1,16})-(?<id>[0-9a-f-]{36})$/;

/** Returns the staged import with this name in the queue. Returns undefined if `jobIdOf` cannot return the name. */
export function parseJobId(jobId: string): StagedImport | undefined {
  const { userId, id } = JOB_ID.exec(jobId)?.groups ?? {};
  return userId === undefined || id === undefined ? undefined : { userId: Number(userId), id };
}

/** The state of a staged import. */
export interface ImportState {
  state: 'receiving' | 'queued' | 'done' | 'cancelled';
  /**
   * Null until the import is done. Then either the result as JSON text, without its list of errors, or the error with
   * which the import ended.
   */
  result: string | null;
  /** The size in bytes of the import's errors in `import_errors`. */
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

/** Reads the state of a staged import. Returns undefined if there is no such import. */
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

/** How many chunks one statement reads. Reading the chunks one by one takes twice as long. */
const CHUNKS_TOGETHER = 16;

/** Reads some of the staged chunks after a position. The result is empty after the last chunk. */
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

/** Reads the next errors after a position. The import must be done. Returns undefined after the last errors. */
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

/** Deletes the errors of an import that is done, when they have been sent or nobody will read them. */
export async function deleteErrors(db: Database, { userId, id }: StagedImport): Promise<void> {
  await db.write(
    (sql) => sql`
      with done as (
        update imports set error_bytes = 0
        where user_id = ${userId} and id = ${id} and state = 'done'
        returning id
      )
      delete from import_errors
      where user_id = ${userId} and import_id in (select id from done)`,
  );
}

/**
 * Cancels an import that is not done, so that the import never happens. If a transaction is writing the import, waits
 * until that transaction ends. A transaction that begins later finds the import cancelled. Returns the state, with the
 * result if the import was done. Returns undefined if the account was deleted.
 */
export async function cancelImport(db: Database, staged: StagedImport): Promise<ImportState | undefined> {
  const rows = await db.write(
    (sql) => sql<{ isCancelled: boolean }[]>`
      select end_import(p_user_id => ${staged.userId}, p_import_id => ${staged.id}, p_state => 'cancelled')
        as "isCancelled"`,
  );
  if (onlyRow(rows).isCancelled) return { state: 'cancelled', result: null, errorBytes: 0 };
  return readImport(db, staged);
}
