import type { FastifyReply, FastifyRequest } from 'fastify';
import { PendingUnavailable } from '../coordination/port.ts';
import { ApiError, type ErrorBody, invalid, rateLimited, unavailable } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/resources.ts';
import { messageOf, systemCodeOf } from '../domain/thrown.ts';
import { SignInError } from '../sign-in/sign-in-error.ts';
import { DatabaseUnavailable, sqlStateOf } from '../store/driver/errors.ts';

/** Turns every thrown error into a response of the same shape (docs/contract.md, section 7, decisions 2 and 3). */

/** The HTTP status of each error code (docs/contract.md, section 7, decision 3). */
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
 * Headers of all responses, even those to malformed requests. They keep personal data out of caches, and prevent
 * browsers from treating text as a page, a script or a style. Responses without personal data may replace
 * `cache-control`.
 */
export const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const;

function describeFrameworkError(error: Error): string {
  switch (systemCodeOf(error)) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return 'body: is too large';
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return 'Content-Type: expected application/json';
    case 'FST_ERR_BAD_URL':
      return 'url: is malformed';
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return 'body: its length differs from Content-Length';
    default:
      return 'body: is malformed';
  }
}

/** Distinguishes a database that cannot be reached from a request that took too long. */
const describeUnavailable = ({ reason }: DatabaseUnavailable): string =>
  reason === 'cancelled' || reason === 'pool' || reason === 'deadline' || reason === 'conflict'
    ? 'the request took too long'
    : 'the service cannot reach its database';

/**
 * Returns the error to send. Returns undefined for a defect of the service, because only the log may contain the
 * details.
 */
export function toApiError(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error;
  // The delay until the client's retry is random between 1 and 5 s, so that clients do not all return at the same time.
  if (error instanceof DatabaseUnavailable)
    return unavailable(describeUnavailable(error), 1 + Math.floor(Math.random() * 5));
  if (error instanceof PendingUnavailable)
    return unavailable('signing in is not possible while Redis is unavailable', 5);
  if (error instanceof SignInError) return unavailable('the sign-in provider did not respond correctly', 30);
  if (!(error instanceof Error && 'statusCode' in error)) return undefined;
  const status = Number(error.statusCode);
  if (status === 429) return rateLimited(1);
  return status >= 400 && status < 500 ? invalid(describeFrameworkError(error)) : undefined;
}

const INTERNAL: ErrorBody = {
  error: 'the service failed unexpectedly',
  code: 'INTERNAL_ERROR',
};

/** Whether an error means only that the client left before the first byte of a stream. This is no defect. */
const hasClientLeft = (error: unknown, reply: FastifyReply): boolean =>
  reply.raw.destroyed && systemCodeOf(error) === 'ERR_STREAM_PREMATURE_CLOSE';

/**
 * Sends an error response. Logs a defect with its stack. If the response is a 503, keeps the reason, so that the
 * request's log line can contain it.
 */
export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const apiError = toApiError(error);
  const body = apiError?.body ?? INTERNAL;
  const status = STATUS_BY_CODE[body.code];
  if (hasClientLeft(error, reply)) request.log.info('the client disconnected');
  else if (apiError === undefined)
    request.log.error({ err: error, sqlState: sqlStateOf(error) }, 'request failed');
  else if (status >= 500) request.unserved = messageOf(error);
  reply.header('x-request-id', request.id);
  if (status === 401) reply.header('www-authenticate', 'Bearer');
  if (apiError?.retryAfterSeconds !== undefined) reply.header('retry-after', apiError.retryAfterSeconds);
  return reply.code(status).send(body);
}
