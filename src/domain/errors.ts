import type { ErrorCode } from './resources.ts';

/** The errors of docs/contract.md, section 7, and of decisions 3 and 43. */

/** The body of every error response (docs/contract.md, section 7). */
export interface ErrorBody {
  error: string;
  code: ErrorCode;
}

/** An error that is sent to the client unchanged. Its message may name fields and rules, but never values. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ErrorCode;
  /** Whole seconds after which the client may retry, at least 1. Undefined if unknown. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message: string, retryAfterSeconds?: number) {
    // The error has no stack trace, because making one takes more time than everything else about refusing a request.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  get body(): ErrorBody {
    return { error: this.message, code: this.code };
  }
}

/** Whether a thrown value is an `ApiError` with this code. */
export const hasCode = (error: unknown, code: ErrorCode): error is ApiError =>
  error instanceof ApiError && error.code === code;

export const invalid = (message: string) => new ApiError('VALIDATION_ERROR', message);
export const notFound = (what: string) => new ApiError('NOT_FOUND', `${what} does not exist`);
export const invalidToken = () =>
  new ApiError('INVALID_TOKEN', 'the access token is missing, invalid or expired');
export const accountSuspended = () =>
  new ApiError('ACCOUNT_SUSPENDED', 'the account is suspended: contact the operator of this service');
export const permissionDenied = (message: string) => new ApiError('PERMISSION_DENIED', message);
export const conflict = (message: string) => new ApiError('CONFLICT', message);
export const limitExceeded = (message: string) => new ApiError('LIMIT_EXCEEDED', message);
export const rateLimited = (retryAfterSeconds: number, message = 'too many requests') =>
  new ApiError('RATE_LIMITED', message, retryAfterSeconds);
export const unavailable = (message: string, retryAfterSeconds = 1) =>
  new ApiError('UNAVAILABLE', message, retryAfterSeconds);
