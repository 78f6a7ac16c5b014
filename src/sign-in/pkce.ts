import { hash } from 'node:crypto';

/** PKCE for apps (RFC 7636). Only S256 is allowed, because with `plain` the request would reveal the verifier. */

/** A SHA-256 in base64url. */
export const CODE_CHALLENGE = /^[\w-]{43}$/;

export const CODE_VERIFIER = /^[\w.~-]{43,128}$/;

const hashText = (text: string): string => hash('sha256', text, 'base64url');

/** Whether the challenge was made from this verifier. Compares hashes, so the time that it takes reveals no secret. */
export const verifierFits = (verifier: string, challenge: string): boolean =>
  hashText(verifier) === challenge;

/**
 * Returns the key that stands for a secret in Redis. The key is a hash, so somebody who reads Redis does not learn the
 * secret. JSON separates the parts, so that `'a', 'bc'` and `'ab', 'c'` get different keys.
 */
export const hashParts = (...parts: string[]): string => hashText(JSON.stringify(parts));
