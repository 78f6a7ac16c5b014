import type { FastifyInstance } from 'fastify';
import type { Context } from '../context.ts';
import { invalid, notFound } from '../domain/errors.ts';
import type { Bodies } from './bodies.ts';
import type { Connections } from './connections.ts';
import { SECURITY_HEADERS } from './error-responses.ts';
import { WEB_PATH } from './mount.ts';
import { reportBroken, reportRequests } from './report-requests.ts';
import { traceRequests } from './trace-requests.ts';

/** What happens to every request around its route. */

/**
 * What comes before CORS: headers of its responses too, and OPTIONS that is no preflight, which is another method. Other
 * origins have no business where the browser's session counts.
 */
export function addFirstHook(
  app: FastifyInstance,
  context: Context,
  connections: Connections,
  bodies: Bodies,
): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { id, method, url, headers } = request;
    const connection = connections.of(request.raw.socket);
    if (connection?.begin() !== true) {
      reply.hijack();
      return;
    }
    bodies.open(request);
    reply.raw.once('close', () => {
      connection.end();
      bodies.close(request);
      if (!reply.raw.writableFinished) reportBroken(context, connection, request, reply);
    });
    reply.header('x-request-id', id);
    reply.headers(SECURITY_HEADERS);
    const isPreflight =
      headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
    const isForBrowser = url.startsWith(`${WEB_PATH}/`);
    if (method === 'OPTIONS' && (!isPreflight || isForBrowser)) throw notFound('the path');
    done();
  });
}

/** Headers that say who asks and whom. Of two, a proxy may believe one and the service the other. */
const SINGLE_HEADERS = ['Host', 'Authorization'] as const;

function refuseRepeated(rawHeaders: readonly string[]): void {
  for (const name of SINGLE_HEADERS) {
    let count = 0;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const given = rawHeaders[i]!;
      if (given.length === name.length && given.toLowerCase() === name.toLowerCase()) count += 1;
    }
    if (count > 1) throw invalid(`${name}: was sent twice`);
  }
}

/** Checks what holds for every request, and reports each. */
export function addHooks(app: FastifyInstance, context: Context): void {
  const { config, lifecycle } = context;
  if (config.otlpEndpoint) traceRequests(app, config.traceRatio);
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1')
      throw invalid('Host: is required');
    refuseRepeated(request.raw.rawHeaders);
    // Before the body is read: an unknown path is a 404 whatever comes with it (decision 1).
    if (request.is404) throw notFound('the path');
    done();
  });
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (lifecycle.draining) reply.header('connection', 'close');
    done(null, payload);
  });
  reportRequests(app, context);
}
