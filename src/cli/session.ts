import { BookmarkClient } from '../client/index.ts';
import { isSendable, parseBaseUrl } from '../client/requester.ts';
import { type Credentials, readCredentials } from './credentials.ts';
import type { Environment } from './environment.ts';
import { CliError } from './faults.ts';
import type { Terminal } from './terminal.ts';

/** What every command receives. */
export interface Session {
  readonly terminal: Terminal;
  readonly environment: Environment;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  /** The value of `--url`. */
  readonly url: string | undefined;
  /** The address of the service, once it is known. */
  baseUrl: string | undefined;
  /** Whether the token in use is `BOOKMARKS_TOKEN`. Errors about the token then say so. */
  usesVariable: boolean;
}

// biome-ignore lint/suspicious/noExplicitAny: commander passes different arguments to each command
type Given = any[];

/**
 * Wraps a command as an action of commander. The command receives the session first, and then the arguments and options
 * that commander passes.
 */
export type Run = (
  command: (session: Session, ...args: Given) => Promise<void>,
) => (...args: Given) => Promise<void>;

const DEFAULT_URL = 'http://localhost:3000/api/v1';

/** How long the client retries a request, in ms from the first failure. */
const RETRY_FOR_MS = 20_000;

/** The client prints a note before it waits this many ms or longer for a retry or for the rate limit. */
const MIN_NOTED_WAIT_MS = 1_000;

/** Parses the address of the service, as the client does. */
function parseAddress(text: string): string {
  try {
    return parseBaseUrl(text);
  } catch {
    throw new CliError(
      `${text} is not the address of a service`,
      'Expected an address like https://bookmarks.example.org',
    );
  }
}

/** Returns the first address that is set: by the options, by the environment, by the last login, or by default. */
export function findBaseUrl({ url, environment }: Session, stored: Credentials | undefined): string {
  return parseAddress(url ?? environment.url ?? stored?.base_url ?? DEFAULT_URL);
}

/** Calls `fetch` with a user agent, by which users recognize the command line in the list of their sessions. */
const namedFetch: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set('user-agent', 'bookmarks-cli/1');
  return fetch(input, { ...init, headers });
};

/** Opens a client for an address. Before the client waits long for a retry or the rate limit, it prints a note. */
export function openClient(session: Session, baseUrl: string, token?: string): BookmarkClient {
  session.baseUrl = baseUrl;
  if (token !== undefined && !isSendable(token))
    throw new CliError(
      'the token contains invalid characters',
      'Copy the whole token again, without any other text',
    );
  const noteWait = (waitMs: number, text: string) => {
    if (waitMs >= MIN_NOTED_WAIT_MS) session.terminal.note(text);
  };
  return new BookmarkClient({
    baseUrl,
    token,
    fetch: namedFetch,
    onRetry: ({ error, waitMs }) =>
      noteWait(waitMs, `${error.message}; retrying in ${Math.round(waitMs / 1_000)} s`),
    onQuotaWait: (waitMs) => noteWait(waitMs, `waiting ${Math.ceil(waitMs / 1_000)} s for the rate limit`),
    retryForMs: RETRY_FOR_MS,
  });
}

/** Opens a client with the user's token. Throws a `CliError` if there is no token for the service's address. */
export async function openOwnClient(session: Session): Promise<BookmarkClient> {
  const { environment } = session;
  const stored = await readCredentials(environment.configDir);
  const baseUrl = findBaseUrl(session, stored);
  if (environment.token !== undefined && stored !== undefined)
    session.terminal.note('using BOOKMARKS_TOKEN instead of the stored login');
  // The stored token is sent only to the service that issued it. `BOOKMARKS_TOKEN` is sent to any address.
  session.usesVariable = environment.token !== undefined;
  const token = environment.token ?? (stored?.base_url === baseUrl ? stored.token : undefined);
  if (token !== undefined) return openClient(session, baseUrl, token);
  throw new CliError(
    stored === undefined ? 'you are not logged in' : `you are not logged in at ${baseUrl}`,
    'Log in: bookmarks login',
    'INVALID_TOKEN',
  );
}
