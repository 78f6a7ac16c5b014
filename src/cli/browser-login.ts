import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import type { BookmarkClient } from '../client/index.ts';
import { openInBrowser } from './browser.ts';
import { CliError, Interrupted } from './faults.ts';
import type { Session } from './session.ts';

/**
 * Login through the browser (RFC 8252). The user approves the login in the browser, which then sends a code to a port
 * of this computer.
 */

/** How long the command waits for the approval. Signing in before the approval may take the user up to ten minutes. */
const WAIT_MS = 15 * 60_000;

const RETURN_PATH = '/signed-in';

const APPROVE_AGAIN = 'Try again, or use an API token from the settings: bookmarks login --paste';

const randomText = (): string => randomBytes(32).toString('base64url');

/** Returns the token of a session that the user approves in the browser. Throws if the user declines or is too slow. */
export async function loginByBrowser(
  { terminal, environment, signal }: Session,
  client: BookmarkClient,
  baseUrl: string,
): Promise<string> {
  const { origin } = new URL(baseUrl);
  const [verifier, state] = [randomText(), randomText()];
  const server = createServer();
  try {
    const redirectUri = await listen(server);
    const parameters = {
      redirect_uri: redirectUri,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      state,
      name: nameOfThisComputer(),
    };
    const address = `${origin}/login/app?${new URLSearchParams(parameters)}`;
    terminal.note(`Approve the login in your browser. If it does not open, go to:\n${address}`);
    void openInBrowser(environment.browser, address);
    const code = await receiveCode(server, state, origin, signal);
    const exchange = { code, code_verifier: verifier, redirect_uri: redirectUri };
    return (await client.exchangeCode(exchange, { signal })).token;
  } finally {
    server.close();
  }
}

/**
 * Returns the name that the browser shows for this app. The name has at most 60 characters, and contains only
 * characters that the service allows in names of apps.
 */
const nameOfThisComputer = (): string =>
  `bookmarks on ${hostname().replace(/[^\w.-]/g, '') || 'a computer'}`.slice(0, 60);

/** Listens on a free port of this computer. Returns the address to which the browser sends the code. */
async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port');
  return `http://127.0.0.1:${address.port}${RETURN_PATH}`;
}

/**
 * Waits for the callback: the request in which the browser sends `state` and the code. Resolves with the code. Rejects
 * if the user declines, if the code comes from another service, if the user presses Ctrl-C, or after `WAIT_MS`.
 */
const receiveCode = (server: Server, state: string, issuer: string, signal: AbortSignal): Promise<string> =>
  new Promise((resolve, reject) => {
    const rejectWait = () =>
      reject(
        signal.aborted
          ? new Interrupted()
          : new CliError('nobody approved the login in time', APPROVE_AGAIN, 'FAILED'),
      );
    const waitOver = AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS)]);
    if (waitOver.aborted) rejectWait();
    waitOver.addEventListener('abort', rejectWait, { once: true });
    server.on('request', (request, response) => {
      const parameters = readCallback(request, state);
      if (parameters === undefined) return respond(response, 404, 'Page not found.');
      const code = parameters.get('code');
      const actualIssuer = parameters.get('iss') ?? '';
      if (toComparable(actualIssuer) !== toComparable(issuer)) {
        const message = `the browser logged in at ${actualIssuer}, not at ${issuer}`;
        reject(new CliError(message, 'Set the right address with --url', 'FAILED'));
        return respond(response, 400, 'This login came from a different service.');
      }
      if (code === null) {
        reject(new CliError('the login was declined in the browser', APPROVE_AGAIN, 'PERMISSION_DENIED'));
        return respond(response, 200, 'You declined the login. You may close this window.');
      }
      resolve(code);
      respond(response, 200, 'You are logged in on the command line. You may close this window.');
    });
  });

/** Returns the parameters of a callback with the right state, and undefined for any other request to this port. */
function readCallback({ method, url = '' }: IncomingMessage, state: string): URLSearchParams | undefined {
  // `new URL` would throw for the path `//`, and any program on this computer can send such a request to this port.
  const [pathname, query] = url.split('?', 2);
  if (method !== 'GET' || pathname !== RETURN_PATH) return undefined;
  const searchParams = new URLSearchParams(query);
  return searchParams.get('state') === state ? searchParams : undefined;
}

/**
 * Returns a text that is equal for equal issuers. On loopback, one service has several names: the user may have opened
 * the page at `localhost` although this program uses `127.0.0.1`.
 */
const toComparable = (issuer: string): string =>
  issuer.replace(/^(https?:\/\/)(127\.0\.0\.1|\[::1\])(?=:|$)/, '$1localhost');

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
