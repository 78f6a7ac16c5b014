import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import { servesPages } from '../../config.ts';
import { type ErrorBody, notFound } from '../../domain/errors.ts';
import { parseToken, type Scope } from '../../domain/tokens.ts';
import { listDatedTags } from '../../store/tags.ts';
import { authenticate, requirePrincipal } from '../authentication.ts';
import { countBacklog, holdPermit, streamResponse } from '../backlog.ts';
import type { Bodies } from '../bodies.ts';
import { API } from '../mount.ts';
import { queryOf } from '../pages.ts';
import { type EndpointRunner, runEndpointsFor } from '../run-endpoint.ts';
import { readLinkdingBody } from './bodies.ts';
import {
  checkUrl,
  createBookmark,
  deleteBookmark,
  getBookmark,
  listBookmarks,
  patchBookmark,
  putBookmark,
  setArchived,
} from './bookmarks.ts';
import { ARCHIVED, SHARED } from './fields.ts';
import type { ListConditions } from './query.ts';
import { formatPage, type LinkdingRequest, readRange } from './request.ts';
import { createTag, deleteTag, getTag, getTags } from './tags.ts';

/**
 * linkding's REST API, for programs that were made for linkding (docs/linkding.md). `COMPAT_LINKDING=true` enables it.
 * Each request runs endpoints of this service's own API as the request's principal, so tokens, scopes and limits apply.
 */

const ROOT = '/compat/linkding';
const BASE = `${ROOT}/api`;

/** The version of linkding that this API imitates. */
const VERSION = '1.46.0';

/** Matches the header `Authorization` of linkding's clients. */
const AUTHORIZATION = /^(?:Token|Bearer) +(?<token>[\w-]+) *$/i;

/** Matches an id in a path. */
const ID = /^[1-9]\d{0,15}$/;

/** Returns the response body. If it returns undefined, the response is a 204. */
type Handler = (request: LinkdingRequest) => Promise<object | undefined>;

interface RequestParts {
  Params: { id?: string };
}

