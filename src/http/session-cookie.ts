import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { MAX_SESSION_DAYS, type PresentedToken, parseToken } from '../domain/tokens.ts';

/**
 * The cookie of a browser's session. `__Host-` has the browser keep it for this host alone and take it only over TLS. On
 * plain HTTP, which is for loopback only, there is no such name.
 */
const nameOf = (origin: string | undefined, name: 'session' | 'login' = 'session'): string =>
  origin?.startsWith('https:') ? `__Host-${name}` : name;

/** How long a browser has for a login by a provider. */
const LOGIN_SECONDS = 600;

/**
 * Tells the page's scripts that this browser has a session, which they cannot see otherwise. It grants nothing: without it
 * the page asks to sign in at once, instead of after a request that fails.
 */
const HINT = 'signed-in';

/**
 * The value of a cookie in a `Cookie` header, as it was sent; undefined where there is none, or where several have this
 * name: which of them the service has set cannot be known.
 */
function readCookie(header: string | undefined, name: string): string | undefined {
  const values = listCookies(header, name);
  return values.length === 1 ? values[0] : undefined;
}

const listCookies = (header: string | undefined, name: string): string[] =>
  (header ?? '').split(';').flatMap((pair) => {
    const [given, ...value] = pair.split('=');
    return given!.trim() === name && value.length > 0 ? [value.join('=').trim()] : [];
  });

/** Whether a session came, valid or not. */
export const hasSessionCookie = ({ site }: Context, header: string | undefined): boolean =>
  listCookies(header, nameOf(site.origin)).length > 0;

/** The session token in a `Cookie` header; undefined for anything else, an API token too. */
export function readSessionCookie(
  header: string | undefined,
  origin: string | undefined,
): PresentedToken | undefined {
  const token = parseToken(readCookie(header, nameOf(origin)));
  return token?.kind === 'session' ? token : undefined;
}

/**
 * Gives the browser a session's token, for the longest that a session can live: it may prolong itself, and the service knows
 * its end.
 */
export function setSessionCookie({ site, config }: Context, reply: FastifyReply, token: string): void {
  const maxAge = Math.max(MAX_SESSION_DAYS, config.sessionDays) * 86_400;
  addCookie(reply, site.origin, nameOf(site.origin), token, maxAge);
  addCookie(reply, site.origin, HINT, '1', maxAge, false);
}

/** The secret that a browser keeps while it signs in by a provider. */
export const readLoginCookie = ({ site }: Context, header: string | undefined): string | undefined =>
  readCookie(header, nameOf(site.origin, 'login'));

/** Gives the browser that secret. `Lax`, for a `Strict` cookie is not sent on the way back from the provider. */
export function setLoginCookie({ site }: Context, reply: FastifyReply, secret: string): void {
  addCookie(reply, site.origin, nameOf(site.origin, 'login'), secret, LOGIN_SECONDS);
}

/** Has a browser forget its session, which this request has ended; a request of the API brought no cookie that counts. */
export function forgetSession(context: Context, request: FastifyRequest, reply: FastifyReply): void {
  if (request.routeOptions.config.mount?.isForBrowser === true) clearSessionCookie(context, reply);
}

/** Has the browser forget the session's token. */
export function clearSessionCookie({ site }: Context, reply: FastifyReply): void {
  addCookie(reply, site.origin, nameOf(site.origin), '', 0);
  addCookie(reply, site.origin, HINT, '', 0, false);
}

function addCookie(
  reply: FastifyReply,
  origin: string | undefined,
  name: string,
  value: string,
  maxAge: number,
  isHttpOnly = true,
): void {
  const httpOnly = isHttpOnly ? '; HttpOnly' : '';
  const secure = origin?.startsWith('https:') ? '; Secure' : '';
  reply.header('set-cookie', `${name}=${value}; Path=/${httpOnly}; SameSite=Lax${secure}; Max-Age=${maxAge}`);
}
