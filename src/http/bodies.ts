import type { FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { invalid } from '../domain/errors.ts';
import { type Idempotency, keyRequest, parseIdempotencyKey } from '../domain/idempotency.ts';
import { BodyReader, ChunkPace } from '../flow/body-reader.ts';
import type { Route } from './route.ts';

/** Reads bodies at a limited pace for each user, and counts their bytes as held until the responses are sent. */
export class Bodies {
  readonly #pace = new ChunkPace();
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  /** Creates the reader of a request's body, if the request has a body. */
  open(request: FastifyRequest): void {
    const { 'content-length': announced = '0', 'transfer-encoding': encoding } = request.headers;
    if (announced === '0' && encoding === undefined) return;
    request.bodyReader = new BodyReader(request.raw);
    request.heldBody = [];
  }

  /**
   * Returns a reader of the request's body. If the request has a token, the first `countedBytes` count as held until
   * the response is sent. The reader throws `UNAVAILABLE` if too many bytes are already held for this account or for
   * all accounts. `source` itself throws `VALIDATION_ERROR` for a compressed body.
   */
  source(request: FastifyRequest, countedBytes: number): Pick<BodyReader, 'next'> {
    const { principal, bodyReader } = request;
    const { received, overload } = this.#context;
    const encoding = request.headers['content-encoding'];
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
      throw invalid('Content-Encoding: compressed request bodies are not accepted');
    if (bodyReader === undefined) return { next: async () => undefined };
    bodyReader.begin(this.#pace, principal?.userId);
    let heldBytes = 0;
    const next = async () => {
      const bytes = await bodyReader.next();
      const { heldBody } = request;
      if (
        bytes === undefined ||
        principal === undefined ||
        heldBody === undefined ||
        heldBytes >= countedBytes
      )
        return bytes;
      overload.refuseBody(principal.userId, heldBytes);
      heldBytes += bytes.length;
      heldBody.push(received.hold(principal.userId, bytes.length));
      return bytes;
    };
    return { next };
  }

  /** Reads a whole body. Throws `VALIDATION_ERROR` if it exceeds the limit. */
  async readWhole(request: FastifyRequest, limitBytes: number): Promise<Buffer> {
    const tooLarge = () => invalid('body: is too large');
    if (Number(request.headers['content-length'] ?? 0) > limitBytes) throw tooLarge();
    const source = this.source(request, limitBytes);
    const chunks: Buffer[] = [];
    let length = 0;
    for (let chunk = await source.next(); chunk !== undefined; chunk = await source.next()) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > limitBytes) throw tooLarge();
    }
    return Buffer.concat(chunks);
  }

  /** Releases the held bytes and drops the rest of the body. Must be called when the response is sent or aborted. */
  close(request: FastifyRequest): void {
    for (const release of request.heldBody ?? []) release();
    // A handler may still read the body after the client has left. `source` must not count the bytes of these reads as
    // held, because nothing would release them.
    request.heldBody = undefined;
    request.bodyReader?.drop(this.#pace);
  }
}

/** Returns the `Idempotency-Key` of a request. Throws `VALIDATION_ERROR` for an invalid one. */
export function readIdempotencyKey(request: FastifyRequest): string | undefined {
  const key = request.headers['idempotency-key'];
  return key === undefined ? undefined : parseIdempotencyKey(key);
}

/**
 * Returns the `Idempotency-Key` of a request and the request's hash; undefined without a key. `body` is the parsed body.
 * Throws `VALIDATION_ERROR` for an invalid key.
 */
export function readIdempotency(
  request: FastifyRequest,
  { path }: Route,
  body: unknown,
): Idempotency | undefined {
  const key = readIdempotencyKey(request);
  return key === undefined ? undefined : keyRequest(key, path, body);
}
