import * as client from 'openid-client';
import { z } from 'zod';
import { isStorable } from '../domain/text.ts';
import { systemCodeOf } from '../domain/thrown.ts';
import { SignInError, type SignInFault } from './sign-in-error.ts';
import { isOnLoopback, type ProviderSettings } from './variables.ts';

/** The OpenID provider (OpenID Connect Core section 3.1, RFC 9700). The library `openid-client` implements the protocol. */

/** The provider's statements about a person. */
export interface ProviderIdentity {
  issuer: string;
  subject: string;
  /** As the provider writes it. It may not belong to the person. */
  email: string | undefined;
  emailVerified: boolean;
  /** When the person last entered their credentials at the provider, in seconds since 1970. Absent if unknown. */
  authenticatedAt: number | undefined;
}

/** The secrets that bind a callback to its request. */
export const loginChecks = z.object({
  state: z.string(),
  nonce: z.string(),
  /** The PKCE verifier, 43 characters. */
  verifier: z.string(),
  /** The person must have authenticated at the provider within this many seconds. Absent: at any time. */
  maxAgeSeconds: z.int().optional(),
});

type LoginChecks = z.output<typeof loginChecks>;

/** Creates the secrets of one login. */
export const drawChecks = (): LoginChecks => ({
  state: client.randomState(),
  nonce: client.randomNonce(),
  verifier: client.randomPKCECodeVerifier(),
});

/** The time limit for all requests of one step, because a person is waiting. */
const STEP_MS = 3_000;

/** How long metadata is used. If it cannot be read again, the old metadata stays in use. */
const METADATA_MS = 3_600_000;
const METADATA_RETRY_MS = 60_000;

/** The maximum length of a provider's response. Normal responses are far shorter. */
const RESPONSE_BYTES = 1_048_576;

/** OpenID Connect Core section 2: at most 255 ASCII characters. */
const SUBJECT_LENGTH = 255;

const EMAIL_LENGTH = 254;

/** The allowed difference between our clock and the provider's. */
const CLOCK_TOLERANCE_SECONDS = 30;

interface Known {
  configuration: client.Configuration;
  untilMs: number;
}

/**
 * One provider. It is discovered at the first login, so an unavailable provider does not stop a replica from
 * starting.
 */
export class Provider {
  readonly #settings: ProviderSettings;
  readonly #stepMs: number;
  #known: Known | undefined;
  #discovery: Promise<client.Configuration> | undefined;

  constructor(settings: ProviderSettings, stepMs = STEP_MS) {
    this.#settings = settings;
    this.#stepMs = stepMs;
  }

  /** Returns the address to redirect a browser to. Rejects with a `SignInError` within three seconds. */
  begin(redirectUri: string, { state, nonce, verifier, maxAgeSeconds }: LoginChecks): Promise<string> {
    return this.#inTime(async () => {
      const challenge = await client.calculatePKCECodeChallenge(verifier);
      const url = client.buildAuthorizationUrl(await this.#discover(), {
        redirect_uri: redirectUri,
        scope: this.#settings.scopes,
        state,
        nonce,
        code_challenge: challenge,
        code_challenge_method: 'S256',
        ...(maxAgeSeconds !== undefined && { max_age: String(maxAgeSeconds) }),
      });
      return url.href;
    });
  }

  /**
   * Returns the person whom the provider sent back. `callback` is the whole url. Checks the issuer, state, nonce,
   * audience, times and signature, and discards the provider's tokens. Rejects with a `SignInError` within three
   * seconds.
   */
  finish(callback: URL, checks: LoginChecks): Promise<ProviderIdentity> {
    return this.#inTime(async () => {
      const configuration = await this.#discover();
      const tokens = await client.authorizationCodeGrant(configuration, callback, {
        pkceCodeVerifier: checks.verifier,
        expectedState: checks.state,
        expectedNonce: checks.nonce,
        idTokenExpected: true,
        ...(checks.maxAgeSeconds !== undefined && { maxAge: checks.maxAgeSeconds }),
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new SignInError('invalid', 'there is no ID token');
      const { email, email_verified } = await this.#readEmail(configuration, claims, tokens.access_token);
      const isText = (value: unknown, max: number): value is string =>
        typeof value === 'string' && value.length <= max && isStorable(value);
      if (!isText(claims.sub, SUBJECT_LENGTH))
        throw new SignInError('invalid', 'the subject is not a valid text');
      return {
        issuer: claims.iss,
        subject: claims.sub,
        email: isText(email, EMAIL_LENGTH) ? email : undefined,
        emailVerified: email_verified === true,
        authenticatedAt: claims.auth_time && Math.min(claims.auth_time, Math.floor(Date.now() / 1_000)),
      };
    });
  }

  /**
   * The claims that contain the address: those of the ID token, or of UserInfo if the ID token has no address. The
   * two are never mixed.
   */
  async #readEmail(
    configuration: client.Configuration,
    claims: client.IDToken,
    accessToken: string,
  ): Promise<Record<string, unknown>> {
    const isAsked = this.#settings.scopes.split(' ').includes('email');
    const { userinfo_endpoint } = configuration.serverMetadata();
    if (claims.email !== undefined || !isAsked || userinfo_endpoint === undefined) return claims;
    return client.fetchUserInfo(configuration, accessToken, claims.sub);
  }

  /**
   * Runs one step. Rejects with a `SignInError` if it fails or exceeds the time limit. Nobody waits for requests that
   * are still open then. The library's own timeout ends them.
   */
  async #inTime<T>(run: () => Promise<T>): Promise<T> {
    const signal = AbortSignal.timeout(this.#stepMs);
    const ended = new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
    );
    try {
      return await Promise.race([run(), ended]);
    } catch (error) {
      // The next login must not wait for a discovery that is late.
      this.#discovery = undefined;
      throw toSignInError(error);
    }
  }

  /** Concurrent callers share one discovery. */
  async #discover(): Promise<client.Configuration> {
    const known = this.#known;
    if (known && known.untilMs > performance.now()) return known.configuration;
    this.#discovery ??= this.#read().finally(() => {
      this.#discovery = undefined;
    });
    if (known === undefined) return this.#discovery;
    // While the metadata is read again, logins use the old one instead of waiting.
    this.#known = { ...known, untilMs: performance.now() + METADATA_RETRY_MS };
    this.#discovery.catch(() => {});
    return known.configuration;
  }

  async #read(): Promise<client.Configuration> {
    const { issuer, clientId, clientSecret } = this.#settings;
    const url = new URL(issuer);
    const configuration = await client.discovery(
      url,
      clientId,
      { [client.clockTolerance]: CLOCK_TOLERANCE_SECONDS },
      authenticateClient(clientSecret),
      {
        timeout: this.#stepMs / 1_000,
        [client.customFetch]: openFetch(isOnLoopback(url)),
        execute: [
          // Also checks the ID token's signature, although the token comes directly from the provider.
          client.enableNonRepudiationChecks,
          ...(url.protocol === 'http:' ? [client.allowInsecureRequests] : []),
        ],
      },
    );
    this.#known = { configuration, untilMs: performance.now() + METADATA_MS };
    return configuration;
  }
}

