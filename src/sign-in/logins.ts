import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { PendingValues } from '../coordination/port.ts';
import { hashParts } from './pkce.ts';
import { drawChecks, loginChecks, type Provider } from './provider.ts';

/** Logins in progress, from the redirect to the provider until the browser returns, perhaps to another replica. */

/** Why the person was sent to the provider. */
const intent = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('sign-in') }),
  /** The owner of the account `userId` confirms their identity. */
  z.object({ kind: z.literal('confirm'), userId: z.int() }),
  /** The provider is linked to a session's account. `session` is the hash of that session's token, in hex. */
  z.object({ kind: z.literal('link'), userId: z.int(), session: z.hex() }),
]);

export type Intent = z.output<typeof intent>;

const pendingLogin = z.object({ checks: loginChecks, intent, returnTo: z.string() });

type PendingLogin = z.output<typeof pendingLogin>;

/** Matches the secret in the sign-in cookie: 32 random bytes in base64url. */
const BROWSER_KEY = /^[\w-]{43}$/;

/**
 * Returns the secret in a browser's sign-in cookie. If there is no valid cookie, returns a new secret. All tabs of the
 * browser share the cookie.
 */
export const readBrowserKey = (cookie: string | undefined): string =>
  cookie !== undefined && BROWSER_KEY.test(cookie) ? cookie : randomBytes(32).toString('base64url');

/**
 * Returns the key of a login. The key depends on the browser's secret. So a callback that was stolen and opened in
 * another browser neither finds the login nor uses it up.
 */
const nameLogin = (browserKey: string, state: string): string => hashParts('login', browserKey, state);

/** Starts a login. Resolves with the address to redirect the browser to. */
export async function beginLogin(
  { provider, pending, callbackUrl }: { provider: Provider; pending: PendingValues; callbackUrl: string },
  browserKey: string,
  {
    intent,
    returnTo,
    maxAgeSeconds,
  }: { intent: Intent; returnTo: string; maxAgeSeconds: number | undefined },
): Promise<string> {
  const checks = { ...drawChecks(), maxAgeSeconds };
  const location = await provider.begin(callbackUrl, checks);
  const login: PendingLogin = { checks, intent, returnTo };
  await pending.keep('logins', nameLogin(browserKey, checks.state), JSON.stringify(login));
  return location;
}

/** Returns the login that a callback belongs to, and uses it up. Undefined if this browser has no such login. */
export async function takeLogin(
  pending: PendingValues,
  browserKey: string | undefined,
  state: string | undefined,
): Promise<PendingLogin | undefined> {
  if (browserKey === undefined || state === undefined) return undefined;
  const text = await pending.take('logins', nameLogin(browserKey, state));
  return text === undefined ? undefined : pendingLogin.parse(JSON.parse(text));
}
