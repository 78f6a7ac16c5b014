import { z } from 'zod';
import { foldText, isStorable } from '../domain/text.ts';
import type { ProviderIdentity } from './provider.ts';
import { SignInError } from './sign-in-error.ts';
import { foldDomain, type ProviderSettings, type SignUp } from './variables.ts';

/** Decides what a provider's claim about an e-mail address permits. */

const EMAIL = z.email({ pattern: z.regexes.unicodeEmail }).max(254);

const lowerAscii = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/**
 * Returns the key under which the account with this address is found. Undefined for an invalid address. Also undefined
 * for an address that Unicode normalization changes, because the two addresses can belong to different people. For
 * example, normalization turns `K` (U+212A, the Kelvin sign) into k.
 */
function claimKey(email: string | undefined): string | undefined {
  if (email === undefined || !isStorable(email) || !EMAIL.safeParse(email).success) return undefined;
  const key = foldText(email);
  return key === lowerAscii(email) ? key : undefined;
}

/** Throws if the operator allows only certain domains and the person has no verified address in one of them. */
export function requireAllowedDomain(
  { allowedDomains }: ProviderSettings,
  { email = '', emailVerified }: ProviderIdentity,
): void {
  if (allowedDomains.length === 0) return;
  if (!emailVerified) throw new SignInError('unverified');
  const domain = foldDomain(email.slice(email.lastIndexOf('@') + 1));
  if (!allowedDomains.includes(domain)) throw new SignInError('domain');
}

/**
 * Returns what the first login of a person may do. `emailKey` is the key of their verified address. Accounts and
 * invites are found by this key. If `isTrusted`, the login may open an existing account with this address. If
 * `isOpen`, the login may create an account without an invite.
 */
export const claimOf = (
  { trustEmail }: ProviderSettings,
  signUp: SignUp,
  { email, emailVerified }: ProviderIdentity,
) => ({
  emailKey: (emailVerified && claimKey(email)) || null,
  isTrusted: trustEmail,
  isOpen: signUp === 'open' && trustEmail,
});
