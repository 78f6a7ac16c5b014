import type { FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { invalid, permissionDenied } from '../domain/errors.ts';
import { type PresentedToken, parseToken } from '../domain/tokens.ts';
import { readSessionCookie } from './session-cookie.ts';

/** A base path at which routes are served, and how requests to these routes present their token. */
export interface Mount {
  /** The prefix of the routes' paths. */
  basePath: string;
  /** Whether only the service's own pages use these routes. These pages present the session in a cookie. */
  isForBrowser: boolean;
  /** Throws if a request to these routes is not allowed, whatever its token is. */
  refuse(context: Context, request: FastifyRequest): void;
  /** Returns the request's token; undefined if there is none or if it is malformed. */
  readToken(context: Context, request: FastifyRequest): PresentedToken | undefined;
}

/** The prefix of every endpoint of docs/contract.md (section 1). */
export const BASE_PATH = '/api/v1';

const AUTHORIZATION = /^Bearer +([\w-]+) *$/i;

/** Returns the token in an `Authorization` header; undefined if there is none or if it is malformed. */
const readBearerToken = (header: string | undefined): PresentedToken | undefined =>
  parseToken(AUTHORIZATION.exec(header ?? '')?.[1]);

/** The API for all clients. The token is in the `Authorization` header. Cookies are ignored. */
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

/** The routes of the API, for the service's own pages. The token is in the session cookie. */
export const WEB_API: Mount = { ...WEB, basePath: WEB_PATH + BASE_PATH };

const JSON_TYPE = /^application\/json *(;|$)/i;

/**
 * Refuses requests from pages that are not the service's own. Browsers also send the session cookie with requests of
 * some other pages, for example of pages on another port of this host. But no page can forge its `Origin`. As a second
 * barrier, only JSON is accepted. JSON from another origin needs a preflight, and preflights for these paths are
 * refused.
 */
function refuseForeignPage({ site }: Pick<Context, 'site'>, { headers }: FastifyRequest): void {
  if (headers.origin === undefined || ![site.origin, site.namedOrigin].includes(headers.origin))
    throw permissionDenied(`Origin: expected ${site.origin}`);
  if (!JSON_TYPE.test(headers['content-type'] ?? ''))
    throw invalid('Content-Type: expected application/json');
}
