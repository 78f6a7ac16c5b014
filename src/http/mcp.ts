import { type AuthInfo, createMcpHandler } from '@modelcontextprotocol/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { ApiError, notFound, permissionDenied } from '../domain/errors.ts';
import type { Endpoints } from '../domain/resources.ts';
import { parseBody } from '../domain/validation.ts';
import { type BookmarkApi, createMcpServer } from '../mcp/server.ts';
import { VERSION } from '../observability/version.ts';
import { countBacklog } from './add-route.ts';
import { authenticate, requireScope } from './authentication.ts';
import { API } from './mount.ts';
import type { Overload } from './overload.ts';
import { BOOKMARK_BODY_BYTES, type CallerRoute, type Route } from './route.ts';

/**
 * `/mcp`: the tools of `src/mcp/` over Streamable HTTP, stateless, so that any replica serves any request. A request counts
 * once against the limits of its token, whatever it asks for.
 */

const PATH = '/mcp';

/** What a request hands to its tools, through the library. */
interface McpAuth extends AuthInfo {
  extra: { api: BookmarkApi };
}

export function mcpRoutes(
  app: FastifyInstance,
  context: Context,
  overload: Overload,
  routes: readonly Route[],
): void {
  const handler = createMcpHandler(
    ({ authInfo }) => createMcpServer((authInfo as McpAuth).extra.api, VERSION),
    // Nothing is ever announced later, so nothing may be subscribed to.
    { maxSubscriptions: 0 },
  );
  app.addHook('onClose', () => handler.close());
  app.route({
    method: 'POST',
    url: PATH,
    bodyLimit: BOOKMARK_BODY_BYTES,
    config: { class: 'write', mount: API },
    onRequest: (request, reply) => {
      refuseForeignOrigin(context, request);
      const token = API.readToken(context, request);
      return authenticate(context, overload, { scope: 'read' }, token, request, reply);
    },
    handler: async (request, reply) => {
      const calls = new EndpointCalls(context, overload, routes, request, reply);
      const headers = new Headers();
      for (const [name, value] of Object.entries(request.headers)) headers.set(name, String(value));
      const response = await handler.fetch(
        new Request(`http://localhost${PATH}`, { method: 'POST', headers }),
        {
          parsedBody: request.body,
          authInfo: { token: '', clientId: '', scopes: [], extra: { api: calls } } satisfies McpAuth,
        },
      );
      const text = await response.text();
      if (calls.invalidToken !== undefined) throw calls.invalidToken;
      reply
        .code(response.status)
        .header('content-type', response.headers.get('content-type') ?? 'application/json');
      void reply.send(text);
      countBacklog(context.unsent, request, reply);
      return reply;
    },
  });
  app.route({
    method: ['GET', 'DELETE'],
    url: PATH,
    // The protocol asks for this status where there are no streams and no sessions.
    handler: async (_request, reply) =>
      reply.code(405).header('allow', 'POST').send(notFound('the method').body),
  });
}

/** A page of another origin may not use a token that a local program holds (DNS rebinding). */
function refuseForeignOrigin({ config, site }: Context, { headers }: FastifyRequest): void {
  const { origin } = headers;
  if (origin === undefined || origin === site.origin || config.corsOrigins.includes(origin)) return;
  throw permissionDenied('Origin: expected an origin of CORS_ORIGINS');
}

/** Runs endpoints for the tools of one request, as its caller. */
class EndpointCalls implements BookmarkApi {
  readonly #context: Context;
  readonly #overload: Overload;
  readonly #routes: readonly Route[];
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  /** Set if the token was revoked after it was checked. The whole request is then answered with it. */
  invalidToken: ApiError | undefined;

  constructor(
    context: Context,
    overload: Overload,
    routes: readonly Route[],
    request: FastifyRequest,
    reply: FastifyReply,
  ) {
    this.#context = context;
    this.#overload = overload;
    this.#routes = routes;
    this.#request = request;
    this.#reply = reply;
  }

  readonly searchBookmarks: BookmarkApi['searchBookmarks'] = (search) =>
    this.#call('/bookmarks/search', search);
  readonly getBookmarks: BookmarkApi['getBookmarks'] = (choice) => this.#call('/bookmarks/get', choice);
  readonly listTags: BookmarkApi['listTags'] = () => this.#call('/tags/list', {});
  readonly addBookmark: BookmarkApi['addBookmark'] = (bookmark) => this.#call('/bookmarks/add', bookmark);
  readonly editBookmark: BookmarkApi['editBookmark'] = (edit) => this.#call('/bookmarks/edit', edit);
  readonly deleteBookmark: BookmarkApi['deleteBookmark'] = (item) => this.#call('/bookmarks/delete', item);

  async #call<Result>(path: keyof Endpoints, body: object): Promise<Result> {
    try {
      return await this.#run(path, body);
    } catch (error) {
      if (error instanceof ApiError && error.code === 'INVALID_TOKEN') this.invalidToken = error;
      throw error;
    }
  }

  async #run<Result>(path: keyof Endpoints, sent: object): Promise<Result> {
    const caller = this.#request.caller!;
    const route = this.#routes.find((each) => each.path === path) as CallerRoute;
    requireScope(route, caller);
    const body = parseBody(route.body, sent);
    const result = await this.#context.requestPermits.run(caller.userId, () => {
      this.#overload.refuse(caller.userId);
      return route.handle({
        context: this.#context,
        body,
        request: this.#request,
        reply: this.#reply,
        caller,
      });
    });
    return JSON.parse(typeof result === 'string' ? result : JSON.stringify(result));
  }
}
