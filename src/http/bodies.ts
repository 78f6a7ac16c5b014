import type { FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { invalid } from '../domain/errors.ts';
import { BodyReader, PartPace } from './body-reader.ts';

/** The bodies of a process's requests: read at their users' paces, and counted for as long as their requests last. */

export class Bodies {
  readonly #pace = new PartPace();
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  /** Begins to read a request that has a body. */
  open(request: FastifyRequest): void {
    const { 'content-length': announced = '0', 'transfer-encoding': encoding } = request.headers;
    if (announced === '0' && encoding === undefined) return;
    request.bodyReader = new BodyReader(request.raw);
    request.heldBody = [];
  }

  /**
   * The body of a request, the first `countedBytes` of which count as held until its response has gone. Throws `UNAVAILABLE`
   * where bodies of the same account, or long ones of all, are too much.
   */
  source(request: FastifyRequest, countedBytes: number): Pick<BodyReader, 'next'> {
    const { principal, bodyReader } = request;
    const { received, overload } = this.#context;
    const encoding = request.headers['content-encoding'];
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
      throw invalid('Content-Encoding: compressed request bodies are not accepted');
    if (bodyReader === undefined) return { next: async () => undefined };
    bodyReader.begin(this.#pace, principal?.userId);
    let held = 0;
    const next = async () => {
      const bytes = await bodyReader.next();
      const { heldBody } = request;
      if (bytes === undefined || principal === undefined || heldBody === undefined || held >= countedBytes)
        return bytes;
      overload.refuseBody(principal.userId, held);
      held += bytes.length;
      heldBody.push(received.hold(principal.userId, bytes.length));
      return bytes;
    };
    return { next };
  }

  /** Reads a whole body; throws `VALIDATION_ERROR` for one over the limit. */
  async readWhole(request: FastifyRequest, limitBytes: number): Promise<Buffer> {
    const tooLarge = () => invalid('body: is too large');
    if (Number(request.headers['content-length'] ?? 0) > limitBytes) throw tooLarge();
    const source = this.source(request, limitBytes);
    const parts: Buffer[] = [];
    let length = 0;
    for (let part = await source.next(); part !== undefined; part = await source.next()) {
      parts.push(part);
      length += part.length;
      if (length > limitBytes) throw tooLarge();
    }
    return Buffer.concat(parts);
  }

  /** The response has gone, or never will: what of the body is not read is dropped, and nothing is held. */
  close(request: FastifyRequest): void {
    for (const release of request.heldBody ?? []) release();
    // What is still read of it, as its client left after the last byte, would be held for good.
    request.heldBody = undefined;
    request.bodyReader?.drop(this.#pace);
  }
}
