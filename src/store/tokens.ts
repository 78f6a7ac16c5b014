import type { Caller, PresentedToken, Scope } from '../domain/tokens.ts';
import type { Database, Sql } from './database.ts';
import { requireValidToken } from './outcomes.ts';

/** What a statement needs to know of whoever asks for it. */
export type Owner = Pick<Caller, 'userId' | 'hash'>;

/** True while the caller's token is neither revoked nor expired: every statement asks, so that revocation holds at once. */
export const tokenIsValid = (sql: Sql, { userId, hash }: Owner) => sql`exists (
  select from tokens where user_id = ${userId} and token_hash = ${hash} and expires_at > now()
)`;

/** The hashes, in hex, of those tokens of one user that are valid. */
export const validHashes = (sql: Sql, owners: readonly Owner[]) => sql`array(
  select encode(token_hash, 'hex')
  from tokens
  where user_id = ${owners[0]!.userId} and expires_at > now()
    and token_hash = any (
      array(select decode(given, 'hex') from unnest(${owners.map(({ hash }) => hash.toString('hex'))}::text[]) given)
    )
)`;

/** What a statement that checks many callers at once takes of them. */
export const usersOf = (checks: readonly { caller: Owner }[]): number[] =>
  checks.map(({ caller }) => caller.userId);
export const hashesOf = (checks: readonly { caller: Owner }[]): string[] =>
  checks.map(({ caller }) => caller.hash.toString('hex'));

/** True where the token of a row `checked (user_id, token_hash in hex, …)` is valid. */
export const checkedTokenIsValid = (sql: Sql) => sql`exists (
  select from tokens
  where tokens.user_id = checked.user_id and tokens.token_hash = decode(checked.token_hash, 'hex')
    and tokens.expires_at > now()
)`;

/** With the operation's own 7 s a request waits 10 s for the database at most. */
const LOOK_UP_DEADLINE_MS = 3_000;

/** The caller behind a token, `undefined` where it is unknown, revoked or expired. */
export async function findCaller(db: Database, token: PresentedToken): Promise<Caller | undefined> {
  const [row] = await db.read(
    (sql) => sql<{ scope: Scope; isPremium: boolean; validForMs: number | null }[]>`
      select
        t.scope,
        a.is_premium as "isPremium",
        case when isfinite(t.expires_at) then extract(epoch from t.expires_at - now())::float8 * 1000 end
          as "validForMs"
      from tokens t
      join accounts a on a.user_id = ${token.userId}
      where t.user_id = ${token.userId} and t.token_hash = ${token.hash} and t.kind = ${token.kind}
        and t.expires_at > now()`,
    LOOK_UP_DEADLINE_MS,
  );
  if (row === undefined) return undefined;
  const { scope, isPremium, validForMs } = row;
  return {
    ...token,
    scope,
    isPremium,
    expiresAtMs: performance.now() + (validForMs ?? Number.POSITIVE_INFINITY),
  };
}

/** Revokes the caller's token; throws `INVALID_TOKEN` where it was not valid any more. */
export async function revokeToken(db: Database, caller: Owner): Promise<void> {
  const rows = await db.write(
    (sql) => sql<{ valid: boolean }[]>`
      with revoked as (
        delete from tokens
        where user_id = ${caller.userId} and token_hash = ${caller.hash} and expires_at > now()
        returning 1
      )
      select exists (select from revoked) as valid`,
  );
  requireValidToken(rows);
}
