import { BookmarkClient, type RetryEvent } from '../client/index.ts';
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
  /** Set once it is known whom the command speaks to, for messages about it. */
  baseUrl: string | undefined;
}

// biome-ignore lint/suspicious/noExplicitAny: commander gives each command other arguments
type Given = any[];

/** Makes an action of a command that takes the session first, and then commander's arguments and options. */
export type Run = (
  command: (session: Session, ...args: Given) => Promise<void>,
) => (...args: Given) => Promise<void>;

const DEFAULT_URL = 'http://127.0.0.1:3000/api/v1';

/** Whoever waits at the screen is not kept for longer. */
const RETRY_FOR_MS = 20_000;

/** Retries that come sooner are not worth a word. */
const WORTH_TELLING_MS = 1_000;

/** The service's address as it was typed, with the version added where only a host was named. */
export function parseBaseUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new CliError(
      `${text} is no address of a service`,
      'Expected one like https://bookmarks.example.org',
    );
  }
  const path = url.pathname === '/' ? '/api/v1' : url.pathname.replace(/\/+$/, '');
  return url.origin + path;
}

/** The address that options, the environment or the last login name, in this order. */
export function findBaseUrl({ url, environment }: Session, stored: Credentials | undefined): string {
  return parseBaseUrl(url ?? environment.url ?? stored?.base_url ?? DEFAULT_URL);
}

/** A client for an address; tells of retries that take a while. */
export function openClient(session: Session, baseUrl: string, token?: string): BookmarkClient {
  session.baseUrl = baseUrl;
  const onRetry = ({ error, waitMs }: RetryEvent) => {
    if (waitMs < WORTH_TELLING_MS) return;
    session.terminal.note(`${error.message}; trying again in ${Math.round(waitMs / 1_000)} s`);
  };
  return new BookmarkClient({ baseUrl, token, onRetry, retryForMs: RETRY_FOR_MS });
}

/** A client that speaks for whoever is logged in; throws a `CliError` where nobody is. */
export async function openOwnClient(session: Session): Promise<BookmarkClient> {
  const { environment } = session;
  const stored = await readCredentials(environment.configDir);
  const baseUrl = findBaseUrl(session, stored);
  // A token is shown to the service that gave it and to no other.
  const token = environment.token ?? (stored?.base_url === baseUrl ? stored.token : undefined);
  if (token !== undefined) return openClient(session, baseUrl, token);
  throw new CliError(
    stored === undefined ? 'you are not logged in' : `you are not logged in at ${baseUrl}`,
    'Log in with an invite code or a token: bookmarks login',
  );
}
