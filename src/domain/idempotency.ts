import { invalid } from './errors.ts';

/**
 * A client's `Idempotency-Key`, which makes it safe to retry a write. It is an addition to the specification, and
 * follows the IETF's draft. Within 24 hours, the same key with the same request returns the first result, on every
 * replica, even if the first response was lost. The same key with another request is a `VALIDATION_ERROR`.
 */
export interface Idempotency {
  key: string;
  /** SHA-256 of the path and the bytes of the body. */
  requestHash: Buffer;
}

const KEY = /^[\x21-\x7e]{1,255}$/;

/** Checks a client's key. Throws `VALIDATION_ERROR` for an invalid one. */
export function parseIdempotencyKey(key: unknown): string {
  if (typeof key === 'string' && KEY.test(key)) return key;
  throw invalid('Idempotency-Key: expected 1 to 255 visible ASCII characters');
}
