/** The lifetime of a kind's values in milliseconds, and how many of them are kept. */
interface PendingLimits {
  lifeMs: number;
  capacity: number;
}

/**
 * Values that are kept for a short time and taken once. A value has at most about 2 KiB, so a kind takes at most 50 MiB
 * of Redis.
 */
export const PENDING_KINDS = {
  /** Logins in progress at the provider. They last long enough to find a second factor. */
  logins: { lifeMs: 600_000, capacity: 20_000 },
  /** Codes for apps. RFC 6749 (4.1.2) allows ten minutes, but an app needs only seconds to exchange its code. */
  codes: { lifeMs: 60_000, capacity: 20_000 },
  /**
   * The session that each code was exchanged for. If somebody sends the code a second time, that session ends. Values
   * last as long as the RFC allows a code to last.
   */
  exchanges: { lifeMs: 600_000, capacity: 20_000 },
  /** Codes that were sent but not found. They are kept longer than another exchange of the same code can take. */
  repeats: { lifeMs: 60_000, capacity: 20_000 },
  /** Codes that sign in another device. They last long enough to find the device and to type the code. */
  deviceCodes: { lifeMs: 300_000, capacity: 20_000 },
  /** The device code that each session has created. The key is the session. */
  deviceSessions: { lifeMs: 300_000, capacity: 20_000 },
  /**
   * Challenges for signing in by a passkey. Anybody can request one, so they are a kind of their own: they must not
   * displace challenges for additions.
   */
  passkeySignIns: { lifeMs: 300_000, capacity: 20_000 },
  /** Challenges for adding a passkey. */
  passkeyAdditions: { lifeMs: 300_000, capacity: 20_000 },
} satisfies Record<string, PendingLimits>;

export type PendingKind = keyof typeof PENDING_KINDS;
