import { z } from 'zod';
import { notifyPolls } from '../coordination/channels.ts';
import { nameClient } from '../domain/client-name.ts';
import { id, text } from '../domain/fields.ts';
import type { Session } from '../domain/resources.ts';
import { foldText } from '../domain/text.ts';
import { createSecret, formatToken } from '../domain/tokens.ts';
import { limitWrongCodes } from '../http/brute-force-limiter.ts';
import { type PublicRoute, principalRoute, publicRoute, type RouteRequest } from '../http/route.ts';
import { forgetSession, setSessionCookie } from '../http/session-cookie.ts';
import { revokeToken } from '../store/tokens.ts';
import { deleteAccount, exchangeInvite, readAccount, readProfile } from '../store/users.ts';
import { notifyAfter } from './notify-after.ts';
import { count, deleted, timestampText } from './response-schemas.ts';

/** Account and session: docs/contract.md, section 4.1. */

const email = z.string().meta({ examples: ['you@example.org'] });

const givenEmail = text({ max: 254, min: 1 }).meta({
  maxLength: 254,
  minLength: 1,
  examples: ['you@example.org'],
});

const token = z.string().meta({ examples: ['bks_42_BcGzEJAmGwg4vGYdvNIrhWPgAPiYz1wPgvwc3GUsxT8'] });

export const user = z.object({ id, email }).meta({ id: 'User' });

/** The response to the exchange of a code. */
export const openedSession = z.object({ token, user });

/** The longest valid address, with every character escaped as a surrogate pair, has 3,048 bytes. */
export const CODE_BODY_BYTES = 4_096;

/** Makes the schema of a body with a code of `length` characters. */
export const codeBody = (length: number, example: string) =>
  z.object({
    code: z
      .string()
      .regex(new RegExp(`^[A-Z0-9]{${length}}$`), `expected ${length} characters, A to Z and 0 to 9`)
      .meta({ examples: [example] }),
    email: givenEmail.optional(),
  });

type CodeBody = ReturnType<typeof codeBody>;

/** A request to open a session with a code. */
export type CodeRequest = RouteRequest<z.output<CodeBody>>;

const exchangeBody = codeBody(8, 'K7Q2M9XD');

/** Opens a session with an invite code. Throws `NOT_FOUND` for a wrong code. */
async function openSession({ context, body: { code, email }, request }: CodeRequest): Promise<Session> {
  const emailKey = email === undefined ? undefined : foldText(email);
  const client = nameClient(request.headers['user-agent']);
  const { sessionDays } = context.config;
  const secret = createSecret();
  const invitedUser = await limitWrongCodes(context, request, emailKey, () =>
    exchangeInvite(context.database, { code, emailKey }, secret, sessionDays, client),
  );
  return { token: formatToken('session', invitedUser.id, secret.secret), user: invitedUser };
}

const exchange = publicRoute({
  path: '/auth/invite',
  scope: 'public',
  summary: 'Exchange an invite code for a session token',
  description:
    'An invite works once. Only this response contains the token. The scope of the token is `write`. If you know the ' +
    'e-mail address that the invite was sent to, send it too. A code for another address is then refused, and wrong ' +
    'codes that others send without this address do not limit your request.',
  body: exchangeBody,
  exampleLeavesOut: ['email'],
  bodyLimit: CODE_BODY_BYTES,
  response: openedSession,
  errors: ['NOT_FOUND'],
  handle: openSession,
});

/**
 * Returns a route like `route` for browsers. It puts the session token into a cookie that scripts cannot read, and not
 * into the response.
 */
export const inBrowser = (
  route: PublicRoute,
  path: string,
  body: CodeBody,
  open: (request: CodeRequest) => Promise<Session>,
): PublicRoute<CodeBody> => ({
  ...route,
  path,
  body,
  response: z.object({ user }),
  async handle(loginRequest) {
    const session = await open(loginRequest);
    setSessionCookie(loginRequest.context, loginRequest.reply, session.token);
    return { user: session.user };
  },
});

const profileResponse = z.object({ email, is_premium: z.boolean(), created_at: timestampText });

const profile = principalRoute({
  path: '/user/profile',
  scope: 'read',
  summary: 'Read the profile of the current user',
  description: 'Returns the e-mail address, the tier, and when the account was created.',
  body: z.object({}),
  response: profileResponse,
  handle: ({ context, principal }) => readProfile(context.database, principal),
});

const get = principalRoute({
  path: '/account/get',
  scope: 'read',
  summary: 'Read the account and the token of this request',
  description:
    'Returns the profile, the id of the user, how many bookmarks the account holds and may hold (null: no limit), the ' +
    "token's scope, and when the token expires (null: never).",
  body: z.object({}),
  response: profileResponse.extend({
    id,
    bookmark_count: count,
    bookmark_limit: count.meta({ examples: [10_000] }).nullable(),
    scope: z.enum(['read', 'write']),
    token_expires_at: timestampText.nullable(),
  }),
  handle: ({ context, principal }) =>
    readAccount(context.database, principal, context.config.freeBookmarkLimit),
});

const logout = principalRoute({
  path: '/logout',
  scope: 'read',
  summary: 'Revoke the token of this request',
  description:
    'As soon as the response is sent, the token is invalid on every replica. API tokens can log out too.',
  body: z.object({}),
  response: z.object({
    logged_out: z.literal(true),
    message: z.string().meta({ examples: ['the session has ended'] }),
  }),
  async handle({ context, principal, request, reply }) {
    await notifyAfter(context, principal, notifyPolls, () => revokeToken(context.database, principal));
    context.principals.forget(principal);
    forgetSession(context, request, reply);
    const message = principal.kind === 'session' ? 'the session has ended' : 'the token is revoked';
    return { logged_out: true, message };
  },
});

const remove = principalRoute({
  path: '/account/delete',
  scope: 'write',
  needsSession: true,
  summary: 'Delete the account and all its data',
  description:
    'Deletes bookmarks, tags, tokens and sessions permanently. If an OpenID provider is linked to the account, the ' +
    'session must come from a sign-in through the provider or by a passkey within the last 15 minutes.',
  body: z.object({ confirm: text({ max: 254, min: 1 }).meta({ examples: ['you@example.org'] }) }),
  response: deleted,
  async handle({ context, principal, body, request, reply }) {
    // This uses the import pool, because the statement may take long and may wait for an import of the account.
    const { importDatabase } = context;
    await notifyAfter(context, principal, notifyPolls, () =>
      deleteAccount(importDatabase, principal, foldText(body.confirm)),
    );
    context.principals.forget(principal);
    forgetSession(context, request, reply);
    return { deleted: true };
  },
});

export const accountRoutes = [exchange, profile, logout, get, remove];

/** Logging in and out in a browser, under `/web/`. */
export const browserRoutes = [
  inBrowser(exchange, '/login/invite', exchangeBody, openSession),
  { ...logout, summary: 'End the session of this browser' },
];
