// biome-ignore lint/style/noRestrictedImports: this is the only file that knows the library
import * as client from 'openid-client';
import { z } from 'zod';
import { isStorable } from '../domain/text.ts';
import { systemCodeOf } from '../domain/thrown.ts';
import { SignInError, type SignInFault } from './sign-in-error.ts';
import { isOnLoopback, type ProviderSettings } from './variables.ts';

/**
 * Signing in through an OpenID provider (OpenID Connect Core section 3.1, RFC 9700). The library `openid-client`
 * implements the protocol.
 */

/** The provider's statements about a person. */
export interface ProviderIdentity {
  issuer: string;
  subject: string;
  /** The address as the provider writes it. Unless it is verified, it may belong to somebody else. */
  email: string | undefined;
  emailVerified: boolean;
  /** When the person last entered their credentials at the provider, in seconds since 1970. Absent if unknown. */
  authenticatedAt: number | undefined;
}

/**
 * What a callback of the provider is checked against. The secrets show that the callback belongs to a login that began
 * here.
 */
export const loginChecks = z.object({
  state: z.string(),
  nonce: z.string(),
  /** The PKCE verifier, 43 characters. */
  verifier: z.string(),
  /** The maximum age of the person's authentication at the provider, in seconds. If absent, there is no maximum. */
  maxAgeSeconds: z.int().optional(),
});

type LoginChecks = z.output<typeof loginChecks>;

/** Creates the secrets of one login. */
export const drawChecks = (): LoginChecks => ({
  state: client.randomState(),
  nonce: client.randomNonce(),
  verifier: client.randomPKCECodeVerifier(),
});

/** The time limit for all requests of one step together. It is short, because a person is waiting. */
const STEP_MS = 3_000;

/**
 * How long the provider's metadata is used before it is read again. If reading it fails, the old metadata stays in use,
 * and the next attempt follows after `METADATA_RETRY_MS`.
 */
const METADATA_MS = 3_600_000;
const METADATA_RETRY_MS = 60_000;

/** The maximum length of a provider's response. Normal responses are far shorter. */
const RESPONSE_BYTES = 1_048_576;

/** The maximum length of a subject: the id of a person at the provider (OpenID Connect Core section 2). */
const SUBJECT_LENGTH = 255;

const EMAIL_LENGTH = 254;

/** The allowed difference between our clock and the provider's. */
const CLOCK_TOLERANCE_SECONDS = 30;

/** The provider's metadata. `untilMs` is the time of `performance.now()` at which to read it again. */
interface Known {
  configuration: client.Configuration;
  untilMs: number;
}

/**
 * An OpenID provider. Its metadata is read at the first login, so an unavailable provider does not stop a replica from
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

  /**
   * Returns the address to redirect a browser to. Rejects with a `SignInError` after a failure or after three seconds.
   */
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
   * Returns the provider's statements about the person who signed in. `callback` is the whole url. Checks the issuer,
   * state, nonce, audience, times and signature, and discards the provider's tokens. Rejects with a `SignInError` after
   * a failure or after three seconds.
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
      if (!isShortText(claims.sub, SUBJECT_LENGTH))
        throw new SignInError('invalid', 'the subject is not a valid text');
      return {
        issuer: claims.iss,
        subject: claims.sub,
        email: isShortText(email, EMAIL_LENGTH) ? email : undefined,
        emailVerified: email_verified === true,
        // The provider's clock may be ahead of ours.
        authenticatedAt: claims.auth_time && Math.min(claims.auth_time, Math.floor(Date.now() / 1_000)),
      };
    });
  }

  /**
   * Returns the claims in which to look for the e-mail address: those of the ID token or, if the ID token has no
   * address and the provider can be asked for one, those of UserInfo. The address and its verification always come from
   * the same source.
   */
  async #readEmail(
    configuration: client.Configuration,
    claims: client.IDToken,
    accessToken: string,
  ): Promise<Record<string, unknown>> {
    const asksForEmail = this.#settings.scopes.split(' ').includes('email');
    const { userinfo_endpoint } = configuration.serverMetadata();
    if (claims.email !== undefined || !asksForEmail || userinfo_endpoint === undefined) return claims;
    return client.fetchUserInfo(configuration, accessToken, claims.sub);
  }

  /**
   * Runs one step. Rejects with a `SignInError` if the step fails or exceeds the time limit. Requests that are still
   * open at the limit continue in the background, until the library's own timeout ends them.
   */
  async #inTime<T>(run: () => Promise<T>): Promise<T> {
    const signal = AbortSignal.timeout(this.#stepMs);
    const timeOver = new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
    );
    try {
      return await Promise.race([run(), timeOver]);
    } catch (error) {
      // The next login must not wait for a discovery that is late.
      this.#discovery = undefined;
      throw toSignInError(error);
    }
  }

  /** Returns the provider's metadata. Concurrent callers share one discovery, which is a request for the metadata. */
  async #discover(): Promise<client.Configuration> {
    const known = this.#known;
    if (known && known.untilMs > performance.now()) return known.configuration;
    this.#discovery ??= this.#readMetadata().finally(() => {
      this.#discovery = undefined;
    });
    if (known === undefined) return this.#discovery;
    // While new metadata is read, logins use the old metadata instead of waiting.
    this.#known = { ...known, untilMs: performance.now() + METADATA_RETRY_MS };
    this.#discovery.catch(() => {});
    return known.configuration;
  }

  async #readMetadata(): Promise<client.Configuration> {
    const { issuer, clientId, clientSecret } = this.#settings;
    const url = new URL(issuer);
    const configuration = await client.discovery(
      url,
      clientId,
      { [client.clockTolerance]: CLOCK_TOLERANCE_SECONDS },
      authenticateClient(clientSecret),
      {
        timeout: this.#stepMs / 1_000,
        [client.customFetch]: buildFetch(isOnLoopback(url)),
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

/** Whether a claim is a text of at most `max` characters that Postgres can store. */
const isShortText = (claim: unknown, max: number): claim is string =>
  typeof claim === 'string' && claim.length <= max && isStorable(claim);

/**
 * Returns a function that adds the client's secret to a request: in a header (OpenID Connect Core section 9), or in the
 * body if the provider does not support the header.
 */
function authenticateClient(secret: string): client.ClientAuth {
  const [basic, post] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)];
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    return (methods.includes('client_secret_basic') ? basic : post)(server, ...rest);
  };
}

