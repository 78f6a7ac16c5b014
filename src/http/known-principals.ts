import type { PresentedToken, Principal } from '../domain/tokens.ts';

/** Removes the oldest entries until there is room for one more. */
function makeRoom(entries: Map<string, unknown> | Set<string>, capacity: number): void {
  for (const oldest of entries.keys()) {
    if (entries.size < capacity) return;
    entries.delete(oldest);
  }
}

/**
 * Remembers the principals of recently checked tokens, to save lookups. A revoked token is useless immediately, even if
 * it is remembered here, because every operation's statement checks the token again.
 */
export class KnownPrincipals {
  /** The keys of tokens that were valid when this process last looked them up, however long ago. */
  readonly #seen = new Set<string>();
  /** The remembered principals, keyed by the token's `key`. `untilMs` is when each is forgotten, by `Date.now()`. */
  readonly #principals = new Map<string, { principal: Principal; untilMs: number }>();
  readonly #capacity: number;
  readonly #ttlMs: number;

  constructor({ capacity = 20_000, ttlMs = 60_000 } = {}) {
    this.#capacity = capacity;
    this.#ttlMs = ttlMs;
  }

  /** Returns the principal of this token if it is remembered. */
  find(token: PresentedToken, nowMs = Date.now()): Principal | undefined {
    const known = this.#principals.get(token.key);
    if (known === undefined) return undefined;
    if (known.untilMs <= nowMs) {
      this.#principals.delete(token.key);
      return undefined;
    }
    const { principal } = known;
    // The key is made of the secret only. So a token with another user or kind, but the same secret, also gets here.
    return principal.userId === token.userId && principal.kind === token.kind ? principal : undefined;
  }

  /** Remembers the principal of a token that was just looked up. */
  add(principal: Principal, nowMs = Date.now()): void {
    makeRoom(this.#principals, this.#capacity);
    this.#principals.set(principal.key, { principal, untilMs: nowMs + this.#ttlMs });
    // The key moves to the end of the set, so that the key that was added longest ago is removed first.
    this.#seen.delete(principal.key);
    makeRoom(this.#seen, this.#capacity);
    this.#seen.add(principal.key);
  }

  /** Whether this token was valid when this process last looked it up. */
  hasSeen({ key }: PresentedToken): boolean {
    return this.#seen.has(key);
  }

  /** Forgets a token that is no longer valid. */
  forget(token: PresentedToken): void {
    this.#principals.delete(token.key);
    this.#seen.delete(token.key);
  }
}
