import { randomUUID } from 'node:crypto';
import cors from '@fastify/cors';
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  fastify,
  LogController,
} from 'fastify';
import { type Config, servesPages } from '../config.ts';
import type { Context } from '../context.ts';
import { notFound } from '../domain/errors.ts';
import { parseShortJson } from '../domain/json.ts';
import type { Principal } from '../domain/tokens.ts';
import type { BodyReader } from '../flow/body-reader.ts';
import { Connections } from '../flow/connections.ts';
import { addRoute, handleErrors } from '../http/add-route.ts';
import { Bodies } from '../http/bodies.ts';
import { sendError } from '../http/error-responses.ts';
import { healthRoutes } from '../http/health.ts';
import { addFirstHook, addHooks } from '../http/hooks.ts';
import { linkdingRoutes } from '../http/linkding/routes.ts';
import { respondToMalformedHttp, respondToOddRequests } from '../http/malformed-requests.ts';
import { mcpRoutes } from '../http/mcp.ts';
import { API, BASE_PATH, type Mount, WEB, WEB_API } from '../http/mount.ts';
import { pageRoutes } from '../http/page/routes.ts';
import { requireListed } from '../http/public-paths.ts';
import { referenceRoutes } from '../http/reference.ts';
import { DEFAULT_BODY_BYTES, type Route, routesOfAll } from '../http/route.ts';
import { accountRoutes, browserRoutes } from './account.ts';
import { appPages, appWebRoutes } from './apps.ts';
import { batchRoutes } from './batch.ts';
import { bookmarkRoutes } from './bookmarks.ts';
import { changesRoutes } from './changes.ts';
import { deviceRoutes, exchangeDevice } from './device-codes.ts';
import { digestRoutes } from './digest.ts';
import { exchangeCode } from './exchange.ts';
import { addImportParser, exportRoutes, importRoutes } from './import-export.ts';
import { passkeyRoutes } from './passkeys.ts';
import { searchRoutes } from './search.ts';
import { signInRoutes } from './sign-in.ts';
import { syncRoutes } from './sync.ts';
import { tagRoutes } from './tags.ts';
import { tokenRoutes } from './tokens.ts';
import { trashRoutes } from './trash.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The request's user and token. Undefined until the token is accepted, and on routes that require no token. */
    principal: Principal | undefined;
    /** Whether the token was looked up in the database for this request. If not, this replica remembered the token. */
    principalIsFresh: boolean;
    /** Reads the body; undefined if the request has none. */
    bodyReader: BodyReader | undefined;
    /** Functions that release the bytes held for the body. Undefined if there is no body, and after the response. */
    heldBody: (() => void)[] | undefined;
    /** Whether the request was held as a long poll. */
    wasHeld: boolean;
    /** The reason for a 503 response, for the log line of the request. Undefined for other responses. */
    unserved: string | undefined;
    /** Whether a rate limit refused the request, and has refused a request of the same key and window before. */
    isRepeatedRefusal: boolean;
    /** Whether the service itself aborted the response. */
    wasAborted: boolean;
  }
}

export const ROUTES = routesOfAll([
  ...accountRoutes,
  exchangeCode,
  exchangeDevice,
  ...bookmarkRoutes,
  ...batchRoutes,
  ...trashRoutes,
  ...searchRoutes,
  ...syncRoutes,
  ...changesRoutes,
  ...digestRoutes,
  ...tagRoutes,
  ...tokenRoutes,
  ...exportRoutes,
  ...importRoutes,
]);

/**
 * How long idle connections stay open. Load balancers must close them first (at AWS, after 60 s). Otherwise they may
 * send a request on a connection that the service is closing.
 */
const KEEP_ALIVE_MS = 72_000;

/** How often Node checks for requests that exceed `REQUEST_TIMEOUT_SECONDS`. Node's default of 30 s is too coarse. */
const TIMEOUT_CHECK_MS = 5_000;

/**
 * Returns how long a connection may carry no byte in either direction before it is closed. The longest silent request
 * is an import, which waits for its permit and then for its result. Each of these waits may take `IMPORT_WAIT_SECONDS`.
 */
const silenceLimitMs = ({ importWaitSeconds }: Config): number => (2 * importWaitSeconds + 60) * 1_000;

const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;

/** Matches the part of an origin from the `//` to the `:` of the port. The host must be a loopback address. */
const LOOPBACK_ADDRESS = /\/\/(127\.0\.0\.1|\[::1\]):/;

/**
 * Builds the application: first the hooks, then the routes. The endpoints of docs/contract.md, section 4, are below
 * `/api/v1`. The application does not listen yet.
 */
