import { notFound } from '../domain/errors.ts';
import { BOUNDS, type TagName } from '../domain/fields.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import type { Database, Sql } from './driver/database.ts';
import { DatabaseUnavailable } from './driver/errors.ts';
import { keyArguments, type Outcome, requireSuccess, requireValidToken } from './outcomes.ts';
import { type PrincipalKey, tokenIsValid } from './tokens.ts';

/** The JSON text of a row of `tags` (docs/contract.md, section 2.3). */
const tagJson = (sql: Sql) =>
  sql`'{"id":' || id || ',"name":' || to_json(name) || ',"bookmark_count":' || bookmark_count || '}'`;

/**
 * Returns all tags of a user in the order of their normalized names, as JSON text: an array of tags (docs/contract.md,
 * section 2.3).
 */
export const listTags = (db: Database, principal: PrincipalKey): Promise<string> =>
  listTagsAs(db, principal, tagJson);

/** Like `listTags`, but each tag has `id`, `name` and `created_at`. */
export const listDatedTags = (db: Database, principal: PrincipalKey): Promise<string> =>
  listTagsAs(
    db,
    principal,
    (sql) =>
      sql`'{"id":' || id || ',"name":' || to_json(name) || ',"created_at":"' || render_time(created_at) || '"}'`,
  );

async function listTagsAs(db: Database, principal: PrincipalKey, toJson: typeof tagJson): Promise<string> {
  const rows = await db.at(principal.userId).read(
    (sql) => sql<{ valid: boolean; tags: string }[]>`
      select ${tokenIsValid(sql, principal)} as valid,
        coalesce((
          select '[' || string_agg(${toJson(sql)}, ',' order by name_key) || ']'
          from tags
          where user_id = ${principal.userId}
        ), '[]') as tags`,
  );
  return requireValidToken(rows).tags;
}

/**
 * Returns the most used tags whose normalized names contain `text`, at most `limit`, as JSON text: an array of tags.
 * Tags with the same use are in the order of their normalized names. `total` is the number of all tags whose names
 * contain the text.
 */
export async function findUsedTags(
  db: Database,
  principal: PrincipalKey,
  text: string,
  limit: number,
): Promise<{ tags: string; total: number }> {
  const rows = await db.at(principal.userId).read(
    (sql) => sql<{ valid: boolean; tags: string; total: number }[]>`
      select ${tokenIsValid(sql, principal)} as valid,
        (
          select count(*)
          from tags
          where user_id = ${principal.userId} and strpos(name_key, ${text}) > 0
        ) as total,
        coalesce((
          select '[' || string_agg(${tagJson(sql)}, ',' order by bookmark_count desc, name_key) || ']'
          from (
            select id, name, name_key, bookmark_count
            from tags
            where user_id = ${principal.userId} and strpos(name_key, ${text}) > 0
            order by bookmark_count desc, name_key
            limit ${limit}
          ) used
        ), '[]') as tags`,
  );
  return requireValidToken(rows);
}

/**
 * Creates a tag. Returns the response of `/tags/create` (docs/contract.md, section 4.3) as JSON text. Throws
 * `VALIDATION_ERROR` if the name is taken, and `LIMIT_EXCEEDED` at the limit of tags.
 */
export async function createTag(
  db: Database,
  principal: PrincipalKey,
  { name, key }: TagName,
  idempotency?: Idempotency,
): Promise<string> {
  const rows = await db.at(principal.userId).write(
    (sql) => sql<{ outcome: Outcome | null; tag: string }[]>`
      select outcome, tag
      from create_tag(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, p_name => ${name}, p_key => ${key},
        p_tag_limit => ${BOUNDS.tagsPerUser}, ${keyArguments(sql, idempotency)}
      )`,
  );
  return requireSuccess(rows).tag;
}

/**
 * How much one step of a rename, deletion or merge writes (`p_work` of `next_carrying`). This is enough for about 1,400
 * bookmarks with three tags each. A step holds the lock on the account's row for about 0.2 s. Between the steps, other
 * writers of the user can run.
 */
const STEP_WORK = 10_000;

/**
 * How many times the steps may go through the bookmarks from the beginning. The steps start over if other writers have
 * put the tag on bookmarks that earlier steps have passed.
 */
