import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { PendingValues } from '../coordination/port.ts';
import { isAllowedRedirect, REDIRECT_LENGTH } from './app-redirects.ts';
import { CODE_CHALLENGE, CODE_VERIFIER, hashParts, verifierFits } from './pkce.ts';

/**
 * Codes that apps exchange for sessions (RFC 6749 section 4.1, RFC 8252). A code works once, within 60 s, and PKCE
 * binds it to the app.
 */

/** Matches an app name that a page may show. The name has no invisible characters, and none that reverse text. */
const APP_NAME = /^[^\p{C}\p{Zl}\p{Zp}]{1,60}$/u;

/** The maximum length of a name before it is normalized. */
const MAX_RAW_NAME = 512;

/** Returns the schema of an app's request, for the query of `/login/app` and for the body that approves the request. */
export const appRequestSchema = (claimed: readonly string[]) =>
  z.object({
    redirect_uri: z
      .string()
      .max(REDIRECT_LENGTH, `at most ${REDIRECT_LENGTH} characters`)
      .refine(
        (text) => isAllowedRedirect(text, claimed),
        'expected http://127.0.0.1:port/… or http://[::1]:port/…, or an address in APP_REDIRECTS',
      ),
    code_challenge: z.string().regex(CODE_CHALLENGE, 'expected a SHA-256 in base64url, 43 characters'),
    code_challenge_method: z.literal('S256', 'expected S256'),
    state: z.string().regex(/^[\x21-\x7e]{1,255}$/, 'expected 1 to 255 characters of printable ASCII'),
    name: z
      .string()
      // A text over the limit is not normalized, because the time that NFC takes grows with the square of the length.
      // NFC combines at most four characters into one. So a text over the limit cannot become a valid name, unless
      // only the spaces at its ends make it that long.
      .transform((text) => (text.length > MAX_RAW_NAME ? '' : text.normalize('NFC').trim()))
      .refine((text) => APP_NAME.test(text), 'expected 1 to 60 printable characters'),
  });

export type AppRequestBody = z.output<ReturnType<typeof appRequestSchema>>;

/** What a code grants: a session for `userId`, to the app that has the verifier of `challenge`. */
const appGrant = z.object({
  userId: z.int(),
  /** The hash of the approving session's token, in hex. If that session is revoked, the code is worthless. */
  session: z.hex(),
  redirectUri: z.string(),
  challenge: z.string(),
  name: z.string(),
});

type AppGrant = z.output<typeof appGrant>;

/** Creates a random code and keeps its grant for 60 s. Of the code itself, only a hash is kept. */
export async function issueCode(pending: PendingValues, grant: AppGrant): Promise<string> {
  const code = randomBytes(32).toString('base64url');
  await pending.keep('codes', hashParts('code', code), JSON.stringify(grant));
  return code;
}

/** The body of `/auth/exchange`. */
export const exchangeSchema = z.object({
  code: z
    .string()
    .regex(/^[\w-]{43}$/, 'expected a code of 43 characters')
    .meta({ examples: ['A'.repeat(43)] }),
  code_verifier: z
    .string()
    .regex(CODE_VERIFIER, 'expected 43 to 128 characters: letters, digits, - . _ ~')
    .meta({ examples: ['v'.repeat(43)] }),
  redirect_uri: z
    .string()
    .max(REDIRECT_LENGTH, `at most ${REDIRECT_LENGTH} characters`)
    .meta({ examples: ['http://127.0.0.1:8123/signed-in'] }),
});

/**
 * Returns what a code grants, and uses the code up. Undefined if the code is invalid, or if the verifier or the
 * redirect address does not match.
 */
export async function redeemCode(
  pending: PendingValues,
  { code, code_verifier, redirect_uri }: z.output<typeof exchangeSchema>,
): Promise<AppGrant | undefined> {
  const text = await pending.take('codes', hashParts('code', code));
  if (text === undefined) return undefined;
  const grant = appGrant.parse(JSON.parse(text));
  return grant.redirectUri === redirect_uri && verifierFits(code_verifier, grant.challenge)
    ? grant
    : undefined;
}

/** The session that a code was exchanged for, as `noteExchange` stores it. */
const exchangedSession = z.object({
  userId: z.int(),
  hash: z.hex().transform((hex): Buffer => Buffer.from(hex, 'hex')),
});

export type ExchangedSession = z.output<typeof exchangedSession>;

/**
 * Remembers the session that a code was exchanged for. Returns true if somebody sent the code again during the
 * exchange. In that case, the caller must end the session.
 *
 * `noteExchange` and `noteRepeat` both write before they read. So if they run at the same time, at least one of them
 * sees what the other wrote.
 */
export async function noteExchange(
  pending: PendingValues,
  code: string,
  { userId, hash }: ExchangedSession,
): Promise<boolean> {
  const key = hashParts('code', code);
  await pending.keep('exchanges', key, JSON.stringify({ userId, hash: hash.toString('hex') }));
  return (await pending.take('repeats', key)) !== undefined;
}

/**
 * Remembers that somebody sent a code that is not valid. If the code was exchanged in the last ten minutes, returns the
 * session that it was exchanged for.
 */
export async function noteRepeat(
  pending: PendingValues,
  code: string,
): Promise<ExchangedSession | undefined> {
  const key = hashParts('code', code);
  await pending.keep('repeats', key, '');
  const text = await pending.take('exchanges', key);
  return text === undefined ? undefined : exchangedSession.parse(JSON.parse(text));
}
