/** The lifetime of a kind's values in milliseconds, and how many of them are kept. */
interface PendingLimits {
  lifeMs: number;
  capacity: number;
}

/**
 * The kinds of values that are kept for a short time and can be taken once. A value has at most about 2 KiB, so a kind
 * takes at most 50 MiB of Redis's memory.
 */
export const PENDING_KINDS = {
  /** Logins in progress at the OpenID provider. People have time to find their second factor. */
  logins: { lifeMs: 600_000, capacity: 20_000 },
  /** Codes for apps. RFC 6749 (4.1.2) allows ten minutes, but an app needs only seconds to exchange its code. */
  codes: { lifeMs: 60_000, capacity: 20_000 },
  /**
   * The session that each code for apps was exchanged for. If somebody sends the code a second time, that session ends.
   * Values are kept for the ten minutes that the RFC allows a code to last.
   */
  exchanges: { lifeMs: 600_000, capacity: 20_000 },
  /** Codes for apps that were sent but not found. Any other exchange of the same code ends before this time is over. */
  repeats: { lifeMs: 60_000, capacity: 20_000 },
  /** Codes that sign in another device. People have time to find the device and to type the code. */
  deviceCodes: { lifeMs: 300_000, capacity: 20_000 },
  /** The device code that each session has created. The key is a hash of the session. */
  deviceSessions: { lifeMs: 300_000, capacity: 20_000 },
  /**
   * Challenges for signing in by a passkey. They are separate from `passkeyAdditions`, because anybody can request
   * them, and a flood of them must not displace the challenges of signed-in people.
   */
  passkeySignIns: { lifeMs: 300_000, capacity: 20_000 },
  /** Challenges for adding a passkey to an account. Only signed-in people can request them. */
  passkeyAdditions: { lifeMs: 300_000, capacity: 20_000 },
} satisfies Record<string, PendingLimits>;

export type PendingKind = keyof typeof PENDING_KINDS;
