import { ApiError } from '../client/errors.ts';
import { texts } from './texts.ts';

/** Describes an error to the user, and says what they can do. */
export const describeError = (error: unknown): string =>
  error instanceof ApiError ? describeFault(error) : texts.errors.unexpected;

/** Like `describeError`, for an error from a worker. Such an error arrives as a code and a message. */
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
      return texts.signIn.needed;
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

/** True if a request was aborted, because a newer one replaces it. */
export const isAbort = (error: unknown): boolean =>
  error instanceof DOMException && error.name === 'AbortError';
