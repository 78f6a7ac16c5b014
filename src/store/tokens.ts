import { accountSuspended } from '../domain/errors.ts';
import {
  type FoundPrincipal,
  MAX_SESSION_DAYS,
  type PresentedToken,
  type Principal,
  type Scope,
} from '../domain/tokens.ts';
import type { Database, Sql } from './driver/database.ts';
import { requireValidToken } from './outcomes.ts';

/** The part of a principal that every statement needs. */
export type PrincipalKey = Pick<Principal, 'userId' | 'hash'>;

/**
 * Selects whether the principal's token is neither revoked nor expired. Every statement that reads or changes a user's
 * data checks this, so that a revocation takes effect immediately.
 */
export const tokenIsValid = (sql: Sql, { userId, hash }: PrincipalKey) => sql`exists (
  select from tokens where user_id = ${userId} and token_hash = ${hash} and expires_at > now()
)`;

/** Returns the user id of each check, in order, as an argument of a statement that checks many tokens. */
export const usersOf = (checks: readonly { principal: PrincipalKey }[]): number[] =>
  checks.map(({ principal }) => principal.userId);

/** Returns the hash of each checked token in hex, in order, as an argument of a statement that checks many tokens. */
export const hashesOf = (checks: readonly { principal: PrincipalKey }[]): string[] =>
  checks.map(({ principal }) => principal.hash.toString('hex'));

/**
 * Builds the condition by which a statement joins `tokens` with rows `checked (user_id, token_hash, …)`, where
 * `token_hash` is in hex. A row with an invalid token has no match.
 */
export const checkedTokenIsValid = (sql: Sql) => sql`
  tokens.user_id = checked.user_id and tokens.token_hash = decode(checked.token_hash, 'hex') and tokens.expires_at > now()`;

/** Returns the positions in a list, without the excluded positions. */
export function positionsExcept(list: readonly unknown[], excluded: readonly number[]): number[] {
  const isExcluded = new Set(excluded);
  return [...list.keys()].filter((position) => !isExcluded.has(position));
}

/**
 * The time limit for looking up a token. After the look-up, the request's operation may take 7 s more. So a request
 * waits for the database for at most 10 s.
 */
const LOOK_UP_DEADLINE_MS = 3_000;

/**
 * A use is recorded if the last recorded use is older than this. `last_used_at` must be accurate to 15 minutes. The
 * remaining 2 minutes leave time for two delays: a replica looks up a token only once a minute, and writes the
 * uses within 13 s.
 */
const USE_IS_DUE_AFTER = '13 minutes';

/**
 * Returns the principal of a token. Returns undefined if the token is unknown, revoked or expired. Throws
 * `ACCOUNT_SUSPENDED` if the account is suspended.
 */
export async function findPrincipal(
  db: Database,
  token: PresentedToken,
): Promise<FoundPrincipal | undefined> {
  const [row] = await db.readShort(
    (sql) => sql<
      {
        scope: Scope;
        isPremium: boolean;
        isUseDue: boolean;
        validForMs: number | null;
        isSuspended: boolean;
      }[]
    >`
      select
        t.scope,
        a.is_premium as "isPremium",
        coalesce(t.last_used_at < now() - ${USE_IS_DUE_AFTER}::interval, true) as "isUseDue",
        case when isfinite(t.expires_at) then extract(epoch from t.expires_at - now())::float8 * 1000 end
          as "validForMs",
        t.suspended_expires_at is not null as "isSuspended"
      from tokens t
      join accounts a on a.user_id = ${token.userId}
      where t.user_id = ${token.userId} and t.token_hash = ${token.hash} and t.kind = ${token.kind}
        and coalesce(t.suspended_expires_at, t.expires_at) > now()`,
    LOOK_UP_DEADLINE_MS,
  );
  if (row === undefined) return undefined;
  if (row.isSuspended) throw accountSuspended();
  const { scope, isPremium, isUseDue, validForMs } = row;
  return {
    ...token,
    hash: copyBytes(token.hash),
    scope,
    isPremium,
    isUseDue,
    expiresAtMs: performance.now() + (validForMs ?? Number.POSITIVE_INFINITY),
  };
}

/**
 * Copies bytes into memory of their own. Otherwise a remembered principal would hold a slice of a buffer of 8 KiB, and
 * so keep the whole buffer in memory.
 */
function copyBytes(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

/** Revokes the principal's token. Throws `INVALID_TOKEN` if the token was no longer valid. */
export async function revokeToken(db: Database, principal: PrincipalKey): Promise<void> {
  const rows = await db.write(
    (sql) => sql<{ valid: boolean }[]>`
      with revoked as (
        delete from tokens
        where user_id = ${principal.userId} and token_hash = ${principal.hash} and expires_at > now()
        returning 1
      )
      select exists (select from revoked) as valid`,
  );
  requireValidToken(rows);
}

/** A session is extended only if it is used in its last 30 days. */
const PROLONGED_IN_LAST_DAYS = 30;

/**
 * Records that these tokens of one or more users were used now. A session in its last 30 days then ends `sessionDays`
 * from now, but no later than a year after its creation. Skips each token whose row is locked: somebody is revoking
 * that token, or another replica is recording its use.
 */
export async function noteUses(
  db: Database,
  principals: readonly PrincipalKey[],
  sessionDays: number,
): Promise<void> {
  const userIds = principals.map(({ userId }) => userId);
  const hashes = principals.map(({ hash }) => hash.toString('hex'));
  await db.write(
    (sql) => sql`
      select note_uses(
        p_user_ids => ${userIds}::bigint[], p_token_hashes => ${hashes}::text[],
        p_last_days => ${PROLONGED_IN_LAST_DAYS}, p_session_days => ${sessionDays},
        p_max_days => ${MAX_SESSION_DAYS}
      )`,
  );
}
