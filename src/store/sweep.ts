import { buildBloomFilter, MOST_FILTERED_BYTES } from '../domain/bloom-filters.ts';
import type { Database } from './database.ts';

/**
 * Leftovers, over all users: the operator's tables and what has run out. Each statement takes a bounded bite. What lies on a
 * node that cannot be reached is left out, and swept when it is back.
 */

const BATCH = 1_000;

/** Deletes tokens that have run out; says how many. It waits for nobody: a row that somebody has locked stays for the next sweep. */
export async function deleteExpiredTokens(db: Database): Promise<number> {
  const [row] = await db.write((sql) => sql<{ deleted: number }[]>`select sweep_tokens(${BATCH}) as deleted`);
  return row!.deleted;
}

/** The same of invites. */
export async function deleteExpiredInvites(db: Database): Promise<number> {
  const [row] = await db.write(
    (sql) => sql<{ deleted: number }[]>`select sweep_invites(${BATCH}) as deleted`,
  );
  return row!.deleted;
}

/** Forgets responses of one user that were kept for their idempotency keys for 24 hours; says how many. */
export async function deleteOldResponses(db: Database): Promise<number> {
  const [row] = await db.write(
    (sql) => sql<{ deleted: number }[]>`select sweep_responses(${BATCH}) as deleted`,
  );
  return row!.deleted;
}

/** Forgets the changes of one user that are older than so many days; says how many. */
export async function deleteOldChanges(db: Database, days: number): Promise<number> {
  const [row] = await db.write((sql) => sql<{ deleted: number }[]>`select sweep_changes(${days}) as deleted`);
  return row!.deleted;
}

/** Deletes what one user deleted more than so many days ago; says how many bookmarks. */
export async function deleteOldTrash(db: Database, days: number): Promise<number> {
  const [row] = await db.write((sql) => sql<{ deleted: number }[]>`select sweep_trash(${days}) as deleted`);
  return row!.deleted;
}

/**
 * Deletes imports that are over for an hour, uploads that nobody has fed for a minute, and queued ones that nobody
 * could run for a day; says how many.
 */
export async function deleteOldImports(db: Database): Promise<number> {
  const [row] = await db.write(
    (sql) => sql<{ deleted: number }[]>`select sweep_imports(${BATCH}) as deleted`,
  );
  return row!.deleted;
}

/** Runs on each shard. */
const QUEUED_IMPORTS = `
  select user_id, id, extract(epoch from now() - touched_at) * 1000 as waits_ms
  from %s
  where state = 'queued' and (lease_until is null or lease_until < now())
  order by touched_at
  limit ${BATCH}`;

/**
 * Imports that no worker has, and that have been queued for longer than `olderThanMs`, oldest first: their job may have
 * been lost, or the worker that had it.
 */
export async function findQueuedImports(
  db: Database,
  olderThanMs: number,
): Promise<{ userId: number; id: string }[]> {
  const rows = await db.read(
    (sql) => sql<{ userId: number; id: string }[]>`
      select (queued ->> 'user_id')::bigint as "userId", queued ->> 'id' as id
      from rows_of_shards('imports', ${QUEUED_IMPORTS}) queued
      where (queued ->> 'waits_ms')::float8 > ${olderThanMs}
      order by (queued ->> 'waits_ms')::float8 desc`,
  );
  return [...rows];
}

const STAGED_IMPORTS = `
  select count(*) filter (where state = 'receiving') as receiving, count(*) filter (where state = 'queued') as queued
  from %s
  where state in ('receiving', 'queued')`;

/** How many staged imports are being received, and how many are queued, of all users. */
export async function countStagedImports(db: Database): Promise<Map<'receiving' | 'queued', number>> {
  const [row] = await db.read(
    (sql) => sql<{ receiving: number; queued: number }[]>`
      select
        coalesce(sum((staged ->> 'receiving')::integer), 0)::integer as receiving,
        coalesce(sum((staged ->> 'queued')::integer), 0)::integer as queued
      from rows_of_shards('imports', ${STAGED_IMPORTS}) staged`,
  );
  return new Map([
    ['receiving', row!.receiving],
    ['queued', row!.queued],
  ]);
}

/** From user to user by the index: one with many such blocks hides nobody. */
const pendingAfter = (after: number, limit: number): string => `
  with recursive pending as (
    (select user_id from %1$s where bits is null and user_id > ${after} order by user_id limit 1)
    union all
    select (
      select user_id from %1$s where bits is null and user_id > pending.user_id order by user_id limit 1
    )
    from pending
    where user_id is not null
  )
  select user_id from pending where user_id is not null limit ${limit}`;

/**
 * At most `limit` users with ids above `after`, by rising id, with blocks of search texts that have no filter yet.
 */
export async function findPendingFilters(db: Database, after: number, limit: number): Promise<number[]> {
  const rows = await db.read(
    (sql) => sql<{ userId: number }[]>`
      select (found ->> 'user_id')::bigint as "userId"
      from rows_of_shards('search_signatures', ${pendingAfter(after, limit)}) found
      order by 1
      limit ${limit}`,
  );
  return rows.map(({ userId }) => userId);
}

/** Signed at once: some 2 ms of the process. */
const FILTERS_AT_ONCE = 8;

/** Builds the filters of the next blocks of a user's search texts, the newest first; false once there are none left that nobody writes. */
export async function signBlocks(db: Database, userId: number): Promise<boolean> {
  const blocks = await db.read(
    (sql) => sql<{ lastId: number; edits: number; texts: string | null }[]>`
      select last_id as "lastId", edits, texts from read_pending_filters(${userId}, ${FILTERS_AT_ONCE}, ${MOST_FILTERED_BYTES})`,
  );
  if (blocks.length === 0) return false;
  const [row] = await db.write(
    (sql) => sql<{ built: number }[]>`
      select write_filters(
        ${userId}, ${blocks.map(({ lastId }) => lastId)}::bigint[], ${blocks.map(({ edits }) => edits)}::integer[],
        ${blocks.map(({ texts }) => buildBloomFilter(texts).toString('base64'))}
      ) as built`,
  );
  return blocks.length === FILTERS_AT_ONCE && row!.built > 0;
}
