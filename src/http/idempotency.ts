import { createHash, type Hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { type Idempotency, parseIdempotencyKey } from '../domain/idempotency.ts';

function readKey(request: FastifyRequest): string | undefined {
  const key = request.headers['idempotency-key'];
  return key === undefined ? undefined : parseIdempotencyKey(key);
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
