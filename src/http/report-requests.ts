import { crc32 } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import type { AbortReason, RequestClass } from '../observability/metrics.ts';
import type { Connection } from './connections.ts';
import { isProbe } from './health.ts';
import type { Route } from './route.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The request class of the route in the metrics. */
    class?: RequestClass;
  }
}

/** The class of a route's requests. An import is held like a poll, but has its own class. */
export function classOf({ path, scope, isHeld }: Route): RequestClass {
  if (path === '/import') return 'import';
  if (isHeld) return 'poll';
  return scope === 'read' ? 'read' : 'write';
}

/** The logged length of an unknown path. Its query, and anything that looks like a token, are removed first. */
const LOGGED_PATH_LENGTH = 200;

const cutPath = (url: string): string =>
  url
    .split('?')[0]!
    .replaceAll(/bk[a-z]_[\w-]+/g, '…')
    .slice(0, LOGGED_PATH_LENGTH);

/** Routes that open or end sessions, handle tokens, or delete accounts. */
const SECURITY_ROUTES = /^(\/web)?(\/api\/v1)?\/(auth|login|logout|tokens|sessions|account\/delete)(\/|$)/;

/** A request that is not held is slow beyond this time. */
const SLOW_MS = 1_000;

/** The facts that decide whether a request is logged. */
export interface RequestFacts {
  id: string;
  route: string | undefined;
  status: number;
  ms: number;
  wasHeld: boolean;
  unserved: string | undefined;
}

/**
 * Decides whether to log a request. `share` (0 to 1) is the share of ordinary requests to log. Failures, slow requests,
 * and requests about sign-ins and tokens are always logged. A 404 or 429 is sampled, because clients can cause any
 * number of them. The request id decides, so all processes agree about a request.
 */
export function isLogged({ id, route, status, ms, wasHeld, unserved }: RequestFacts, share: number): boolean {
  if (share === 1 || unserved !== undefined) return true;
  if (status >= 400 && status !== 404 && status !== 429) return true;
  if ((ms > SLOW_MS && !wasHeld) || SECURITY_ROUTES.test(route ?? '')) return true;
  return crc32(id) < share * 2 ** 32;
}

/**
 * Counts every request when its response ends, and logs the share that `LOG_REQUESTS` sets. Probes come every few
 * seconds: they are logged at `debug` and not counted.
 */
export function reportRequests(
  app: FastifyInstance,
  { metrics, config: { logRequests } }: Pick<Context, 'metrics' | 'config'>,
): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { url: route, config } = request.routeOptions;
    const status = reply.statusCode;
    const { id, wasHeld, unserved } = request;
    const ms = Math.round(reply.elapsedTime * 10) / 10;
    if (isProbe(route) || isLogged({ id, route, status, ms, wasHeld, unserved }, logRequests)) {
      const facts = {
        route,
        status,
        user: request.principal?.userId,
        ms,
        ...(route === undefined && { path: cutPath(request.url) }),
        ...(unserved !== undefined && { unserved }),
      };
      request.log[isProbe(route) ? 'debug' : unserved === undefined ? 'info' : 'warn'](facts, 'request');
    }
    if (!isProbe(route)) {
      const seconds = reply.elapsedTime / 1_000;
      metrics.finished({
        ...{ route: route ?? 'unknown', class: config.class ?? 'other' },
        ...{ status, seconds, held: wasHeld },
      });
    }
    done();
  });
}

/** Logs and counts a request whose response was aborted. */
export function reportAborted(
  { metrics }: Pick<Context, 'metrics'>,
  connection: Connection,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const reason = findReason(connection, request, reply);
  metrics.responseAborted(reason);
  request.log.info(
    {
      route: request.routeOptions.url,
      user: request.principal?.userId,
      // Responses on one connection are sent in order. One that is still queued has no socket.
      sentBytes: reply.raw.socket ? connection.sentBytes : 0,
      reason,
      ms: Math.round(reply.elapsedTime),
    },
    'response aborted',
  );
}

function findReason(connection: Connection, request: FastifyRequest, reply: FastifyReply): AbortReason {
  if (request.wasAborted) return 'service';
  if (connection.isStalled) return 'stalled';
  return reply.raw.headersSent ? 'client' : 'unanswered';
}
