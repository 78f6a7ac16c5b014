import { createMcpHandler } from '@modelcontextprotocol/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { notFound, permissionDenied } from '../domain/errors.ts';
import type { EditedBookmark } from '../domain/resources.ts';
import { foldText } from '../domain/text.ts';
import type { Principal } from '../domain/tokens.ts';
import { type BookmarkApi, createMcpServer } from '../mcp/server.ts';
import { VERSION } from '../observability/version.ts';
import { findUsedTags } from '../store/tags.ts';
import { authenticate, requirePrincipal } from './authentication.ts';
import { countBacklog, holdPermit } from './backlog.ts';
import { toApiError } from './error-responses.ts';
import { API } from './mount.ts';
import { BOOKMARK_BODY_BYTES } from './route.ts';
import { type EndpointRunner, type RunEndpoint, runEndpointsFor } from './run-endpoint.ts';

/**
 * Serves the tools of `src/mcp/` at `/mcp`, with the transport Streamable HTTP of the Model Context Protocol. The
 * endpoint keeps no state, so any replica serves any request. A request calls at most one tool, because JSON-RPC
 * batches are refused. So the rate limits count each call.
 */

const PATH = '/mcp';

/** The response to a JSON-RPC batch. The protocol has had no batches since its version 2025-06-18. */
const BATCH_REFUSAL = {
  jsonrpc: '2.0',
  id: null,
  error: {
    code: -32_600,
    message: 'Invalid Request: batches are not supported, send each message by itself',
  },
};

export function mcpRoutes(app: FastifyInstance, runner: EndpointRunner): void {
  const { context } = runner;
  app.route({
    method: 'POST',
    url: PATH,
    bodyLimit: BOOKMARK_BODY_BYTES,
    config: { class: 'write', mount: API },
    onRequest: (request, reply) => {
      refuseForeignOrigin(context, request);
      const token = API.readToken(context, request);
      return authenticate(context, { scope: 'read' }, token, request, reply);
    },
    handler: async (request, reply) => {
      if (Array.isArray(request.body)) return reply.code(400).send(BATCH_REFUSAL);
      await holdPermit(context, request, () => respond(runner, request, reply));
      return reply;
    },
  });
  app.route({
    method: ['GET', 'DELETE'],
    url: PATH,
    // The protocol requires this status from servers without streams and sessions.
    handler: async (_request, reply) =>
      reply.code(405).header('allow', 'POST').send(notFound('the method').body),
  });
}

/** Answers one message. Throws if a tool failed because of a revoked token or a defect, as on other paths. */
async function respond(runner: EndpointRunner, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  let fault: unknown;
  const principal = requirePrincipal(request);
  const api = createBookmarkApi(
    runner.context,
    principal,
    runEndpointsFor(runner, request, reply),
    (error) => {
      fault = error;
    },
  );
  // This server allows no subscriptions, because it sends no notifications.
  const handler = createMcpHandler(() => createMcpServer(api, VERSION, principal.scope), {
    maxSubscriptions: 0,
  });
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) headers.set(name, String(value));
  // The library requires both types. `formatReply` converts its response to the type that the client accepts.
  headers.set('accept', 'application/json, text/event-stream');
  const response = await handler.fetch(new Request(`http://localhost${PATH}`, { method: 'POST', headers }), {
    parsedBody: request.body,
  });
  const text = await response.text();
  if (fault !== undefined) throw fault;
  const { type, body } = formatReply(text, acceptsJson(request.headers.accept));
  reply.code(response.status).header('content-type', type);
  void reply.send(body);
  countBacklog(runner.context, request, reply);
}

/** Whether a client accepts JSON. A client that names no type accepts every type. */
const acceptsJson = (accept = '*/*'): boolean =>
  /(?:^|[,\s])(?:application\/(?:json|\*)|\*\/\*)/i.test(accept) || !/text\/event-stream/i.test(accept);

/**
 * Converts a response of the library. It holds at most one message, because this server sends no notifications. The
 * message is a JSON text, or the data of the only event of a stream.
 */
function formatReply(text: string, isJson: boolean): { type: string; body: string } {
  const event = text.split('\n').find((line) => line.startsWith('data: '));
  const message = event?.slice('data: '.length) ?? text;
  return isJson || message === ''
    ? { type: 'application/json', body: message }
    : { type: 'text/event-stream', body: `event: message\ndata: ${message}\n\n` };
}

/**
 * Throws `PERMISSION_DENIED` for requests from pages of other origins that are not in `CORS_ORIGINS`. The protocol
 * requires this check against DNS rebinding.
 */
function refuseForeignOrigin(
  { config, site }: Pick<Context, 'config' | 'site'>,
  { headers }: FastifyRequest,
): void {
  const { origin } = headers;
  if (origin === undefined || origin === site.origin || config.corsOrigins.includes(origin)) return;
  throw permissionDenied('Origin: expected one of CORS_ORIGINS');
}

/**
 * Returns the API that the tools of one request use. `onFault` gets the errors after which the whole request must fail:
 * a token that was revoked meanwhile, and defects of the service.
 */
function createBookmarkApi(
  { database }: Pick<Context, 'database'>,
  principal: Principal,
  run: RunEndpoint,
  onFault: (error: unknown) => void,
): BookmarkApi {
  const watch = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      const apiError = toApiError(error);
      if (apiError === undefined || apiError.code === 'INVALID_TOKEN') onFault(error);
      throw apiError ?? error;
    });
  const runWatched: RunEndpoint = (path, body) => watch(run(path, body));
  return {
    searchBookmarks: (search) => runWatched('/bookmarks/search', search),
    getBookmarks: (choice) => runWatched('/bookmarks/get', choice),
    async findUsedTags(text, limit) {
      const { tags, total } = await watch(findUsedTags(database, principal, foldText(text), limit));
      return { tags: JSON.parse(tags), total };
    },
    addBookmark: (bookmark) => runWatched('/bookmarks/add', bookmark),
    editBookmark: (edit) => runWatched('/bookmarks/edit', edit) as Promise<EditedBookmark>,
    deleteBookmark: (deletion) => runWatched('/bookmarks/delete', deletion),
    writeBookmarks: (batch) => runWatched('/bookmarks/batch', batch),
    listTrash: (position) => runWatched('/trash/list', position),
    restoreBookmarks: (ids) => runWatched('/trash/restore', { ids }),
  };
}
