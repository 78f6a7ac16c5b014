import { crc32 } from 'node:zlib';
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

/** Requests that open or end a session, or change or show tokens, and deletions of accounts. */
const SECURITY_ROUTES = /^(\/web)?(\/api\/v1)?\/(auth|login|logout|tokens|sessions|account\/delete)(\/|$)/;

/** An unheld request is slow beyond this. */
const SLOW_MS = 1_000;

/** What decides whether a request is logged. */
export interface RequestFacts {
  id: string;
  route: string | undefined;
  status: number;
  ms: number;
  wasHeld: boolean;
  unserved: string | undefined;
}

/**
 * Whether a request is logged if the log takes this share of all, from 0 to 1. Failures, slow requests and those about
 * sign-ins and tokens always are. 404 and 429 are as frequent as clients make them. The request id decides about the others,
 * so every process decides alike.
 */
export function isLogged({ id, route, status, ms, wasHeld, unserved }: RequestFacts, share: number): boolean {
  if (share === 1 || unserved !== undefined) return true;
  if (status >= 400 && status !== 404 && status !== 429) return true;
  if ((ms > SLOW_MS && !wasHeld) || SECURITY_ROUTES.test(route ?? '')) return true;
  return crc32(id) < share * 2 ** 32;
}

/**
 * Counts every request once its response has gone, and logs it, or the share that `LOG_REQUESTS` says. Probes come every few
 * seconds: logged at `debug`, not counted.
 */
export function reportRequests(
  app: FastifyInstance,
  { metrics, config: { logRequests } }: Pick<Context, 'metrics' | 'config'>,
): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { url: route, config } = request.routeOptions;
    const status = reply.statusCode;
    const isProbe = route === '/livez' || route === '/readyz';
    const { id, wasHeld, unserved } = request;
    const ms = Math.round(reply.elapsedTime * 10) / 10;
    if (isProbe || isLogged({ id, route, status, ms, wasHeld, unserved }, logRequests)) {
      const facts = {
        route,
        status,
        user: request.principal?.userId,
        ms,
        ...(route === undefined && { path: cutPath(request.url) }),
        ...(unserved !== undefined && { unserved }),
      };
      request.log[isProbe ? 'debug' : unserved === undefined ? 'info' : 'warn'](facts, 'request');
    }
    if (!isProbe) {
      const seconds = reply.elapsedTime / 1_000;
      metrics.finished({
        ...{ route: route ?? 'unknown', class: config.class ?? 'other' },
        ...{ status, seconds, held: wasHeld },
      });
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
