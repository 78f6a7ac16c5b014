import type { FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { invalid, permissionDenied } from '../domain/errors.ts';
import { type PresentedToken, parseToken } from '../domain/tokens.ts';
import { readSessionCookie } from './session-cookie.ts';

/** The places where routes are mounted, and how a request presents its token at each. */

export interface Mount {
  /** Where its routes begin. */
  basePath: string;
  /** Whether it is for the service's own pages, whose session is a cookie. */
  isForBrowser: boolean;
  /** Throws where a request may not come in at all, whoever sends it. */
  refuse(context: Context, request: FastifyRequest): void;
  /** The token that a request presents; undefined for anything that no token of this service can be. */
  readToken(context: Context, request: FastifyRequest): PresentedToken | undefined;
}

/** Where every endpoint of the specification begins (spec 1). */
export const BASE_PATH = '/api/v1';

const AUTHORIZATION = /^Bearer +([\w-]+) *$/i;

/** The token in an `Authorization` header; undefined for anything that no token of this service can be. */
const readBearerToken = (header: string | undefined): PresentedToken | undefined =>
  parseToken(AUTHORIZATION.exec(header ?? '')?.[1]);

/** The API: the token is in the `Authorization` header, and a cookie is nothing. */
export const API: Mount = {
  basePath: BASE_PATH,
  isForBrowser: false,
  refuse: () => {},
  readToken: (_context, { headers }) => readBearerToken(headers.authorization),
};

/** Where everything for the service's own pages begins. */
export const WEB_PATH = '/web';

/** What only the service's own pages need: logging in and out. */
export const WEB: Mount = {
  basePath: WEB_PATH,
  isForBrowser: true,
  refuse: refuseForeignPage,
  readToken: ({ site }, { headers }) => readSessionCookie(headers.cookie, site.origin),
};

/** The routes of the API once more, for the service's own pages. */
export const WEB_API: Mount = { ...WEB, basePath: WEB_PATH + BASE_PATH };

const JSON_TYPE = /^application\/json *(;|$)/i;

/**
 * A browser sends the session's cookie with requests of other pages too. It also names the page's origin, which no page
 * can change, and it asks before it sends JSON to another origin, which the service never allows here.
 */
function refuseForeignPage({ site }: Context, { headers }: FastifyRequest): void {
  if (headers.origin === undefined || ![site.origin, site.namedOrigin].includes(headers.origin))
    throw permissionDenied(`Origin: expected ${site.origin}, as pages of this service send it`);
  if (!JSON_TYPE.test(headers['content-type'] ?? ''))
    throw invalid('Content-Type: expected application/json');
}
