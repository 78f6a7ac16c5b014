import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import { z } from 'zod';
import { ApiError, type ErrorBody, invalid, notFound } from '../../domain/errors.ts';
import type { Bookmark, BookmarkSearch, EditedBookmark } from '../../domain/resources.ts';
import { foldText } from '../../domain/text.ts';
import { parseToken, type Scope } from '../../domain/tokens.ts';
import { parseBody } from '../../domain/validation.ts';
import { authenticate } from '../authentication.ts';
import { countBacklog, holdPermit } from '../backlog.ts';
import { API } from '../mount.ts';
import { queryOf } from '../pages.ts';
import { BOOKMARK_BODY_BYTES } from '../route.ts';
import { type EndpointRunner, type RunEndpoint, runEndpointsFor } from '../run-endpoint.ts';
import { ARCHIVED, DEFAULTS, fromLinkding, type LinkdingFields, readFields, toLinkding } from './fields.ts';
import { type Range, readRange, readSearch } from './query.ts';

/**
 * linkding's REST API, for programs that were made for linkding (docs/linkding.md). `COMPAT_LINKDING=true` enables it.
 * Each request runs endpoints of this service's own API as the request's principal, so tokens, scopes and limits apply.
 */

const ROOT = '/compat/linkding';
const BASE = `${ROOT}/api`;

/** The version of linkding that this API imitates. */
const VERSION = '1.46.0';

/** How often an edit is tried at most, if other requests change the bookmark at the same time. */
const EDIT_TRIES = 10;

/** What a handler gets for one request. */
interface LinkdingRequest {
  run: RunEndpoint;
  query: Record<string, unknown>;
  /** The id in the path; `NaN` if the path has none. */
  id: number;
  body: unknown;
  /** Returns the url of the requested list, with `range` instead of the requested range. */
  linkTo(range: Range): string;
  reply: FastifyReply;
}

/** Matches the header `Authorization` of linkding's clients. */
const AUTHORIZATION = /^Token +(?<token>[\w-]+) *$/i;

/** Matches an id in a path. */
const ID = /^[1-9]\d{0,15}$/;

/** Returns the response body. If it returns undefined, the response is a 204. */
type Handler = (request: LinkdingRequest) => Promise<object | undefined>;

export function linkdingRoutes(app: FastifyInstance, runner: EndpointRunner): void {
  // A hook that returned a promise would delay the response until after `countBacklog`.
  app.addHook('onSend', ({ method }, reply, payload, done) => {
    const isError = reply.statusCode >= 400 && typeof payload === 'string';
    const names = method === 'GET' ? NAMES_IN_QUERIES : NAMES_IN_BODIES;
    done(null, isError ? formatError(JSON.parse(payload), names) : payload);
  });
  // Some libraries send a content type without a body. Such a request is not refused.
  app.addContentTypeParser('*', async ({ bodyReader }: FastifyRequest) => {
    if (bodyReader !== undefined) throw invalid('Content-Type: expected application/json');
  });
  // Clients ask for the version first, and send no token with that request.
  app.get(`${ROOT}/health`, async () => ({ version: VERSION, status: 'healthy' }));
  const add = (method: HTTPMethods, path: string, scope: Scope, handle: Handler) =>
    app.route<RequestParts>({
      method,
      url: BASE + path,
      bodyLimit: BOOKMARK_BODY_BYTES,
      config: { class: scope, mount: API },
      onRequest: (request, reply) => {
        const token = AUTHORIZATION.exec(request.headers.authorization ?? '')?.groups?.token;
        const { context } = runner;
        return authenticate(context, { scope }, parseToken(token), request, reply);
      },
      handler: async (request, reply) => {
        const { context } = runner;
        await holdPermit(context, request, async () => {
          const body = await handle(readRequest(runner, request, reply));
          if (body === undefined) reply.code(204).send();
          else {
            reply.header('content-type', 'application/json; charset=utf-8');
            void reply.send(JSON.stringify(body));
            countBacklog(context, request, reply);
          }
        });
        return reply;
      },
    });

  add('GET', '/bookmarks/', 'read', (request) => listBookmarks(request, { without_tags: [ARCHIVED] }));
  add('GET', '/bookmarks/archived/', 'read', (request) => listBookmarks(request, { tags: [ARCHIVED] }));
  add('GET', '/bookmarks/check/', 'read', checkUrl);
  add('GET', '/bookmarks/:id/', 'read', async ({ run, id }) => toLinkding(await getBookmark(run, id)));
  add('POST', '/bookmarks/', 'write', createBookmark);
  add('PUT', '/bookmarks/:id/', 'write', async ({ run, id, body }) => {
    const fields = readFields(body);
    requireUrl(fields);
    return editBookmark(run, id, () => ({ ...DEFAULTS, ...fields }));
  });
  add('PATCH', '/bookmarks/:id/', 'write', async ({ run, id, body }) => {
    const fields = readFields(body);
    return editBookmark(run, id, (current) => ({ ...current, ...fields }));
  });
  add('POST', '/bookmarks/:id/archive/', 'write', (request) => setArchived(request, true));
  add('POST', '/bookmarks/:id/unarchive/', 'write', (request) => setArchived(request, false));
  add('DELETE', '/bookmarks/:id/', 'write', async ({ run, id }) => {
    await run('/bookmarks/delete', { id, trash: true });
    return undefined;
  });
  add('GET', '/tags/', 'read', listTags);
  add('GET', '/tags/:id/', 'read', async ({ run, id }) => {
    const { tags } = await run('/tags/list', {});
    const tag = tags.find((each) => each.id === id);
    if (tag === undefined) throw notFound('the tag');
    return formatTag(tag);
  });
  add('POST', '/tags/', 'write', createTag);
  add('GET', '/user/profile/', 'read', async () => PROFILE);
}

