import { buildBloomFilter, MOST_FILTERED_BYTES } from '../domain/bloom-filters.ts';
import type { Database, Sql } from './driver/database.ts';
import { onlyRow } from './outcomes.ts';

/**
 * Deletes expired rows of all users, and finds unfinished work. Each statement handles a limited number of rows, or the
 * rows of one user. Rows on a node that cannot be reached are handled when the node is back.
 */

/** The most rows that one statement handles in each shard. For old responses: the most rows of one user. */
const BATCH = 1_000;

/** Runs a function that deletes rows. Returns how many rows it deleted. */
async function sweep(db: Database, call: (sql: Sql) => ReturnType<Sql>): Promise<number> {
  const rows = await db.write((sql) => sql<{ deleted: number }[]>`select ${call(sql)} as deleted`);
  return onlyRow(rows).deleted;
}

/** Deletes expired tokens. Returns their number. Does not wait for locks: a locked row stays for the next sweep. */
export const deleteExpiredTokens = (db: Database): Promise<number> =>
  sweep(db, (sql) => sql`sweep_tokens(${BATCH})`);

/** Deletes expired invites. Returns their number. */
export const deleteExpiredInvites = (db: Database): Promise<number> =>
  sweep(db, (sql) => sql`sweep_invites(${BATCH})`);

/**
 * Deletes responses that were kept under one user's idempotency keys for more than 24 hours. Returns the number of
 * deleted responses.
 */
export const deleteOldResponses = (db: Database): Promise<number> =>
  sweep(db, (sql) => sql`sweep_responses(${BATCH})`);

/** Deletes one user's changes that are older than this many days. Returns their number. */
export const deleteOldChanges = (db: Database, days: number): Promise<number> =>
  sweep(db, (sql) => sql`sweep_changes(${days})`);

/** Deletes one user's bookmarks that have been in the trash for more than this many days. Returns their number. */
export const deleteOldTrash = (db: Database, days: number): Promise<number> =>
  sweep(db, (sql) => sql`sweep_trash(${days})`);

/**
 * Deletes imports that ended more than an hour ago, or 25 hours if they have an idempotency key. Also deletes uploads
 * that received nothing for more than a minute, and imports that waited in the queue for more than a day. Returns their
 * number.
 */
export const deleteOldImports = (db: Database): Promise<number> =>
  sweep(db, (sql) => sql`sweep_imports(${BATCH})`);

/** The query that runs on each shard. It selects the queued imports that no worker runs. */
const QUEUED_IMPORTS = `
  select user_id, id, extract(epoch from now() - touched_at) * 1000 as waits_ms
  from %s
  where is_staged and state = 'queued' and (lease_until is null or lease_until < now())
  order by touched_at
  limit ${BATCH}`;

/**
 * Returns the imports that no worker runs and that have been queued for longer than `olderThanMs`, oldest first. Either
 * the job of such an import was lost, or the worker that ran it died.
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

/** The query that runs on each shard. It counts the imports in progress by their state. */
const STAGED_IMPORTS = `
  select count(*) filter (where state = 'receiving') as receiving, count(*) filter (where state = 'queued') as queued
  from %s
  where is_staged and state in ('receiving', 'queued')`;

/** Returns how many staged imports of all users are being received, and how many are queued. */
export async function countStagedImports(db: Database): Promise<Map<'receiving' | 'queued', number>> {
  const rows = await db.read(
    (sql) => sql<{ receiving: number; queued: number }[]>`
      select
        coalesce(sum((staged ->> 'receiving')::integer), 0)::integer as receiving,
        coalesce(sum((staged ->> 'queued')::integer), 0)::integer as queued
      from rows_of_shards('imports', ${STAGED_IMPORTS}) staged`,
  );
  const { receiving, queued } = onlyRow(rows);
  return new Map([
    ['receiving', receiving],
    ['queued', queued],
  ]);
}

/**
 * Builds a query for the users who have blocks without a Bloom filter. The query looks up one user after the other in
 * the index. So a user with many such blocks does not slow the query down.
 */
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
 * Finds users who have blocks of search texts that lack a Bloom filter. Returns the ids of the first `limit` such users
 * whose ids are above `after`, in ascending order.
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

/** How many filters one call builds. Building this many filters keeps the event loop busy for about 2 ms. */
const FILTERS_AT_ONCE = 8;

/**
 * Builds Bloom filters for blocks of the user's search texts. Takes the newest `FILTERS_AT_ONCE` blocks that have no
 * filter. Returns true if the caller should call again. Returns false if there were fewer than `FILTERS_AT_ONCE` such
 * blocks, or if no filter could be written because the blocks were locked or had just been edited.
 */
export async function buildNextFilters(db: Database, userId: number): Promise<boolean> {
  const blocks = await db.read(
    (sql) => sql<{ lastId: number; edits: number; texts: string | null }[]>`
      select last_id as "lastId", edits, texts from read_pending_filters(${userId}, ${FILTERS_AT_ONCE}, ${MOST_FILTERED_BYTES})`,
  );
  if (blocks.length === 0) return false;
  const rows = await db.write(
    (sql) => sql<{ built: number }[]>`
      select write_filters(
        ${userId}, ${blocks.map(({ lastId }) => lastId)}::bigint[], ${blocks.map(({ edits }) => edits)}::integer[],
        ${blocks.map(({ texts }) => buildBloomFilter(texts).toString('base64'))}
      ) as built`,
  );
  return blocks.length === FILTERS_AT_ONCE && onlyRow(rows).built > 0;
}
