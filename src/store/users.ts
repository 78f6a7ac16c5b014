import type { Account, Profile } from '../domain/resources.ts';
import type { StoredSecret } from '../domain/tokens.ts';
import type { Database } from './driver/database.ts';
import { type Outcome, requireSuccess, requireValidToken } from './outcomes.ts';
import { type PrincipalKey, tokenIsValid } from './tokens.ts';

/** Returns the principal's profile (docs/contract.md, section 4.1). */
export async function readProfile(db: Database, principal: PrincipalKey): Promise<Profile> {
  const { userId } = principal;
  const rows = await db.readShort(
    (sql) => sql<({ valid: boolean } & Profile)[]>`
      select ${tokenIsValid(sql, principal)} as valid, u.email, a.is_premium, render_time(u.created_at) as created_at
      from users u
      join accounts a on a.user_id = ${userId}
      where u.id = ${userId}`,
  );
  const { valid: _, ...profile } = requireValidToken(rows);
  return profile;
}

/**
 * Returns the principal's account (docs/contract.md, section 4.1), with the scope and expiration of the token.
 * `freeBookmarkLimit` is the limit of a free account.
 */
export async function readAccount(
  db: Database,
  { userId, hash }: PrincipalKey,
  freeBookmarkLimit: number,
): Promise<Account> {
  const rows = await db.readShort(
    (sql) => sql<({ valid: boolean } & Account)[]>`
      select true as valid, u.email, a.is_premium, render_time(u.created_at) as created_at, u.id, a.bookmark_count,
        case when not a.is_premium then ${freeBookmarkLimit}::bigint end as bookmark_limit,
        t.scope,
        case when t.expires_at < 'infinity' then render_time(t.expires_at) end as token_expires_at
      from users u
      join accounts a on a.user_id = ${userId}
      join tokens t on t.user_id = ${userId} and t.token_hash = ${hash} and t.expires_at > now()
      where u.id = ${userId}`,
  );
  const { valid: _, ...account } = requireValidToken(rows);
  return account;
}

/**
 * Uses up an invite, creates a user if its address has none yet, and opens a session. Throws `NOT_FOUND` if the code is
 * wrong or expired (docs/contract.md, decision 22), or if `emailKey` is given and the invite is for another address.
 * Throws `ACCOUNT_SUSPENDED` if the account is suspended. `client` names the program that signs in.
 */
export async function exchangeInvite(
  db: Database,
  { code, emailKey }: { code: string; emailKey?: string | undefined },
  { hash, lastFour }: StoredSecret,
  sessionDays: number,
  client: string | null = null,
): Promise<{ id: number; email: string }> {
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null; id: number; email: string }[]>`
      select outcome, id, email, name_session(id, ${hash}, ${client})
      from exchange_invite(
        p_code => ${code}, p_email_key => ${emailKey ?? null}, p_token_hash => ${hash},
        p_last_four => ${lastFour}, p_session_days => ${sessionDays}
      )`,
  );
  const { id, email } = requireSuccess(rows);
  return { id, email };
}

/**
 * Deletes the principal's account with all its data. Throws `PERMISSION_DENIED` if the person authenticated too long
 * ago, and `VALIDATION_ERROR` if the address is not the address of the account.
 */
export async function deleteAccount(db: Database, principal: PrincipalKey, emailKey: string): Promise<void> {
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null }[]>`
      select outcome from delete_account(${principal.userId}, ${principal.hash}, ${emailKey})`,
  );
  requireSuccess(rows);
}