/**
 * Sends the secret in a header (OpenID Connect Core section 9), or in the body if the provider supports only that.
 */
function authenticateClient(secret: string): client.ClientAuth {
  const [basic, post] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)];
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    return (methods.includes('client_secret_basic') ? basic : post)(server, ...rest);
  };
}

/** Refuses endpoints without encryption, except on this computer, even if the provider's metadata names them. */
const openFetch =
  (onLoopback: boolean): client.CustomFetch =>
  async (address, options) => {
    const url = new URL(address);
    if (url.protocol !== 'https:' && !(onLoopback && isOnLoopback(url)))
      throw new SignInError('invalid', 'an endpoint of the provider is not encrypted');
    return readBounded(await fetch(address, options as RequestInit));
  };

/** Reads the whole response. Rejects if it is too long. */
async function readBounded(response: Response): Promise<Response> {
  if (response.body === null) return response;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.length;
    if (bytes > RESPONSE_BYTES) throw new SignInError('invalid', 'a response of the provider is too long');
    chunks.push(chunk);
  }
  const { status, statusText, headers } = response;
  return new Response(Buffer.concat(chunks), { status, statusText, headers });
}

/** Error codes that mean that the provider has a problem (RFC 6749 section 4.1.2.1). */
const PROVIDER_TROUBLE = ['server_error', 'temporarily_unavailable'];

/** Error codes that mean that the provider does not accept this client (RFC 6749 sections 4.1.2.1 and 5.2). */
const CLIENT_TROUBLE = [
  'invalid_client',
  'unauthorized_client',
  'invalid_scope',
  'unsupported_response_type',
  'unsupported_grant_type',
];

/**
 * Translates an error of the library. Such errors contain urls, codes and tokens, so only the names of the problem
 * are kept.
 */
function toSignInError(thrown: unknown): SignInError {
  if (thrown instanceof SignInError) return thrown;
  if (!(thrown instanceof Error)) return new SignInError('invalid', 'unknown');
  if (thrown.cause instanceof SignInError) return thrown.cause;
  const isOfProtocol =
    thrown instanceof client.AuthorizationResponseError || thrown instanceof client.ResponseBodyError;
  const said = isOfProtocol && /^[a-z_]{1,40}$/.test(thrown.error) ? thrown.error : '';
  const words = [thrown.name, systemCodeOf(thrown), said].filter(Boolean);
  return new SignInError(findFault(thrown, said), words.join(' '));
}

function findFault(error: Error, said: string): SignInFault {
  const code = systemCodeOf(error);
  if (error.name === 'TimeoutError' || code === 'OAUTH_TIMEOUT' || code === 'OAUTH_ABORT') return 'slow';
  // The provider did not accept the client's credentials.
  if (error instanceof client.WWWAuthenticateChallengeError) return 'client';
  if (PROVIDER_TROUBLE.includes(said)) return 'invalid';
  if (CLIENT_TROUBLE.includes(said)) return 'client';
  if (error instanceof client.AuthorizationResponseError) return 'denied';
  if (said === 'invalid_grant') return 'callback';
  if (error.name === 'TypeError') return 'unreachable';
  return code === 'OAUTH_INVALID_RESPONSE' && isOfCallback(error.cause) ? 'callback' : 'invalid';
}

/**
 * Whether the fault was found in the callback's own parameters, before the provider was asked. The library uses the
 * same code for a fault in the callback and for one in a response.
 */
function isOfCallback(thrown: unknown): boolean {
  const cause = thrown instanceof Error ? thrown.cause : undefined;
  return (
    typeof cause === 'object' &&
    cause !== null &&
    'parameters' in cause &&
    cause.parameters instanceof URLSearchParams
  );
}
