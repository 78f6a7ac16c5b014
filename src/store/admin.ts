import type { Scope, StoredSecret, TokenKind } from '../domain/tokens.ts';
import type { Database, Sql } from './driver/database.ts';
import { onlyRow } from './outcomes.ts';

/**
 * Statements for the operator's commands. An `emailKey` is a normalized e-mail address (`foldText`). It identifies a
 * user.
 */

interface UserRecord {
  id: number;
  email: string;
  /** Null in the result of `listUsers` if the node with the user's rows cannot be reached. */
  is_premium: boolean | null;
  created_at: string;
  /**
   * When the account was suspended. Null if it is not suspended, or if `is_premium` is null. Absent in the results of
   * `createUser` and `setPremium`.
   */
  suspended_at?: string | null;
}

interface TokenRecord {
  /** The user's id, a hyphen, and the token's own id. */
  id: string;
  kind: TokenKind;
  scope: Scope;
  name: string;
  /** The name of the app, if the token is a session that was opened for an app. Null for any other token. */
  app_name: string | null;
  created_at: string;
  /** Null if the token is valid until it is revoked. */
  expires_at: string | null;
  /** Accurate to 15 minutes. Null if the token has never been used. */
  last_used_at: string | null;
  last_four: string;
}

/** Creates a user. Returns undefined if the address is taken. */
export async function createUser(
  db: Database,
  email: string,
  emailKey: string,
  isPremium: boolean,
): Promise<UserRecord | undefined> {
  const [row] = await db.write(
    (sql) => sql<UserRecord[]>`
      select id, email, is_premium, created_at from create_user(${email}, ${emailKey}, ${isPremium})`,
  );
  return row;
}

/** Sets whether a user is premium. Returns undefined if no user has this address. */
export async function setPremium(
  db: Database,
  emailKey: string,
  isPremium: boolean,
): Promise<UserRecord | undefined> {
  const [row] = await db.write(
    (sql) => sql<UserRecord[]>`
      select id, email, is_premium, created_at from set_premium(${emailKey}, ${isPremium})`,
  );
  return row;
}

/** A user, and how many bookmarks, tags and tokens the user has. */
interface UserDetails extends UserRecord {
  bookmark_count: number;
  tag_count: number;
  /** The number of valid tokens. */
  token_count: number;
}

/** Finds a user by id or by address. Returns undefined if there is no such user. */
export async function findUser(
  db: Database,
  { id, emailKey }: { id?: number | undefined; emailKey?: string | undefined },
): Promise<UserDetails | undefined> {
  const [row] = await db.read(
    (sql) => sql<UserDetails[]>`
      select id, email, is_premium, created_at, suspended_at, bookmark_count, tag_count, token_count
      from find_user(${id ?? null}, ${emailKey ?? null})`,
  );
  return row;
}

/** Builds the query that `listUsers` passes to `rows_of_shards`, which replaces `%s` with the name of each shard. */
const accountsAfter = (after: number, limit: number): string =>
  `select user_id, is_premium, render_time(suspended_at) as suspended_at from %s where user_id > ${after} order by user_id limit ${limit}`;

/** Returns at most `limit` users with ids above `after`, by ascending id. */
export async function listUsers(db: Database, after: number, limit: number): Promise<UserRecord[]> {
  const rows = await db.read(
    (sql) => sql<UserRecord[]>`
      select u.id, u.email, (a ->> 'is_premium')::boolean as is_premium, render_time(u.created_at) as created_at,
        a ->> 'suspended_at' as suspended_at
      from users u
      left join rows_of_shards('accounts', ${accountsAfter(after, limit)}) a on (a ->> 'user_id')::bigint = u.id
      where u.id > ${after}
      order by u.id
      limit ${limit}`,
  );
  return [...rows];
}

/** Returns the id of the user with this address; undefined if there is none. */
export async function findUserId(db: Database, emailKey: string): Promise<number | undefined> {
  const [row] = await db.read(
    (sql) => sql<{ id: number }[]>`select id from users where email_key = ${emailKey}`,
  );
  return row?.id;
}

/** Deletes a user with all their data. Returns false if no user has this address. */
export async function deleteUser(db: Database, emailKey: string): Promise<boolean> {
  const [row] = await db.write(
    (sql) => sql<{ deleted: boolean }[]>`select delete_user(${emailKey}) as deleted`,
  );
  return row?.deleted === true;
}

