import type { Database } from './database.ts';

/** Leftovers, over all users: the operator's tables and what has run out. Each statement takes a bounded bite. */

const BATCH = 1_000;

/**
 * Deletes tokens and invites that have run out; says how many. It waits for nobody: a row that somebody has locked stays
 * for the next sweep.
 */
export async function deleteExpired(db: Database): Promise<number> {
  const [row] = await db.write(
    (sql) => sql<{ deleted: number }[]>`
      select (sweep_tokens(${BATCH}) + sweep_invites(${BATCH}))::integer as deleted`,
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

/**
 * Deletes imports that are over for an hour, uploads that nobody has fed for a minute, and queued ones that nobody
 * could run for a day; says how many.
 */
export async function deleteOldImports(db: Database): Promise<number> {
  const rows = await db.write(
    (sql) => sql`
      delete from imports
      where (user_id, id) in (
        select user_id, id
        from imports
        where touched_at < now() - interval '1 minute'
          and touched_at < now() - case
            when state = 'receiving' then interval '1 minute'
            when state = 'queued' then interval '1 day'
            else interval '1 hour'
          end
        limit ${BATCH}
      )
      returning id`,
  );
  return rows.length;
}

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
      select user_id as "userId", id
      from imports
      where state = 'queued'
        and touched_at < now() - ${olderThanMs} * interval '1 millisecond'
        and (lease_until is null or lease_until < now())
      order by touched_at
      limit ${BATCH}`,
  );
  return [...rows];
}

/** How many staged imports are being received, and how many are queued, of all users. */
export async function countStagedImports(db: Database): Promise<Map<'receiving' | 'queued', number>> {
  const [row] = await db.read(
    (sql) => sql<{ receiving: number; queued: number }[]>`
      select
        (count(*) filter (where state = 'receiving'))::integer as receiving,
        (count(*) filter (where state = 'queued'))::integer as queued
      from imports
      where state in ('receiving', 'queued')`,
  );
  return new Map([
    ['receiving', row!.receiving],
    ['queued', row!.queued],
  ]);
}

/** Users with tags that were renamed or deleted on many bookmarks, which still have to be rewritten; some of them. */
export async function findStaleTags(db: Database): Promise<number[]> {
  const rows = await db.read(
    (sql) => sql<{ userId: number }[]>`
      select user_id as "userId" from accounts where stale_tags is not null order by user_id limit ${BATCH}`,
  );
  return rows.map(({ userId }) => userId);
}

/** How many users such tags are left of. */
export async function countStaleTags(db: Database): Promise<number> {
  const [row] = await db.read(
    (sql) => sql<{ users: number }[]>`
      select count(*)::integer as users from accounts where stale_tags is not null`,
  );
  return row!.users;
}

/** What one batch reads, and what it writes: some 40 ms under the account's lock. */
const WALKED = 5_000;
const REWRITTEN = 500;

/** Rewrites the tags of the next bookmarks of a user that carry stale ones; false once there are none left. */
export async function refreshTags(db: Database, userId: number): Promise<boolean> {
  const [row] = await db.write(
    (sql) => sql<{ more: boolean }[]>`select refresh_tags(${userId}, ${WALKED}, ${REWRITTEN}) as more`,
  );
  return row!.more;
}
