import { type ApiError, connectionCodes } from './errors.ts';
import { backoffMs } from './timing.ts';

/** A wait that the service asks for is extended by up to this share, so that clients do not all return at once. */
const STRETCH = 0.1;

/** Node's codes for a connection that was never made, so nothing was sent. */
const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

/**
 * Returns how long to wait before the request is sent again, after its nth failure in a row. Returns undefined if it
 * must not be retried. `isRepeatable` means that the service does the work only once, even if it receives the request
 * again.
 */
export function retryDelayMs(
  error: ApiError,
  failures: number,
  isRepeatable: boolean,
  random: () => number,
): number | undefined {
  if (!mayRetry(error, isRepeatable)) return undefined;
  const backoff = backoffMs(failures, random);
  if (error.retryAfterSeconds === undefined) return backoff;
  const askedMs = error.retryAfterSeconds * 1_000;
  const stretched = askedMs + random() * STRETCH * askedMs;
  // A rate limit states when it ends. Other failures do not, so the client waits longer after each one.
  return error.code === 'RATE_LIMITED' ? stretched : Math.max(stretched, backoff);
}

function mayRetry(error: ApiError, isRepeatable: boolean): boolean {
  if (error.status === 429) return true;
  // A redirect. The next attempt would be redirected too.
  if (error.code === 'UNEXPECTED_ANSWER' && error.status === 0) return false;
  if (error.status === 0) return isRepeatable || connectionCodes(error).some((code) => NEVER_SENT.has(code));
  return isRepeatable && (error.status >= 500 || error.status === 408);
}
