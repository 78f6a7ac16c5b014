/**
 * Every limiter of the service: its name in `coordination.limiters`, what it counts under in Redis, and its window in
 * milliseconds (at least 1,000; absent: that of the configuration). A further limiter is one line here: who uses it
 * brings the limit with each call. One that counts failures is no limiter of requests: what it decides is counted nowhere else.
 */
const WINDOWS = {
  /** Requests by token hash (spec 8). */
  tokens: { keyPart: 'token' },
  /** Invite exchanges by client address (decision 25). */
  addresses: { keyPart: 'address' },
  /** Wrong invite codes of everybody (decision 42). */
  inviteFailures: { keyPart: 'invite-failure', windowMs: 60_000, countsFailures: true },
  /** Wrong invite codes by e-mail address, and by the network that names addresses. */
  namedInviteFailures: { keyPart: 'named-invite-failure', windowMs: 3_600_000, countsFailures: true },
  /** Tokens that do not exist, by the network that presents them. */
  tokenFailures: { keyPart: 'token-failure', windowMs: 60_000, countsFailures: true },
  /** Pages of signing in, by client address. */
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
