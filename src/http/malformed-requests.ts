import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { type ApiError, invalid, notFound } from '../domain/errors.ts';
import { SECURITY_HEADERS, STATUS_BY_CODE } from './error-responses.ts';

/** What Node's server would answer, or leave unanswered, by itself: in the one shape of an error (decision 2). */

/** How long a client may leave its side open once all was said; closing at once could take the answer back. */
const LINGER_MS = 2_000;

/** Answers on a bare connection, which ends then. */
function respondOnSocket(socket: Socket, error: ApiError): void {
  const text = JSON.stringify(error.body);
  // Node takes its listener away with the parser, and a reset that nobody hears of would end the process.
  socket.on('error', () => socket.destroy());
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
  // What else is sent is read and dropped.
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

/** Answers what is no HTTP, or too much of it, before there is a request to speak of. */
export function respondToMalformedHttp(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  respondOnSocket(socket, invalid(wordFault(error.code)));
}

function wordFault(code: string | undefined): string {
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers: are too large';
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request: did not arrive in time' : 'request: is malformed';
}

/** Answers CONNECT, on which Node would end the connection, and `Expect`, to which it would answer an empty 417. */
export function respondToOddRequests(server: Server): void {
  server.on('connect', (_request, socket) => respondOnSocket(socket as Socket, notFound('the path')));
  // RFC 9110 10.1.1 leaves the server free to ignore an expectation that it does not know.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}
