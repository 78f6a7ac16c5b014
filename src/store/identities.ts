import { createSecret, formatToken } from '../domain/tokens.ts';
import type { Database } from './driver/database.ts';
import { onlyRow, requireValidToken } from './outcomes.ts';
import { type PrincipalKey, tokenIsValid } from './tokens.ts';

/** Finds and links the accounts that users have at OpenID Connect providers. */

/** An account at a provider. The issuer and the subject identify it. */
interface Identity {
  issuer: string;
  subject: string;
  /** The e-mail address as the provider writes it; null if the provider gives none. */
  email: string | null;
}

/** What the e-mail address from the provider permits when an identity signs in for the first time. */
export interface Claim {
  /**
   * The normalized address. Null if the address is not verified. Also null if normalization changes more than the case
   * of its letters, because the normalized address could then be somebody else's.
   */
  emailKey: string | null;
  /** Whether the identity may be linked to an existing account that has the same address. */
  isTrusted: boolean;
  /** Whether a new account may be created without an invite. */
  isOpen: boolean;
}

/** The session that a sign-in opens. */
export interface LoginSession {
  /** When the person authenticated. Null if the time is unknown, which counts as long ago. */
  authenticatedAt: Date | null;
  /** The lifetime of the session in days (`SESSION_DAYS`). */
  days: number;
  /** The program that signs in, as `nameClient` returns it. */
  client?: string | null;
}

/** Why the sign-in was refused. */
type SignInRefusal = 'unverified' | 'uninvited' | 'taken' | 'other-person' | 'suspended' | 'token';

/** The token of the new session, or the reason why there is none. */
type SignInResult<Refusal> =
  | { refusal: Refusal; token?: never; userId?: never }
  | { refusal?: never; token: string; userId: number };

const LONG_AGO = new Date(0);

/**
 * Signs in a person who authenticated at a provider. The issuer and the subject determine the user. If they belong to
 * no user yet, the claim decides what happens. If `expectedUserId` is given, only this user can sign in.
 */
export async function signInByProvider(
  db: Database,
  { issuer, subject, email }: Identity,
  { emailKey, isTrusted, isOpen }: Claim,
  { authenticatedAt, days, client = null }: LoginSession,
  expectedUserId: number | null = null,
): Promise<SignInResult<SignInRefusal>> {
  const { secret, hash, lastFour } = createSecret();
  const rows = await db.write(
    (sql) => sql<{ outcome: SignInRefusal | null; id: number }[]>`
      select outcome, id, name_session(id, ${hash}, ${client})
      from sign_in_by_provider(
        p_issuer => ${issuer}, p_subject => ${subject}, p_email => ${email}, p_email_key => ${emailKey},
        p_is_trusted => ${isTrusted}, p_is_open => ${isOpen}, p_expected_user_id => ${expectedUserId},
        p_token_hash => ${hash}, p_last_four => ${lastFour},
        p_authenticated_at => ${authenticatedAt ?? LONG_AGO}, p_session_days => ${days}
      )`,
  );
  const { outcome, id } = onlyRow(rows);
  return outcome === null ? { token: formatToken('session', id, secret), userId: id } : { refusal: outcome };
}

/**
 * Links an account at a provider to the user of a session. A new session replaces that session. The refusal is `token`
 * if the session has ended. It is `linked` if the account at the provider belongs to another user, or if the user has
 * another account at this provider.
 */
export async function linkIdentity(
  db: Database,
  { userId, hash: sessionHash }: PrincipalKey,
  { issuer, subject, email }: Identity,
  { authenticatedAt, days, client = null }: LoginSession,
): Promise<SignInResult<'linked' | 'token'>> {
  const { secret, hash, lastFour } = createSecret();
  const rows = await db.write(
    (sql) => sql<{ outcome: 'linked' | 'token' | null }[]>`
      select outcome, name_session(${userId}, ${hash}, ${client})
      from link_identity(
        p_user_id => ${userId}, p_session_hash => ${sessionHash}, p_issuer => ${issuer},
        p_subject => ${subject}, p_email => ${email}, p_token_hash => ${hash}, p_last_four => ${lastFour},
        p_authenticated_at => ${authenticatedAt ?? LONG_AGO}, p_session_days => ${days}
      )`,
  );
  const { outcome } = onlyRow(rows);
  return outcome === null ? { token: formatToken('session', userId, secret), userId } : { refusal: outcome };
}

/**
 * Returns how the user could sign in without this session: whether an identity of the issuer is linked, and the numbers
 * of passkeys and of other sessions. Sessions of apps do not count, because a browser cannot open the service's pages
 * with them.
 */
export async function readWaysIn(
  db: Database,
  { userId, hash }: PrincipalKey,
  issuer: string | undefined,
): Promise<{ provider: boolean; passkeys: number; other_sessions: number }> {
  const rows = await db.readShort(
    (sql) => sql<{ valid: boolean; provider: boolean; passkeys: number; other_sessions: number }[]>`
      select ${tokenIsValid(sql, { userId, hash })} as valid,
        exists (select from identities where user_id = ${userId} and issuer = ${issuer ?? ''}) as provider,
        (select count(*)::integer from passkeys where user_id = ${userId}) as passkeys,
        (
          select count(*)::integer
          from tokens
          where user_id = ${userId} and kind = 'session' and app_name is null and token_hash <> ${hash}
            and expires_at > now()
        ) as other_sessions`,
  );
  const { provider, passkeys, other_sessions } = requireValidToken(rows);
  return { provider, passkeys, other_sessions };
}

/**
 * Opens a session for an app, or for another device if `appName` is null. `userId` and `hash` are those of the
 * browser's session that approved the new session. Returns undefined if the approving session has ended. The new
 * session gets the authentication time of the approving session.
 */
export async function openAppSession(
  db: Database,
  { userId, hash: sessionHash }: PrincipalKey,
  appName: string | null,
  days: number,
  client: string | null = null,
): Promise<{ token: string; user: { id: number; email: string } } | undefined> {
  const { secret, hash, lastFour } = createSecret();
  const rows = await db.write(
    (sql) => sql<{ outcome: 'token' | null; email: string }[]>`
      select outcome, email, name_session(${userId}, ${hash}, ${client})
      from open_app_session(
        p_user_id => ${userId}, p_session_hash => ${sessionHash}, p_app_name => ${appName},
        p_token_hash => ${hash}, p_last_four => ${lastFour}, p_session_days => ${days}
      )`,
  );
  const { outcome, email } = onlyRow(rows);
  if (outcome !== null) return undefined;
  return { token: formatToken('session', userId, secret), user: { id: userId, email } };
}