export function linkdingRoutes(app: FastifyInstance, runner: EndpointRunner, bodies: Bodies): void {
  const { context } = runner;
  // A hook that returned a promise would delay the response until after `countBacklog`.
  app.addHook('onSend', ({ method }, reply, payload, done) => {
    const isError = reply.statusCode >= 400 && typeof payload === 'string';
    const names = method === 'GET' ? NAMES_IN_QUERIES : NAMES_IN_BODIES;
    done(null, isError ? formatError(JSON.parse(payload), names) : payload);
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (request: FastifyRequest) => readLinkdingBody(bodies, request));
  // Clients ask for the version first, and send no token with that request.
  app.get(`${ROOT}/health`, async () => ({ version: VERSION, status: 'healthy' }));
  if (servesPages(context.config)) redirectPages(app);

  const addRoute = (
    method: HTTPMethods,
    path: string,
    scope: Scope,
    respond: (
      linkdingRequest: LinkdingRequest,
      request: FastifyRequest,
      reply: FastifyReply,
    ) => Promise<void>,
  ) =>
    app.route<RequestParts>({
      method,
      url: BASE + path,
      config: { class: scope, mount: API },
      onRequest: (request, reply) => {
        const token = AUTHORIZATION.exec(request.headers.authorization ?? '')?.groups?.token;
        return authenticate(context, { scope }, parseToken(token), request, reply);
      },
      handler: async (request, reply) => {
        reply.header('content-type', 'application/json; charset=utf-8');
        await respond(readRequest(runner, request, reply), request, reply);
        return reply;
      },
    });
  const add = (method: HTTPMethods, path: string, scope: Scope, handle: Handler) =>
    addRoute(method, path, scope, (linkdingRequest, request, reply) =>
      holdPermit(context, request, async () => {
        const body = await handle(linkdingRequest);
        if (body === undefined) reply.code(204).removeHeader('content-type').send();
        else {
          void reply.send(JSON.stringify(body));
          countBacklog(context, request, reply);
        }
      }),
    );
  // A list takes a permit for each of its pages, and counts the bytes of a page itself.
  const addList = (path: string, conditions: ListConditions) =>
    addRoute('GET', path, 'read', async (linkdingRequest, request, reply) => {
      void reply.send(await streamResponse(context, request, listBookmarks(linkdingRequest, conditions)));
    });

  addList('/bookmarks/', { without_tags: [ARCHIVED] });
  addList('/bookmarks/archived/', { tags: [ARCHIVED] });
  addList('/bookmarks/shared/', { tags: [SHARED] });
  add('GET', '/bookmarks/check/', 'read', checkUrl);
  add('GET', '/bookmarks/:id/', 'read', getBookmark);
  add('POST', '/bookmarks/', 'write', createBookmark);
  add('PUT', '/bookmarks/:id/', 'write', putBookmark);
  add('PATCH', '/bookmarks/:id/', 'write', patchBookmark);
  add('POST', '/bookmarks/:id/archive/', 'write', (request) => setArchived(request, true));
  add('POST', '/bookmarks/:id/unarchive/', 'write', (request) => setArchived(request, false));
  add('DELETE', '/bookmarks/:id/', 'write', deleteBookmark);
  add('GET', '/tags/', 'read', getTags);
  add('GET', '/tags/:id/', 'read', getTag);
  add('POST', '/tags/', 'write', createTag);
  add('DELETE', '/tags/:id/', 'write', deleteTag);
  // The service has no bundles. Clients show an empty list.
  add('GET', '/bundles/', 'read', async (request) => ({
    ...formatPage(request, readRange(request.query), 0),
    results: [],
  }));
  add('GET', '/user/profile/', 'read', async () => PROFILE);
}

/** Clients open these pages of linkding in a browser. Redirects them to the service's own pages. */
function redirectPages(app: FastifyInstance): void {
  const redirect = (path: string, address: string, parameters: readonly string[]) =>
    app.get(ROOT + path, async (request, reply) => {
      const given = new URLSearchParams(queryOf(request));
      const kept = [...given].filter(([name]) => parameters.includes(name));
      const query = new URLSearchParams(kept).toString();
      return reply.redirect(query === '' ? address : `${address}?${query}`, 302);
    });
  redirect('/', '/', []);
  redirect('/bookmarks', '/', ['q']);
  redirect('/bookmarks/new', '/save', ['url', 'title']);
}

/** Builds the request that a handler gets. Throws `NOT_FOUND` if the id in the path is malformed. */
function readRequest(
  runner: EndpointRunner,
  request: FastifyRequest<RequestParts>,
  reply: FastifyReply,
): LinkdingRequest {
  const { site, database } = runner.context;
  const { id } = request.params;
  if (id !== undefined && !(ID.test(id) && Number.isSafeInteger(Number(id)))) throw notFound('the id');
  const origin = site.origin ?? `${request.protocol}://${request.host}`;
  const parameters = [...new URLSearchParams(queryOf(request))].filter(([, value]) => value !== '');
  return {
    run: runEndpointsFor(runner, request, reply),
    listTags: async () => JSON.parse(await listDatedTags(database, requirePrincipal(request))),
    query: Object.fromEntries(parameters),
    id: Number(id),
    body: request.body ?? {},
    linkTo: ({ offset, limit }) => {
      const link = new URL(request.routeOptions.url!, 'http://localhost');
      link.search = queryOf(request);
      link.searchParams.set('limit', String(limit));
      link.searchParams.set('offset', String(offset));
      return origin + link.pathname + link.search;
    },
    reply,
  };
}

/** linkding's names for fields in bodies, keyed by this service's names. Other fields have the same name in both. */
const NAMES_IN_BODIES: Record<string, string> = { comment: 'description', tags: 'tag_names' };
/** linkding's names for fields in query strings, keyed by this service's names. Other names are the same in both. */
const NAMES_IN_QUERIES: Record<string, string> = {
  query: 'q',
  phrases: 'q',
  without_phrases: 'q',
  any: 'q',
  tags: 'q',
  without_tags: 'q',
};

/** Matches a message about a field or an entry of a field, such as `tags[2]: expected a string`. */
const FIELD_MESSAGE = /^(?<field>[a-z_]+)[^:\s]*: (?<rule>.*)$/s;

/** Formats an error as linkding does: under the name of the invalid field, or else as `detail`. */
function formatError({ error, code }: ErrorBody, names: Record<string, string>): string {
  const { field, rule } = FIELD_MESSAGE.exec(error)?.groups ?? {};
  if (code === 'VALIDATION_ERROR' && field !== undefined)
    return JSON.stringify({ [names[field] ?? field]: [rule] });
  return JSON.stringify({ detail: error });
}

/** linkding's default settings. This service has no such settings. */
const PROFILE = {
  theme: 'auto',
  bookmark_date_display: 'relative',
  bookmark_link_target: '_blank',
  web_archive_integration: 'disabled',
  tag_search: 'strict',
  enable_sharing: false,
  enable_public_sharing: false,
  enable_favicons: false,
  display_url: false,
  permanent_notes: false,
  search_preferences: { sort: 'added_desc', shared: 'off', unread: 'off' },
  version: VERSION,
};