const MOST_WALKS = 10;

interface Step {
  outcome: Outcome | null;
  /** If the step is refused because of a tag, the name of that tag. */
  detail?: string | null;
  /** The first step of a rename returns it, and the last step of a deletion or merge. */
  response: string | null;
  /** The id of the bookmark after which the next step begins; 0 to start over. Null after the last step. */
  lastId: number | null;
}

/**
 * Takes steps until the last one, and returns the response. Each step is one statement, after which the account is
 * consistent. So if a request is interrupted, the client can send it again, and the new request continues. Throws
 * `NOT_FOUND` if no step has returned a response, and `DatabaseUnavailable` if `MOST_WALKS` walks are not enough.
 */
async function takeSteps(step: (after: number) => Promise<readonly Step[]>): Promise<string> {
  let after = 0;
  let found: string | null = null;
  for (let walks = 0; walks < MOST_WALKS; ) {
    const { response, lastId } = requireSuccess(await step(after));
    found ??= response;
    if (lastId === null) {
      if (found === null) throw notFound('the tag');
      return found;
    }
    after = lastId;
    const startsOver = after === 0;
    if (startsOver) walks += 1;
  }
  throw new DatabaseUnavailable('conflict', false);
}

/** Chooses a tag, by its id or by its normalized name. */
export type TagChoice =
  | { id: number; withChildren?: boolean }
  /** Also chooses all tags below this name. The tag itself need not exist. */
  | { pathKey: string };

const choiceArguments = (sql: Sql, choice: TagChoice) =>
  'id' in choice
    ? sql`p_id => ${choice.id}, p_path_key => null, p_with_children => ${choice.withChildren ?? false}`
    : sql`p_id => null, p_path_key => ${choice.pathKey}, p_with_children => true`;

/**
 * Renames the chosen tags on all their bookmarks. Returns the response of `/tags/update` (docs/contract.md, section 4.3)
 * as JSON text. Throws `NOT_FOUND` if there is no such tag. If one of the new names is taken or too long, throws
 * `VALIDATION_ERROR` and renames no tag.
 */
export const renameTag = (
  db: Database,
  principal: PrincipalKey,
  choice: TagChoice,
  { name, key }: TagName,
  idempotency?: Idempotency,
  work = STEP_WORK,
): Promise<string> =>
  takeSteps((after) =>
    db.at(principal.userId).write(
      (sql) => sql<Step[]>`
        select outcome, detail, response, last_id as "lastId"
        from rename_tag(
          p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, ${choiceArguments(sql, choice)},
          p_name => ${name}, p_name_key => ${key}, p_after => ${after}, p_work => ${work},
          ${keyArguments(sql, idempotency)}
        )`,
    ),
  );

/**
 * Removes the chosen tags from all bookmarks and deletes them. Returns the response as JSON text. Throws `NOT_FOUND` if
 * there is no such tag.
 */
export const deleteTag = (
  db: Database,
  principal: PrincipalKey,
  choice: TagChoice,
  idempotency?: Idempotency,
  work = STEP_WORK,
): Promise<string> =>
  takeSteps((after) =>
    db.at(principal.userId).write(
      (sql) => sql<Step[]>`
        select outcome, response, last_id as "lastId"
        from delete_tag(
          p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, ${choiceArguments(sql, choice)},
          p_after => ${after}, p_work => ${work}, ${keyArguments(sql, idempotency)}
        )`,
    ),
  );

/**
 * Replaces a tag with another one on all bookmarks, and deletes the replaced tag. Returns the remaining tag, with its
 * number of bookmarks, as JSON text. Throws `NOT_FOUND` if one of the tags does not exist.
 */
export const mergeTags = (
  db: Database,
  principal: PrincipalKey,
  id: number,
  intoId: number,
  idempotency?: Idempotency,
  work = STEP_WORK,
): Promise<string> =>
  takeSteps((after) =>
    db.at(principal.userId).write(
      (sql) => sql<Step[]>`
        select outcome, response, last_id as "lastId"
        from merge_tags(
          p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, p_id => ${id}, p_into_id => ${intoId},
          p_after => ${after}, p_work => ${work}, ${keyArguments(sql, idempotency)}
        )`,
    ),
  );
