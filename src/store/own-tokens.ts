import { BOUNDS } from '../domain/fields.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import type { ApiToken } from '../domain/resources.ts';
import type { Scope, StoredSecret, TokenKind } from '../domain/tokens.ts';
import type { Database } from './driver/database.ts';
import { keyArguments, type Outcome, requireSuccess, requireValidToken, type Written } from './outcomes.ts';
import { type PrincipalKey, tokenIsValid } from './tokens.ts';

/** Statements with which users create, list and revoke their own tokens. */

/** Returns all valid API tokens of a user, oldest first, as JSON text. */
export async function listOwnTokens(db: Database, principal: PrincipalKey): Promise<string> {
  const rows = await db.read(
    (sql) => sql<{ valid: boolean; tokens: string }[]>`
      select ${tokenIsValid(sql, principal)} as valid,
        coalesce((
          select json_agg(render_token(row(t.*)::tokens) || jsonb_build_object('name', t.name) order by t.id)::text
          from tokens t
          where t.user_id = ${principal.userId} and t.kind = 'api' and t.expires_at > now()
        ), '[]') as tokens`,
  );
  return requireValidToken(rows).tokens;
}

/** Returns all valid sessions of a user, oldest first, as JSON text. */
export async function listSessions(db: Database, principal: PrincipalKey): Promise<string> {
  const rows = await db.read(
    (sql) => sql<{ valid: boolean; sessions: string }[]>`
      select ${tokenIsValid(sql, principal)} as valid,
        coalesce((
          select json_agg(
            render_token(row(t.*)::tokens) || jsonb_build_object(
              'app_name', t.app_name, 'client', t.client, 'is_current', t.token_hash = ${principal.hash}
            ) order by t.id
          )::text
          from tokens t
          where t.user_id = ${principal.userId} and t.kind = 'session' and t.expires_at > now()
        ), '[]') as sessions`,
  );
  return requireValidToken(rows).sessions;
}

/** The fields of a new API token, without its secret. */
interface NewApiToken {
  name: string;
  /** The normalized name. */
  nameKey: string;
  scope: Scope;
  /** Null if the token is valid until it is revoked. */
  days: number | null;
}

/**
 * Stores an API token that a user requests with a session. Throws `PERMISSION_DENIED` if the person authenticated too
 * long ago, `VALIDATION_ERROR` if the name is taken, and `LIMIT_EXCEEDED` if the user would have too many tokens.
 */
export async function createOwnToken(
  db: Database,
  principal: PrincipalKey,
  { hash, lastFour }: StoredSecret,
  { name, nameKey, scope, days }: NewApiToken,
): Promise<ApiToken> {
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null; token: Omit<ApiToken, 'name'> }[]>`
      select outcome, token
      from create_own_token(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, p_new_hash => ${hash},
        p_token => jsonb_build_object(
          'name', ${name}::text, 'name_key', ${nameKey}::text, 'scope', ${scope}::text,
          'days', ${days}::integer, 'last_four', ${lastFour}::text
        ),
        p_token_limit => ${BOUNDS.apiTokensPerUser}
      )`,
  );
  return { ...requireSuccess(rows).token, name };
}

/**
 * Revokes one of the user's tokens. `isCurrent` says whether it was the token of this request. Throws `INVALID_TOKEN`
 * or `NOT_FOUND`.
 */
export async function revokeOwnToken(
  db: Database,
  principal: PrincipalKey,
  { kind, id }: { kind: TokenKind; id: number },
  idempotency?: Idempotency,
): Promise<{ response: string; isCurrent: boolean }> {
  const rows = await db.write(
    (sql) => sql<(Written & { isCurrent: boolean })[]>`
      select outcome, response, is_current as "isCurrent"
      from revoke_own_token(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, p_kind => ${kind}, p_id => ${id},
        ${keyArguments(sql, idempotency)}
      )`,
  );
  return requireSuccess(rows);
}

/**
 * Revokes all sessions of the user except the session of this request. Returns the response as JSON text. Throws
 * `INVALID_TOKEN`.
 */
export async function revokeOtherSessions(
  db: Database,
  principal: PrincipalKey,
  idempotency?: Idempotency,
): Promise<string> {
  const rows = await db.write(
    (sql) => sql<Written[]>`
      select outcome, response
      from revoke_other_sessions(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash}, ${keyArguments(sql, idempotency)}
      )`,
  );
  return requireSuccess(rows).response;
}
