/** The reasons why a sign-in fails. The metric, the log and the pages share them. */

/** Faults of the provider or of its configuration for this service. Somebody must fix them. */
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

/** Faults that concern one person. The service and the provider work, but this person may not sign in. */
const PERSON_FAULTS = [
  /** The person cancelled the sign-in, or the provider's rules forbid it. */
  'denied',
  /** The callback fits no login in progress here: the login was completed, has expired, or began in another browser. */
  'callback',
  /** The provider does not say that it has verified the address. */
  'unverified',
  /** The address is not in an allowed domain. */
  'domain',
  /** The address has neither an account nor an invite. */
  'uninvited',
  /** An account has this address already, and the provider is not trusted to open that account. */
  'taken',
  /** One of the two accounts is already linked: the account at the provider, or the account at this service. */
  'linked',
  /** The owner of an account had to confirm their identity, but another person signed in. */
  'other-person',
  /** The session that started the linking has ended. */
  'no-session',
  /** An operator has suspended the account. */
  'suspended',
] as const;

type ProviderFault = (typeof PROVIDER_FAULTS)[number];
export type SignInFault = ProviderFault | (typeof PERSON_FAULTS)[number];

/** The outcomes of a sign-in. `unavailable` means that Redis or Postgres is down, or that the replica is overloaded. */
export const SIGN_IN_OUTCOMES = ['done', 'unavailable', ...PROVIDER_FAULTS, ...PERSON_FAULTS] as const;

/** Thrown when a sign-in fails. The message is for the log and contains no data of the person. */
export class SignInError extends Error {
  override readonly name = 'SignInError';
  readonly fault: SignInFault;

  constructor(fault: SignInFault, message: string = fault) {
    super(message);
    this.fault = fault;
  }

  /** Whether the provider, or its configuration for this service, must be fixed. */
  get isOfProvider(): boolean {
    return PROVIDER_FAULTS.some((fault) => fault === this.fault);
  }
}
