import { ApiError } from './errors.ts';
import { backoffMs } from './timing.ts';

/** Waits that the service names are stretched by up to this share, so that not all come back in the same moment. */
const STRETCH = 0.1;

/** Failures of a connection that was never made: nothing was sent. As Node's `fetch` names them in `cause.code`. */
const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

/**
 * How long to wait before a request is sent again after its nth failure in a row; undefined where it must not be.
 * `isRepeatable`: the service does the same work once, however often it is asked for.
 */
export function retryDelayMs(
  error: unknown,
  failures: number,
  isRepeatable: boolean,
  random: () => number,
): number | undefined {
  if (!(error instanceof ApiError) || !mayRetry(error, isRepeatable)) return undefined;
  const backoff = backoffMs(failures, random);
  if (error.retryAfterSeconds === undefined) return backoff;
  const askedMs = error.retryAfterSeconds * 1_000;
  const stretched = askedMs + random() * STRETCH * askedMs;
  // A limit says when it ends; a service in trouble does not know, and is given more time at each failure.
  return error.code === 'RATE_LIMITED' ? stretched : Math.max(stretched, backoff);
}

function mayRetry(error: ApiError, isRepeatable: boolean): boolean {
  if (error.status === 429) return true;
  if (error.status === 0) return isRepeatable || wasNeverSent(error);
  return isRepeatable && (error.status >= 500 || error.status === 408);
}

function wasNeverSent({ cause }: ApiError): boolean {
  const reason = (cause as { cause?: { code?: unknown; errors?: { code?: unknown }[] } } | undefined)?.cause;
  const codes = [reason?.code, ...(reason?.errors ?? []).map(({ code }) => code)];
  return codes.some((code) => typeof code === 'string' && NEVER_SENT.has(code));
}
