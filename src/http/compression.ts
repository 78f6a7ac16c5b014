import { pipeline, type Readable, type Transform } from 'node:stream';
import { promisify } from 'node:util';
import {
  brotliCompress,
  constants,
  createBrotliCompress,
  createGzip,
  createZstdCompress,
  gzip,
  zstdCompress,
} from 'node:zlib';
import { Negotiator } from '@fastify/accept-negotiator';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Compresses response bodies with an encoding that the client accepts (docs/contract.md, section 1). */

/** Shorter bodies are sent uncompressed, because most of them fit into one network packet anyway. */
const LEAST_BYTES = 1_024;

// The levels with the best balance of size and CPU time. See docs/decisions/0080-compressed-responses.md.
const GZIP = { level: 1 };
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
const ZSTD = { params: { [constants.ZSTD_c_compressionLevel]: 3 } };

interface Encoding {
  /** Runs in Node's thread pool and does not block the event loop. */
  compress: (text: string) => Promise<Buffer>;
  createStream: () => Transform;
}

const gzipAsync = promisify<string, typeof GZIP, Buffer>(gzip);
const brotliAsync = promisify<string, typeof BROTLI, Buffer>(brotliCompress);
const zstdAsync = promisify<string, typeof ZSTD, Buffer>(zstdCompress);

const ENCODINGS: Record<string, Encoding> = {
  zstd: { compress: (text) => zstdAsync(text, ZSTD), createStream: () => createZstdCompress(ZSTD) },
  br: { compress: (text) => brotliAsync(text, BROTLI), createStream: () => createBrotliCompress(BROTLI) },
  gzip: { compress: (text) => gzipAsync(text, GZIP), createStream: () => createGzip(GZIP) },
};

/** If a client accepts several encodings with the same preference, chooses the one that is first in `ENCODINGS`. */
const negotiator = new Negotiator({ supportedValues: Object.keys(ENCODINGS) });

/** Whether a body is long enough to be worth compressing. */
export const isWorthCompressing = (body: string): boolean => body.length >= LEAST_BYTES;

/**
 * Chooses the encoding of a response, and sets `Vary` and `Content-Encoding`. If the client accepts none of the
 * encodings, sets only `Vary` and returns undefined.
 */
export function chooseEncoding(request: FastifyRequest, reply: FastifyReply): Encoding | undefined {
  const earlier = reply.getHeader('vary');
  reply.header('vary', earlier === undefined ? 'Accept-Encoding' : `${earlier}, Accept-Encoding`);
  const name = negotiator.negotiate(request.headers['accept-encoding']?.toString().toLowerCase() ?? '');
  if (name === null) return undefined;
  reply.header('content-encoding', name);
  return ENCODINGS[name];
}

/**
 * Compresses a stream. If the source fails, the result fails too, so that a client never decodes a truncated body as
 * complete.
 */
export function compressStream(source: Readable, { createStream }: Encoding): Readable {
  // The callback ignores errors, because the returned stream reports them to its reader.
  return pipeline(source, createStream(), () => {});
}