interface RequestParts {
  Params: { id?: string };
  Querystring: Record<string, unknown>;
}

/** Builds the request that a handler gets. Throws `NOT_FOUND` if the id in the path is malformed. */
function readRequest(
  runner: EndpointRunner,
  request: FastifyRequest<RequestParts>,
  reply: FastifyReply,
): LinkdingRequest {
  const { id } = request.params;
  if (id !== undefined && !(ID.test(id) && Number.isSafeInteger(Number(id)))) throw notFound('the bookmark');
  const origin = runner.context.site.origin ?? `${request.protocol}://${request.host}`;
  return {
    run: runEndpointsFor(runner, request, reply),
    query: request.query,
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
const NAMES_IN_QUERIES: Record<string, string> = { query: 'q', tags: 'q', created_after: 'added_since' };

/** Matches a message about a field or an entry of a field, such as `tags[2]: expected a string`. */
const FIELD_MESSAGE = /^(?<field>[a-z_]+)(?:\[\d+\])?: (?<rule>.*)$/s;

/** Formats an error as linkding does: under the name of the invalid field, or else as `detail`. */
function formatError({ error, code }: ErrorBody, names: Record<string, string>): string {
  const { field, rule } = FIELD_MESSAGE.exec(error)?.groups ?? {};
  if (code === 'VALIDATION_ERROR' && field !== undefined)
    return JSON.stringify({ [names[field] ?? field]: [rule] });
  return JSON.stringify({ detail: error });
}

/** Makes a page of results, with links to the previous and the next page. */
const formatPage = (
  { linkTo }: LinkdingRequest,
  { offset, limit }: Range,
  count: number,
  results: object[],
) => ({
  count,
  next: offset + limit < count ? linkTo({ offset: offset + limit, limit }) : null,
  previous: offset > 0 ? linkTo({ offset: Math.max(0, offset - limit), limit }) : null,
  results,
});

async function listBookmarks(request: LinkdingRequest, filter: BookmarkSearch): Promise<object> {
  const range = readRange(request.query);
  const search = readSearch(request.query);
  const tags = [...(search.tags ?? []), ...(filter.tags ?? [])];
  const conditions: BookmarkSearch = {
    ...search,
    ...filter,
    ...(tags.length > 0 && { tags }),
    sort: 'created',
  };
  // If the range begins in the middle of a page of `/bookmarks/search`, it may end on the next page.
  const bookmarks: Bookmark[] = [];
  const firstPage = Math.floor(range.offset / range.limit) + 1;
  const skippedCount = range.offset % range.limit;
  let total = 0;
  for (const page of [firstPage, firstPage + 1]) {
    const body = { ...conditions, page, per_page: range.limit };
    const result = await request.run('/bookmarks/search', body);
    bookmarks.push(...result.bookmarks);
    total = result.total;
    if (skippedCount === 0 || !result.has_more) break;
  }
  const results = bookmarks.slice(skippedCount, skippedCount + range.limit).map(toLinkding);
  return formatPage(request, range, total, results);
}

/** Returns a bookmark. Throws `NOT_FOUND` if it does not exist. */
async function getBookmark(run: RunEndpoint, id: number): Promise<Bookmark> {
  const [bookmark] = (await run('/bookmarks/get', { id })).bookmarks;
  if (bookmark === undefined) throw notFound('the bookmark');
  return bookmark;
}

/** Returns the bookmark with `query.url`, if there is one. The metadata is empty: the service fetches no pages. */
async function checkUrl({ run, query }: LinkdingRequest): Promise<object> {
  const url = String(query.url ?? '');
  const [bookmark] = (await run('/bookmarks/get', { url })).bookmarks;
  return {
    bookmark: bookmark === undefined ? null : toLinkding(bookmark),
    metadata: { url, title: null, description: null, preview_image: null },
    auto_tags: [],
  };
}

function requireUrl(
  fields: Partial<LinkdingFields>,
): asserts fields is Partial<LinkdingFields> & { url: string } {
  if (fields.url === undefined) throw invalid('url: is required');
}

/** Creates a bookmark. If a bookmark with the same url exists, edits that bookmark instead, as linkding does. */
async function createBookmark({ run, body, reply }: LinkdingRequest): Promise<object> {
  const fields = readFields(body);
  requireUrl(fields);
  const wanted = { ...DEFAULTS, ...fields };
  const { url } = wanted;
  reply.code(201);
  const editExisting = async () => {
    const [existing] = (await run('/bookmarks/get', { url })).bookmarks;
    return existing && editBookmark(run, existing.id, () => wanted);
  };
  const add = async () =>
    toLinkding(await run('/bookmarks/add', { ...fromLinkding(wanted), on_duplicate: 'error' }));
  // Another request may add the same url after `editExisting` has found nothing. In that case, `add` fails, and the
  // bookmark of the other request is edited.
  return (await editExisting()) ?? (await recoverWith(add(), editExisting));
}

/**
 * Resolves with the result of `work`. If `work` fails, resolves with the result of `find`. If `find` finds nothing,
 * rejects with the error of `work`.
 */
const recoverWith = <T>(work: Promise<T>, find: () => Promise<T | undefined>): Promise<T> =>
  work.catch(async (error: unknown) => {
    const existing = await find();
    if (existing === undefined) throw error;
    return existing;
  });

/** Edits a bookmark. If another request has changed the bookmark meanwhile, tries again, so that no change is lost. */
async function editBookmark(
  run: RunEndpoint,
  id: number,
  change: (current: LinkdingFields) => LinkdingFields,
): Promise<object> {
  for (let tries = 1; ; tries += 1) {
    const current = await getBookmark(run, id);
    try {
      const edit = { id, if_updated_at: current.updated_at, ...applyChange(current, change) };
      const edited = (await run('/bookmarks/edit', edit)) as EditedBookmark;
      return toLinkding({ ...edited, created_at: current.created_at });
    } catch (error) {
      const isConflict = error instanceof ApiError && error.code === 'CONFLICT';
      if (!isConflict || tries === EDIT_TRIES) throw error;
    }
  }
}

function applyChange(current: Bookmark, change: (current: LinkdingFields) => LinkdingFields) {
  const before = toLinkding(current);
  const after = change(before);
  if (after.description !== before.description || after.notes !== before.notes) return fromLinkding(after);
  // Description and notes are unchanged, so the stored comment is kept. It is not built again from them, because
  // another program may have written the comment, with the line `NOTES_LINE` in another place.
  return { ...fromLinkding({ ...after, description: '', notes: '' }), comment: current.comment };
}

async function setArchived({ run, id }: LinkdingRequest, isArchived: boolean): Promise<undefined> {
  await editBookmark(run, id, (current) => ({ ...current, is_archived: isArchived }));
}

const formatTag = ({ id, name }: { id: number; name: string }) => ({ id, name, date_added: null });

async function listTags(request: LinkdingRequest): Promise<object> {
  const range = readRange(request.query);
  const { tags } = await request.run('/tags/list', {});
  const results = tags.slice(range.offset, range.offset + range.limit).map(formatTag);
  return formatPage(request, range, tags.length, results);
}

const namedTag = z.object({ name: z.string() });

/** Creates a tag. If a tag with this name exists, returns that tag, as linkding does. */
async function createTag({ run, body, reply }: LinkdingRequest): Promise<object> {
  const { name } = parseBody(namedTag, body);
  reply.code(201);
  const foldedName = foldText(name.trim());
  const findExisting = async () => {
    const { tags } = await run('/tags/list', {});
    const existing = tags.find((tag) => foldText(tag.name) === foldedName);
    return existing && formatTag(existing);
  };
  return recoverWith(run('/tags/create', { name }).then(formatTag), findExisting);
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
