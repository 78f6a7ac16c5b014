import { ApiError } from '../client/errors.ts';
import { texts } from './texts.ts';

/** What went wrong, in words that say what to do. */
export function describeError(error: unknown): string {
  const { errors } = texts;
  if (!(error instanceof ApiError)) return errors.unexpected;
  switch (error.code) {
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
    case 'LIMIT_EXCEEDED':
      return errors.full(error.message);
    case 'PERMISSION_DENIED':
      return errors.denied(error.message);
    default:
      return errors.invalid(error.message);
  }
}

export const hasCode = (error: unknown, code: ApiError['code']): error is ApiError =>
  error instanceof ApiError && error.code === code;

/** Whether a call ended because a newer one took its place. */
export const isAbort = (error: unknown): boolean =>
  error instanceof DOMException && error.name === 'AbortError';
