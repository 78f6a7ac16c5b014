import { hash, timingSafeEqual } from 'node:crypto';

/** PKCE for apps (RFC 7636), S256 alone: with `plain` whoever sees the request has the verifier. */

/** A SHA-256 in base64url. */
export const CODE_CHALLENGE = /^[\w-]{43}$/;

export const CODE_VERIFIER = /^[\w.~-]{43,128}$/;

const hashText = (text: string): string => hash('sha256', text, 'base64url');

/** Whether the verifier is the one that the challenge was made of. */
export function verifierFits(verifier: string, challenge: string): boolean {
  const [given, expected] = [Buffer.from(hashText(verifier)), Buffer.from(challenge)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** What a secret is kept under: who reads the memory cannot present it. The parts cannot be moved into each other. */
export const hashParts = (...parts: string[]): string => hashText(JSON.stringify(parts));
