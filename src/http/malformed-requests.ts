import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ApiError, invalid, notFound } from '../domain/errors.ts';
import { SECURITY_HEADERS, STATUS_BY_CODE } from './error-responses.ts';

/** Answers requests that Node would refuse without a body, or not at all, with the usual JSON error (decision 2). */

/**
 * How long the client may keep its side open after the response. Closing at once could destroy the response on its
 * way.
 */
const LINGER_MS = 2_000;

/** Sends a response on a bare socket and closes it. */
function respondOnSocket(socket: Duplex, error: ApiError): void {
  const text = JSON.stringify(error.body);
  // Node removes its error listener together with the parser. Without a listener, a reset would end the process.
  socket.on('error', () => socket.destroy());
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
  // Reads and drops further bytes.
  socket.resume();
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'x-request-id': randomUUID(),
    connection: 'close',
    ...SECURITY_HEADERS,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${STATUS_BY_CODE[error.code]} ${error.code}\r\n${lines.join('')}\r\n${text}`);
}

/** Responds to bytes that are not HTTP, or to headers that are too large. */
export function respondToMalformedHttp(error: Error & { code?: string }, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  respondOnSocket(socket, invalid(describeFault(error.code)));
}

function describeFault(code: string | undefined): string {
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers: are too large';
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request: took too long to arrive' : 'request: is malformed';
}

/**
 * Responds to CONNECT, which Node would disconnect without a response. Accepts `Expect`, which Node would refuse with
 * an empty 417.
 */
export function respondToOddRequests(server: Server): void {
  server.on('connect', (_request, socket) => respondOnSocket(socket, notFound('the path')));
  // RFC 9110 10.1.1 allows a server to ignore an unknown expectation.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}
