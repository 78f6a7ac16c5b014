import { renderedBookmark } from './bookmarks.ts';
import type { Database } from './database.ts';
import { requireLive } from './outcomes.ts';
import { type Owner, tokenIsLive } from './tokens.ts';

/** What an export covers: all bookmarks up to an id, of one generation: a `replace` begins another. */
export interface ExportBounds {
  lastId: number;
  generation: number;
  exportedAt: string;
}

/** Some bookmarks of an export, rising by id: JSON text without brackets. */
export interface ExportPage {
  bookmarks: string;
  count: number;
  lastId: number | null;
  /** As of the same snapshot. */
  generation: number;
}

/** Fixes what an export covers. */
export async function beginExport(db: Database, owner: Owner): Promise<ExportBounds> {
  const rows = await db.read(
    (sql) => sql<({ live: boolean } & ExportBounds)[]>`
      select ${tokenIsLive(sql, owner)} as live,
        (select coalesce(max(id), 0) from bookmarks where user_id = ${owner.userId}) as "lastId",
        (select generation from accounts where user_id = ${owner.userId}) as generation,
        render_time(now()) as "exportedAt"`,
  );
  return requireLive(rows);
}

/** The next bookmarks of an export, at most `limit`. */
export async function readExportPage(
  db: Database,
  owner: Owner,
  afterId: number,
  { lastId }: ExportBounds,
  limit: number,
): Promise<ExportPage> {
  const rows = await db.read(
    (sql) => sql<({ live: boolean } & ExportPage)[]>`
      with page as materialized (
        select id, url, title, comment, tags, created_at, updated_at
        from bookmarks
        where user_id = ${owner.userId} and id > ${afterId} and id <= ${lastId}
        order by id
        limit ${limit}
      )
      select ${tokenIsLive(sql, owner)} as live,
        (select generation from accounts where user_id = ${owner.userId}) as generation,
        coalesce(string_agg(
          ${renderedBookmark(sql)}, ','
        ), '') as bookmarks,
        count(*)::integer as count,
        max(id) as "lastId"
      from page`,
  );
  return requireLive(rows);
}
