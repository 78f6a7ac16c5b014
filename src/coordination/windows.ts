/**
 * Every rate limiter of the service, by its name in `coordination.limiters`. To add a limiter, add an entry. The limit
 * itself is not here: callers pass it with each call.
 */
const WINDOWS = {
  /** Requests by token hash (docs/contract.md, section 8). */
  tokens: { keyPart: 'token', slides: true },
  /** Requests of all tokens of an account, by user id, if the operator limits them. */
  accounts: { keyPart: 'account' },
  /** Requests to endpoints that need no token, by client address (docs/contract.md, decision 25). */
  addresses: { keyPart: 'address' },
  /** Requests to the sign-in pages, by client address. */
  logins: { keyPart: 'login' },
  /** Wrong codes sent without an e-mail address, and tries beyond their budget (docs/contract.md, decision 42). */
  codeFailures: { keyPart: 'code-failure', windowSeconds: 60, countsFailures: true },
  /** Wrong codes sent with an e-mail address, and tries beyond their budget. */
  namedCodeFailures: { keyPart: 'named-code-failure', windowSeconds: 3_600, countsFailures: true },
  /** Failed lookups of tokens, by client address. */
  tokenFailures: { keyPart: 'token-failure', windowSeconds: 60, countsFailures: true },
} satisfies Record<string, Partial<WindowOptions>>;

/** Describes one limiter. */
export interface WindowOptions {
  /** The part of the Redis keys that names the limiter. */
  keyPart: string;
  /** The length of the window in whole seconds. By default, it is the configured one. */
  windowSeconds: number;
  /** Whether the window slides in Redis, which makes the limit exact. If not, it begins with the first request. */
  slides?: boolean;
  /** True if the limiter counts failures. The metrics of requests do not include them. */
  countsFailures?: boolean;
}

export type LimiterName = keyof typeof WINDOWS;

/** Opens one limiter for each entry of `WINDOWS`, by calling `open`. `windowSeconds` is the configured window. */
export function openLimiters<Limiter>(
  windowSeconds: number,
  open: (options: WindowOptions) => Limiter,
): Readonly<Record<LimiterName, Limiter>> {
  const limiters = Object.entries(WINDOWS).map(([name, window]) => [
    name,
    open({ windowSeconds, ...window }),
  ]);
  return Object.fromEntries(limiters);
}
