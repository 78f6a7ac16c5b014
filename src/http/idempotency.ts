import { createHash, type Hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { type Idempotency, parseIdempotencyKey } from '../domain/idempotency.ts';

function readKey(request: FastifyRequest): string | undefined {
  const key = request.headers['idempotency-key'];
  return key === undefined ? undefined : parseIdempotencyKey(key);
}

/**
 * Starts the hash of a request with a key; the caller adds the body. Undefined without a key. Throws
 * `VALIDATION_ERROR` for an invalid one.
 */
export function hashKeyedRequest(request: FastifyRequest): Hash | undefined {
  if (readKey(request) === undefined) return undefined;
  return createHash('sha256').update(`${request.routeOptions.url}\n`);
}

/** The key and the hash of a request; undefined without a key. */
export function readIdempotency(
  request: FastifyRequest,
  requestHash: Buffer | undefined,
): Idempotency | undefined {
  const key = readKey(request);
  return key === undefined || requestHash === undefined ? undefined : { key, requestHash };
}
