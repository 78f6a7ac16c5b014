import { PAGE_BYTES } from './bookmarks.ts';
import type { Database } from './driver/database.ts';
import { onlyRow, requireValidToken } from './outcomes.ts';
import { type PrincipalKey, tokenIsValid } from './tokens.ts';

/**
 * What an export covers: all bookmarks up to an id, in one generation of the account. A `replace` import begins a new
 * generation.
 */
interface ExportBounds {
  lastId: number;
  generation: number;
  exportedAt: string;
}

/**
 * Some bookmarks of an export, by ascending id, as JSON text without brackets. The bytes from Postgres go to the client
 * without being decoded.
 */
interface ExportPage {
  bookmarks: Buffer;
  count: number;
  /** The highest id in the page; null in an empty page. */
  lastId: number | null;
  /** The account's generation when this page was read. */
  generation: number;
}

/** Determines what an export covers. Throws `INVALID_TOKEN`. */
export async function beginExport(db: Database, principal: PrincipalKey): Promise<ExportBounds> {
  const rows = await db.at(principal.userId).read(
    (sql) => sql<({ valid: boolean } & ExportBounds)[]>`
      select ${tokenIsValid(sql, principal)} as valid,
        (select coalesce(max(id), 0) from bookmarks where user_id = ${principal.userId}) as "lastId",
        (select generation from accounts where user_id = ${principal.userId}) as generation,
        render_time(now()) as "exportedAt"`,
  );
  return requireValidToken(rows);
}

/** Reads the next bookmarks of an export, at most `limit`. Throws `INVALID_TOKEN`. */
export async function readExportPage(
  db: Database,
  principal: PrincipalKey,
  afterId: number,
  { lastId }: ExportBounds,
  limit: number,
): Promise<ExportPage> {
  const rows = await db.at(principal.userId).read((sql) =>
    sql`
      select ${tokenIsValid(sql, principal)} as valid,
        (select generation from accounts where user_id = ${principal.userId}) as generation,
        count, last_id, bookmarks
      from read_page(
        p_user_id => ${principal.userId}, p_after => ${afterId}, p_last => ${lastId}, p_limit => ${limit},
        p_bytes => ${PAGE_BYTES}
      )`.raw(),
  );
  // `raw` returns the columns as bytes, in the order in which the statement selects them.
  const [valid, generation, count, last, bookmarks] = onlyRow(rows);
  requireValidToken([{ valid: valid?.toString('latin1') === 't' }]);
  return {
    bookmarks: bookmarks ?? Buffer.alloc(0),
    count: Number(count),
    lastId: last ? Number(last) : null,
    generation: Number(generation),
  };
}