export async function buildApp(context: Context): Promise<FastifyInstance> {
  const { config } = context;
  const loggerInstance: FastifyBaseLogger = context.log;
  const connections = new Connections(config.responseStallSeconds * 1_000);
  const app = fastify({
    loggerInstance,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: DEFAULT_BODY_BYTES,
    // Clients that append a path to `{base_url}/` send doubled slashes.
    routerOptions: { ignoreDuplicateSlashes: true, ignoreTrailingSlash: true },
    trustProxy: trustFunction(config.trustProxy),
    requestTimeout: config.requestTimeoutSeconds * 1_000,
    connectionTimeout: silenceLimitMs(config),
    keepAliveTimeout: KEEP_ALIVE_MS,
    return503OnClosing: false,
    exposeHeadRoutes: false,
    http: {
      // A hook refuses requests without `Host`, and sends the usual JSON error. Node would send a response without a
      // body.
      requireHostHeader: false,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      // 60 s is Node's default. This time must not exceed `requestTimeout`, because Node would swap the two times.
      headersTimeout: Math.min(60, config.requestTimeoutSeconds) * 1_000,
    },
    genReqId: (request) => {
      const sentId = request.headers['x-request-id'];
      return typeof sentId === 'string' && REQUEST_ID.test(sentId) ? sentId : randomUUID();
    },
    frameworkErrors: sendError,
    clientErrorHandler: respondToMalformedHttp(connections),
  });
  respondToOddRequests(app.server, connections);
  app.decorateRequest('principal', undefined);
  app.decorateRequest('principalIsFresh', false);
  app.decorateRequest('bodyReader', undefined);
  app.decorateRequest('heldBody', undefined);
  app.decorateRequest('wasHeld', false);
  app.decorateRequest('unserved', undefined);
  app.decorateRequest('isRepeatedRefusal', false);
  app.decorateRequest('wasAborted', false);
  app.setErrorHandler(handleErrors(context));
  app.removeAllContentTypeParsers();
  const bodies = new Bodies(context);
  app.addContentTypeParser('application/json', async (request: FastifyRequest) => {
    const { bodyLimit = DEFAULT_BODY_BYTES } = request.routeOptions;
    const bytes = await bodies.readWhole(request, bodyLimit);
    return parseShortJson(bytes);
  });

  app.addHook('onClose', async () => connections.close());
  const endpoints = new Set<string>();
  app.addHook('onRoute', ({ method, url }) => {
    // The only route for OPTIONS is that of the plugin for CORS. It answers the preflights for all paths.
    if (method === 'OPTIONS') return;
    requireListed(url);
    if (method === 'POST') endpoints.add(url);
  });
  addFirstHook(app, context, connections, bodies, endpoints);
  if (config.corsOrigins.length > 0) await app.register(cors, corsOptions(config.corsOrigins));
  addHooks(app, context, endpoints);
  app.setNotFoundHandler(() => {
    throw notFound('the path');
  });
  healthRoutes(app, context);
  referenceRoutes(app, ROUTES, BASE_PATH, config);
  const runner = { context, routes: ROUTES };
  mcpRoutes(app, runner);
  if (config.compatLinkding) await app.register(async (scope) => linkdingRoutes(scope, runner, bodies));
  const mountAll = (mount: Mount, routes: readonly Route[]) =>
    mountRoutes(app, context, bodies, mount, routes);
  await mountAll(API, ROUTES);
  if (servesPages(config)) {
    pageRoutes(app, config);
    await mountAll(WEB, [...browserRoutes, ...appWebRoutes, ...deviceRoutes, ...passkeyRoutes]);
    await mountAll(
      WEB_API,
      ROUTES.filter(({ scope }) => scope !== 'public'),
    );
    signInRoutes(app, context);
    appPages(app, context);
    app.server.once('listening', () => {
      if (context.site.origin !== undefined) return;
      context.site.origin = app.listeningOrigin;
      // A provider redirects to only one address. Without a provider, the page may also be opened at `localhost`.
      if (context.provider === undefined)
        context.site.namedOrigin = app.listeningOrigin.replace(LOOPBACK_ADDRESS, '//localhost:');
    });
  }
  return app;
}

async function mountRoutes(
  app: FastifyInstance,
  context: Context,
  bodies: Bodies,
  mount: Mount,
  routes: readonly Route[],
): Promise<void> {
  const isImport = (route: Route) => importRoutes.some(({ path }) => path === route.path);
  for (const route of routes) if (!isImport(route)) addRoute(app, context, mount, route);
  // The import routes get a Fastify scope of their own, because their bodies need another parser.
  await app.register(async (scope) => {
    addImportParser(scope, context, bodies);
    for (const route of routes) if (isImport(route)) addRoute(scope, context, mount, route);
  });
}

/**
 * Returns the value of Fastify's `trustProxy`. If `trust` is a number, the value is a function that trusts that many
 * hops.
 */
const trustFunction = (trust: Config['trustProxy']) =>
  typeof trust === 'number' ? (_address: string, hop: number) => hop < trust : trust;

function corsOptions(origins: readonly string[]) {
  return {
    origin: [...origins],
    // The API takes only POST. MCP and linkding's API use the other methods, and MCP the last headers.
    methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedHeaders: [
      'Authorization',
      'Content-Type',
      'Idempotency-Key',
      'X-Request-Id',
      'Mcp-Protocol-Version',
      'Mcp-Session-Id',
      'Mcp-Method',
      'Mcp-Name',
      'Last-Event-ID',
    ],
    exposedHeaders: [
      'X-RateLimit-Limit',
      'X-RateLimit-Remaining',
      'X-RateLimit-Reset',
      'X-RateLimit-Scope',
      'Retry-After',
      'X-Retry-After-Ms',
      'X-Request-Id',
    ],
    // In seconds: browsers may remember the response to a preflight for a day.
    maxAge: 86_400,
  };
}
