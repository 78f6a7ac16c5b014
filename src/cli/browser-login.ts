import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import type { BookmarkClient } from '../client/index.ts';
import { openInBrowser } from './browser.ts';
import { CliError, Interrupted } from './faults.ts';
import type { Session } from './session.ts';

/** Login through the browser (RFC 8252). The user approves it there, and the browser sends the code to a local port. */

/** A sign-in through an identity provider takes less time than this. */
const WAIT_MS = 15 * 60_000;

const RETURN_PATH = '/signed-in';

const APPROVE_AGAIN = 'Try again, or use an API token from the settings: bookmarks login --paste';

/** Returns the token of a session that the user approves in the browser. Throws a `CliError` if they do not. */
export async function loginByBrowser(
  session: Session,
  client: BookmarkClient,
  baseUrl: string,
): Promise<string> {
  const { origin } = new URL(baseUrl);
  const [verifier, state] = [randomBytes(32), randomBytes(32)].map((bytes) => bytes.toString('base64url'));
  await using listener = await listen(state!, origin);
  const parameters = {
    redirect_uri: listener.redirectUri,
    code_challenge: createHash('sha256').update(verifier!).digest('base64url'),
    code_challenge_method: 'S256',
    state: state!,
    name: nameOfThisComputer(),
  };
  const address = `${origin}/login/app?${new URLSearchParams(parameters)}`;
  session.terminal.note(`Approve the login in your browser. If it does not open, go to:\n${address}`);
  void openInBrowser(session.environment.browser, address);
  const code = await inTime(session.signal, listener.code);
  const { token } = await client.exchangeCode(
    { code, code_verifier: verifier!, redirect_uri: listener.redirectUri },
    { signal: session.signal },
  );
  return token;
}

/** The name that the page shows for this app: at most 60 characters, all of which the page can display. */
const nameOfThisComputer = (): string =>
  `bookmarks on ${hostname().replace(/[^\w.-]/g, '') || 'a computer'}`.slice(0, 60);

interface Listener extends AsyncDisposable {
  redirectUri: string;
  /** The code that the browser delivers. Rejects if the user declines. */
  code: Promise<string>;
}

/** Listens on a free local port for the one callback that carries the state. */
async function listen(state: string, issuer: string): Promise<Listener> {
  let resolve!: (code: string) => void;
  let reject!: (error: Error) => void;
  const code = new Promise<string>((resolveCode, rejectCode) => {
    resolve = resolveCode;
    reject = rejectCode;
  });
  // Prevents an unhandled rejection while nobody awaits the code.
  code.catch(() => {});
  const server = createServer((request, response) => {
    const given = readCallback(request, state);
    if (given === undefined) return respond(response, 404, 'Page not found.');
    const found = given.get('code');
    if (given.get('iss') !== issuer) {
      reject(
        new CliError(
          `the browser was at ${given.get('iss')}, not at ${issuer}`,
          'Set the right address with --url',
          'FAILED',
        ),
      );
      return respond(response, 400, 'This login came from a different service.');
    }
    if (found === null) {
      reject(new CliError('the login was declined in the browser', APPROVE_AGAIN, 'PERMISSION_DENIED'));
      return respond(response, 200, 'You declined the login. You may close this window.');
    }
    resolve(found);
    respond(response, 200, 'You are logged in on the command line. You may close this window.');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    redirectUri: `http://127.0.0.1:${(server.address() as AddressInfo).port}${RETURN_PATH}`,
    code,
    async [Symbol.asyncDispose]() {
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** Returns the parameters of a callback with the right state. Other requests to this port are ignored. */
function readCallback({ method, url = '' }: IncomingMessage, state: string): URLSearchParams | undefined {
  // `new URL` throws for `//`, and any program on this computer can send anything to this port.
  const [pathname, query] = url.split('?', 2);
  if (method !== 'GET' || pathname !== RETURN_PATH) return undefined;
  const searchParams = new URLSearchParams(query);
  return searchParams.get('state') === state ? searchParams : undefined;
}

function respond(response: ServerResponse, status: number, text: string): void {
  response
    .writeHead(status, {
      'content-type': 'text/plain; charset=utf-8',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      connection: 'close',
    })
    .end(`${text}\n`);
}

/** Waits for the code. Rejects on Ctrl-C and when the time is up. */
async function inTime(signal: AbortSignal, code: Promise<string>): Promise<string> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS)]);
  let stop = () => {};
  const ended = new Promise<never>((_, reject) => {
    stop = () =>
      reject(
        signal.aborted
          ? new Interrupted()
          : new CliError('nobody approved the login in time', APPROVE_AGAIN, 'FAILED'),
      );
  });
  either.addEventListener('abort', stop, { once: true });
  if (either.aborted) stop();
  try {
    return await Promise.race([code, ended]);
  } finally {
    either.removeEventListener('abort', stop);
  }
}
