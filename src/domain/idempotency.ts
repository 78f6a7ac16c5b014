import { invalid } from './errors.ts';

/**
 * What makes a repeat of a write safe: an addition to the specification after the IETF's draft.
 * Within 24 hours the same key with the same request has the result of the first one, on every replica, whatever
 * happened to the first response. With another request it is a `VALIDATION_ERROR`.
 */
export interface Idempotency {
  key: string;
  /** SHA-256 of the path and the body's bytes. */
  requestHash: Buffer;
}

const KEY = /^[\x21-\x7e]{1,255}$/;

/** Checks a client's key; throws `VALIDATION_ERROR`. */
export function parseIdempotencyKey(key: unknown): string {
  if (typeof key === 'string' && KEY.test(key)) return key;
  throw invalid('Idempotency-Key: expected 1 to 255 visible ASCII characters');
}
