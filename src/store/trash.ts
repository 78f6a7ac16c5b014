import { BOUNDS } from '../domain/fields.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import { foldText } from '../domain/text.ts';
import { PAGE_BYTES } from './bookmarks.ts';
import type { Database } from './driver/database.ts';
import { keyArguments, onlyRow, requireSuccess, requireValidToken, type Written } from './outcomes.ts';
import { type PrincipalKey, tokenIsValid } from './tokens.ts';

/**
 * Returns how many bookmarks the trash of a free account holds: as many as the account. Null means that the trash is
 * off, so that every deletion is permanent.
 */
export const trashLimitOf = ({
  trashDays,
  freeBookmarkLimit,
}: {
  trashDays: number;
  freeBookmarkLimit: number;
}): number | null => (trashDays === 0 ? null : freeBookmarkLimit);

/** A position in the trash, which is read newest first. */
export interface TrashPosition {
  /** The time of the deletion in milliseconds since 1970. */
  deletedAtMs: number;
  id: number;
}

/** A page of the trash. `bookmarks` is the JSON text of an array of bookmarks, each with `deleted_at`. */
interface TrashPage {
  bookmarks: string;
  /** The position of the last bookmark of the page; undefined if no more bookmarks follow. */
  next: TrashPosition | undefined;
}

/**
 * Returns the bookmarks that were deleted before a position, newest first. Throws `INVALID_TOKEN` if the token is not
 * valid.
 */
export async function readTrash(
  db: Database,
  principal: PrincipalKey,
  before: TrashPosition | undefined,
  limit: number,
): Promise<TrashPage> {
  const rows = await db.at(principal.userId).read(
    (sql) => sql<
      {
        valid: boolean;
        bookmarks: string;
        nextMs: number | null;
        nextId: number | null;
      }[]
    >`
      select ${tokenIsValid(sql, principal)} as valid, '[' || page.bookmarks || ']' as bookmarks,
        case when has_more then round(extract(epoch from last_deleted_at) * 1000)::float8 end as "nextMs",
        case when has_more then last_id end as "nextId"
      from read_trash(
        p_user_id => ${principal.userId},
        p_before => ${before === undefined ? 'infinity' : new Date(before.deletedAtMs).toISOString()}::text::timestamptz,
        p_before_id => ${before?.id ?? 0}, p_limit => ${limit}, p_bytes => ${PAGE_BYTES}
      ) page`,
  );
  const { bookmarks, nextMs, nextId } = requireValidToken(rows);
  const next = nextMs === null || nextId === null ? undefined : { deletedAtMs: nextMs, id: nextId };
  return { bookmarks, next };
}

/**
 * How many times a restore is tried. If the trash changes after the names of the tags were read, the database refuses
 * the restore, and the next attempt reads the names again.
 */
const ATTEMPTS = 5;

/**
 * Restores bookmarks under new ids. Returns the response as JSON text. If a cap would be exceeded, restores nothing and
 * throws `LIMIT_EXCEEDED`. Throws `UNAVAILABLE` if the trash changed during each of the attempts.
 */
export async function restoreBookmarks(
  db: Database,
  principal: PrincipalKey,
  ids: readonly number[],
  freeBookmarkLimit: number,
  idempotency?: Idempotency,
): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const names = await readTagNames(db, principal, ids);
    const rows = await db.at(principal.userId).write(
      (sql) => sql<Written[]>`
        select outcome, response
        from restore_bookmarks(
          p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, p_ids => ${ids}::bigint[],
          p_tag_names => ${names}::text[], p_tag_keys => ${names.map(foldText)}::text[],
          p_free_limit => ${freeBookmarkLimit}, p_tag_limit => ${BOUNDS.tagsPerUser},
          ${keyArguments(sql, idempotency)}
        )`,
    );
    if (onlyRow(rows).outcome === 'trash_changed' && attempt < ATTEMPTS) continue;
    return requireSuccess(rows).response;
  }
}

async function readTagNames(
  db: Database,
  { userId }: PrincipalKey,
  ids: readonly number[],
): Promise<string[]> {
  const rows = await db
    .at(userId)
    .read(
      (sql) => sql<{ names: string[] }[]>`select tag_names_in_trash(${userId}, ${ids}::bigint[]) as names`,
    );
  return onlyRow(rows).names;
}

/**
 * Deletes the bookmarks with these ids from the trash for good, or all bookmarks in the trash if `ids` is undefined.
 * Returns the response as JSON text.
 */
export async function deleteFromTrash(
  db: Database,
  principal: PrincipalKey,
  ids: readonly number[] | undefined,
  idempotency?: Idempotency,
): Promise<string> {
  const rows = await db.at(principal.userId).write(
    (sql) => sql<Written[]>`
      select outcome, response
      from delete_from_trash(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, p_ids => ${ids ?? null}::bigint[],
        ${keyArguments(sql, idempotency)}
      )`,
  );
  return requireSuccess(rows).response;
}
