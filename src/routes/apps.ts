import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Context } from '../context.ts';
import { parseBody } from '../domain/validation.ts';
import { addPage, originOf, type PageRequest, queryOf, readParameters } from '../http/pages.ts';
import type { PrincipalRoute } from '../http/route.ts';
import { type AppRequestBody, appRequestSchema, issueCode } from '../sign-in/app-codes.ts';
import { addParameters, isLoopbackRedirect } from '../sign-in/app-redirects.ts';
import type { Page } from '../sign-in/page.ts';
import { approvalPage, signInPage } from '../sign-in/pages.ts';
import { readReturnTo, returnTo } from '../sign-in/return-to.ts';
import { readProfile } from '../store/users.ts';
import { findBrowserPrincipal, sendToProvider } from './sign-in.ts';

/**
 * Sessions of apps (RFC 8252; docs/contract.md, decision 31). A person approves the app in the browser, and the app
 * gets a code.
 */

const APP_PATH = '/login/app';

/** Adds the page where a person approves an app. */
export function appPages(app: FastifyInstance, context: Context): void {
  addPage(app, context, APP_PATH, (pageRequest) => askForApproval(context, pageRequest));
}

/** Returns the approval page, or the sign-in page if nobody is signed in. Opening either page changes nothing. */
async function askForApproval(
  context: Pick<Context, 'config' | 'database' | 'site'>,
  { request }: PageRequest,
): Promise<Page> {
  const { config, database } = context;
  const appRequest = parseBody(appRequestSchema(config.signIn.appRedirects), readParameters(request));
  const principal = await findBrowserPrincipal(context, request);
  const currentPath = readReturnTo(`${APP_PATH}?${queryOf(request)}`) ?? '/';
  if (principal === undefined) return signInPage(config.signIn.provider?.name, currentPath);
  const { email } = await readProfile(database, principal);
  const { redirect_uri: redirectUri, state, name } = appRequest;
  return approvalPage({
    name,
    redirectUri,
    declineUrl: addParameters(redirectUri, { error: 'access_denied', state, iss: originOf(context) }),
    email,
    body: appRequest,
    isLoopback: isLoopbackRedirect(redirectUri),
  });
}

/** Approves an app for the user of this browser's session. The page then redirects to the app with the code. */
const approve: PrincipalRoute = {
  path: APP_PATH,
  scope: 'write',
  summary: 'Approve an app and issue its code',
  description: 'The code can be exchanged once, within 60 s.',
  body: z.looseObject({}),
  response: z.object({ location: z.string() }),
  async handle({ context, principal, body }) {
    const { config, coordination } = context;
    const appRequest: AppRequestBody = parseBody(appRequestSchema(config.signIn.appRedirects), body);
    const code = await issueCode(coordination.pending, {
      userId: principal.userId,
      session: principal.hash.toString('hex'),
      redirectUri: appRequest.redirect_uri,
      challenge: appRequest.code_challenge,
      name: appRequest.name,
    });
    const parameters = { code, state: appRequest.state, iss: originOf(context) };
    return { location: addParameters(appRequest.redirect_uri, parameters) };
  },
};

const linkBody = z.object({ return_to: returnTo });

/** Starts to link the provider to the account of this browser's session. The page then redirects to the provider. */
const link: PrincipalRoute<typeof linkBody> = {
  path: '/login/link',
  scope: 'write',
  summary: 'Link the provider to the account of this browser',
  description:
    'The person then signs in at the provider. From then on, this provider account signs in to the account here.',
  body: linkBody,
  response: z.object({ location: z.string() }),
  async handle({ context, principal, body, request, reply }) {
    const intent = {
      kind: 'link',
      userId: principal.userId,
      session: principal.hash.toString('hex'),
    } as const;
    const isFresh = true;
    return { location: await sendToProvider(context, { request, reply }, intent, body.return_to, isFresh) };
  },
};

/** Endpoints that the service's own pages use under `/web/`. */
export const appWebRoutes = [approve, link];
