import type { FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { invalid, permissionDenied } from '../domain/errors.ts';
import { type PresentedToken, parseToken } from '../domain/tokens.ts';
import { readSessionCookie } from './session-cookie.ts';

/** The base paths of routes, and how a request presents its token at each. */

export interface Mount {
  /** The prefix of its routes. */
  basePath: string;
  /** Whether only the service's own pages use it. Their session is a cookie. */
  isForBrowser: boolean;
  /** Throws if a request is not allowed here, whatever its token. */
  refuse(context: Context, request: FastifyRequest): void;
  /** The request's token; undefined if there is none or it is malformed. */
  readToken(context: Context, request: FastifyRequest): PresentedToken | undefined;
}

/** The prefix of every endpoint of the specification (section 1). */
export const BASE_PATH = '/api/v1';

const AUTHORIZATION = /^Bearer +([\w-]+) *$/i;

/** The token in an `Authorization` header; undefined if there is none or it is malformed. */
const readBearerToken = (header: string | undefined): PresentedToken | undefined =>
  parseToken(AUTHORIZATION.exec(header ?? '')?.[1]);

/** The API. The token is in the `Authorization` header; cookies are ignored. */
export const API: Mount = {
  basePath: BASE_PATH,
  isForBrowser: false,
  refuse: () => {},
  readToken: (_context, { headers }) => readBearerToken(headers.authorization),
};

/** The prefix of everything that only the service's own pages use. */
export const WEB_PATH = '/web';

/** Routes that only the service's own pages need, such as logging in and out. */
export const WEB: Mount = {
  basePath: WEB_PATH,
  isForBrowser: true,
  refuse: refuseForeignPage,
  readToken: ({ site }, { headers }) => readSessionCookie(headers.cookie, site.origin),
};

/** The routes of the API again, with the session cookie as the token. */
export const WEB_API: Mount = { ...WEB, basePath: WEB_PATH + BASE_PATH };

const JSON_TYPE = /^application\/json *(;|$)/i;

/**
 * Browsers also send the session cookie with requests of some other pages, for example those on another port of this
 * host. So this checks the page's origin, which a page cannot forge. JSON from another origin would also need a
 * preflight, which is always refused here.
 */
function refuseForeignPage({ site }: Context, { headers }: FastifyRequest): void {
  if (headers.origin === undefined || ![site.origin, site.namedOrigin].includes(headers.origin))
    throw permissionDenied(`Origin: expected ${site.origin}`);
  if (!JSON_TYPE.test(headers['content-type'] ?? ''))
    throw invalid('Content-Type: expected application/json');
}
