import encodeQR from 'qr';
import { z } from 'zod';
import type { Context } from '../context.ts';
import { PENDING_KINDS } from '../coordination/pending-kinds.ts';
import { nameClient } from '../domain/client-name.ts';
import { invalidToken, notFound } from '../domain/errors.ts';
import type { Session } from '../domain/resources.ts';
import { foldText } from '../domain/text.ts';
import { parseToken } from '../domain/tokens.ts';
import { limitWrongCodes } from '../http/brute-force-limiter.ts';
import { type PrincipalRoute, publicRoute } from '../http/route.ts';
import {
  confirmDeviceCode,
  DEVICE_CODE_LENGTH,
  issueDeviceCode,
  takeDeviceCode,
} from '../sign-in/device-codes.ts';
import { openAppSession, readWaysIn } from '../store/identities.ts';
import { findPrincipal, revokeToken } from '../store/tokens.ts';
import { CODE_BODY_BYTES, type CodeRequest, codeBody, inBrowser, openedSession } from './account.ts';

/** Signs in another device with a code that a signed-in page shows. */

const issue: PrincipalRoute = {
  path: '/login/device',
  scope: 'write',
  summary: 'Create a code that signs in another device',
  description: 'The code works once, within five minutes. A new code replaces the previous one.',
  body: z.object({}),
  response: z.object({
    code: z.string(),
    link: z.string(),
    expires_in_seconds: z.number(),
    qr: z.object({ size: z.number(), path: z.string() }),
  }),
  async handle({ context, principal, request }) {
    // This replica may still remember a session that has been revoked, and no statement below checks the token. So the
    // token is checked here.
    if ((await findPrincipal(context.database, principal)) === undefined) throw invalidToken();
    const code = await issueDeviceCode(context.coordination.pending, principal);
    const link = `${request.headers.origin}/#code=${code}`;
    return { code, link, expires_in_seconds: PENDING_KINDS.deviceCodes.lifeMs / 1_000, qr: drawQr(link) };
  },
};

/**
 * Draws a QR code as an SVG path. `size` is the width and the height of the code in units, including a border of four
 * units on each side.
 */
function drawQr(text: string): { size: number; path: string } {
  const rows = encodeQR(text, 'raw', { ecc: 'medium', border: 4 });
  // Each dark module of the code becomes a square of one unit.
  const squares = rows.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')));
  return { size: rows.length, path: squares.join('') };
}

const ways: PrincipalRoute = {
  path: '/login/ways',
  scope: 'read',
  summary: 'List the ways to sign in without the session of this browser',
  description:
    'Whether the provider is linked, the number of passkeys, and the number of other sessions except those of apps.',
  body: z.object({}),
  response: z.object({ provider: z.boolean(), passkeys: z.number(), other_sessions: z.number() }),
  handle: ({ context, principal }) =>
    readWaysIn(context.database, principal, context.config.signIn.provider?.issuer),
};

const exchangeBody = codeBody(DEVICE_CODE_LENGTH, 'K7Q2M9XDW3RT');

/** Opens a session with a code from another device. Throws `NOT_FOUND` for a wrong code. */
function openSession({ context, body: { code, email }, request }: CodeRequest): Promise<Session> {
  const emailKey = email === undefined ? undefined : foldText(email);
  const client = nameClient(request.headers['user-agent']);
  return limitWrongCodes(context, request, emailKey, () =>
    exchangeDeviceCode(context, { code, emailKey }, client),
  );
}

/** Part of the API: docs/contract.md, section 5.3. */
export const exchangeDevice = publicRoute({
  path: '/auth/device',
  scope: 'public',
  summary: 'Exchange a code from a signed-in device for a session token',
  description:
    'A signed-in page shows the code. The code works once, within five minutes. Only this response contains the token. ' +
    'The scope of the token is `write`. If you know the e-mail address of the account, send it too. A code of another ' +
    'account is then refused, and wrong codes that others send without this address do not limit your request.',
  body: exchangeBody,
  exampleLeavesOut: ['email'],
  bodyLimit: CODE_BODY_BYTES,
  response: openedSession,
  errors: ['NOT_FOUND'],
  handle: openSession,
});

/** Endpoints that the service's own pages use under `/web/`. */
export const deviceRoutes = [
  issue,
  ways,
  inBrowser(exchangeDevice, '/login/device/exchange', exchangeBody, openSession),
];

/**
 * Opens a session with a code from another device, and uses the code up. Throws `NOT_FOUND` if the code is invalid, or
 * if it belongs to an account with another e-mail address.
 */
async function exchangeDeviceCode(
  context: Pick<Context, 'config' | 'coordination' | 'database'>,
  { code, emailKey }: { code: string; emailKey?: string | undefined },
  client: string | null,
): Promise<Session> {
  const { config, coordination, database } = context;
  const issuer = await takeDeviceCode(coordination.pending, code);
  if (issuer === undefined) throw notFound('the code');
  const newSession = await openAppSession(database, issuer, null, config.sessionDays, client);
  const newToken = parseToken(newSession?.token);
  if (newSession === undefined || newToken === undefined) throw notFound('the code');
  // If revoking fails, the new session stays listed until it expires. Nobody can use it, because nobody has its token.
  const endNewSession = () => revokeToken(database, newToken).catch(() => {});
  // The user may have ended all sessions while the new one was opened. In that case, the code cannot be confirmed.
  const isConfirmed = await confirmDeviceCode(coordination.pending, code, issuer).catch(async (error) => {
    await endNewSession();
    throw error;
  });
  // The account's e-mail address becomes known only when the new session is opened.
  const isSameAccount = emailKey === undefined || foldText(newSession.user.email) === emailKey;
  if (isConfirmed && isSameAccount) return newSession;
  await endNewSession();
  throw notFound('the code');
}
