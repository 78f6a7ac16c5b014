import { isSendable } from '../client/client.ts';
import { BookmarkClient, type RetryEvent } from '../client/index.ts';
import { parseWebUrl } from '../domain/web-url.ts';
import { type Credentials, readCredentials } from './credentials.ts';
import type { Environment } from './environment.ts';
import { CliError } from './faults.ts';
import type { Terminal } from './terminal.ts';

/** What every command is given. */
export interface Session {
  readonly terminal: Terminal;
  readonly environment: Environment;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  /** `--url`. */
  readonly url: string | undefined;
  /** Set when the address of the service is known; messages name it. */
  baseUrl: string | undefined;
}

// biome-ignore lint/suspicious/noExplicitAny: commander gives each command other arguments
type Given = any[];

/**
 * Makes a commander action of a command. The command gets the session first, then commander's arguments and options.
 */
export type Run = (
  command: (session: Session, ...args: Given) => Promise<void>,
) => (...args: Given) => Promise<void>;

const DEFAULT_URL = 'http://127.0.0.1:3000/api/v1';

/** A person who waits at the screen should not wait for longer. */
const RETRY_FOR_MS = 20_000;

/** A retry that comes sooner is not mentioned. */
const MIN_NOTED_WAIT_MS = 1_000;

/** The address of the service as typed; `/api/v1` is added where only a host was named. */
function parseBaseUrl(text: string): string {
  const url = parseWebUrl(text);
  if (url === null || url.username !== '' || url.password !== '') {
    throw new CliError(
      `${text} is no address of a service`,
      'Expected one like https://bookmarks.example.org',
    );
  }
  const path = url.pathname === '/' ? '/api/v1' : url.pathname.replace(/\/+$/, '');
  return url.origin + path;
}

/** The address from the options, the environment or the last login, in this order. */
export function findBaseUrl({ url, environment }: Session, stored: Credentials | undefined): string {
  return parseBaseUrl(url ?? environment.url ?? stored?.base_url ?? DEFAULT_URL);
}

/** Names this program, so that people recognize its session. */
const namedFetch: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set('user-agent', 'bookmarks-cli/1');
  return fetch(input, { ...init, headers });
};

/** A client for an address; prints a note for each retry that takes a while. */
export function openClient(session: Session, baseUrl: string, token?: string): BookmarkClient {
  session.baseUrl = baseUrl;
  if (token !== undefined && !isSendable(token))
    throw new CliError(
      'the token holds characters that no token has',
      'Is it cut, or was more than it copied?',
    );
  const onRetry = ({ error, waitMs }: RetryEvent) => {
    if (waitMs < MIN_NOTED_WAIT_MS) return;
    session.terminal.note(`${error.message}; trying again in ${Math.round(waitMs / 1_000)} s`);
  };
  const onQuotaWait = (waitMs: number) => {
    if (waitMs < MIN_NOTED_WAIT_MS) return;
    session.terminal.note(`waiting ${Math.ceil(waitMs / 1_000)} s for the rate limit`);
  };
  return new BookmarkClient({
    baseUrl,
    token,
    fetch: namedFetch,
    onRetry,
    onQuotaWait,
    retryForMs: RETRY_FOR_MS,
  });
}

/** A client for the logged-in user; throws a `CliError` without one. */
export async function openOwnClient(session: Session): Promise<BookmarkClient> {
  const { environment } = session;
  const stored = await readCredentials(environment.configDir);
  const baseUrl = findBaseUrl(session, stored);
  if (environment.token !== undefined && stored !== undefined)
    session.terminal.note('BOOKMARKS_TOKEN is used in the place of the stored login');
  // A token is sent only to the service that issued it.
  const token = environment.token ?? (stored?.base_url === baseUrl ? stored.token : undefined);
  if (token !== undefined) return openClient(session, baseUrl, token);
  throw new CliError(
    stored === undefined ? 'you are not logged in' : `you are not logged in at ${baseUrl}`,
    'Log in with a code or a token: bookmarks login',
    'INVALID_TOKEN',
  );
}
