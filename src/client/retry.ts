import { type ApiError, connectionCodes } from './errors.ts';
import { backoffMs } from './timing.ts';

/** If the service asks for a wait, the client adds up to this share of it. So not all clients return at once. */
const STRETCH = 0.1;

/** Node's codes for a connection that was never made. In these cases nothing was sent. */
const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

/**
 * Returns the wait in ms before a request is sent again. Returns undefined if it must not be sent again. `failures` is
 * the number of its failures in a row. `isRepeatable` means that the service does the work only once, even if it
 * receives the request again.
 */
export function retryDelayMs(
  error: ApiError,
  failures: number,
  isRepeatable: boolean,
  random: () => number,
): number | undefined {
  if (!mayRetry(error, isRepeatable)) return undefined;
  const ownWaitMs = backoffMs(failures, random);
  if (error.retryAfterSeconds === undefined) return ownWaitMs;
  const askedMs = error.retryAfterSeconds * 1_000;
  const stretchedMs = askedMs + random() * STRETCH * askedMs;
  // The `Retry-After` of a rate limit says when the limit ends. Nobody knows when other failures end, so the client
  // waits longer after each one.
  return error.code === 'RATE_LIMITED' ? stretchedMs : Math.max(stretchedMs, ownWaitMs);
}

function mayRetry(error: ApiError, isRepeatable: boolean): boolean {
  if (error.status === 429) return true;
  // These two values mean that the address redirects. It would redirect the next attempt too.
  if (error.code === 'UNEXPECTED_ANSWER' && error.status === 0) return false;
  if (error.status === 0) return isRepeatable || connectionCodes(error).some((code) => NEVER_SENT.has(code));
  return isRepeatable && (error.status >= 500 || error.status === 408);
}
