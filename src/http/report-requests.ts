import { crc32 } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import type { Connection } from '../flow/connections.ts';
import type { AbortReason, RequestClass } from '../observability/metrics.ts';
import { isProbe } from './health.ts';
import type { Route } from './route.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The class of the route's requests in the metrics. */
    class?: RequestClass;
  }
}

/** Returns the class of a route's requests. An import has its own class, although it can be held like a poll. */
export function classOf({ path, scope, isHeld }: Route): RequestClass {
  if (path === '/import') return 'import';
  if (isHeld) return 'poll';
  return scope === 'read' ? 'read' : 'write';
}

const LOGGED_PATH_LENGTH = 200;

/**
 * Returns a url's path for logs and traces. Everything that looks like a token is replaced, then a long path is cut.
 */
export const cutPath = (url: string): string =>
  url
    .split('?')[0]!
    .replaceAll(/bk[a-z]_[\w-]+/g, '…')
    .slice(0, LOGGED_PATH_LENGTH);

/** Routes that open or end sessions, handle tokens, or delete accounts. */
const SECURITY_ROUTES = /^(\/web)?(\/api\/v1)?\/(auth|login|logout|tokens|sessions|account\/delete)(\/|$)/;

/** A request that takes longer than this is slow, unless it was held. */
const SLOW_MS = 1_000;

/** The facts that decide whether a request is logged. */
export interface RequestFacts {
  id: string;
  route: string | undefined;
  status: number;
  ms: number;
  wasHeld: boolean;
  unserved: string | undefined;
  isRepeatedRefusal: boolean;
}

/**
 * Decides whether to log a request. Of the requests that a rate limit refuses, only the first of a key and window is
 * logged, so that a flood of refusals causes no flood of log lines. Failures, slow requests and requests to `SECURITY_ROUTES` are always logged. Of the
 * other requests, the fraction `share` (0 to 1) is logged. The responses 404 and 429 do not count as failures here,
 * because clients can cause any number of these responses. Whether a request belongs to the fraction depends only on
 * its id, so every process decides the same.
 */
export function isLogged(facts: RequestFacts, share: number): boolean {
  const { id, route, status, ms, wasHeld, unserved, isRepeatedRefusal } = facts;
  if (isRepeatedRefusal) return false;
  const isFailure = unserved !== undefined || (status >= 400 && status !== 404 && status !== 429);
  const isSlow = ms > SLOW_MS && !wasHeld;
  if (share === 1 || isFailure || isSlow || SECURITY_ROUTES.test(route ?? '')) return true;
  return crc32(id) < share * 2 ** 32;
}

/**
 * Counts each request when its response ends, and logs those that `isLogged` selects. Probes are not counted, and are
 * logged only at `debug`, because they come every few seconds.
 */
export function reportRequests(
  app: FastifyInstance,
  { metrics, config: { logRequests } }: Pick<Context, 'metrics' | 'config'>,
): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { url: route, config } = request.routeOptions;
    const status = reply.statusCode;
    const { id, wasHeld, unserved, isRepeatedRefusal } = request;
    const ms = Math.round(reply.elapsedTime * 10) / 10;
    if (
      isProbe(route) ||
      isLogged({ id, route, status, ms, wasHeld, unserved, isRepeatedRefusal }, logRequests)
    ) {
      const facts = {
        route,
        status,
        user: request.principal?.userId,
        ms,
        ...(route === undefined && { path: cutPath(request.url) }),
        ...(unserved !== undefined && { unserved }),
      };
      const level = unserved === undefined ? 'info' : 'warn';
      request.log[isProbe(route) ? 'debug' : level](facts, 'request');
    }
    if (!isProbe(route)) {
      const seconds = reply.elapsedTime / 1_000;
      metrics.finished({
        route: route ?? 'unknown',
        class: config.class ?? 'other',
        status,
        seconds,
        held: wasHeld,
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
      // While a response waits for an earlier response on the same connection, it has no socket, and none of its bytes
      // has been sent.
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