/** Stores an invite that expires after `days` days. Returns undefined if the code is taken. */
export async function createInvite(
  db: Database,
  code: string,
  email: string,
  emailKey: string,
  days: number,
): Promise<{ code: string; email: string; expires_at: string } | undefined> {
  const [row] = await db.write(
    (sql) => sql<{ code: string; email: string; expires_at: string }[]>`
      with new_invite as (
        insert into invites (code, email, email_key, expires_at)
        values (${code}, ${email}, ${emailKey}, now() + make_interval(days => ${days}))
        on conflict (code) do nothing
        returning code, email, expires_at
      )
      select code, email, render_time(expires_at) as expires_at from new_invite`,
  );
  return row;
}

/** The columns of a `TokenRecord`, selected from a row of `tokens`. */
const tokenRecordColumns = (sql: Sql) => sql`
  user_id || '-' || id as id, kind, scope, name, app_name, render_time(created_at) as created_at,
  case when isfinite(expires_at) then render_time(expires_at) end as expires_at,
  render_time(last_used_at) as last_used_at, last_four`;

/** Stores an API token of a user. If `token.days` is null, the token is valid until it is revoked. */
export async function createApiToken(
  db: Database,
  userId: number,
  secret: StoredSecret,
  token: { scope: Scope; name: string; nameKey: string; days: number | null },
): Promise<TokenRecord> {
  const rows = await db.write(
    (sql) => sql<TokenRecord[]>`
      select ${tokenRecordColumns(sql)}
      from create_api_token(
        p_user_id => ${userId}, p_token_hash => ${secret.hash}, p_last_four => ${secret.lastFour},
        p_scope => ${token.scope}, p_name => ${token.name}, p_name_key => ${token.nameKey},
        p_days => ${token.days}
      )`,
  );
  return onlyRow(rows);
}

/** Returns all valid tokens of a user, oldest first. */
export async function listTokens(db: Database, userId: number): Promise<TokenRecord[]> {
  const rows = await db.read(
    (sql) => sql<TokenRecord[]>`
      select ${tokenRecordColumns(sql)}
      from tokens
      where user_id = ${userId} and expires_at > now()
      order by tokens.id`,
  );
  return [...rows];
}

/**
 * Revokes a token by its number, which comes after the hyphen in `TokenRecord.id`. Returns false if the user has no
 * such token.
 */
export async function revokeTokenById(db: Database, userId: number, tokenId: number): Promise<boolean> {
  const rows = await db.write(
    (sql) => sql`delete from tokens where user_id = ${userId} and id = ${tokenId} returning id`,
  );
  return rows.length > 0;
}

/** Revokes all tokens of a user, sessions included. Returns how many tokens there were. */
export async function revokeAllTokens(db: Database, userId: number): Promise<number> {
  const rows = await db.write((sql) => sql`delete from tokens where user_id = ${userId} returning id`);
  return rows.length;
}

/** A suspended user, and the ids of the large imports that the suspension cancelled. */
interface SuspendedUser {
  id: number;
  email: string;
  suspended_at: string;
  import_ids: string[];
}

/**
 * Suspends a user. Returns undefined if no user has this address. If the user is suspended already, `suspended_at` does
 * not change.
 */
export async function suspendUser(db: Database, emailKey: string): Promise<SuspendedUser | undefined> {
  const [row] = await db.write(
    (sql) => sql<SuspendedUser[]>`select id, email, suspended_at, import_ids from suspend_user(${emailKey})`,
  );
  return row;
}

/** Ends the suspension of a user. Returns undefined if no user has this address. */
export async function resumeUser(
  db: Database,
  emailKey: string,
): Promise<{ id: number; email: string; suspended_at: null } | undefined> {
  const [row] = await db.write(
    (sql) => sql<{ id: number; email: string; suspended_at: null }[]>`
      select id, email, suspended_at from resume_user(${emailKey})`,
  );
  return row;
}

/**
 * Begins a new epoch (`ChangesPosition.epoch`) on every node, so that all clients of `/bookmarks/changes` start over.
 * Returns the highest epoch.
 */
export async function beginEpoch(db: Database): Promise<number> {
  const rows = await db.write((sql) => sql<{ epoch: number }[]>`select begin_epoch() as epoch`);
  return onlyRow(rows).epoch;
}
