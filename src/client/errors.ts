import type { ErrorCode } from '../domain/resources.ts';
import { systemCodeOf } from '../domain/thrown.ts';

/**
 * The service's error codes (docs/contract.md, section 7), and three codes that only the client uses:
 *
 * - `CONNECTION_LOST`: no response, or a truncated one
 * - `TIMEOUT`: no response in time
 * - `UNEXPECTED_ANSWER`: a response that the service never sends. It may come from a proxy.
 */
export type ClientErrorCode = ErrorCode | 'CONNECTION_LOST' | 'TIMEOUT' | 'UNEXPECTED_ANSWER';

export interface ApiErrorDetails {
  code: ClientErrorCode;
  status?: number;
  retryAfterSeconds?: number | undefined;
  requestId: string;
  cause?: unknown;
}

/**
 * What a failed request rejects with, unless the caller aborted it. An aborted request rejects with the reason of the
 * caller's signal.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ClientErrorCode;
  /** The HTTP status. 0 if there was no response. */
  readonly status: number;
  /** How long the service asks the client to wait. Undefined if it does not say. */
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

/** Returns Node's codes for a failed connection, for example `ECONNREFUSED`. Browsers give none. */
export const connectionCodes = ({ cause }: ApiError): string[] => codesOf(cause);

/** Returns a colon and the reason why `fetch` failed, for example `: ECONNREFUSED`. Empty if it gives no reason. */
export function describeConnectionFailure(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const reason = codesOf(error)[0] ?? (cause instanceof Error ? cause.message : undefined);
  return reason === undefined ? '' : `: ${reason}`;
}

/** Returns Node's codes in the cause of an error that `fetch` threw. */
function codesOf(error: unknown): string[] {
  const reason = error instanceof Error ? error.cause : undefined;
  // If a host has several addresses, Node reports one error for each.
  const several = reason instanceof AggregateError ? reason.errors : [];
  return [reason, ...several].flatMap((each) => systemCodeOf(each) ?? []);
}
