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
