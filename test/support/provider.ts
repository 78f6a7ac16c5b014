import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { ProviderSettings } from '../../src/sign-in/variables.ts';

/** The provider's data about a person. */
export interface Person {
  email?: string;
  email_verified?: boolean | string;
}

/** Faults of the provider. */
export interface Faults {
  /** Changes the claims of ID tokens before they are signed. */
  claims?: (claims: Record<string, unknown>) => Record<string, unknown>;
  /** `none`: ID tokens are unsigned. `foreign`: they are signed with a key that is not the provider's. */
  signature?: 'none' | 'foreign';
  /** Replaces the responses of these paths: `/token`, `/jwks`, `/me`, `/.well-known/openid-configuration`. */
  responses?: Readonly<Record<string, FaultyResponse>>;
}

type FaultyResponse =
  /** Accepts the request and never responds. */
  | 'silence'
  /** Closes the connection. */
  | 'reset'
  | { status: number; type?: string; body: string | Buffer };

/** A certified OpenID provider on loopback. The test controls its people and its faults. */
export interface TestProvider extends AsyncDisposable {
  readonly issuer: string;
  readonly people: Map<string, Person>;
  faults: Faults;
  /** The paths of all requests so far, from the service and from browsers. */
  readonly requests: string[];
  /** The settings for a client of this provider. */
  settings(more?: Partial<ProviderSettings>): ProviderSettings;
  /** Stops listening. `start` listens again on the same port. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

export interface ProviderOptions {
  port?: number;
  /** Whether ID tokens contain the e-mail address. By default, only UserInfo does. */
  emailInIdToken?: boolean;
  clientSecret?: string;
}

export const CLIENT_ID = 'bookmarks';
export const CLIENT_SECRET = 'the secret of the tests: + % &';

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const decode = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));

const generateKey = (): KeyObject => generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey;

/** Runs `oidc-provider` in this process, behind a front end that simulates faults. */
export async function startProvider(options: ProviderOptions = {}): Promise<TestProvider> {
  const key = generateKey();
  const people = new Map<string, Person>();
  const requests: string[] = [];
  const state: { faults: Faults } = { faults: {} };
  const inner = createServer();
  inner.listen(0, '127.0.0.1');
  await once(inner, 'listening');
  const front = createServer((request, response) => {
    requests.push(pathOf(request));
    respond(request, response, inner.address() as AddressInfo, key, state.faults).catch(() =>
      response.destroy(),
    );
  });
  let port = options.port ?? 0;
  const start = async () => {
    front.listen(port, '127.0.0.1');
    await once(front, 'listening');
    port = (front.address() as AddressInfo).port;
  };
  await start();
  const issuer = `http://127.0.0.1:${port}`;
  inner.on('request', await openHandler(issuer, key, people, options));
  const stop = async () => {
    front.closeAllConnections();
    if (front.listening) await new Promise((resolve) => front.close(resolve));
  };
  return {
    issuer,
    people,
    requests,
    get faults() {
      return state.faults;
    },
    set faults(faults) {
      state.faults = faults;
    },
    settings: (more) => ({
      issuer,
      clientId: CLIENT_ID,
      clientSecret: CLIENT_SECRET,
      scopes: 'openid email',
      name: 'Test Accounts',
      trustEmail: false,
      allowedDomains: [],
      ...more,
    }),
    stop,
    start,
    async [Symbol.asyncDispose]() {
      await stop();
      inner.closeAllConnections();
      await new Promise((resolve) => inner.close(resolve));
    },
  };
}

/** The person who is signed in at the provider. */
interface Session {
  accountId: string;
  grantIdFor(clientId: string): string | undefined;
}

const pathOf = (request: IncomingMessage): string => request.url!.split('?')[0]!;

