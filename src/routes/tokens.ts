import { z } from 'zod';
import { notifyPolls } from '../coordination/channels.ts';
import { BOUNDS, id, tagName } from '../domain/fields.ts';
import { foldText } from '../domain/text.ts';
import { createSecret, formatToken, type Principal, type TokenKind } from '../domain/tokens.ts';
import { principalRoute, type RouteRequest } from '../http/route.ts';
import { forgetSession } from '../http/session-cookie.ts';
import { cancelDeviceCode } from '../sign-in/device-codes.ts';
import {
  createOwnToken,
  listOwnTokens,
  listSessions,
  revokeOtherSessions,
  revokeOwnToken,
} from '../store/own-tokens.ts';
import { notifyAfter } from './notify-after.ts';
import * as schemas from './response-schemas.ts';

/** A user's own tokens and sessions: docs/contract.md, section 4.5. All endpoints require a session. */

/** The name of a token. The rules are those for the names of tags. */
const name = tagName.meta({ examples: ['backup script'] });

const scope = z.enum(['read', 'write']);

const DAYS_RULE = 'expected an integer from 1 to 365, or null';

const ofAnyToken = {
  id,
  scope,
  created_at: schemas.timestampText,
  expires_at: schemas.timestampText.nullable(),
  last_used_at: schemas.timestampText.nullable(),
  last_four: z.string().meta({ examples: ['sxT8'] }),
};

const apiToken = {
  ...ofAnyToken,
  kind: z.literal('api'),
  name: z.string().meta({ examples: ['backup script'] }),
};

const revoked = z.object({ revoked: z.literal(true) }).meta({ id: 'Revoked' });

const list = principalRoute({
  path: '/tokens/list',
  scope: 'read',
  needsSession: true,
  summary: 'List your API tokens',
  description: 'Oldest first. `last_used_at` is accurate to 15 minutes; null means never used.',
  body: z.object({}),
  response: z.object({ tokens: z.array(z.object(apiToken).meta({ id: 'Token' })) }),
  handle: async ({ context, principal }) => `{"tokens":${await listOwnTokens(context.database, principal)}}`,
});

const create = principalRoute({
  path: '/tokens/create',
  scope: 'write',
  needsSession: true,
  summary: 'Create an API token',
  description:
    `Only this response contains the token. An account has at most ${BOUNDS.apiTokensPerUser} API tokens. Their ` +
    'names are unique, ignoring case. If an OpenID provider is linked to the account, the session must come from a ' +
    'sign-in through the provider or by a passkey within the last 15 minutes. An Idempotency-Key has no effect, ' +
    'because the token must not be stored. If the response is lost and a retry finds the name taken, revoke the ' +
    'token with this name and create another.',
  body: z.object({
    name,
    scope: scope.default('read'),
    expires_in_days: z.int(DAYS_RULE).min(1, DAYS_RULE).max(365, DAYS_RULE).nullable().default(90),
  }),
  response: z.object({
    token: z.string().meta({ examples: ['bka_42_BcGzEJAmGwg4vGYdvNIrhWPgAPiYz1wPgvwc3GUsxT8'] }),
    ...apiToken,
  }),
  errors: ['LIMIT_EXCEEDED'],
  async handle({ context, principal, body }) {
    const secret = createSecret();
    const { expires_in_days: days, ...nameAndScope } = body;
    const newToken = { ...nameAndScope, nameKey: foldText(body.name), days };
    const created = await createOwnToken(context.database, principal, secret, newToken);
    return { token: formatToken('api', principal.userId, secret.secret), ...created };
  },
});

const revoke = principalRoute({
  path: '/tokens/revoke',
  scope: 'write',
  needsSession: true,
  summary: 'Revoke one of your API tokens',
  description:
    'As soon as the response is sent, the token is invalid on every replica, and its long polls end.',
  body: z.object({ id }),
  response: revoked,
  errors: ['NOT_FOUND'],
  handle: (tokenRequest) => revokeById(tokenRequest, { kind: 'api', id: tokenRequest.body.id }),
});

const listOfSessions = principalRoute({
  path: '/sessions/list',
  scope: 'read',
  needsSession: true,
  summary: 'List your sessions',
  description:
    'Oldest first. `app_name` is the app that the session was opened for; null means a browser, an invite, or a code ' +
    'from another device. `client` is the program that signed in, by its `User-Agent`; null means unknown. ' +
    '`is_current` marks the session of this request.',
  body: z.object({}),
  response: z.object({
    sessions: z.array(
      z
        .object({
          ...ofAnyToken,
          kind: z.literal('session'),
          app_name: z.string().nullable(),
          client: z
            .string()
            .nullable()
            .meta({ examples: ['Firefox on Linux'] }),
          is_current: z.boolean(),
        })
        .meta({ id: 'Session' }),
    ),
  }),
  handle: async ({ context, principal }) => `{"sessions":${await listSessions(context.database, principal)}}`,
});

const revokeSession = principalRoute({
  path: '/sessions/revoke',
  scope: 'write',
  needsSession: true,
  summary: 'End one of your sessions',
  description: 'You may also end the session of this request.',
  body: z.object({ id }),
  response: revoked,
  errors: ['NOT_FOUND'],
  handle: (tokenRequest) => revokeById(tokenRequest, { kind: 'session', id: tokenRequest.body.id }),
});

const revokeOthers = principalRoute({
  path: '/sessions/revoke-others',
  scope: 'write',
  needsSession: true,
  summary: 'End all your other sessions',
  description: 'API tokens remain valid.',
  body: z.object({}),
  response: z.object({ revoked: schemas.count }),
  async handle({ context, principal, idempotency }) {
    // The sessions must end even if the code for another device cannot be cancelled. While Redis cannot be reached,
    // nobody can use that code anyway.
    await cancelDeviceCode(context.coordination.pending, principal).catch(() => {});
    return notifyAfter(context, principal, notifyPolls, () =>
      revokeOtherSessions(context.database, principal, idempotency),
    );
  },
});

async function revokeById(
  {
    context,
    principal,
    request,
    reply,
    idempotency,
  }: Omit<RouteRequest<unknown>, 'body'> & { principal: Principal },
  token: { kind: TokenKind; id: number },
): Promise<string> {
  const revoke = () => revokeOwnToken(context.database, principal, token, idempotency);
  const { response, isCurrent } = await notifyAfter(context, principal, notifyPolls, revoke);
  if (isCurrent) forgetSession(context, request, reply);
  return response;
}

export const tokenRoutes = [list, create, revoke, listOfSessions, revokeSession, revokeOthers];
