import { type ApiError, connectionCodes } from './errors.ts';
import { backoffMs } from './timing.ts';

/**
 * The client waits longer than the service asks, by up to this fraction, so that clients do not all return at the same
 * time.
 */
const STRETCH = 0.1;

/** Node's codes for a connection that was never made. After such an error, nothing has been sent. */
const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

/**
 * Returns the wait in ms before a request is sent again. Returns undefined if the request must not be sent again.
 * `failures` is how many times in a row the request has failed. `isRepeatable` means that a repeat is safe even if the
 * service has already processed the request.
 */
export function retryDelayMs(
  error: ApiError,
  failures: number,
  isRepeatable: boolean,
  random: () => number,
): number | undefined {
  if (!mayRetry(error, isRepeatable)) return undefined;
  const growingWaitMs = backoffMs(failures, random);
  if (error.retryAfterSeconds === undefined) return growingWaitMs;
  const askedMs = error.retryAfterSeconds * 1_000;
  const stretchedMs = askedMs + random() * STRETCH * askedMs;
  // The `Retry-After` of a rate limit says exactly when the service accepts the next request. Nobody knows when a
  // failure of another kind ends, so the wait then also grows with each failure.
  return error.code === 'RATE_LIMITED' ? stretchedMs : Math.max(stretchedMs, growingWaitMs);
}

function mayRetry(error: ApiError, isRepeatable: boolean): boolean {
  // A status of 429 means that the service refused the request before it did any work.
  if (error.status === 429) return true;
  // An `UNEXPECTED_ANSWER` without a status means that the address redirects. It would redirect the next attempt too.
  if (error.code === 'UNEXPECTED_ANSWER' && error.status === 0) return false;
  // The client got no complete response. So the service may have processed the request, unless nothing was sent.
  if (error.status === 0) return isRepeatable || connectionCodes(error).some((code) => NEVER_SENT.has(code));
  return isRepeatable && (error.status >= 500 || error.status === 408);
}
