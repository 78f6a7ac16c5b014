/** The lifetime of each value of a kind, in milliseconds, and the maximum number of values of that kind. */
interface PendingLimits {
  lifeMs: number;
  capacity: number;
}

/**
 * The kinds of values that are kept for a short time and can be taken once. A value has at most about 2 KiB, and a kind
 * has at most 20,000 values. So a kind takes at most 50 MiB of Redis's memory.
 */
export const PENDING_KINDS = {
  /** Logins in progress at the OpenID provider. The lifetime gives people time to find their second factor. */
  logins: { lifeMs: 600_000, capacity: 20_000 },
  /** Codes for apps. RFC 6749 (4.1.2) allows ten minutes, but an app needs only seconds to exchange its code. */
  codes: { lifeMs: 60_000, capacity: 20_000 },
  /**
   * For each code that an app has exchanged, the session that the exchange opened. If somebody sends the code again,
   * that session ends. A value is kept for ten minutes, because RFC 6749 allows a code to last that long.
   */
  exchanges: { lifeMs: 600_000, capacity: 20_000 },
  /**
   * Invalid codes that somebody tried to exchange for an app's session. Each exchange looks for its own code here
   * before it ends, because somebody else may have sent the same code in the meantime. The lifetime is longer than any
   * exchange.
   */
  repeats: { lifeMs: 60_000, capacity: 20_000 },
  /** Codes that sign in another device. The lifetime gives people time to find the device and to type the code. */
  deviceCodes: { lifeMs: 300_000, capacity: 20_000 },
  /** For each session, the latest device code that it created. Both the key and the value are hashes. */
  deviceSessions: { lifeMs: 300_000, capacity: 20_000 },
  /**
   * Challenges for signing in with a passkey. Anybody can request these challenges, and a flood of them must not
   * displace the challenges of signed-in people. So `passkeyAdditions` is a separate kind.
   */
  passkeySignIns: { lifeMs: 300_000, capacity: 20_000 },
  /** Challenges for adding a passkey to an account. Only signed-in people can request them. */
  passkeyAdditions: { lifeMs: 300_000, capacity: 20_000 },
} satisfies Record<string, PendingLimits>;

export type PendingKind = keyof typeof PENDING_KINDS;
