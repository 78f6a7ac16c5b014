import { createHash, type Hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { invalid } from '../domain/errors.ts';

/**
 * The `Idempotency-Key` header, optional on add, import and tags/create: an addition to the specification in the spirit
 * of the IETF's draft. Within 24 hours the same key with the same request is answered as it first was, whichever
 * replica it comes to and whatever became of the first answer; with another request it is a `VALIDATION_ERROR`.
 */
export interface Idempotency {
  key: string;
  /** SHA-256 of the path and the body's bytes. */
  requestHash: Buffer;
}

const KEY = /^[\x21-\x7e]{1,255}$/;

function readKey(request: FastifyRequest): string | undefined {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key === 'string' && KEY.test(key)) return key;
  throw invalid('Idempotency-Key: expected 1 to 255 visible ASCII characters');
}

/**
 * Begins the hash of a request that came with a key; the bytes of its body are to follow. Throws `VALIDATION_ERROR`
 * for a key that is none.
 */
export function hashKeyedRequest(request: FastifyRequest): Hash | undefined {
  if (readKey(request) === undefined) return undefined;
  return createHash('sha256').update(`${request.routeOptions.url}\n`);
}

/** The key of a request whose body was hashed; undefined where none came. */
export function readIdempotency(
  request: FastifyRequest,
  requestHash: Buffer | undefined,
): Idempotency | undefined {
  const key = readKey(request);
  return key === undefined || requestHash === undefined ? undefined : { key, requestHash };
}
