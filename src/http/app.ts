import { randomUUID } from 'node:crypto';
import cors from '@fastify/cors';
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  LogController,
} from 'fastify';
import type { Config } from '../config.ts';
import type { Context } from '../context.ts';
import { invalid, notFound } from '../domain/errors.ts';
import { parseJson } from '../domain/json.ts';
import type { Caller } from '../domain/tokens.ts';
import { parseBody } from '../domain/validation.ts';
import { accountRoutes } from '../routes/account.ts';
import { bookmarkRoutes } from '../routes/bookmarks.ts';
import { changesRoutes } from '../routes/changes.ts';
import { addImportParser, exportRoutes, importRoutes } from '../routes/import-export.ts';
import { syncRoutes } from '../routes/sync.ts';
import { tagRoutes } from '../routes/tags.ts';
import { authenticate, confirmCaller, limitAddress } from './access.ts';
import { SECURITY_HEADERS, sendError } from './error-responses.ts';
import { healthRoutes } from './health.ts';
import { hashKeyedRequest, readIdempotency } from './idempotency.ts';
import { respondToMalformedHttp, respondToOddRequests } from './malformed-requests.ts';
import { Overload } from './overload.ts';
import { referenceRoutes } from './reference.ts';
import { classOf, reportRequests } from './report-requests.ts';
import type { CallerRoute, ResponseBody, Route } from './route.ts';
import { traceRequests } from './trace-requests.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set once the token was found valid. */
    caller: Caller | undefined;
    /** Whether this very request looked the token up, rather than remembered it. */
    callerIsFresh: boolean;
    /** Of the path and the body, where a key came with them. */
    requestHash: Buffer | undefined;
    /** Whether it was held as a long poll. */
    wasHeld: boolean;
    /** Why it was answered with 503, for its line of the log. */
    unserved: string | undefined;
  }
}

/** Where every endpoint of the specification begins (spec 1). */
export const BASE_PATH = '/api/v1';

export const ROUTES: readonly Route[] = [
  ...accountRoutes,
  ...bookmarkRoutes,
  ...syncRoutes,
  ...changesRoutes,
  ...tagRoutes,
  ...exportRoutes,
  ...importRoutes,
];

const BODY_LIMIT_BYTES = 1_048_576;

/** Longer than load balancers keep idle connections (AWS's 60 s), so that they never write to one that we close. */
const KEEP_ALIVE_MS = 72_000;

/** How often Node looks for requests that take longer than `REQUEST_TIMEOUT_SECONDS` to arrive; by itself every 30 s. */
const TIMEOUT_CHECK_MS = 5_000;

/**
 * After so long without a byte either way a client is gone, or holds an answer that it never reads. Longer than any request
 * is silent: an import may wait for its turn and then for its end.
 */
const silenceLimitMs = ({ importWaitSeconds }: Config): number => (2 * importWaitSeconds + 60) * 1_000;

const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;

/** Builds the application: hooks in order, the routes of spec 4 under `/api/v1`. It does not listen. */
export async function buildApp(context: Context): Promise<FastifyInstance> {
  const { config } = context;
  const app = fastify({
    loggerInstance: context.log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_LIMIT_BYTES,
    trustProxy: trustFunction(config.trustProxy),
    requestTimeout: config.requestTimeoutSeconds * 1_000,
    connectionTimeout: silenceLimitMs(config),
    keepAliveTimeout: KEEP_ALIVE_MS,
    return503OnClosing: false,
    exposeHeadRoutes: false,
    // A missing Host is refused by a hook: Node's own refusal has no body.
    http: {
      requireHostHeader: false,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      // Node's own is 60 s; where the whole request has less time, Node takes the one for the other.
      headersTimeout: Math.min(60, config.requestTimeoutSeconds) * 1_000,
    },
    genReqId: (request) => {
      const given = request.headers['x-request-id'];
      return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
    },
    frameworkErrors: sendError,
    clientErrorHandler: respondToMalformedHttp,
  });
  respondToOddRequests(app.server);
  app.decorateRequest('caller', undefined);
  app.decorateRequest('callerIsFresh', false);
  app.decorateRequest('requestHash', undefined);
  app.decorateRequest('wasHeld', false);
  app.decorateRequest('unserved', undefined);
  app.setErrorHandler(handleRouteError(context));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, bytes: Buffer) => {
      request.requestHash = hashKeyedRequest(request)?.update(bytes).digest();
      return parseJson(bytes);
    },
  );

  addFirstHook(app);
  if (config.corsOrigins.length > 0) await app.register(cors, corsOptions(config.corsOrigins));
  addHooks(app, context);
  app.setNotFoundHandler(() => {
    throw notFound('the path');
  });
  healthRoutes(app, context);
  referenceRoutes(app, ROUTES, BASE_PATH);
  const overload = new Overload(context);
  app.addHook('onClose', async () => overload.close());
  for (const route of ROUTES) {
    if (!importRoutes.includes(route as CallerRoute)) addRoute(app, context, overload, route);
  }
  await app.register(async (scope) => {
    addImportParser(scope, context);
    for (const route of importRoutes) addRoute(scope, context, overload, route);
  });
  return app;
}

