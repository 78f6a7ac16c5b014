import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { MAX_SESSION_DAYS, type PresentedToken, parseToken } from '../domain/tokens.ts';

/**
 * Returns the full name of a cookie. With the prefix `__Host-`, a browser sends the cookie to this host only, and only
 * over TLS. Plain HTTP, which is used only on loopback, does not allow the prefix.
 */
const nameOf = (origin: string | undefined, name: 'session' | 'login' = 'session'): string =>
  origin?.startsWith('https:') ? `__Host-${name}` : name;

/** How long a sign-in through the provider may take. */
const LOGIN_SECONDS = 600;

/**
 * The name of a cookie that tells the page whether a session exists. Scripts can read it, unlike the session cookie.
 * If this cookie is missing, the page immediately asks the user to sign in.
 */
const HINT = 'signed-in';

/**
 * Returns the value of the cookie `name`; undefined if there is none. If several cookies have this name, also returns
 * undefined, because another site on this host may have set one of them.
 */
function readCookie(header: string | undefined, name: string): string | undefined {
  const values = listCookies(header, name);
  return values.length === 1 ? values[0] : undefined;
}

const listCookies = (header: string | undefined, name: string): string[] =>
  (header ?? '').split(';').flatMap((pair) => {
    const [cookieName = '', ...value] = pair.split('=');
    return cookieName.trim() === name && value.length > 0 ? [value.join('=').trim()] : [];
  });

/** Whether the request has a session cookie, valid or not. */
export const hasSessionCookie = ({ site }: Pick<Context, 'site'>, header: string | undefined): boolean =>
  listCookies(header, nameOf(site.origin)).length > 0;

/** Returns the session token in a `Cookie` header; undefined if there is none, or if the cookie holds an API token. */
export function readSessionCookie(
  header: string | undefined,
  origin: string | undefined,
): PresentedToken | undefined {
  const token = parseToken(readCookie(header, nameOf(origin)));
  return token?.kind === 'session' ? token : undefined;
}

/**
 * Sets the session cookie for the longest time that a session can last. The server decides when the session really
 * ends.
 */
export function setSessionCookie(
  { site, config }: Pick<Context, 'config' | 'site'>,
  reply: FastifyReply,
  token: string,
): void {
  const maxAgeSeconds = Math.max(MAX_SESSION_DAYS, config.sessionDays) * 86_400;
  addCookie(reply, site.origin, nameOf(site.origin), token, maxAgeSeconds);
  addCookie(reply, site.origin, HINT, '1', maxAgeSeconds, false);
}

/** Returns the secret that a browser keeps in a cookie while its user signs in through the provider. */
export const readLoginCookie = (
  { site }: Pick<Context, 'site'>,
  header: string | undefined,
): string | undefined => readCookie(header, nameOf(site.origin, 'login'));

/** Sets the cookie with the browser's secret for logins. The cookie lasts for as long as a login may take. */
export function setLoginCookie({ site }: Pick<Context, 'site'>, reply: FastifyReply, secret: string): void {
  addCookie(reply, site.origin, nameOf(site.origin, 'login'), secret, LOGIN_SECONDS);
}

/** Clears the session cookie after a request has ended its own session. Does nothing for requests to the API. */
export function forgetSession(
  context: Pick<Context, 'site'>,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  if (request.routeOptions.config.mount?.isForBrowser === true) clearSessionCookie(context, reply);
}

/** Clears the session cookie. */
export function clearSessionCookie({ site }: Pick<Context, 'site'>, reply: FastifyReply): void {
  addCookie(reply, site.origin, nameOf(site.origin), '', 0);
  addCookie(reply, site.origin, HINT, '', 0, false);
}

/** Sets a cookie. It is `Lax`, because browsers would not send a `Strict` cookie after a redirect from the provider. */
function addCookie(
  reply: FastifyReply,
  origin: string | undefined,
  name: string,
  value: string,
  maxAgeSeconds: number,
  isHttpOnly = true,
): void {
  const httpOnly = isHttpOnly ? '; HttpOnly' : '';
  const secure = origin?.startsWith('https:') ? '; Secure' : '';
  reply.header(
    'set-cookie',
    `${name}=${value}; Path=/${httpOnly}; SameSite=Lax${secure}; Max-Age=${maxAgeSeconds}`,
  );
}
