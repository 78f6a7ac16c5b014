import type { FastifyReply, FastifyRequest } from 'fastify';
import { PendingUnavailable } from '../coordination/port.ts';
import { ApiError, type ErrorBody, invalid, rateLimited, unavailable } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/resources.ts';
import { SignInError } from '../sign-in/sign-in-error.ts';
import { DatabaseUnavailable, sqlStateOf } from '../store/errors.ts';

/** Makes an error response, always of the same shape, of anything that was thrown (spec 7, decisions 2 and 3). */

/** Every code of an error response with its HTTP status (spec 7, decision 3). */
export const STATUS_BY_CODE = {
  VALIDATION_ERROR: 400,
  INVALID_TOKEN: 401,
  ACCOUNT_SUSPENDED: 401,
  PERMISSION_DENIED: 403,
  LIMIT_EXCEEDED: 403,
  NOT_FOUND: 404,
  CONFLICT: 409,
  RATE_LIMITED: 429,
  INTERNAL_ERROR: 500,
  UNAVAILABLE: 503,
} as const satisfies Record<ErrorCode, number>;

/**
 * Headers of every response, also to malformed requests: no cache stores personal data, and no browser takes text for
 * a page, a script or a style.
 */
export const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const;

interface FrameworkError {
  code?: unknown;
  statusCode?: unknown;
}

function describeFrameworkError({ code }: FrameworkError): string {
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return 'body: is too large';
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return 'Content-Type: expected application/json';
    case 'FST_ERR_BAD_URL':
      return 'url: is malformed';
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return 'body: is shorter or longer than Content-Length says';
    default:
      return 'body: is malformed';
  }
}

/** Says that the database is away, or only that the request took too long. */
const describeUnavailable = ({ reason }: DatabaseUnavailable): string =>
  reason === 'cancelled' || reason === 'pool' || reason === 'deadline' || reason === 'conflict'
    ? 'the request took longer than it may'
    : 'the service cannot reach its database';

/** The error for the response; undefined for a defect of the service, of which the client learns nothing. */
export function toApiError(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error;
  // Spread over 1 to 5 s, so that clients do not all come back at once when the database does.
  if (error instanceof DatabaseUnavailable)
    return unavailable(describeUnavailable(error), 1 + Math.floor(Math.random() * 5));
  if (error instanceof PendingUnavailable) return unavailable('nobody can sign in while Redis is away', 5);
  if (error instanceof SignInError) return unavailable('the provider does not respond as it should', 30);
  const { statusCode } = error as FrameworkError;
  if (statusCode === 429) return rateLimited(1);
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    return invalid(describeFrameworkError(error as FrameworkError));
  }
  return undefined;
}

const INTERNAL: ErrorBody = {
  error: 'the service failed; nothing is known to be wrong with the request',
  code: 'INTERNAL_ERROR',
};

/** Whether a stream ended because its client left before the first byte. That is no failure. */
const hasClientLeft = (error: unknown, reply: FastifyReply): boolean =>
  reply.raw.destroyed && (error as FrameworkError).code === 'ERR_STREAM_PREMATURE_CLOSE';

/**
 * Sends an error response. A defect is logged with its stack; the reason of a 503 is in the request's own line of the
 * log.
 */
export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = toApiError(error);
  const body = known?.body ?? INTERNAL;
  const status = STATUS_BY_CODE[body.code];
  if (hasClientLeft(error, reply)) request.log.info('the client has gone');
  else if (known === undefined)
    request.log.error({ err: error, sqlState: sqlStateOf(error) }, 'request failed');
  else if (status >= 500) request.unserved = (error as Error).message;
  reply.header('x-request-id', request.id);
  if (status === 401) reply.header('www-authenticate', 'Bearer');
  if (known?.retryAfterSeconds !== undefined) reply.header('retry-after', known.retryAfterSeconds);
  return reply.code(status).send(body);
}
