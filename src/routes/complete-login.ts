import type { Config } from '../config.ts';
import { claimOf, requireAllowedDomain } from '../sign-in/addresses.ts';
import type { Intent } from '../sign-in/logins.ts';
import type { ProviderIdentity } from '../sign-in/provider.ts';
import { SignInError } from '../sign-in/sign-in-error.ts';
import type { Database } from '../store/driver/database.ts';
import { type LoginSession, linkIdentity, signInByProvider } from '../store/identities.ts';
import type { PrincipalKey } from '../store/tokens.ts';

/** The new session of the browser. */
interface OpenedSession {
  token: string;
  userId: number;
}

/**
 * Opens a session for the person that the provider authenticated. `present` is the session that the browser already
 * has, if any, and `client` is the browser's name. Throws a `SignInError` if this person may not sign in, or if another
 * person was expected.
 */
export async function completeLogin(
  { config, database }: { config: Config; database: Database },
  intent: Intent,
  person: ProviderIdentity,
  present: PrincipalKey | undefined,
  client: string | null,
): Promise<OpenedSession> {
  const provider = config.signIn.provider!;
  requireAllowedDomain(provider, person);
  const { issuer, subject, email, authenticatedAt } = person;
  const identity = { issuer, subject, email: email ?? null };
  const session: LoginSession = {
    authenticatedAt: authenticatedAt === undefined ? null : new Date(authenticatedAt * 1_000),
    days: config.sessionDays,
    client,
  };
  const claim = claimOf(provider, config.signIn.signUp, person);
  const expectedUserId = intent.kind === 'confirm' ? intent.userId : null;
  const result =
    intent.kind === 'link'
      ? await linkIdentity(database, requireSameSession(intent, present), identity, session)
      : await signInByProvider(database, identity, claim, session, expectedUserId);
  if (result.refusal === undefined) return result;
  throw new SignInError(result.refusal === 'token' ? 'no-session' : result.refusal);
}

/** Throws unless the browser still has the session in which the user started to link the provider. */
function requireSameSession(
  intent: Intent & { kind: 'link' },
  present: PrincipalKey | undefined,
): PrincipalKey {
  const isSame = present?.userId === intent.userId && present.hash.toString('hex') === intent.session;
  if (!isSame) throw new SignInError('no-session');
  return present;
}
