import { readPageBy } from './bookmarks.ts';
import type { Database, Sql } from './driver/database.ts';
import { onlyRow, requireValidToken } from './outcomes.ts';
import { hashesOf, type PrincipalKey, positionsExcept, tokenIsValid, usersOf } from './tokens.ts';

/** How far a reader of `/bookmarks/changes` has read. The cursor of the client holds this position. */
export interface ChangesPosition {
  /** The epoch of the database when the reader reached this position. A restore of the database begins a new epoch. */
  epoch: number;
  /** The account's generation at this position: the number of `replace` imports that were finished by then. */
  generation: number;
  /**
   * The highest revision that the reader has received. Each write gives new revisions to the objects that it changes.
   */
  change: number;
  /** The highest id of the bookmarks that the reader has received. */
  bookmarkId: number;
  /** The highest id of the tags that the reader has received. */
  tagId: number;
}

/**
 * Where a read begins: after a position, at the `beginning` (to read everything), or `now` (to read only later
 * changes).
 */
export type ChangesStart = ChangesPosition | 'beginning' | 'now';

/**
 * A page of changes, and the position of a reader that has received the page. `bookmarks`, `deleted`, `tags` and
 * `deletedTags` are lists: the JSON texts of their entries, separated by commas.
 */
export interface ChangesPage extends ChangesPosition {
  /** True if the page starts from the beginning, because the start is `beginning` or is no longer valid. */
  reset: boolean;
  bookmarks: string;
  deleted: string;
  tags: string;
  deletedTags: string;
  hasMore: boolean;
  /** True if `reset` is false and all four lists are empty. A poll may then wait. */
  isEmpty: boolean;
}

const BEGINNING: ChangesPosition = { epoch: 0, generation: 0, change: 0, bookmarkId: 0, tagId: 0 };

/**
 * Returns at most `limit` changed objects after `start`, all from one snapshot of the database. Throws `INVALID_TOKEN`.
 */
export async function readChanges(
  db: Database,
  principal: PrincipalKey,
  start: ChangesStart,
  limit: number,
  deadlineMs?: number,
): Promise<ChangesPage> {
  const rows = await readPageBy(
    db.at(principal.userId),
    limit,
    (sql) => sql<({ valid: boolean } & ChangesPage)[]>`
      select ${tokenIsValid(sql, principal)} as valid, ${columns(sql)}
      from ${pageFrom(sql, principal.userId, start, limit)}`,
    deadlineMs,
  );
  return requireValidToken(rows);
}

/**
 * Returns the indexes in `checks` of the principals whose account has changes after `start`, or whose token is no
 * longer valid.
 */
export async function findChanges(
  db: Database,
  checks: readonly { principal: PrincipalKey; start: ChangesStart }[],
  deadlineMs?: number,
): Promise<number[]> {
  const starts = checks.map(({ start }) => positionOf(start));
  const valuesOf = (field: keyof ChangesPosition) => starts.map((start) => start[field]);
  const rows = await db.read(
    (sql) => sql<{ unchanged: number[] }[]>`
      select find_unchanged(
        p_user_ids => ${usersOf(checks)}::bigint[], p_token_hashes => ${hashesOf(checks)}::text[],
        p_epochs => ${valuesOf('epoch')}::bigint[], p_generations => ${valuesOf('generation')}::bigint[],
        p_changes => ${valuesOf('change')}::bigint[], p_bookmark_ids => ${valuesOf('bookmarkId')}::bigint[],
        p_tag_ids => ${valuesOf('tagId')}::bigint[]
      ) as unchanged`,
    deadlineMs,
  );
  return positionsExcept(checks, onlyRow(rows).unchanged);
}

/**
 * Returns the position after which a read begins. This is `BEGINNING` both for `beginning` and for `now`. For `now`,
 * `pageFrom` also passes `p_from_now`.
 */
const positionOf = (start: ChangesStart): ChangesPosition => (typeof start === 'string' ? BEGINNING : start);

function pageFrom(sql: Sql, userId: number, start: ChangesStart, limit: number) {
  const { epoch, generation, change, bookmarkId, tagId } = positionOf(start);
  return sql`read_changes(
    p_user_id => ${userId}, p_epoch => ${epoch}, p_generation => ${generation}, p_change => ${change},
    p_bookmark_id => ${bookmarkId}, p_tag_id => ${tagId}, p_limit => ${limit},
    p_from_now => ${start === 'now'}
  ) page`;
}

const columns = (sql: Sql) => sql`
  page.reset, page.bookmarks, page.deleted, page.tags, page.deleted_tags as "deletedTags",
  page.epoch, page.generation, page.change, page.bookmark_id as "bookmarkId", page.tag_id as "tagId",
  page.has_more as "hasMore", page.is_empty as "isEmpty"`;
