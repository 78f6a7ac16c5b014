import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Context } from '../context.ts';
import { hasCode } from '../domain/errors.ts';
import { acceptsKey } from '../domain/request-kinds.ts';
import { parseBody } from '../domain/validation.ts';
import { authenticate, confirmPrincipal, limitAddress, requirePrincipal } from './authentication.ts';
import { countBacklog, holdPermit, refuseLongRead } from './backlog.ts';
import { readIdempotency } from './bodies.ts';
import { chooseEncoding, compressStream, isWorthCompressing } from './compression.ts';
import { sendError } from './error-responses.ts';
import type { Mount } from './mount.ts';
import { classOf } from './report-requests.ts';
import type { ResponseBody, Route } from './route.ts';
import { clearSessionCookie, hasSessionCookie } from './session-cookie.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    mount?: Mount;
  }
}

/**
 * Adds one endpoint. Its requests take these steps in this order: token, rate limit, overload, scope, body, handler,
 * response. A request to a public route has no token and no scope. Its rate limit is that of the client's address.
 */
export function addRoute(app: FastifyInstance, context: Context, mount: Mount, route: Route): void {
  app.route({
    method: 'POST',
    url: mount.basePath + route.path,
    onRequest: (request: FastifyRequest, reply: FastifyReply) => {
      mount.refuse(context, request);
      if (route.scope === 'public') return limitAddress(context, request, reply);
      const token = mount.readToken(context, request);
      return authenticate(context, route, token, request, reply);
    },
    config: {
      class: classOf(route),
      mount,
      ...(mount.isForBrowser && { cors: false }),
    },
    ...(route.bodyLimit !== undefined && { bodyLimit: route.bodyLimit }),
    handler: async (request, reply) => {
      await respond(context, route, request, reply);
      return reply;
    },
  });
}

/**
 * Runs the handler and sends its response. For most routes, holds one of the user's permits until the unread bytes of
 * the response are counted.
 */
async function respond(
  context: Context,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { checksOwnBody } = route;
  const body = checksOwnBody ? undefined : parseBody(route.body, request.body);
  const readsKey = acceptsKey(route.path) && !checksOwnBody;
  const idempotency = readsKey ? readIdempotency(request, route, body) : undefined;
  const handle = async () => {
    const routeRequest = { context, body, request, reply, idempotency };
    const response =
      route.scope === 'public'
        ? await route.handle(routeRequest)
        : await route.handle({ ...routeRequest, principal: requirePrincipal(request) });
    await sendResponse(context, route, request, reply, response);
  };
  if (route.scope === 'public' || route.takesOwnPermits || route.isHeld) return handle();
  await holdPermit(context, request, handle);
}

/**
 * Whether a route's response contains a token. Such a response is never compressed, because its compressed length would
 * give hints about the token.
 */
const holdsSecret = ({ response }: Route): boolean =>
  response instanceof z.ZodObject && 'token' in response.shape;

async function sendResponse(
  context: Pick<Context, 'config' | 'outboundBacklog' | 'overload'>,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
  body: ResponseBody,
): Promise<void> {
  // The handler may have taken over the connection with `reply.hijack`. In that case, it has ended the response itself.
  if (reply.sent) return;
  const { outboundBacklog, config } = context;
  const { principal } = request;
  const mayCompress = config.compress && !holdsSecret(route);
  reply.header('content-type', 'application/json; charset=utf-8');
  if (body instanceof Readable) {
    const encoding = mayCompress ? chooseEncoding(request, reply) : undefined;
    // The bytes of a stream are not counted below. An export counts its unread bytes itself, page by page. The response
    // of an import with many errors reads the next errors from Postgres only when the client has read the earlier ones.
    void reply.send(encoding === undefined ? body : compressStream(body, encoding));
    return;
  }
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  if (route.scope === 'read') refuseLongRead(context, request, text);
  const encoding = mayCompress && isWorthCompressing(text) ? chooseEncoding(request, reply) : undefined;
  if (encoding === undefined) void reply.send(text);
  else {
    // The text counts as unread while it is compressed, so that other responses of the account are refused in time.
    const release = principal && outboundBacklog.hold(principal.userId, text.length);
    try {
      void reply.send(await encoding.compress(text));
    } finally {
      release?.();
    }
  }
  countBacklog(context, request, reply);
}

/**
 * Returns the function that sends error responses. Before it sends some errors, that function looks the token up again
 * with `confirmPrincipal`. If the token is no longer valid, the function sends `INVALID_TOKEN` or `ACCOUNT_SUSPENDED`
 * instead of the error (docs/contract.md, decision 1).
 */
export function handleErrors(context: Context) {
  const send = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    clearCookieOfEndedSession(context, error, request, reply);
    return sendError(error, request, reply);
  };
  const confirmAndSend = async (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    try {
      await confirmPrincipal(context, request, reply, error);
      return send(error, request, reply);
    } catch (replacement) {
      // `confirmPrincipal` has thrown the error to send instead.
      return send(replacement, request, reply);
    }
  };
  // Most errors are 429, thrown before `request.principal` is set. They need no lookup, so they are sent immediately.
  return (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
    request.principal === undefined ? send(error, request, reply) : confirmAndSend(error, request, reply);
}

/**
 * Clears the session cookie if the error is `INVALID_TOKEN`, because the browser's session has ended. Keeps the cookie
 * after a held poll, because the browser may have a new session by then.
 */
function clearCookieOfEndedSession(
  context: Pick<Context, 'site'>,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  if (request.routeOptions.config.mount?.isForBrowser !== true) return;
  if (!hasCode(error, 'INVALID_TOKEN') || request.wasHeld) return;
  if (hasSessionCookie(context, request.headers.cookie)) clearSessionCookie(context, reply);
}
