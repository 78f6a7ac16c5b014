import type { ErrorCode } from '../domain/resources.ts';

/**
 * The codes of spec 7, and three of the client's own: `CONNECTION_LOST` (no response, or a part of one), `TIMEOUT`
 * (no response in time) and `UNEXPECTED_ANSWER` (a response that is not the service's, perhaps a proxy's).
 */
export type ClientErrorCode = ErrorCode | 'CONNECTION_LOST' | 'TIMEOUT' | 'UNEXPECTED_ANSWER';

export interface ApiErrorDetails {
  code: ClientErrorCode;
  status?: number;
  retryAfterSeconds?: number | undefined;
  requestId: string;
  cause?: unknown;
}

/** Every failure of a request, except an abort, which rejects with the signal's own reason. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ClientErrorCode;
  /** The HTTP status; 0 without a response. */
  readonly status: number;
  /** How long the service asks the client to wait; undefined where it does not say. */
  readonly retryAfterSeconds: number | undefined;
  /** The id of the request in the service's log. */
  readonly requestId: string;

  constructor(message: string, details: ApiErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = details.code;
    this.status = details.status ?? 0;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.requestId = details.requestId;
  }
}
