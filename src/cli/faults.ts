import { ApiError, type ClientErrorCode } from '../client/index.ts';
import { UnreadableFile } from '../formats/entry.ts';

/** An error for the user of the command, in words. */
export class CliError extends Error {
  override readonly name = 'CliError';
  /** What the user can do. */
  readonly advice: string | undefined;

  constructor(message: string, advice?: string) {
    super(message);
    this.advice = advice;
  }
}

/** The user pressed Ctrl-C at a question. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

const ADVICE: Partial<Record<ClientErrorCode, string>> = {
  INVALID_TOKEN: 'Log in again: bookmarks login',
  PERMISSION_DENIED: 'Log in with a token that may do this: bookmarks login',
  LIMIT_EXCEEDED:
    'Make room with `bookmarks rm`, or ask whoever runs the service for an account without this limit.',
  RATE_LIMITED: 'Too much was asked for in too short a time; try again in a minute.',
  CONNECTION_LOST: 'Does the service run, and is this its address? Another one: --url, or BOOKMARKS_URL.',
  TIMEOUT: 'The service is slow or cannot be reached; try again later.',
  UNEXPECTED_ANSWER: 'Is this the address of the Bookmark Service? Another one: --url, or BOOKMARKS_URL.',
  INTERNAL_ERROR: 'A fault of the service: tell whoever runs it the request id.',
  UNAVAILABLE: 'The service cannot answer now; try again later.',
};

/** What is printed of an error: the message, and what to do. */
export interface Fault {
  error: string;
  code: string;
  status?: number;
  request_id?: string;
  advice?: string | undefined;
}

/** Describes an error in words; undefined for one that nobody expected, whose stack trace is printed. */
export function describeFault(error: unknown, baseUrl: string | undefined): Fault | undefined {
  if (error instanceof ApiError) return describeApiError(error, baseUrl);
  if (error instanceof CliError) return { error: error.message, code: 'USAGE', advice: error.advice };
  if (error instanceof UnreadableFile) return { error: error.message, code: 'UNREADABLE_FILE' };
  const { code, path, syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined || code === undefined) return undefined;
  const reasons: Record<string, string> = {
    ENOENT: 'there is no such file or folder',
    EACCES: 'permission is denied',
    EISDIR: 'it is a folder',
    ENOSPC: 'the disk is full',
  };
  return { error: `${path ?? syscall}: ${reasons[code] ?? (error as Error).message}`, code };
}

function describeApiError({ message, code, status, requestId, cause }: ApiError, baseUrl = ''): Fault {
  const where = status === 0 || code === 'UNEXPECTED_ANSWER' ? ` (${baseUrl}${reasonOf(cause)})` : '';
  return {
    error: message + where,
    code,
    ...(status !== 0 && { status }),
    request_id: requestId,
    advice: ADVICE[code],
  };
}

/** Node's code for a connection that could not be made: `ECONNREFUSED` and the like. */
function reasonOf(cause: unknown): string {
  type Reason = { code?: string; message?: string; errors?: { code?: string }[] };
  const { code, message, errors } = ((cause as Error | undefined)?.cause ?? {}) as Reason;
  const reason = code ?? errors?.[0]?.code ?? message;
  return reason === undefined ? '' : `: ${reason}`;
}
