import { renderedBookmark } from './bookmarks.ts';
import type { Database, Statement } from './database.ts';
import { requireLive } from './outcomes.ts';
import { type Owner, tokenIsLive } from './tokens.ts';

/** What an export covers: all bookmarks up to an id, of one generation: a `replace` begins another. */
export interface ExportBounds {
  lastId: number;
  generation: number;
  exportedAt: string;
}

/** Some bookmarks of an export, rising by id: JSON text without brackets, as bytes: from socket to socket they are never text. */
export interface ExportPage {
  bookmarks: Buffer;
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
    (sql) =>
      sql`
        with page as materialized (
          select id, url, title, comment, tags, created_at, updated_at
          from bookmarks
          where user_id = ${owner.userId} and id > ${afterId} and id <= ${lastId}
          order by id
          limit ${limit}
        )
        select ${tokenIsLive(sql, owner)} as live,
          (select generation from accounts where user_id = ${owner.userId}) as generation,
          count(*)::integer as count,
          max(id) as "lastId",
          coalesce(string_agg(${renderedBookmark(sql)}, ','), '') as bookmarks
        from page`.raw() as unknown as Statement<(Buffer | null)[][]>,
  );
  const [live, generation, count, last, bookmarks] = rows[0]!;
  requireLive([{ live: live!.toString('latin1') === 't' }]);
  return {
    bookmarks: bookmarks!,
    count: Number(count),
    lastId: last ? Number(last) : null,
    generation: Number(generation),
  };
}
