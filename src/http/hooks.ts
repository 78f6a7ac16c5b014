import type { FastifyInstance } from 'fastify';
import type { Context } from '../context.ts';
import { ApiError, invalid, notFound } from '../domain/errors.ts';
import type { Connections } from '../flow/connections.ts';
import type { Bodies } from './bodies.ts';
import { SECURITY_HEADERS } from './error-responses.ts';
import { WEB_PATH } from './mount.ts';
import { reportAborted, reportRequests } from './report-requests.ts';
import { traceRequests } from './trace-requests.ts';

/** Hooks that run for every request. */

/** Matches the urls of paths that use the session cookie. The router ignores doubled slashes, so this does too. */
const IS_FOR_BROWSER = new RegExp(`^/*${WEB_PATH}/`);

/** The paths that take POST. */
type Endpoints = ReadonlySet<string>;

/**
 * Adds the hook that runs before CORS, so that responses to preflights have the request id and the security headers
 * too. The hook refuses OPTIONS requests that are not preflights, and all preflights for paths that use the session
 * cookie.
 */
export function addFirstHook(
  app: FastifyInstance,
  context: Context,
  connections: Connections,
  bodies: Bodies,
  endpoints: Endpoints,
): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { id, method, url, headers } = request;
    const connection = connections.of(request.raw.socket);
    // If the connection is closed, or if `begin` cuts it, nothing can be sent on it.
    if (connection?.begin(reply.raw) !== true) {
      reply.hijack();
      return;
    }
    bodies.open(request);
    reply.raw.once('close', () => {
      connection.end(reply.raw);
      bodies.close(request);
      if (!reply.raw.writableFinished) reportAborted(context, connection, request, reply);
    });
    reply.header('x-request-id', id);
    reply.headers(SECURITY_HEADERS);
    const isPreflight =
      headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
    if (method === 'OPTIONS' && (!isPreflight || IS_FOR_BROWSER.test(url))) throw noRoute(endpoints, url);
    done();
  });
}

/** Returns the error for a request without a route. If the path is an endpoint, the error says to use POST. */
function noRoute(endpoints: Endpoints, url: string): ApiError {
  const [path = ''] = url.split('?', 1);
  // The router also ignores doubled slashes and a slash at the end.
  const endpoint = path.replace(/\/+/g, '/').replace(/\/$/, '');
  return endpoints.has(endpoint)
    ? new ApiError('NOT_FOUND', 'use POST: this endpoint takes no other method')
    : notFound('the path');
}

/**
 * Headers that identify the client or the host. They may be sent only once. Otherwise, a proxy might trust the first
 * value, and the service the second.
 */
const SINGLE_HEADERS = ['Host', 'Authorization'];

/** Counts how often a header was sent. `rawHeaders` contains the names and values of the headers in turn. */
function countHeader(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const sentName = rawHeaders[i]!;
    if (sentName.length === name.length && sentName.toLowerCase() === name.toLowerCase()) count += 1;
  }
  return count;
}

/** Adds the checks, logs and metrics of every request. */
export function addHooks(app: FastifyInstance, context: Context, endpoints: Endpoints): void {
  const { config, lifecycle } = context;
  if (config.otlpEndpoint) traceRequests(app, config.traceRatio);
  app.addHook('onRequest', (request, reply, done) => {
    const { 'transfer-encoding': coding = 'chunked' } = request.headers;
    if (coding.toLowerCase() !== 'chunked') {
      // A proxy may see another end of such a request. So nothing that follows it on this connection is trusted.
      reply.header('connection', 'close');
      throw invalid('Transfer-Encoding: only chunked is accepted');
    }
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1')
      throw invalid('Host: is required');
    const repeated = SINGLE_HEADERS.find((name) => countHeader(request.raw.rawHeaders, name) > 1);
    if (repeated !== undefined) throw invalid(`${repeated}: was sent more than once`);
    // An unknown path gives a 404, whatever the body is. So the path is checked before the body is read (decision 1).
    if (request.is404) throw noRoute(endpoints, request.url);
    done();
  });
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (lifecycle.draining) reply.header('connection', 'close');
    done(null, payload);
  });
  reportRequests(app, context);
}
