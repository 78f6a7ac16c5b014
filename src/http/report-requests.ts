import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import type { BreakReason, RequestClass } from '../observability/metrics.ts';
import type { Connection } from './connections.ts';
import type { Route } from './route.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What a request of the route is to its client, for the metrics. */
    class?: RequestClass;
  }
}

/** The class of a route's requests. An import is held too, for its worker, and is no poll. */
export function classOf({ path, scope, isHeld }: Route): RequestClass {
  if (path === '/import') return 'import';
  if (isHeld) return 'poll';
  return scope === 'read' ? 'read' : 'write';
}

/** Paths that clients make up are logged to this length, without their query and without what looks like a token. */
const LOGGED_PATH_LENGTH = 200;

const cutPath = (url: string): string =>
  url
    .split('?')[0]!
    .replaceAll(/bk[a-z]_[\w-]+/g, '…')
    .slice(0, LOGGED_PATH_LENGTH);

/** Logs and counts every request once its response has gone. Probes come every few seconds: logged at `debug`, not counted. */
export function reportRequests(app: FastifyInstance, { metrics }: Pick<Context, 'metrics'>): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { url: route, config } = request.routeOptions;
    const status = reply.statusCode;
    const isProbe = route === '/livez' || route === '/readyz';
    const facts = {
      route,
      status,
      user: request.principal?.userId,
      ms: Math.round(reply.elapsedTime * 10) / 10,
    };
    const path = route === undefined ? { path: cutPath(request.url) } : {};
    const unserved = request.unserved === undefined ? {} : { unserved: request.unserved };
    const level = isProbe ? 'debug' : request.unserved === undefined ? 'info' : 'warn';
    request.log[level]({ ...facts, ...path, ...unserved }, 'request');
    if (!isProbe) {
      const seconds = reply.elapsedTime / 1_000;
      const held = request.wasHeld;
      metrics.finished({ route: route ?? 'unknown', class: config.class ?? 'other', status, seconds, held });
    }
    done();
  });
}

/** Logs and counts a request whose response did not leave whole. */
export function reportBroken(
  { metrics }: Pick<Context, 'metrics'>,
  connection: Connection,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const reason = findReason(connection, request, reply);
  metrics.brokeOff(reason);
  request.log.info(
    {
      route: request.routeOptions.url,
      user: request.principal?.userId,
      // A response behind another one on its connection has no socket yet.
      sentBytes: reply.raw.socket ? connection.sentBytes : 0,
      reason,
      ms: Math.round(reply.elapsedTime),
    },
    'response broke off',
  );
}

function findReason(connection: Connection, request: FastifyRequest, reply: FastifyReply): BreakReason {
  if (request.wasBrokenOff) return 'service';
  if (connection.isStalled) return 'stalled';
  return reply.raw.headersSent ? 'client' : 'unanswered';
}
