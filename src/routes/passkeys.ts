import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { nameClient } from '../domain/client-name.ts';
import { invalid, notFound, permissionDenied } from '../domain/errors.ts';
import { tagName } from '../domain/fields.ts';
import type { PrincipalRoute, PublicRoute } from '../http/route.ts';
import { setSessionCookie } from '../http/session-cookie.ts';
import {
  findRelyingParty,
  offerAddition,
  offerSignIn,
  type RelyingParty,
  readUserHandle,
  takeSignIn,
  verifyAddition,
  verifySignIn,
} from '../sign-in/passkeys.ts';
import {
  addPasskey,
  findPasskey,
  listPasskeys,
  removePasskey,
  requireFreshSession,
  signInByPasskey,
} from '../store/passkeys.ts';
import { user } from './account.ts';
import { timestampText } from './response-schemas.ts';

/** Signing in with a passkey, and the passkeys of an account. */

const base64url = (max: number) =>
  z
    .string()
    .max(max, `expected at most ${max} characters`)
    .regex(/^[\w-]+$/, 'expected base64url');

/** WebAuthn allows ids of up to 1,023 bytes, which are 1,364 characters in base64url. */
const credentialId = base64url(1_364);

/** Returns the relying party for the page that sent the request. `refuseForeignPage` has checked the page's origin. */
function requireRelyingParty({ headers }: FastifyRequest): RelyingParty {
  const party = findRelyingParty(headers.origin);
  if (party === undefined) throw permissionDenied('passkeys need a host name, not an IP address');
  return party;
}

const offer: PublicRoute = {
  path: '/login/passkey/options',
  scope: 'public',
  summary: 'Start signing in with a passkey',
  description: 'The challenge works once, within five minutes.',
  body: z.object({}),
  response: z.object({ challenge: z.string() }),
  handle: ({ context, request }) => offerSignIn(context.coordination.pending, requireRelyingParty(request)),
};

const signInBody = z.object({
  credential_id: credentialId,
  client_data: base64url(8_192),
  authenticator_data: base64url(8_192),
  signature: base64url(8_192),
  user_handle: base64url(88),
});

const signIn: PublicRoute<typeof signInBody> = {
  path: '/login/passkey',
  scope: 'public',
  summary: 'Open a session of this browser with a passkey',
  description: 'The response is the same for every invalid answer.',
  body: signInBody,
  response: z.object({ user }),
  errors: ['NOT_FOUND'],
  async handle({ context, body, request, reply }) {
    const { config, coordination, database } = context;
    const party = requireRelyingParty(request);
    const challenge = await takeSignIn(coordination.pending, body);
    const userId = readUserHandle(body.user_handle);
    if (challenge === undefined || userId === undefined) throw notFound('the passkey');
    const passkey = await findPasskey(database, userId, body.credential_id);
    const counter = passkey && (await verifySignIn(body, challenge, party, passkey));
    if (counter === undefined) throw notFound('the passkey');
    const session = await signInByPasskey(
      database,
      { userId, credentialId: body.credential_id, counter },
      config.sessionDays,
      nameClient(request.headers['user-agent']),
    );
    setSessionCookie(context, reply, session.token);
    return { user: session.user };
  },
};

const list: PrincipalRoute = {
  path: '/login/passkey/list',
  scope: 'read',
  summary: 'List your passkeys',
  description: 'Oldest first.',
  body: z.object({}),
  response: z.object({
    passkeys: z.array(
      z.object({
        id: z.string(),
        name: z.string().nullable(),
        created_at: timestampText,
        last_used_at: timestampText.nullable(),
      }),
    ),
  }),
  async handle({ context, principal }) {
    const { passkeys } = await listPasskeys(context.database, principal);
    return { passkeys };
  },
};

const begin: PrincipalRoute = {
  path: '/login/passkey/new',
  scope: 'write',
  summary: 'Start adding a passkey',
  description: 'The challenge works once, within five minutes, for this session.',
  body: z.object({}),
  response: z.object({ challenge: z.string() }),
  async handle({ context, principal, request }) {
    const party = requireRelyingParty(request);
    await requireFreshSession(context.database, principal);
    const { email, passkeys } = await listPasskeys(context.database, principal);
    return offerAddition(context.coordination.pending, principal, party, {
      email,
      credentialIds: passkeys.map(({ id }) => id),
    });
  },
};

const addBody = z.object({
  credential_id: credentialId,
  client_data: base64url(8_192),
  attestation: base64url(32_768),
  name: tagName.nullish(),
});

const add: PrincipalRoute<typeof addBody> = {
  path: '/login/passkey/add',
  scope: 'write',
  summary: 'Add a passkey to the account',
  description: 'Without a `name`, the passkey is named after the browser that created it.',
  body: addBody,
  response: z.object({ added: z.literal(true) }),
  async handle({ context, principal, body, request }) {
    const party = requireRelyingParty(request);
    const passkey = await verifyAddition(context.coordination.pending, principal, body, party);
    if (passkey === undefined) throw invalid('attestation: does not match a challenge of this session');
    const name = body.name ?? nameClient(request.headers['user-agent']);
    await addPasskey(context.database, principal, { ...passkey, name });
    return { added: true };
  },
};

const removeBody = z.object({ id: credentialId });

const remove: PrincipalRoute<typeof removeBody> = {
  path: '/login/passkey/remove',
  scope: 'write',
  summary: 'Remove a passkey',
  description: 'The last passkey can be removed only if the provider is linked.',
  body: removeBody,
  response: z.object({ removed: z.literal(true) }),
  async handle({ context, principal, body }) {
    await removePasskey(context.database, principal, body.id, context.config.signIn.provider?.issuer);
    return { removed: true };
  },
};

/** Endpoints that the service's own pages use under `/web/`. */
export const passkeyRoutes = [offer, signIn, list, begin, add, remove];
