/** How long values of a kind are kept, in milliseconds, and how many of them. */
interface PendingLimits {
  lifeMs: number;
  capacity: number;
}

/**
 * What is kept for a short time and taken once. A value is at most some 2 KiB long, so each kind takes 50 MiB of Redis at
 * worst, and a third of that as a rule.
 */
export const PENDING_KINDS = {
  /** Logins under way at the provider: long enough to find a second factor. */
  logins: { lifeMs: 600_000, capacity: 20_000 },
  /** Codes for apps (RFC 6749 4.1.2 takes ten minutes at most; an app exchanges its code at once). */
  codes: { lifeMs: 60_000, capacity: 20_000 },
  /** Which session a code was exchanged for, so that it ends where the code comes again: as long as a code may be valid. */
  exchanges: { lifeMs: 600_000, capacity: 20_000 },
  /** Codes that came and were not there: longer than an exchange that is under way needs. */
  repeats: { lifeMs: 60_000, capacity: 20_000 },
  /** Codes that sign in another device: long enough to find it and to type the code. */
  deviceCodes: { lifeMs: 300_000, capacity: 20_000 },
  /** The code that a session has made, by the session. */
  deviceSessions: { lifeMs: 300_000, capacity: 20_000 },
  /** Challenges for signing in by a passkey. Anybody gets one, so these cannot displace those of additions. */
  passkeySignIns: { lifeMs: 300_000, capacity: 20_000 },
  /** Challenges for adding a passkey. */
  passkeyAdditions: { lifeMs: 300_000, capacity: 20_000 },
} satisfies Record<string, PendingLimits>;

export type PendingKind = keyof typeof PENDING_KINDS;
