import { createHash } from 'node:crypto';
import { parseToken } from '../../src/domain/tokens.ts';
import { issueCode } from '../../src/sign-in/app-codes.ts';
import type { TestService, TestUser } from './service.ts';

/** Returns the values that an app exchanges for a session after the user has approved the app. */
export async function newGrant({ context }: TestService, { token }: TestUser) {
  const verifier = 'v'.repeat(43);
  const redirectUri = 'http://127.0.0.1:8123/signed-in';
  const { userId, hash } = parseToken(token)!;
  const code = await issueCode(context.coordination.pending, {
    userId,
    session: hash.toString('hex'),
    redirectUri,
    challenge: createHash('sha256').update(verifier).digest('base64url'),
    name: 'An app',
  });
  return { code, code_verifier: verifier, redirect_uri: redirectUri };
}
