/** Why a sign-in failed. The metric, the log and the pages share this list. */

/** The provider, or its configuration for this service, must be fixed. */
const PROVIDER_FAULTS = [
  /** The connection failed or was closed. */
  'unreachable',
  /** The provider took longer than three seconds. */
  'slow',
  /** The response is invalid: a 5xx, malformed data, another issuer, or an ID token that fails the checks. */
  'invalid',
  /** The provider refuses this service: the client secret is wrong, or the redirect address is not registered. */
  'client',
] as const;

/** The service and the provider work, but this person may not sign in. */
const PERSON_FAULTS = [
  /** The person, or the provider's rules, declined. */
  'denied',
  /** The callback belongs to no login of this browser: used, expired, replaced, or started elsewhere. */
  'callback',
  /** The provider does not call the address verified. */
  'unverified',
  /** The address is not in an allowed domain. */
  'domain',
  /** The address has neither an account nor an invite. */
  'uninvited',
  /** An account has the address, and the provider is not trusted to open it. */
  'taken',
  /** The person's provider account is linked to another account here. */
  'linked',
  /** Somebody signed in who is not the person that had to confirm their identity. */
  'other-person',
  /** The session that started the linking has ended. */
  'no-session',
  /** An operator has suspended the account. */
  'suspended',
] as const;

type ProviderFault = (typeof PROVIDER_FAULTS)[number];
export type SignInFault = ProviderFault | (typeof PERSON_FAULTS)[number];

/** `unavailable`: Redis or Postgres is away, or the replica is overloaded. */
export const SIGN_IN_OUTCOMES = ['done', 'unavailable', ...PROVIDER_FAULTS, ...PERSON_FAULTS] as const;
export type SignInOutcome = (typeof SIGN_IN_OUTCOMES)[number];

interface LibraryError {
  name?: string;
  code?: unknown;
  error?: unknown;
  cause?: unknown;
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

/** A sign-in failed. The message is a few words of our own, for the log. */
export class SignInError extends Error {
  override readonly name = 'SignInError';
  readonly fault: SignInFault;

  constructor(fault: SignInFault, message: string = fault) {
    super(message);
    this.fault = fault;
  }

  /** Whether the provider, or its configuration for this service, must be fixed. */
  get isOfProvider(): boolean {
    return (PROVIDER_FAULTS as readonly string[]).includes(this.fault);
  }

  /**
   * Translates an error of the library. Such errors contain urls, codes and tokens, so only the names of the problem
   * are kept.
   */
  static of(thrown: unknown): SignInError {
    if (thrown instanceof SignInError) return thrown;
    const { name, code, error, cause } = (thrown ?? {}) as LibraryError;
    if (cause instanceof SignInError) return cause;
    const said = typeof error === 'string' && /^[a-z_]{1,40}$/.test(error) ? error : undefined;
    const words = [name, code, said].filter((word) => typeof word === 'string').join(' ');
    return new SignInError(findFault(thrown as LibraryError, said), words || 'unknown');
  }
}

function findFault({ name, code, cause }: LibraryError, said: string | undefined): SignInFault {
  if (name === 'TimeoutError' || code === 'OAUTH_TIMEOUT' || code === 'OAUTH_ABORT') return 'slow';
  // A response with a challenge: the provider did not accept the client's credentials.
  if (code === 'OAUTH_WWW_AUTHENTICATE_CHALLENGE') return 'client';
  if (said !== undefined && PROVIDER_TROUBLE.includes(said)) return 'invalid';
  if (said !== undefined && CLIENT_TROUBLE.includes(said)) return 'client';
  if (code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR') return 'denied';
  if (said === 'invalid_grant') return 'callback';
  // The library has one code for faults in the callback and in a response. `isOfCallback` distinguishes them.
  if (name === 'TypeError') return 'unreachable';
  return code === 'OAUTH_INVALID_RESPONSE' && isOfCallback(cause) ? 'callback' : 'invalid';
}

/** Whether the fault was found in the callback's own parameters, before the provider was asked. */
function isOfCallback(cause: unknown): boolean {
  const parameters = (cause as { cause?: { parameters?: unknown } } | undefined)?.cause?.parameters;
  return parameters instanceof URLSearchParams;
}