/** A number of proxies, counted from this process, as Fastify asks for it: is the one at this hop believed? */
const trustFunction = (trust: Config['trustProxy']) =>
  typeof trust === 'number' ? (_address: string, hop: number) => hop < trust : trust;

function corsOptions(origins: readonly string[]) {
  return {
    origin: [...origins],
    methods: ['POST'],
    allowedHeaders: ['Authorization', 'Content-Type', 'Idempotency-Key', 'X-Request-Id'],
    exposedHeaders: [
      'X-RateLimit-Limit',
      'X-RateLimit-Remaining',
      'X-RateLimit-Reset',
      'Retry-After',
      'X-Request-Id',
    ],
    maxAge: 86_400,
  };
}

/** What comes before CORS: headers of its answers too, and OPTIONS that is no preflight, which is another method. */
function addFirstHook(app: FastifyInstance): void {
  app.addHook('onRequest', ({ id, method, headers }, reply, done) => {
    reply.header('x-request-id', id);
    reply.headers(SECURITY_HEADERS);
    const isPreflight =
      headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
    if (method === 'OPTIONS' && !isPreflight) throw notFound('the path');
    done();
  });
}

function addHooks(app: FastifyInstance, context: Context): void {
  const { config, lifecycle } = context;
  if (config.otlpEndpoint) traceRequests(app, config.traceRatio);
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1')
      throw invalid('Host: is required');
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

/** One way for every endpoint: token, rate limit, scope (before the body is read), body, handler, answer. */
function addRoute(app: FastifyInstance, context: Context, overload: Overload, route: Route): void {
  const { scope } = route;
  const admit = (request: FastifyRequest, reply: FastifyReply) => {
    overload.refuse();
    return scope === 'public'
      ? limitAddress(context, request, reply)
      : authenticate(context, scope, request, reply);
  };
  app.route({
    method: 'POST',
    url: BASE_PATH + route.path,
    onRequest: admit,
    config: { class: classOf(route) },
    ...(route.bodyLimit !== undefined && { bodyLimit: route.bodyLimit }),
    handler: async (request, reply) => {
      const body = route.checksOwnBody ? undefined : parseBody(route.body, request.body);
      const idempotency = route.isIdempotent ? readIdempotency(request, request.requestHash) : undefined;
      const exchange = { context, body, request, reply, idempotency };
      const handle = async () => route.handle({ ...exchange, caller: request.caller! });
      const needsPermit = request.caller !== undefined && !route.isHeld;
      return sendResponse(
        reply,
        await (needsPermit ? context.requestPermits.run(request.caller!.userId, handle) : handle()),
      );
    },
  });
}

function sendResponse(reply: FastifyReply, answer: ResponseBody): FastifyReply {
  reply.header('content-type', 'application/json; charset=utf-8');
  return reply.send(typeof answer === 'string' || 'pipe' in answer ? answer : JSON.stringify(answer));
}

/**
 * Before a caller who was only remembered is told of a missing scope or a bad field, the token is looked up: a revoked
 * one is answered 401, as the order of checks demands (decision 1).
 */
function handleRouteError(context: Context) {
  const confirm = async (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    try {
      await confirmCaller(context, request, reply, error);
      return sendError(error, request, reply);
    } catch (later) {
      return sendError(later, request, reply);
    }
  };
  return (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const isRemembered = request.caller !== undefined && !request.callerIsFresh;
    return isRemembered ? confirm(error, request, reply) : sendError(error, request, reply);
  };
}
