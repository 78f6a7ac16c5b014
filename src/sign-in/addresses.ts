import { z } from 'zod';
import { foldText, isStorable } from '../domain/text.ts';
import type { ProviderIdentity } from './provider.ts';
import { SignInError } from './sign-in-error.ts';
import { foldDomain, type ProviderSettings, type SignUp } from './variables.ts';

/** What an address that a provider names is worth here. */

const EMAIL = z.email({ pattern: z.regexes.unicodeEmail }).max(254);

const lowerAscii = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/**
 * The address as accounts are found by it. `undefined` for what is none, and for one that only folding makes equal to
 * another one: `K` (U+212A, the Kelvin sign) in the place of k is another mailbox, whose owner is somebody else.
 */
function claimKey(email: string | undefined): string | undefined {
  if (email === undefined || !isStorable(email) || !EMAIL.safeParse(email).success) return undefined;
  const key = foldText(email);
  return key === lowerAscii(email) ? key : undefined;
}

/** Throws where the operator lets only addresses of certain domains in, and this person's verified one is in none. */
export function requireAllowedDomain(
  { allowedDomains }: ProviderSettings,
  { email = '', emailVerified }: ProviderIdentity,
): void {
  if (allowedDomains.length === 0) return;
  if (!emailVerified) throw new SignInError('unverified');
  const domain = foldDomain(email.slice(email.lastIndexOf('@') + 1));
  if (!allowedDomains.includes(domain)) throw new SignInError('domain');
}

/** What the address of this person may do on their first login. */
export const claimOf = (
  { trustEmail }: ProviderSettings,
  signUp: SignUp,
  { email, emailVerified }: ProviderIdentity,
) => ({
  emailKey: (emailVerified && claimKey(email)) || null,
  isTrusted: trustEmail,
  isOpen: signUp === 'open' && trustEmail,
});
