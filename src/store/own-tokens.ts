import { BOUNDS } from '../domain/fields.ts';
import type { ApiToken } from '../domain/resources.ts';
import type { Scope, StoredSecret, TokenKind } from '../domain/tokens.ts';
import type { Database } from './database.ts';
import { type Outcome, requireSuccess, requireValidToken } from './outcomes.ts';
import { type Owner, tokenIsValid } from './tokens.ts';

/** The tokens of a user, as the user sees and revokes them. */

/** All valid API tokens of a user, oldest first, as JSON text. */
export async function listOwnTokens(db: Database, owner: Owner): Promise<string> {
  const rows = await db.read(
    (sql) => sql<{ valid: boolean; tokens: string }[]>`
      select ${tokenIsValid(sql, owner)} as valid,
        coalesce((
          select json_agg(render_token(row(t.*)::tokens) || jsonb_build_object('name', t.name) order by t.id)::text
          from tokens t
          where t.user_id = ${owner.userId} and t.kind = 'api' and t.expires_at > now()
        ), '[]') as tokens`,
  );
  return requireValidToken(rows).tokens;
}

/** All valid sessions of a user, oldest first, as JSON text. */
export async function listSessions(db: Database, owner: Owner): Promise<string> {
  const rows = await db.read(
    (sql) => sql<{ valid: boolean; sessions: string }[]>`
      select ${tokenIsValid(sql, owner)} as valid,
        coalesce((
          select json_agg(
            render_token(row(t.*)::tokens) || jsonb_build_object(
              'app_name', t.app_name, 'is_current', t.token_hash = ${owner.hash}
            ) order by t.id
          )::text
          from tokens t
          where t.user_id = ${owner.userId} and t.kind = 'session' and t.expires_at > now()
        ), '[]') as sessions`,
  );
  return requireValidToken(rows).sessions;
}

/** What an API token is made of, beside its secret. */
export interface NewApiToken {
  name: string;
  /** The name, folded. */
  nameKey: string;
  scope: Scope;
  /** Null: valid until it is revoked. */
  days: number | null;
}

/**
 * Stores an API token that a session asks for. Throws `PERMISSION_DENIED` where the session is too old for that,
 * `VALIDATION_ERROR` where the name is taken, `LIMIT_EXCEEDED` at the limit.
 */
export async function createOwnToken(
  db: Database,
  owner: Owner,
  { hash, lastFour }: StoredSecret,
  { name, nameKey, scope, days }: NewApiToken,
): Promise<ApiToken> {
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null; token: Omit<ApiToken, 'name'> }[]>`
      select outcome, token
      from create_own_token(
        ${owner.userId}, ${owner.hash}, ${hash},
        jsonb_build_object(
          'name', ${name}::text, 'name_key', ${nameKey}::text, 'scope', ${scope}::text,
          'days', ${days}::integer, 'last_four', ${lastFour}::text
        ),
        ${BOUNDS.apiTokensPerUser}
      )`,
  );
  return { ...requireSuccess(rows).token, name };
}

/** What revoking a token by its id found. */
export interface Revoked {
  /** Whether the user had such a valid token. */
  found: boolean;
  /** Whether it was the caller's own. */
  isCurrent: boolean;
}

/** Revokes one of the user's tokens. Throws `INVALID_TOKEN`. */
export async function revokeOwnToken(
  db: Database,
  owner: Owner,
  kind: TokenKind,
  id: number,
): Promise<Revoked> {
  const rows = await db.write(
    (sql) => sql<(Revoked & { valid: boolean })[]>`
      with caller as (
        select ${tokenIsValid(sql, owner)} as valid
      ), revoked as (
        delete from tokens t
        using caller
        where caller.valid and t.user_id = ${owner.userId} and t.id = ${id} and t.kind = ${kind}
          and t.expires_at > now()
        returning t.token_hash
      )
      select valid, revoked.token_hash is not null as found,
        coalesce(revoked.token_hash = ${owner.hash}, false) as "isCurrent"
      from caller
      left join revoked on true`,
  );
  return requireValidToken(rows);
}

/** Revokes all sessions of the user but the caller's; returns how many. Throws `INVALID_TOKEN`. */
export async function revokeOtherSessions(db: Database, owner: Owner): Promise<number> {
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null; revoked: number }[]>`
      select outcome, revoked from revoke_other_sessions(${owner.userId}, ${owner.hash})`,
  );
  return requireSuccess(rows).revoked;
}
