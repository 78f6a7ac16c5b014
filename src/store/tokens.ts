import type { Caller, PresentedToken, Scope } from '../domain/tokens.ts';
import type { Database, Sql } from './database.ts';
import { requireValidToken } from './outcomes.ts';

/** What a statement needs to know of whoever asks for it. */
export type Owner = Pick<Caller, 'userId' | 'hash'>;

/** True while the caller's token is neither revoked nor expired: every statement asks, so that revocation holds at once. */
export const tokenIsValid = (sql: Sql, { userId, hash }: Owner) => sql`exists (
  select from tokens where user_id = ${userId} and token_hash = ${hash} and expires_at > now()
)`;

/** With the operation's own 7 s a request waits 10 s for the database at most. */
const LOOK_UP_DEADLINE_MS = 3_000;

/** The caller behind a token, `undefined` where it is unknown, revoked or expired. */
export async function findCaller(db: Database, token: PresentedToken): Promise<Caller | undefined> {
  const [row] = await db.read(
    (sql) => sql<{ scope: Scope }[]>`
      select scope
      from tokens
      where user_id = ${token.userId} and token_hash = ${token.hash} and kind = ${token.kind} and expires_at > now()`,
    LOOK_UP_DEADLINE_MS,
  );
  return row && { ...token, scope: row.scope };
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
