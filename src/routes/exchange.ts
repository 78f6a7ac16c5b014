import type { z } from 'zod';
import type { Context } from '../context.ts';
import { notifyPolls } from '../coordination/channels.ts';
import { nameClient } from '../domain/client-name.ts';
import { hasCode, notFound } from '../domain/errors.ts';
import type { Session } from '../domain/resources.ts';
import { parseToken } from '../domain/tokens.ts';
import { publicRoute } from '../http/route.ts';
import {
  type ExchangedSession,
  exchangeSchema,
  noteExchange,
  noteRepeat,
  redeemCode,
} from '../sign-in/app-codes.ts';
import { openAppSession } from '../store/identities.ts';
import { revokeToken } from '../store/tokens.ts';
import { openedSession } from './account.ts';
import { notifyAfter } from './notify-after.ts';

/** Exchanges a code for the session of an app (RFC 8252). The response is the same for every code that fails. */
export const exchangeCode = publicRoute({
  path: '/auth/exchange',
  scope: 'public',
  summary: "Exchange an app's code for a session token",
  description:
    'The code comes from `/login/app`. It works once, within 60 s, with the verifier and the redirect address of the ' +
    'original request. If it is sent again within ten minutes, the session from its first use ends. The token is ' +
    'shown once; its scope is write.',
  body: exchangeSchema,
  bodyLimit: 2_048,
  response: openedSession,
  errors: ['NOT_FOUND'],
  async handle({ context, body, request }) {
    const client = nameClient(request.headers['user-agent']);
    const opened = await openApprovedSession(context, body, client);
    if (opened !== undefined) return opened;
    await endRepeated(context, body.code);
    throw notFound('the code');
  },
});

/**
 * Opens the session that a code grants. Returns undefined if the code is invalid. If the code was sent again during the
 * exchange, ends the session and returns undefined.
 */
async function openApprovedSession(
  context: Pick<Context, 'config' | 'coordination' | 'database' | 'principals'>,
  exchange: z.output<typeof exchangeSchema>,
  client: string | null,
): Promise<Session | undefined> {
  const { config, coordination, database } = context;
  const grant = await redeemCode(coordination.pending, exchange);
  const owner = grant && { userId: grant.userId, hash: Buffer.from(grant.session, 'hex') };
  const opened = owner && (await openAppSession(database, owner, grant.name, config.sessionDays, client));
  const session = parseToken(opened?.token);
  if (opened === undefined || session === undefined) return undefined;
  try {
    const wasSentAgain = await noteExchange(coordination.pending, exchange.code, session);
    if (!wasSentAgain) return opened;
  } catch (error) {
    // Nobody has this session's token yet. If the session cannot be ended, it only stays listed until it expires.
    await endSession(context, session).catch(() => {});
    throw error;
  }
  await endSession(context, session);
  return undefined;
}

/**
 * Ends the session that the first use of a repeated code opened, if there is one. One of the two senders may have
 * stolen the code (RFC 6749, section 4.1.2).
 */
async function endRepeated(
  context: Pick<Context, 'coordination' | 'database' | 'principals'>,
  code: string,
): Promise<void> {
  const { pending } = context.coordination;
  const session = await noteRepeat(pending, code);
  if (session === undefined) return;
  try {
    await endSession(context, session);
  } catch (error) {
    // Remember the code again, so that the next request with this code ends the session.
    await noteExchange(pending, code, session);
    throw error;
  }
}

/** Ends a session on every replica, if it still exists. */
async function endSession(
  context: Pick<Context, 'coordination' | 'database' | 'principals'>,
  session: ExchangedSession,
): Promise<void> {
  const revoke = () => revokeToken(context.database, session);
  try {
    await notifyAfter(context, session, notifyPolls, revoke);
  } catch (error) {
    if (!hasCode(error, 'INVALID_TOKEN')) throw error;
  }
}