/**
 * Returns a `fetch` that refuses endpoints without encryption, even if the provider's metadata names them. If the
 * provider runs on this computer, its endpoints on this computer need no encryption.
 */
const buildFetch =
  (isProviderLocal: boolean): client.CustomFetch =>
  async (address, options) => {
    const url = new URL(address);
    if (url.protocol !== 'https:' && !(isProviderLocal && isOnLoopback(url)))
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

/** Error codes of a provider that has a problem of its own (RFC 6749 section 4.1.2.1). */
const PROVIDER_TROUBLE = ['server_error', 'temporarily_unavailable'];

/** Error codes of a provider that does not accept this service as a client (RFC 6749 sections 4.1.2.1 and 5.2). */
const CLIENT_TROUBLE = [
  'invalid_client',
  'unauthorized_client',
  'invalid_scope',
  'unsupported_response_type',
  'unsupported_grant_type',
];

/**
 * Translates an error of the library. The error's message may contain urls, codes and tokens, so only the error's name
 * and codes are kept.
 */
function toSignInError(thrown: unknown): SignInError {
  if (thrown instanceof SignInError) return thrown;
  if (!(thrown instanceof Error)) return new SignInError('invalid', 'unknown');
  if (thrown.cause instanceof SignInError) return thrown.cause;
  const isOfProtocol =
    thrown instanceof client.AuthorizationResponseError || thrown instanceof client.ResponseBodyError;
  const oauthCode = isOfProtocol && /^[a-z_]{1,40}$/.test(thrown.error) ? thrown.error : '';
  const words = [thrown.name, systemCodeOf(thrown), oauthCode].filter(Boolean);
  return new SignInError(findFault(thrown, oauthCode), words.join(' '));
}

/** Returns what failed. `oauthCode` is the error code in the provider's response, or empty. */
function findFault(error: Error, oauthCode: string): SignInFault {
  const libraryCode = systemCodeOf(error);
  const slowCodes = ['OAUTH_TIMEOUT', 'OAUTH_ABORT'];
  if (error.name === 'TimeoutError' || slowCodes.includes(libraryCode ?? '')) return 'slow';
  // The provider did not accept the client's credentials.
  if (error instanceof client.WWWAuthenticateChallengeError) return 'client';
  if (PROVIDER_TROUBLE.includes(oauthCode)) return 'invalid';
  if (CLIENT_TROUBLE.includes(oauthCode)) return 'client';
  if (error instanceof client.AuthorizationResponseError) return 'denied';
  if (oauthCode === 'invalid_grant') return 'callback';
  // `fetch` rejects with a TypeError if the connection fails.
  if (error.name === 'TypeError') return 'unreachable';
  return libraryCode === 'OAUTH_INVALID_RESPONSE' && isOfCallback(error.cause) ? 'callback' : 'invalid';
}

/**
 * Whether the library found the fault in the parameters of the callback, before it asked the provider. The library's
 * error code does not show this, because a fault in a response has the same code.
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
