import { hash } from 'node:crypto';

/** PKCE for apps (RFC 7636), only with S256: with `plain`, the request would reveal the verifier. */

/** A SHA-256 in base64url. */
export const CODE_CHALLENGE = /^[\w-]{43}$/;

export const CODE_VERIFIER = /^[\w.~-]{43,128}$/;

const hashText = (text: string): string => hash('sha256', text, 'base64url');

/** Whether the challenge was made from this verifier. Both sides are hashes, so their comparison reveals no secret. */
export const verifierFits = (verifier: string, challenge: string): boolean =>
  hashText(verifier) === challenge;

/**
 * The key under which a secret is kept. It is a hash, so somebody who reads Redis cannot use the secret. JSON keeps
 * the parts separate.
 */
export const hashParts = (...parts: string[]): string => hashText(JSON.stringify(parts));
