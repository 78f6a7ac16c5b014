import { createSecret, formatToken } from '../domain/tokens.ts';
import type { Database } from './database.ts';
import { requireValidToken } from './outcomes.ts';
import { type PrincipalKey, tokenIsValid } from './tokens.ts';

/** Who users are to providers of OpenID Connect: the directory by issuer and subject. */

/** Somebody at a provider. */
interface Identity {
  issuer: string;
  subject: string;
  /** As the provider writes it; null where it names none. */
  email: string | null;
}

/** What an address is worth on a first login. */
export interface Claim {
  /** The address folded, where it is verified and is nobody else's in another spelling; null: it does not count. */
  emailKey: string | null;
  /** Whether it opens the account that has it. */
  isTrusted: boolean;
  /** Whether an account is made for it without an invite. */
  isOpen: boolean;
}

/** The session that a login opens. */
export interface LoginSession {
  /** When the person proved who they are; null: nobody knows, so long ago. */
  authenticatedAt: Date | null;
  /** How long it is valid, `SESSION_DAYS`. */
  days: number;
  /** The program that signs in, as `nameClient` names it. */
  client?: string | null;
}

/** Why nobody was signed in. */
type SignInRefusal = 'unverified' | 'uninvited' | 'taken' | 'other-person' | 'suspended' | 'token';

/** A session's token, or why there is none. */
type SignInResult<Refusal> =
  | { refusal: Refusal; token?: never; userId?: never }
  | { refusal?: never; token: string; userId: number };

const LONG_AGO = new Date(0);

/**
 * Signs somebody in who authenticated at a provider: by issuer and subject; the first time by what their address is worth.
 * `expectedUserId`: this user and nobody else.
 */
export async function signInByProvider(
  db: Database,
  { issuer, subject, email }: Identity,
  { emailKey, isTrusted, isOpen }: Claim,
  { authenticatedAt, days, client = null }: LoginSession,
  expectedUserId: number | null = null,
): Promise<SignInResult<SignInRefusal>> {
  const { secret, hash, lastFour } = createSecret();
  const [row] = await db.write(
    (sql) => sql<{ outcome: SignInRefusal | null; id: number }[]>`
      select outcome, id, name_session(id, ${hash}, ${client})
      from sign_in_by_provider(
        p_issuer => ${issuer}, p_subject => ${subject}, p_email => ${email}, p_email_key => ${emailKey},
        p_is_trusted => ${isTrusted}, p_is_open => ${isOpen}, p_expected_user_id => ${expectedUserId},
        p_token_hash => ${hash}, p_last_four => ${lastFour},
        p_authenticated_at => ${authenticatedAt ?? LONG_AGO}, p_session_days => ${days}
      )`,
  );
  const { outcome, id } = row!;
  return outcome === null ? { token: formatToken('session', id, secret), userId: id } : { refusal: outcome };
}

/** Links somebody at a provider to the account of a session; a new session takes the place of that one. */
export async function linkIdentity(
  db: Database,
  { userId, hash: sessionHash }: PrincipalKey,
  { issuer, subject, email }: Identity,
  { authenticatedAt, days, client = null }: LoginSession,
): Promise<SignInResult<'linked' | 'token'>> {
  const { secret, hash, lastFour } = createSecret();
  const [row] = await db.write(
    (sql) => sql<{ outcome: 'linked' | 'token' | null }[]>`
      select outcome, name_session(${userId}, ${hash}, ${client})
      from link_identity(
        p_user_id => ${userId}, p_session_hash => ${sessionHash}, p_issuer => ${issuer},
        p_subject => ${subject}, p_email => ${email}, p_token_hash => ${hash}, p_last_four => ${lastFour},
        p_authenticated_at => ${authenticatedAt ?? LONG_AGO}, p_session_days => ${days}
      )`,
  );
  const { outcome } = row!;
  return outcome === null ? { token: formatToken('session', userId, secret), userId } : { refusal: outcome };
}

/**
 * The ways in that a user has beside this session: whether an identity of the issuer is linked, and the numbers of
 * passkeys and of other sessions. Sessions of apps do not count, for no page can be opened with them.
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
 * Opens a session that a browser's session approved, for an app or, without a name, for another device. `undefined` where
 * that session is over by now; the new session inherits when its person proved who they are.
 */
export async function openAppSession(
  db: Database,
  { userId, hash: sessionHash }: PrincipalKey,
  appName: string | null,
  days: number,
  client: string | null = null,
): Promise<{ token: string; user: { id: number; email: string } } | undefined> {
  const { secret, hash, lastFour } = createSecret();
  const [row] = await db.write(
    (sql) => sql<{ outcome: 'token' | null; email: string }[]>`
      select outcome, email, name_session(${userId}, ${hash}, ${client})
      from open_app_session(
        p_user_id => ${userId}, p_session_hash => ${sessionHash}, p_app_name => ${appName},
        p_token_hash => ${hash}, p_last_four => ${lastFour}, p_session_days => ${days}
      )`,
  );
  const { outcome, email } = row!;
  if (outcome !== null) return undefined;
  return { token: formatToken('session', userId, secret), user: { id: userId, email } };
}
