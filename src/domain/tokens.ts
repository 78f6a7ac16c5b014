import { hash, randomBytes } from 'node:crypto';

/**
 * Tokens (docs/contract.md, sections 2.4 and 5), and principals, who are the users that send requests with valid
 * tokens.
 */

export type TokenKind = 'session' | 'api';
export type Scope = 'read' | 'write';

const PREFIX_BY_KIND: Record<TokenKind, string> = { session: 'bks', api: 'bka' };
const KIND_BY_PREFIX: Record<string, TokenKind> = { bks: 'session', bka: 'api' };

/** A session can be prolonged to at most this many days after its creation. */
export const MAX_SESSION_DAYS = 365;

/** A token from a request, not yet known to be valid. */
export interface PresentedToken {
  kind: TokenKind;
  userId: number;
  /** SHA-256 of the token's secret. The secret itself is never stored. */
  hash: Buffer;
  /** The hash as text. It is the key by which requests and held polls are counted. */
  key: string;
}

/** The user who sent a request with a valid token. */
export interface Principal extends PresentedToken {
  scope: Scope;
  /** Whether the account was premium when the token was looked up. */
  isPremium: boolean;
  /** When the token expires, by this process's `performance.now()`. `Infinity` if it never does. */
  expiresAtMs: number;
}

/** A principal that was just read from the database. */
export interface FoundPrincipal extends Principal {
  /** Whether the stored time of the token's last use is so old that it should be updated. */
  isUseDue: boolean;
}

/** What the database stores of a token's secret. */
export interface StoredSecret {
  hash: Buffer;
  /** The last four characters, so that the token's owner can recognize it. They reveal 22 of the 256 random bits. */
  lastFour: string;
}

/** A secret of 256 random bits, and what the database stores of it. */
interface NewSecret extends StoredSecret {
  secret: string;
}

const hashSecret = (secret: string): Buffer => hash('sha256', secret, 'buffer');

/** Creates the secret of a new token. */
export function createSecret(): NewSecret {
  const secret = randomBytes(32).toString('base64url');
  return { secret, hash: hashSecret(secret), lastFour: secret.slice(-4) };
}

/** Makes the text of a token (docs/contract.md, decision 23) from its kind, its user's id and its secret. */
export const formatToken = (kind: TokenKind, userId: number, secret: string): string =>
  `${PREFIX_BY_KIND[kind]}_${userId}_${secret}`;

const TOKEN = /^(bks|bka)_([1-9]\d{0,15})_([A-Za-z0-9_-]{43})$/;

/** Parses the text of a token. Returns undefined if the text is malformed. */
export function parseToken(text: string | undefined): PresentedToken | undefined {
  const [, prefix = '', id, secret = ''] = TOKEN.exec(text ?? '') ?? [];
  const kind = KIND_BY_PREFIX[prefix];
  const userId = Number(id);
  if (kind === undefined || !Number.isSafeInteger(userId)) return undefined;
  const key = hash('sha256', secret, 'base64url');
  // Decoding the text of the hash is three times as fast as calling `hash` again for its bytes.
  return { kind, userId, hash: Buffer.from(key, 'base64url'), key };
}

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
