import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import type { BookmarkClient } from '../client/index.ts';
import { openInBrowser } from './browser.ts';
import { CliError, Interrupted } from './faults.ts';
import type { Session } from './session.ts';

/** Logging in by the browser (RFC 8252): the person approves there, and the code comes to a port of this computer. */

/** Longer than a login by a provider may take. */
const WAIT_MS = 15 * 60_000;

const RETURN_PATH = '/signed-in';

const APPROVE_AGAIN = 'Try again, or use an API token from the settings: bookmarks login --paste';

/** The token of a session that the person approves in their browser. Throws a `CliError` where they do not. */
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
  session.terminal.note(`Approve the login in your browser. If none opens, go to:\n${address}`);
  void openInBrowser(session.environment.browser, address);
  const code = await inTime(session.signal, listener.code);
  const { token } = await client.exchangeCode(
    { code, code_verifier: verifier!, redirect_uri: listener.redirectUri },
    { signal: session.signal },
  );
  return token;
}

/** What the page calls the app: characters that it prints, 60 at most. */
const nameOfThisComputer = (): string =>
  `bookmarks on ${hostname().replace(/[^\w.-]/g, '') || 'a computer'}`.slice(0, 60);

interface Listener extends AsyncDisposable {
  redirectUri: string;
  /** The code that the browser brings; rejects where the person declined. */
  code: Promise<string>;
}

/** Listens on a free port of this computer for the one callback that has the state. */
async function listen(state: string, issuer: string): Promise<Listener> {
  let resolve!: (code: string) => void;
  let reject!: (error: Error) => void;
  const code = new Promise<string>((resolveCode, rejectCode) => {
    resolve = resolveCode;
    reject = rejectCode;
  });
  // Nobody may be waiting yet.
  code.catch(() => {});
  const server = createServer((request, response) => {
    const given = readCallback(request, state);
    if (given === undefined) return respond(response, 404, 'This is not the page that you look for.');
    const found = given.get('code');
    if (given.get('iss') !== issuer) {
      reject(
        new CliError(
          `the browser was at ${given.get('iss')}, not at ${issuer}`,
          'Name that address: --url',
          'FAILED',
        ),
      );
      return respond(response, 400, 'The login did not come from the service that was asked.');
    }
    if (found === null) {
      reject(new CliError('the login was declined in the browser', APPROVE_AGAIN, 'PERMISSION_DENIED'));
      return respond(response, 200, 'You declined. You may close this window.');
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

/** The parameters of a callback with the right state: whatever else calls this port ends nothing. */
function readCallback({ method, url = '' }: IncomingMessage, state: string): URLSearchParams | undefined {
  // Not `new URL`, which throws for `//`: any program on this computer may send anything to this port.
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

/** The code, unless the person presses Ctrl-C, or nobody approves for long. */
async function inTime(signal: AbortSignal, code: Promise<string>): Promise<string> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS)]);
  let stop = () => {};
  const ended = new Promise<never>((_, reject) => {
    stop = () =>
      reject(
        signal.aborted
          ? new Interrupted()
          : new CliError('nobody approved the login in the browser', APPROVE_AGAIN, 'FAILED'),
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
