import { hash } from 'node:crypto';
import { BOUNDS } from './bounds.ts';
import { invalid } from './errors.ts';
import { canonicalJson } from './json.ts';

/**
 * A client's `Idempotency-Key`, which makes it safe to retry a write. It is an addition to the specification, and
 * follows the IETF's draft. Within 24 hours, the same key with the same request returns the first result, on every
 * replica, even if the first response was lost. The same key with another request is a `VALIDATION_ERROR`.
 */
export interface Idempotency {
  key: string;
  /** See `keyRequest`. An import has the SHA-256 of its path and the bytes of its body. */
  requestHash: Buffer;
}

const KEY = new RegExp(`^[\\x21-\\x7e]{1,${BOUNDS.idempotencyKey}}$`);

/** Checks a client's key. Throws `VALIDATION_ERROR` for an invalid one, with the name of its header or field. */
export function parseIdempotencyKey(key: unknown, name = 'Idempotency-Key'): string {
  if (typeof key === 'string' && KEY.test(key)) return key;
  throw invalid(`${name}: expected 1 to ${BOUNDS.idempotencyKey} visible ASCII characters`);
}

/**
 * Returns the idempotency of a request with a key. The hash covers the endpoint's path below its mount, and the fields
 * as `parseBody` returns them. So a key means the same in a request and in an operation of a batch.
 */
export const keyRequest = (key: string, path: string, fields: unknown): Idempotency => ({
  key,
  requestHash: hash('sha256', `${path}\n${canonicalJson(fields)}`, 'buffer'),
});
