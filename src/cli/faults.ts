import { ApiError, type ClientErrorCode } from '../client/index.ts';
import { systemCodeOf } from '../domain/thrown.ts';
import { UnreadableFile } from '../formats/entry.ts';

/**
 * The code of an error that the command line itself finds: one of the API's codes, `USAGE` for a wrong command, or
 * `FAILED` for any other reason.
 */
type CliErrorCode = 'USAGE' | 'NOT_FOUND' | 'INVALID_TOKEN' | 'PERMISSION_DENIED' | 'UNAVAILABLE' | 'FAILED';

/** Thrown for an error that the user should see. */
export class CliError extends Error {
  override readonly name = 'CliError';
  /** What the user can do about the error. */
  readonly advice: string | undefined;
  /** Determines the exit code. */
  readonly code: CliErrorCode;

  constructor(message: string, advice?: string, code: CliErrorCode = 'USAGE') {
    super(message);
    this.advice = advice;
    this.code = code;
  }
}

/** The exit codes. `--help` and the manual list them. Shells use 130 for a program that Ctrl-C ended. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  denied: 4,
  limit: 5,
  unavailable: 6,
  interrupted: 130,
};

/** The exit code for each error code. For an error code that is not listed, it is `EXIT.failed`. */
const EXIT_BY_CODE: Record<string, number> = {
  USAGE: EXIT.usage,
  VALIDATION_ERROR: EXIT.usage,
  NOT_FOUND: EXIT.notFound,
  INVALID_TOKEN: EXIT.denied,
  ACCOUNT_SUSPENDED: EXIT.denied,
  PERMISSION_DENIED: EXIT.denied,
  LIMIT_EXCEEDED: EXIT.limit,
  RATE_LIMITED: EXIT.limit,
  UNAVAILABLE: EXIT.unavailable,
  CONNECTION_LOST: EXIT.unavailable,
  TIMEOUT: EXIT.unavailable,
};

/** Returns the exit code for a failure. */
export const exitCodeOf = (fault: Fault | undefined): number =>
  EXIT_BY_CODE[fault?.code ?? ''] ?? EXIT.failed;

/** Thrown when the user presses Ctrl-C while a command waits for the user's input or for the login in the browser. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

const ADVICE: Partial<Record<ClientErrorCode, string>> = {
  INVALID_TOKEN: 'Log in again: bookmarks login',
  PERMISSION_DENIED: 'Log in with a token that is allowed to do this: bookmarks login',
  LIMIT_EXCEEDED:
    'Delete bookmarks with `bookmarks rm`, or ask the operator of the service to lift the limit.',
  RATE_LIMITED: 'Too many requests; try again in a minute.',
  CONNECTION_LOST: 'Is the service running at this address? Set another one with --url or BOOKMARKS_URL.',
  TIMEOUT: 'The service is slow or cannot be reached; try again later.',
  UNEXPECTED_ANSWER:
    'Is this the address of the Bookmark Service? Set another one with --url or BOOKMARKS_URL.',
  INTERNAL_ERROR: 'The service failed. Send the request id to its operator.',
  UNAVAILABLE: 'The service is unavailable; try again later.',
};

/** The advice for errors about a token that comes from `BOOKMARKS_TOKEN`. A login would not replace that token. */
const VARIABLE_ADVICE: typeof ADVICE = {
  INVALID_TOKEN: 'The token comes from BOOKMARKS_TOKEN. Correct it, or unset it to use your login.',
  PERMISSION_DENIED:
    'Set BOOKMARKS_TOKEN to a token that is allowed to do this, or unset it to use your login.',
};

/** The printed description of an error: the message, and what to do. */
export interface Fault {
  error: string;
  code: string;
  status?: number;
  request_id?: string;
  advice?: string | undefined;
}

/**
 * Describes an error in words. `usesVariable` says whether the command's token is `BOOKMARKS_TOKEN`. Returns undefined
 * for an unexpected error, whose stack trace is printed instead.
 */
export function describeFault(error: unknown, usesVariable = false): Fault | undefined {
  if (error instanceof ApiError) return describeApiError(error, usesVariable);
  if (error instanceof CliError) return { error: error.message, code: error.code, advice: error.advice };
  if (error instanceof UnreadableFile) return { error: error.message, code: 'UNREADABLE_FILE' };
  const code = systemCodeOf(error);
  if (!(error instanceof Error) || code === undefined) return undefined;
  if (code === 'ERR_SQLITE_ERROR') return { error: `the SQLite file: ${error.message}`, code };
  // Only errors of the operating system have a `syscall`.
  if (!('syscall' in error)) return undefined;
  const reasons: Record<string, string> = {
    ENOENT: 'no such file or folder',
    EACCES: 'permission denied',
    EISDIR: 'it is a folder',
    ENOSPC: 'the disk is full',
  };
  const where = 'path' in error ? error.path : error.syscall;
  return { error: `${where}: ${reasons[code] ?? error.message}`, code };
}

function describeApiError({ message, code, status, requestId }: ApiError, usesVariable: boolean): Fault {
  return {
    error: message,
    code,
    // The status is 0 if there was no response.
    ...(status !== 0 && { status }),
    request_id: requestId,
    advice: (usesVariable ? VARIABLE_ADVICE[code] : undefined) ?? ADVICE[code],
  };
}
