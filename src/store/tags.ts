import { BOUNDS, type TagName } from '../domain/fields.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import type { Database } from './database.ts';
import { DatabaseUnavailable } from './errors.ts';
import { keyArguments, type Outcome, requireSuccess, requireValidToken, type Written } from './outcomes.ts';
import { type Owner, tokenIsValid } from './tokens.ts';

/** All tags of a user in the order of their folded names, as JSON text: an array of spec 2.3's tags. */
export async function listTags(db: Database, owner: Owner): Promise<string> {
  const rows = await db.read(
    (sql) => sql<{ valid: boolean; tags: string }[]>`
      select ${tokenIsValid(sql, owner)} as valid,
        coalesce((
          select '[' || string_agg(
            '{"id":' || id || ',"name":' || to_json(name) || ',"bookmark_count":' || bookmark_count || '}',
            ',' order by name_key
          ) || ']'
          from tags
          where user_id = ${owner.userId}
        ), '[]') as tags`,
  );
  return requireValidToken(rows).tags;
}

/**
 * Creates a tag; returns spec 4.3's fields as JSON text. Throws `VALIDATION_ERROR` where the name is taken,
 * `LIMIT_EXCEEDED` at the tag limit.
 */
export async function createTag(
  db: Database,
  owner: Owner,
  { name, key }: TagName,
  idempotency?: Idempotency,
): Promise<string> {
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null; tag: string }[]>`
      select outcome, tag
      from create_tag(
        p_user_id => ${owner.userId}, p_token_hash => ${owner.hash}, p_name => ${name}, p_key => ${key},
        p_tag_limit => ${BOUNDS.tagsPerUser}, ${keyArguments(sql, idempotency)}
      )`,
  );
  return requireSuccess(rows).tag;
}

/**
 * Renames a tag on all its bookmarks; returns the response as JSON text. Throws `NOT_FOUND`, or `VALIDATION_ERROR` where
 * the name is taken.
 */
export async function renameTag(
  db: Database,
  owner: Owner,
  id: number,
  { name, key }: TagName,
  idempotency?: Idempotency,
): Promise<string> {
  const rows = await db.write(
    (sql) => sql<Written[]>`
      select outcome, response
      from rename_tag(
        p_user_id => ${owner.userId}, p_token_hash => ${owner.hash}, p_id => ${id}, p_name => ${name},
        p_name_key => ${key}, ${keyArguments(sql, idempotency)}
      )`,
  );
  return requireSuccess(rows).response;
}

/** Deletes a tag and takes it off all bookmarks; returns the response as JSON text. Throws `NOT_FOUND`. */
export async function deleteTag(
  db: Database,
  owner: Owner,
  id: number,
  idempotency?: Idempotency,
): Promise<string> {
  const rows = await db.write(
    (sql) => sql<Written[]>`
      select outcome, response
      from delete_tag(
        p_user_id => ${owner.userId}, p_token_hash => ${owner.hash}, p_id => ${id}, ${keyArguments(sql, idempotency)}
      )`,
  );
  return requireSuccess(rows).response;
}

/** Of so many bookmarks a merge holds the account's lock for about 0.2 s; other writers of the user come in between. */
const MERGED_AT_ONCE = 2_000;

/** How often a merge that others work against, by putting the tag on bookmarks again, goes on beyond what it first found. */
const SPARE_STEPS = 50;

/**
 * Puts a tag in the place of another one on all bookmarks, and deletes that; returns the tag that stays, as JSON text with
 * the number of its bookmarks. Throws `NOT_FOUND` where either does not exist. Many bookmarks are merged in steps, each true
 * by itself: a merge that broke off is sent again, and goes on where it was.
 */
export async function mergeTags(
  db: Database,
  owner: Owner,
  id: number,
  intoId: number,
  idempotency?: Idempotency,
  atOnce = MERGED_AT_ONCE,
): Promise<string> {
  const [counted] = await db.read(
    (sql) => sql<{ bookmarks: number }[]>`
      select bookmark_count as bookmarks from tags where user_id = ${owner.userId} and id = ${id}`,
  );
  const steps = Math.ceil((counted?.bookmarks ?? 0) / atOnce) + SPARE_STEPS;
  for (let step = 0; step < steps; step += 1) {
    const rows = await db.write(
      (sql) => sql<{ outcome: Outcome | null; response: string | null }[]>`
        select outcome, response
        from merge_tags(
          p_user_id => ${owner.userId}, p_token_hash => ${owner.hash}, p_id => ${id}, p_into_id => ${intoId},
          p_limit => ${atOnce}, ${keyArguments(sql, idempotency)}
        )`,
    );
    const { response } = requireSuccess(rows);
    if (response !== null) return response;
  }
  throw new DatabaseUnavailable('conflict', false);
}
