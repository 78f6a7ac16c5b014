import { ApiError } from '../client/errors.ts';
import { texts } from './texts.ts';

/** Returns a text for the user that describes an error. */
export const describeError = (error: unknown): string =>
  error instanceof ApiError ? describeFault(error) : texts.errors.unexpected;

/** Like `describeError`, but takes a code and a message. A web worker reports an error in this form. */
export function describeFault({ code, message }: { code: string; message: string }): string {
  const { errors } = texts;
  switch (code) {
    case 'CONNECTION_LOST':
    case 'TIMEOUT':
      return errors.lost;
    case 'UNAVAILABLE':
    case 'UNEXPECTED_ANSWER':
      return errors.unavailable;
    case 'RATE_LIMITED':
      return errors.limited;
    case 'INTERNAL_ERROR':
      return errors.internal;
    case 'NOT_FOUND':
      return errors.gone;
    case 'INVALID_TOKEN':
      return texts.signInNeeded;
    case 'ACCOUNT_SUSPENDED':
      return errors.suspended;
    case 'LIMIT_EXCEEDED':
      return errors.full(message);
    case 'PERMISSION_DENIED':
      return errors.denied(message);
    case 'VALIDATION_ERROR':
      return errors.invalid(message);
    default:
      return errors.unexpected;
  }
}

export const hasCode = (error: unknown, code: ApiError['code']): error is ApiError =>
  error instanceof ApiError && error.code === code;

/** True if a request got no response. */
export const isUnreachable = (error: unknown): boolean =>
  hasCode(error, 'CONNECTION_LOST') || hasCode(error, 'TIMEOUT');

/** True if this is the error of an aborted request. The page aborts a request when a newer one replaces it. */
export const isAbort = (error: unknown): boolean =>
  error instanceof DOMException && error.name === 'AbortError';