async function openHandler(
  issuer: string,
  key: KeyObject,
  people: ReadonlyMap<string, Person>,
  { emailInIdToken = false, clientSecret = CLIENT_SECRET }: ProviderOptions,
) {
  // The provider warns about unknown runtimes, and about its development settings.
  const { warn } = console;
  console.warn = () => {};
  const { default: Provider } = await import('oidc-provider');
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: clientSecret,
        redirect_uris: ['http://127.0.0.1/login/callback'],
      },
    ],
    jwks: { keys: [{ ...key.export({ format: 'jwk' }), kid: 'key', use: 'sig', alg: 'RS256' }] },
    cookies: { keys: ['key'] },
    ttl: { Interaction: 3_600, Grant: 3_600, Session: 3_600, AccessToken: 600, IdToken: 600 },
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    conformIdTokenClaims: !emailInIdToken,
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: (_: unknown, sub: string) => ({
      accountId: sub,
      claims: () => ({ sub, ...people.get(sub) }),
    }),
    async loadExistingGrant({
      oidc: { session, client },
    }: {
      oidc: { session: Session; client: { clientId: string } };
    }) {
      // All logins of a session share one grant. If each login had its own grant, a new login would end the tokens of
      // earlier logins.
      const known = session.grantIdFor(client.clientId);
      if (known !== undefined) return provider.Grant.find(known);
      const grant = new provider.Grant({ accountId: session.accountId, clientId: client.clientId });
      grant.addOIDCScope('openid email');
      await grant.save();
      return grant;
    },
  });
  console.warn = warn;
  // Each service of a test has a different port, so the provider accepts a redirect to any port.
  provider.Client.prototype.redirectUriAllowed = (uri) => uri.endsWith('/login/callback');
  const handle = provider.callback();
  return (request: IncomingMessage, response: ServerResponse) => {
    if (!pathOf(request).startsWith('/interaction/')) return void handle(request, response);
    void interact(request, response).catch((error) => response.writeHead(400).end(String(error)));
  };

  async function interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { prompt } = await provider.interactionDetails(request, response);
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/html' }).end(loginForm(prompt.name, people));
      return;
    }
    const login = new URLSearchParams(await text(request)).get('login');
    const result = login ? { login: { accountId: login } } : { error: 'access_denied' };
    await provider.interactionFinished(request, response, result);
  }
}

/** Returns a page on which people sign in by clicking on their name. */
const loginForm = (prompt: string, people: ReadonlyMap<string, Person>): string =>
  `<!doctype html><title>Test Accounts</title><h1>Who are you? (${prompt})</h1><form method="post">
${[...people].map(([sub, { email }]) => `<p><button name="login" value="${sub}">${email ?? sub}</button></p>`).join('\n')}
<p><button name="login" value="">Cancel</button></p></form>`;

/**
 * Responds with the fault that is set for the request's path, if there is one. Otherwise forwards the request to the
 * provider, which listens at `port`, and sends the provider's response back.
 */
async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  { port }: AddressInfo,
  key: KeyObject,
  faults: Faults,
): Promise<void> {
  const fault = faults.responses?.[pathOf(request)];
  if (fault === 'silence') return;
  if (fault === 'reset') return void request.socket.destroy();
  if (fault !== undefined) {
    response.writeHead(fault.status, { 'content-type': fault.type ?? 'application/json' }).end(fault.body);
    return;
  }
  const { method, url, headers } = request;
  const forwarded = send({ host: '127.0.0.1', port, method, path: url, headers });
  request.pipe(forwarded);
  const [received] = (await once(forwarded, 'response')) as [IncomingMessage];
  if (pathOf(request) !== '/token') {
    response.writeHead(received.statusCode!, received.headers);
    received.pipe(response);
    return;
  }
  const body = applyFaults(await text(received), key, faults);
  const { 'content-length': _, 'transfer-encoding': __, ...rest } = received.headers;
  response.writeHead(received.statusCode!, rest).end(body);
}

/** Returns the response of the token endpoint, with the faults applied to its ID token. */
function applyFaults(body: string, key: KeyObject, { claims, signature }: Faults): string {
  const tokens = JSON.parse(body);
  if (tokens.id_token === undefined || (claims === undefined && signature === undefined)) return body;
  const [header, payload] = tokens.id_token.split('.');
  const changed = claims ? claims(decode(payload)) : decode(payload);
  const algorithm = signature === 'none' ? { alg: 'none' } : decode(header);
  const signed = `${encode(algorithm)}.${encode(changed)}`;
  const signer = signature === 'foreign' ? generateKey() : key;
  const signatureText =
    signature === 'none' ? '' : sign('sha256', Buffer.from(signed), signer).toString('base64url');
  return JSON.stringify({ ...tokens, id_token: `${signed}.${signatureText}` });
}
