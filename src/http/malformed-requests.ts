import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { type ApiError, invalid, notFound } from '../domain/errors.ts';
import type { Connections } from '../flow/connections.ts';
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

/** Returns the bytes of an error response. */
function formatResponse(error: ApiError): string {
  const text = JSON.stringify(error.body);
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'x-request-id': randomUUID(),
    connection: 'close',
    ...SECURITY_HEADERS,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${STATUS_BY_CODE[error.code]} ${error.code}\r\n${lines.join('')}\r\n${text}`;
}

/** The connections that end because of a malformed request. Node reports each further chunk of bytes as another error. */
const ending = new WeakSet<Socket>();

/**
 * Ends a connection because of a malformed request. The client may have sent valid requests before it. Their responses
 * are sent first, so that the client learns what was done. The error follows them.
 */
async function endConnection(socket: Socket, connections: Connections, error: ApiError): Promise<void> {
  if (ending.has(socket)) return;
  ending.add(socket);
  // Node has removed its own error listener. Without any listener, a reset of the connection would end this process.
  socket.on('error', () => socket.destroy());
  const needsResponse = (await connections.of(socket)?.finishBeforeFault()) ?? true;
  // A socket that is not writable has ended with its last response, which may still be on its way.
  if (!socket.writable) return;
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
  // Reads and drops whatever else the client sends.
  socket.resume();
  socket.end(needsResponse ? formatResponse(error) : '');
}

/**
 * Handles Node's errors of connections. Responds to bytes that are not HTTP, to headers that are too large, and to
 * requests that take too long to arrive.
 */
export const respondToMalformedHttp =
  (connections: Connections) =>
  (error: Error & { code?: string }, socket: Socket): void => {
    if (error.code === 'ECONNRESET') socket.destroy();
    else void endConnection(socket, connections, invalid(describeFault(error.code)));
  };

function describeFault(code: string | undefined): string {
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers: are too large';
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request: took too long to arrive' : 'request: is malformed';
}

/**
 * Responds to CONNECT requests. Node would close their connection without a response. Accepts requests with an unknown
 * `Expect` header, which Node would refuse with an empty 417.
 */
export function respondToOddRequests(server: Server, connections: Connections): void {
  server.on(
    'connect',
    (_request, socket: Socket) => void endConnection(socket, connections, notFound('the path')),
  );
  // RFC 9110 10.1.1 allows a server to ignore an unknown expectation.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}
