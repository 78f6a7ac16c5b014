import { randomBytes } from 'node:crypto';
import type { PendingValues } from '../coordination/port.ts';
import { hashParts } from './pkce.ts';
import { drawChecks, type LoginChecks, type Provider } from './provider.ts';

/** Logins under way: from the redirect to the provider until the browser comes back, to whichever replica. */

/** What a login is for. */
export type Intent =
  | { kind: 'sign-in' }
  /** The person of this account confirms who they are. */
  | { kind: 'confirm'; userId: number }
  /** The account behind a session is linked; `session` is the hash of its token, in hex. */
  | { kind: 'link'; userId: number; session: string };

interface PendingLogin {
  checks: LoginChecks;
  intent: Intent;
  returnTo: string;
}

const BROWSER_KEY = /^[\w-]{43}$/;

/** The secret that a browser keeps in its cookie while it signs in; a new one where it has none. Tabs share it. */
export const readBrowserKey = (cookie: string | undefined): string =>
  cookie !== undefined && BROWSER_KEY.test(cookie) ? cookie : randomBytes(32).toString('base64url');

/**
 * What a login is kept under is made of the browser's secret too: a callback in another browser finds nothing, and takes
 * nothing from the browser that it was stolen from.
 */
const nameLogin = (browserKey: string, state: string): string => hashParts('login', browserKey, state);

/** Begins a login; resolves with where to send the browser. */
export async function beginLogin(
  { provider, pending, callbackUrl }: { provider: Provider; pending: PendingValues; callbackUrl: string },
  browserKey: string,
  { intent, returnTo, maxAgeSeconds }: { intent: Intent; returnTo: string; maxAgeSeconds?: number },
): Promise<string> {
  const checks = { ...drawChecks(), ...(maxAgeSeconds !== undefined && { maxAgeSeconds }) };
  const location = await provider.begin(callbackUrl, checks);
  const login: PendingLogin = { checks, intent, returnTo };
  await pending.keep('logins', nameLogin(browserKey, checks.state), JSON.stringify(login));
  return location;
}

/** The login that a callback belongs to, the first time that this browser brings its state; else `undefined`. */
export async function takeLogin(
  pending: PendingValues,
  browserKey: string | undefined,
  state: string | undefined,
): Promise<PendingLogin | undefined> {
  if (browserKey === undefined || state === undefined) return undefined;
  const text = await pending.take('logins', nameLogin(browserKey, state));
  return text === undefined ? undefined : (JSON.parse(text) as PendingLogin);
}
