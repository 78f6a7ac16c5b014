/** The errors of spec 7, and the two that decision 3 adds for faults that are not the client's. */

/** Every code of an error answer with its HTTP status. */
export const STATUS_BY_CODE = {
  VALIDATION_ERROR: 400,
  INVALID_TOKEN: 401,
  PERMISSION_DENIED: 403,
  LIMIT_EXCEEDED: 403,
  NOT_FOUND: 404,
  RATE_LIMITED: 429,
  INTERNAL_ERROR: 500,
  UNAVAILABLE: 503,
} as const;

export type ErrorCode = keyof typeof STATUS_BY_CODE;

/** The one shape of an error answer (spec 7). */
export interface ErrorBody {
  error: string;
  code: ErrorCode;
}

/** An error that the client is told of as it stands: its message may name fields and rules, never values. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ErrorCode;
  /** Whole seconds of the `Retry-After` header, at least 1. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message: string, retryAfterSeconds?: number) {
    // Most are answers to a client, and to trace the stack would be the dearest part of refusing one.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  get status(): number {
    return STATUS_BY_CODE[this.code];
  }

  get body(): ErrorBody {
    return { error: this.message, code: this.code };
  }
}

export const invalid = (message: string) => new ApiError('VALIDATION_ERROR', message);
export const notFound = (what: string) => new ApiError('NOT_FOUND', `${what} does not exist`);
export const invalidToken = () =>
  new ApiError('INVALID_TOKEN', 'the access token is missing, invalid or expired');
export const permissionDenied = (message: string) => new ApiError('PERMISSION_DENIED', message);
export const limitExceeded = (message: string) => new ApiError('LIMIT_EXCEEDED', message);
export const rateLimited = (retryAfterSeconds: number, message = 'too many requests') =>
  new ApiError('RATE_LIMITED', message, retryAfterSeconds);
export const unavailable = (message: string, retryAfterSeconds = 1) =>
  new ApiError('UNAVAILABLE', message, retryAfterSeconds);
