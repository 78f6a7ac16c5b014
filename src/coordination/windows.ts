/**
 * Every limiter of the service: its name in `coordination.limiters`, its part of the Redis keys, and its window in
 * milliseconds (at least 1,000; default: the configured one). To add a limiter, add a line. Its callers pass the limit
 * with each call. A limiter with `countsFailures` does not count in the metrics of admitted and refused requests.
 */
const WINDOWS = {
  /** Requests by token hash (spec 8). */
  tokens: { keyPart: 'token' },
  /** Invite exchanges by client address (decision 25). */
  addresses: { keyPart: 'address' },
  /** Wrong invite codes of all clients together (decision 42). */
  inviteFailures: { keyPart: 'invite-failure', windowMs: 60_000, countsFailures: true },
  /** Wrong invite codes by e-mail address, and by the network that names addresses. */
  namedInviteFailures: { keyPart: 'named-invite-failure', windowMs: 3_600_000, countsFailures: true },
  /** Tokens that do not exist, by the network that sends them. */
  tokenFailures: { keyPart: 'token-failure', windowMs: 60_000, countsFailures: true },
  /** Requests of the sign-in pages, by client address. */
  logins: { keyPart: 'login' },
} satisfies Record<string, Window>;

interface Window {
  keyPart: string;
  windowMs?: number;
  countsFailures?: boolean;
}

export type LimiterName = keyof typeof WINDOWS;

/** Opens one limiter for each line above. */
export function openLimiters<Limiter, Counters extends object>(
  configuredWindowMs: number,
  counters: Counters,
  open: (keyPart: string, windowMs: number, counters: Counters) => Limiter,
): Readonly<Record<LimiterName, Limiter>> {
  const windows: [string, Window][] = Object.entries(WINDOWS);
  const opened = windows.map(([name, { keyPart, windowMs = configuredWindowMs, countsFailures }]) => [
    name,
    open(keyPart, windowMs, countsFailures ? { ...counters } : counters),
  ]);
  return Object.fromEntries(opened);
}
