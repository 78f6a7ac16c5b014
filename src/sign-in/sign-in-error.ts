/** Why signing in came to nothing: one catalogue for the metric, the log and the pages. */

/** The provider, or what it was told of this service, is to be mended. */
const PROVIDER_FAULTS = [
  /** It cannot be connected to, or broke off. */
  'unreachable',
  /** It took longer than three seconds. */
  'slow',
  /** It responded with what no provider may: 5xx, junk, another issuer, an ID token that does not hold. */
  'invalid',
  /** It refuses this service: the client's secret is wrong, or its redirect address is not registered. */
  'client',
] as const;

/** Everything works, and this person is not signed in. */
const PERSON_FAULTS = [
  /** The person, or the provider's rules, said no. */
  'denied',
  /** The callback belongs to no login of this browser: used, too old, replaced, or begun elsewhere. */
  'callback',
  /** The provider does not say that the address is verified. */
  'unverified',
  /** The address is in no domain that may sign in. */
  'domain',
  /** There is neither an account nor an invite for the address. */
  'uninvited',
  /** An account has the address, and the provider's word is not enough to open it. */
  'taken',
  /** The person at the provider belongs to another account. */
  'linked',
  /** Somebody else signed in than who had to confirm who they are. */
  'other-person',
  /** The session that began the linking is over. */
  'no-session',
  /** An operator has suspended the account. */
  'suspended',
] as const;

type ProviderFault = (typeof PROVIDER_FAULTS)[number];
export type SignInFault = ProviderFault | (typeof PERSON_FAULTS)[number];

/** `unavailable`: Redis or Postgres is away, or the replica has too much to do. */
export const SIGN_IN_OUTCOMES = ['done', 'unavailable', ...PROVIDER_FAULTS, ...PERSON_FAULTS] as const;
export type SignInOutcome = (typeof SIGN_IN_OUTCOMES)[number];

interface LibraryError {
  name?: string;
  code?: unknown;
  error?: unknown;
  cause?: unknown;
}

/** Errors of the authorization response that say that the provider itself is in trouble (RFC 6749 4.1.2.1). */
const PROVIDER_TROUBLE = ['server_error', 'temporarily_unavailable'];

/** Errors that say that the provider does not know this client (RFC 6749 4.1.2.1, 5.2). */
const CLIENT_TROUBLE = [
  'invalid_client',
  'unauthorized_client',
  'invalid_scope',
  'unsupported_response_type',
  'unsupported_grant_type',
];

/** A person is not signed in. The message is a few words of the service's own, for the log. */
export class SignInError extends Error {
  override readonly name = 'SignInError';
  readonly fault: SignInFault;

  constructor(fault: SignInFault, message: string = fault) {
    super(message);
    this.fault = fault;
  }

  /** Whether the provider, or what it was told of this service, is to be mended. */
  get isOfProvider(): boolean {
    return (PROVIDER_FAULTS as readonly string[]).includes(this.fault);
  }

  /**
   * Of whatever the library threw. Its errors carry urls, codes and tokens, so nothing is kept of them but the names of
   * what went wrong.
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
  // A challenge beside the credentials that were sent.
  if (code === 'OAUTH_WWW_AUTHENTICATE_CHALLENGE') return 'client';
  if (said !== undefined && PROVIDER_TROUBLE.includes(said)) return 'invalid';
  if (said !== undefined && CLIENT_TROUBLE.includes(said)) return 'client';
  if (code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR') return 'denied';
  if (said === 'invalid_grant') return 'callback';
  // The library throws one code for faults of the callback's parameters and of a response; only the latter has one.
  if (name === 'TypeError') return 'unreachable';
  return code === 'OAUTH_INVALID_RESPONSE' && isOfCallback(cause) ? 'callback' : 'invalid';
}

/** A fault that was found in the callback's own parameters, before the provider was asked. */
function isOfCallback(cause: unknown): boolean {
  const parameters = (cause as { cause?: { parameters?: unknown } } | undefined)?.cause?.parameters;
  return parameters instanceof URLSearchParams;
}
