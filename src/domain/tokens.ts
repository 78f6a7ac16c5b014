import { hash, randomBytes } from 'node:crypto';

/** Tokens of spec 2.4 and 5, and who presents them. */

export type TokenKind = 'session' | 'api';
export type Scope = 'read' | 'write';

const PREFIX_BY_KIND: Record<TokenKind, string> = { session: 'bks', api: 'bka' };
const KIND_BY_PREFIX: Record<string, TokenKind> = { bks: 'session', bka: 'api' };

/** However often a session prolongs itself, it lives for so long at most. */
export const MAX_SESSION_DAYS = 365;

/** A token as a request presents it: not yet known to be valid. */
export interface PresentedToken {
  kind: TokenKind;
  userId: number;
  /** SHA-256 of its secret part: all that is ever stored. */
  hash: Buffer;
  /** The hash as text: what limits and waits are counted under. */
  key: string;
}

/** Who sent a request, once the token was found valid. */
export interface Principal extends PresentedToken {
  scope: Scope;
  /** The tier of the account, as it was when the token was looked up. */
  isPremium: boolean;
  /** When the token expires, in milliseconds of this process's `performance.now()`; `Infinity` where it never does. */
  expiresAtMs: number;
}

/** A principal as the database returns it. */
export interface FoundPrincipal extends Principal {
  /** Whether the last use that is stored is so old that this one is to be noted. */
  isUseDue: boolean;
}

/** What is stored of a secret. */
export interface StoredSecret {
  hash: Buffer;
  /** Its last four characters, by which its owner knows the token again; 232 random bits stay unknown. */
  lastFour: string;
}

/** A secret of 256 random bits, and what is stored of it. */
interface NewSecret extends StoredSecret {
  secret: string;
}

const hashSecret = (secret: string): Buffer => hash('sha256', secret, 'buffer');

/** Draws a new token's secret. */
export function createSecret(): NewSecret {
  const secret = randomBytes(32).toString('base64url');
  return { secret, hash: hashSecret(secret), lastFour: secret.slice(-4) };
}

/** The token as its owner keeps it (decision 23): kind, user, secret. */
export const formatToken = (kind: TokenKind, userId: number, secret: string): string =>
  `${PREFIX_BY_KIND[kind]}_${userId}_${secret}`;

const TOKEN = /^(bks|bka)_([1-9]\d{0,15})_([A-Za-z0-9_-]{43})$/;

/** Reads a token as its owner keeps it; `undefined` for anything that no token of this service can be. */
export function parseToken(text: string | undefined): PresentedToken | undefined {
  const match = TOKEN.exec(text ?? '');
  if (match === null) return undefined;
  const kind = KIND_BY_PREFIX[match[1]!];
  const userId = Number(match[2]);
  if (kind === undefined || !Number.isSafeInteger(userId)) return undefined;
  const key = hash('sha256', match[3]!, 'base64url');
  // As text first: to have the bytes from the hash itself takes three times as long.
  return { kind, userId, hash: Buffer.from(key, 'base64url'), key };
}

/**
 * Principals whose tokens were lately found valid. Only a hint that spares a look-up: every operation's statement checks
 * the token again, so a revoked one does nothing from the moment of its revocation, whatever stands here.
 */
export class KnownPrincipals {
  /** Tokens that were valid when this process last asked, whenever that was. */
  readonly #seen = new Set<string>();
  readonly #principals = new Map<string, { principal: Principal; untilMs: number }>();
  readonly #capacity: number;
  readonly #ttlMs: number;

  constructor({ capacity = 20_000, ttlMs = 60_000 } = {}) {
    this.#capacity = capacity;
    this.#ttlMs = ttlMs;
  }

  /** The principal who last presented this very token, where it is still remembered. */
  find(token: PresentedToken, nowMs = Date.now()): Principal | undefined {
    const known = this.#principals.get(token.key);
    if (known === undefined) return undefined;
    if (known.untilMs <= nowMs) {
      this.#principals.delete(token.key);
      return undefined;
    }
    const { principal } = known;
    return principal.userId === token.userId && principal.kind === token.kind ? principal : undefined;
  }

  add(principal: Principal, nowMs = Date.now()): void {
    if (this.#principals.size >= this.#capacity)
      this.#principals.delete(this.#principals.keys().next().value!);
    this.#principals.set(principal.key, { principal, untilMs: nowMs + this.#ttlMs });
    // Those seen longest ago go first.
    this.#seen.delete(principal.key);
    if (this.#seen.size >= this.#capacity) this.#seen.delete(this.#seen.keys().next().value!);
    this.#seen.add(principal.key);
  }

  /** Whether this very token was valid when this process last asked. */
  hasSeen({ key }: PresentedToken): boolean {
    return this.#seen.has(key);
  }

  forget(token: PresentedToken): void {
    this.#principals.delete(token.key);
    this.#seen.delete(token.key);
  }
}
