import encodeQR from 'qr';
import { z } from 'zod';
import type { Context } from '../context.ts';
import { PENDING_KINDS } from '../coordination/pending-kinds.ts';
import { invalidToken, notFound } from '../domain/errors.ts';
import type { Session } from '../domain/resources.ts';
import { foldText } from '../domain/text.ts';
import { parseToken } from '../domain/tokens.ts';
import type { PrincipalRoute } from '../http/route.ts';
import { confirmDeviceCode, issueDeviceCode, takeDeviceCode } from '../sign-in/device-codes.ts';
import { openAppSession, readWaysIn } from '../store/identities.ts';
import { findPrincipal, revokeToken } from '../store/tokens.ts';

/** Signing in another device by a code that a signed-in page shows. */

const issue: PrincipalRoute = {
  path: '/login/device',
  scope: 'write',
  summary: 'Make a code that signs in another device',
  description: 'The code works once, for five minutes. A further one ends the one before it.',
  body: z.object({}),
  response: z.object({
    code: z.string(),
    link: z.string(),
    expires_in_seconds: z.number(),
    qr: z.object({ size: z.number(), path: z.string() }),
  }),
  async handle({ context, principal, request }) {
    // A replica may remember a session that has ended meanwhile.
    if ((await findPrincipal(context.database, principal)) === undefined) throw invalidToken();
    const code = await issueDeviceCode(context.coordination.pending, principal);
    const link = `${request.headers.origin}/#code=${code}`;
    return { code, link, expires_in_seconds: PENDING_KINDS.deviceCodes.lifeMs / 1_000, qr: drawQr(link) };
  },
};

/** A QR code as the path of an SVG: `size` units wide and high, four of them empty at each side. */
function drawQr(text: string): { size: number; path: string } {
  const rows = encodeQR(text, 'raw', { ecc: 'medium', border: 4 });
  const path = rows.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')));
  return { size: rows.length, path: path.join('') };
}

const ways: PrincipalRoute = {
  path: '/login/ways',
  scope: 'read',
  summary: 'List the ways in that are left without the session of this browser',
  description:
    'Whether the provider is linked, how many passkeys there are, and how many other sessions, those of apps apart.',
  body: z.object({}),
  response: z.object({ provider: z.boolean(), passkeys: z.number(), other_sessions: z.number() }),
  handle: ({ context, principal }) =>
    readWaysIn(context.database, principal, context.config.signIn.provider?.issuer),
};

/** What the service's own pages do under `/web/`. */
export const deviceRoutes = [issue, ways];

/**
 * Opens a session by a code of another device, and throws `NOT_FOUND` where the code is worth nothing. The code is used
 * up in any case.
 */
export async function exchangeDeviceCode(
  context: Context,
  { code, emailKey }: { code: string; emailKey?: string | undefined },
  client: string | null,
): Promise<Session> {
  const { config, coordination, database } = context;
  const maker = await takeDeviceCode(coordination.pending, code);
  const opened = maker && (await openAppSession(database, maker, null, config.sessionDays, client));
  if (opened === undefined) throw notFound('the code');
  // Nobody has the token yet. Where ending the session fails, it stays in the list of sessions until it expires.
  const end = () => revokeToken(database, parseToken(opened.token)!).catch(() => {});
  const isConfirmed = await confirmDeviceCode(coordination.pending, code, maker!).catch(async (error) => {
    await end();
    throw error;
  });
  if (isConfirmed && (emailKey === undefined || foldText(opened.user.email) === emailKey)) return opened;
  await end();
  throw notFound('the code');
}
