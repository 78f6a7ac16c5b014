import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ApiError, invalid, notFound } from '../domain/errors.ts';
import { SECURITY_HEADERS, STATUS_BY_CODE } from './error-responses.ts';

/**
 * To some bad requests, Node itself would send an empty response or no response. This file sends the usual JSON error
 * instead (docs/contract.md, decision 2).
 */

/**
 * How long the client may keep its side of the connection open after the response. If the service closed the connection
 * immediately, the response could be lost on its way.
 */
const LINGER_MS = 2_000;

/** Sends a response on a bare socket, and closes the socket. */
function respondOnSocket(socket: Duplex, error: ApiError): void {
  const text = JSON.stringify(error.body);
  // Node has removed its own error listener. Without any listener, a reset of the connection would end this process.
  socket.on('error', () => socket.destroy());
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
  // Reads and drops whatever else the client sends.
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

/** Responds to bytes that are not HTTP, to headers that are too large, and to requests that take too long to arrive. */
export function respondToMalformedHttp(error: Error & { code?: string }, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  respondOnSocket(socket, invalid(describeFault(error.code)));
}

function describeFault(code: string | undefined): string {
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers: are too large';
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request: took too long to arrive' : 'request: is malformed';
}

/**
 * Responds to CONNECT requests. Node would close their connection without a response. Accepts requests with an unknown
 * `Expect` header, which Node would refuse with an empty 417.
 */
export function respondToOddRequests(server: Server): void {
  server.on('connect', (_request, socket) => respondOnSocket(socket, notFound('the path')));
  // RFC 9110 10.1.1 allows a server to ignore an unknown expectation.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}
