import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Context } from '../context.ts';
import { notifyPolls } from '../coordination/channels.ts';
import { nameClient } from '../domain/client-name.ts';
import { permissionDenied } from '../domain/errors.ts';
import type { Principal } from '../domain/tokens.ts';
import { parseBody } from '../domain/validation.ts';
import { addPage, originOf, type PageRequest, queryOf, readParameters } from '../http/pages.ts';
import {
  readLoginCookie,
  readSessionCookie,
  setLoginCookie,
  setSessionCookie,
} from '../http/session-cookie.ts';
import { beginLogin, type Intent, readBrowserKey, takeLogin } from '../sign-in/logins.ts';
import type { Page } from '../sign-in/page.ts';
import { signInPage } from '../sign-in/pages.ts';
import type { Provider } from '../sign-in/provider.ts';
import { returnTo } from '../sign-in/return-to.ts';
import { SignInError } from '../sign-in/sign-in-error.ts';
import { findPrincipal, revokeToken } from '../store/tokens.ts';
import { completeLogin } from './complete-login.ts';

/** Signing in through the provider in a browser (docs/contract.md, decision 31). */

/** If a fresh login is required, the provider must have authenticated the person at most this many seconds ago. */
const FRESH_SECONDS = 900;

/** The path that the provider redirects to. It must be registered at the provider. */
const CALLBACK_PATH = '/login/callback';

/** Adds `/login`, and `/login/callback` if there is a provider. */
export function signInRoutes(app: FastifyInstance, context: Context): void {
  addPage(app, context, '/login', (pageRequest) => beginSignIn(context, pageRequest));
  const { provider } = context;
  if (provider)
    addPage(app, context, CALLBACK_PATH, (pageRequest) => finishSignIn(context, provider, pageRequest));
}

/** Looks up the session of a browser in the database. Returns undefined if the browser has no valid session. */
export async function findBrowserPrincipal(
  { database, site }: Pick<Context, 'database' | 'site'>,
  { headers }: FastifyRequest,
): Promise<Principal | undefined> {
  const token = readSessionCookie(headers.cookie, site.origin);
  return token && findPrincipal(database, token);
}

const loginQuery = z.object({
  return_to: returnTo,
  fresh: z.enum(['true', 'false'], 'expected true or false').default('false'),
});

/**
 * Returns the address at the provider to which the browser is redirected. If somebody is signed in and no fresh login
 * is required, returns the target `return_to` instead. Without a provider, returns the sign-in page.
 */
async function beginSignIn(
  context: Pick<Context, 'coordination' | 'database' | 'provider' | 'site'>,
  { request, reply }: PageRequest,
): Promise<Page | string> {
  const { return_to: returnTo, fresh } = parseBody(loginQuery, readParameters(request));
  const isFresh = fresh === 'true';
  const principal = await findBrowserPrincipal(context, request);
  if (principal && !isFresh) return returnTo;
  if (context.provider === undefined) return signInPage(undefined, returnTo);
  const intent: Intent = principal ? { kind: 'confirm', userId: principal.userId } : { kind: 'sign-in' };
  return sendToProvider(context, { request, reply }, intent, returnTo, isFresh);
}

/**
 * Starts a login, and sets the cookie that holds the browser's secret. Returns the address at the provider. `isFresh`
 * requires a fresh login. Throws `PERMISSION_DENIED` without a provider.
 */
export async function sendToProvider(
  context: Pick<Context, 'coordination' | 'provider' | 'site'>,
  { request, reply }: Pick<PageRequest, 'request' | 'reply'>,
  intent: Intent,
  returnTo: string,
  isFresh: boolean,
): Promise<string> {
  const { provider, coordination } = context;
  if (provider === undefined) throw permissionDenied('this service has no sign-in provider');
  const browserKey = readBrowserKey(readLoginCookie(context, request.headers.cookie));
  const parts = { provider, pending: coordination.pending, callbackUrl: originOf(context) + CALLBACK_PATH };
  const login = { intent, returnTo, maxAgeSeconds: isFresh ? FRESH_SECONDS : undefined };
  const location = await beginLogin(parts, browserKey, login);
  setLoginCookie(context, reply, browserKey);
  return location;
}

/**
 * Opens a session for the person who comes back from the provider, and ends the browser's previous session. Returns the
 * address to redirect to.
 */
async function finishSignIn(
  context: Pick<Context, 'config' | 'coordination' | 'database' | 'metrics' | 'principals' | 'site'>,
  provider: Provider,
  { request, reply }: PageRequest,
): Promise<string> {
  const { coordination } = context;
  const browserKey = readLoginCookie(context, request.headers.cookie);
  const { state } = readCallback(request);
  const login = await takeLogin(coordination.pending, browserKey, state);
  if (login === undefined) throw new SignInError('callback', 'this browser has no login in progress');
  const callback = new URL(`${originOf(context)}${CALLBACK_PATH}?${queryOf(request)}`);
  const person = await provider.finish(callback, login.checks);
  const previous = await findBrowserPrincipal(context, request);
  const client = nameClient(request.headers['user-agent']);
  const { token } = await completeLogin(context, login.intent, person, previous, client);
  setSessionCookie(context, reply, token);
  if (previous) await endSession(context, previous);
  context.metrics.signInEnded('done');
  return login.returnTo;
}

/** Returns a callback's parameters. Throws a `SignInError` if a parameter was sent twice, which no provider does. */
function readCallback(request: FastifyRequest): Record<string, string> {
  try {
    return readParameters(request);
  } catch {
    throw new SignInError('callback', 'a parameter was sent more than once');
  }
}

/** Ends the browser's previous session. Ignores failures of the database, because the new session works anyway. */
async function endSession(
  context: Pick<Context, 'coordination' | 'database' | 'principals'>,
  principal: Principal,
): Promise<void> {
  await revokeToken(context.database, principal).catch(() => {});
  context.principals.forget(principal);
  notifyPolls(context.coordination.notifier, principal.userId);
}
