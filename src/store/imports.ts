import { BOUNDS } from '../domain/fields.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import type { Database } from './database.ts';
import { joinColumns, plainArray } from './joined-texts.ts';
import { type Outcome, requireSuccess, requireValidToken } from './outcomes.ts';
import { type Owner, tokenIsValid } from './tokens.ts';

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
  return requireSuccess(await writeImport(db, { userId, hash, id }, work, freeBookmarkLimit)).result;
}

/**
 * Writes a staged import and its answer in one transaction; throws `LIMIT_EXCEEDED` at a cap. False where it was not
 * queued any more: done by another worker, cancelled, or its user is gone.
 */
export async function finishImport(
  db: Database,
  { userId, id }: StagedImport,
  work: ImportWork,
  freeBookmarkLimit: number,
): Promise<boolean> {
  const rows = await writeImport(db, { userId, hash: null, id }, work, freeBookmarkLimit);
  if (rows[0]?.outcome === 'import_over' || rows[0]?.outcome === 'token') return false;
  requireSuccess(rows);
  return true;
}

/** Below this a look ahead costs more than it spares. */
const LOOK_AHEAD_ENTRIES = 200;

async function writeImport(
  db: Database,
  of: { userId: number; hash: Buffer | null; id: string },
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
        ${of.userId}, ${of.hash}, ${of.id}, ${replace},
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
  // Not as an anti join: for a user whom the statistics do not know yet it was planned as a loop over all pairs.
  const [row] = await db.read(
    (sql) => sql<{ known: number }[]>`
      select count(distinct url_key) as known
      from bookmarks
      where user_id = ${userId} and url_key = any (${plainArray(columns.urlKeys)}::uuid[])`,
  );
  return row?.known === columns.urlKeys.length
    ? { ...work, columns: NO_COLUMNS, skipped: skipped + columns.urlKeys.length }
    : work;
}

/** Writes the answer of a staged import that changes nothing: an error's JSON text. False where it was over. */
export async function refuseImport(
  db: Database,
  { userId, id }: StagedImport,
  result: string,
): Promise<boolean> {
  const rows = await db.write(
    (sql) => sql`
      with refused as (
        update imports set state = 'done', result = ${result}, touched_at = now()
        where user_id = ${userId} and id = ${id} and state = 'queued'
        returning id
      )
      delete from import_chunks
      where user_id = ${userId} and import_id in (select id from refused)
      returning position`,
  );
  return rows.length > 0;
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
        on conflict (user_id, id) do update set state = 'cancelled', touched_at = now()
        where i.state in ('receiving', 'queued')
        returning id
      ), dropped as (
        delete from import_chunks where user_id = ${userId} and import_id in (select id from cancelled)
      )
      select 'cancelled' as state, null as result, null as "traceParent" from cancelled`,
  );
  return row ?? readImport(db, { userId, id });
}
