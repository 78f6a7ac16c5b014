/**
 * Every rate limiter of the service, by its name in `coordination.limiters`. To add a limiter, add an entry. The limit
 * itself is not here: callers pass it with each call.
 */
const WINDOWS = {
  /** Requests by token hash (docs/contract.md, section 8). */
  tokens: { keyPart: 'token' },
  /** Requests to endpoints that need no token, by client address (docs/contract.md, decision 25). */
  addresses: { keyPart: 'address' },
  /** Wrong invite codes sent without an e-mail address. All clients share one count (docs/contract.md, decision 42). */
  inviteFailures: { keyPart: 'invite-failure', windowMs: 60_000, countsFailures: true },
  /** Wrong invite codes sent with an e-mail address. Each counts for that address and for the client's network. */
  namedInviteFailures: { keyPart: 'named-invite-failure', windowMs: 3_600_000, countsFailures: true },
  /** Failed lookups of tokens, by the client's network. */
  tokenFailures: { keyPart: 'token-failure', windowMs: 60_000, countsFailures: true },
  /** Requests to the sign-in pages, by client address. */
  logins: { keyPart: 'login' },
} satisfies Record<string, Window>;

interface Window {
  /** The part of the Redis keys that names the limiter. */
  keyPart: string;
  /** The length of the window in milliseconds, at least 1,000. If absent, the configured window is used. */
  windowMs?: number;
  /** True if the limiter counts failures. The metrics of requests do not include them. */
  countsFailures?: boolean;
}

export type LimiterName = keyof typeof WINDOWS;

/** Opens one limiter for each entry of `WINDOWS`, by calling `open`. */
export function openLimiters<Limiter, Counters extends object>(
  configuredWindowMs: number,
  counters: Counters,
  open: (keyPart: string, windowMs: number, counters: Counters) => Limiter,
): Readonly<Record<LimiterName, Limiter>> {
  const windows: [string, Window][] = Object.entries(WINDOWS);
  // A limiter that counts failures gets counters of its own. Nobody reads them.
  const limiters = windows.map(([name, { keyPart, windowMs = configuredWindowMs, countsFailures }]) => [
    name,
    open(keyPart, windowMs, countsFailures ? { ...counters } : counters),
  ]);
  return Object.fromEntries(limiters);
}
