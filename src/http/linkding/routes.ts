import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import { z } from 'zod';
import { ApiError, type ErrorBody, invalid, notFound } from '../../domain/errors.ts';
import type { Bookmark, BookmarkSearch, EditedBookmark } from '../../domain/resources.ts';
import { foldText } from '../../domain/text.ts';
import { parseToken, type Scope } from '../../domain/tokens.ts';
import { parseBody } from '../../domain/validation.ts';
import { countBacklog } from '../add-route.ts';
import { authenticate } from '../authentication.ts';
import { API } from '../mount.ts';
import { BOOKMARK_BODY_BYTES } from '../route.ts';
import { type EndpointRunner, type RunEndpoint, runEndpointsFor } from '../run-endpoint.ts';
import { ARCHIVED, fromLinkding, type LinkdingFields, NEW, readFields, toLinkding } from './fields.ts';
import { type Range, readRange, readSearch } from './query.ts';

/**
 * linkding's REST API for the programs that use it (docs/linkding.md). `COMPAT_LINKDING=true` enables it. Each
 * request runs our own endpoints as its principal, so tokens, scopes and limits apply.
 */

const ROOT = '/compat/linkding';
const BASE = `${ROOT}/api`;

/** The version of linkding that this API imitates. */
const VERSION = '1.46.0';

/** How often an edit is tried if somebody else changes the bookmark at the same time. */
const EDIT_TRIES = 10;

/** One request, as a handler sees it. */
interface Linkding {
  run: RunEndpoint;
  query: Record<string, unknown>;
  /** The id in the path. */
  id: number;
  body: unknown;
  /** The url of this list with another range. */
  linkTo(range: Range): string;
  reply: FastifyReply;
}

type Handler = (request: Linkding) => Promise<object | undefined>;

export function linkdingRoutes(scope: FastifyInstance, runner: EndpointRunner): void {
  scope.addHook('onSend', async ({ method }, reply, payload) =>
    reply.statusCode >= 400 && typeof payload === 'string'
      ? formatError(JSON.parse(payload), method === 'GET' ? PARAMETERS : FIELDS)
      : payload,
  );
  // Some libraries send a content type without a body.
  scope.addContentTypeParser('*', async ({ bodyReader }: FastifyRequest) => {
    if (bodyReader !== undefined) throw invalid('Content-Type: expected application/json');
  });
  // Clients ask for the version first, without a token.
  scope.get(`${ROOT}/health`, async () => ({ version: VERSION, status: 'healthy' }));
  const add = (method: HTTPMethods, path: string, scopeNeeded: Scope, handle: Handler) =>
    scope.route<Parts>({
      method,
      url: BASE + path,
      bodyLimit: BOOKMARK_BODY_BYTES,
      config: { class: scopeNeeded, mount: API },
      onRequest: (request, reply) => {
        const [, token] = /^Token +([\w-]+) *$/i.exec(request.headers.authorization ?? '') ?? [];
        const { context } = runner;
        return authenticate(context, { scope: scopeNeeded }, parseToken(token), request, reply);
      },
      handler: async (request, reply) => {
        const body = await handle(readRequest(runner, request, reply));
        if (body === undefined) return reply.code(204).send();
        reply.header('content-type', 'application/json; charset=utf-8');
        void reply.send(JSON.stringify(body));
        countBacklog(runner.context.outboundBacklog, request, reply);
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
    return editBookmark(run, id, () => ({ ...NEW, ...fields }));
  });
  add('PATCH', '/bookmarks/:id/', 'write', async ({ run, id, body }) => {
    const fields = readFields(body);
    return editBookmark(run, id, (current) => ({ ...current, ...fields }));
  });
  add('POST', '/bookmarks/:id/archive/', 'write', (request) => setArchived(request, true));
  add('POST', '/bookmarks/:id/unarchive/', 'write', (request) => setArchived(request, false));
  add('DELETE', '/bookmarks/:id/', 'write', async ({ run, id }) => {
    await run('/bookmarks/delete', { id });
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

interface Parts {
  Params: { id?: string };
  Querystring: Record<string, unknown>;
}

function readRequest(runner: EndpointRunner, request: FastifyRequest<Parts>, reply: FastifyReply): Linkding {
  const { id } = request.params;
  if (id !== undefined && !(/^[1-9]\d{0,15}$/.test(id) && Number.isSafeInteger(Number(id))))
    throw notFound('the bookmark');
  const origin = runner.context.site.origin ?? `${request.protocol}://${request.host}`;
  return {
    run: runEndpointsFor(runner, request, reply),
    query: request.query,
    id: Number(id),
    body: request.body ?? {},
    linkTo: ({ offset, limit }) => {
      const link = new URL(request.url, 'http://localhost');
      link.searchParams.set('limit', String(limit));
      link.searchParams.set('offset', String(offset));
      return origin + link.pathname + link.search;
    },
    reply,
  };
}

/** linkding's names of our fields, in bodies and in query strings. */
const FIELDS: Record<string, string> = { comment: 'description', tags: 'tag_names' };
const PARAMETERS: Record<string, string> = { query: 'q', tags: 'q', created_after: 'added_since' };

/** An error in linkding's form: by field, or as `detail`. */
function formatError({ error, code }: ErrorBody, names: Record<string, string>): string {
  const [, field, rule] = /^([a-z_]+)(?:\[\d+\])?: (.*)$/s.exec(error) ?? [];
  if (code === 'VALIDATION_ERROR' && field !== undefined)
    return JSON.stringify({ [names[field] ?? field]: [rule] });
  return JSON.stringify({ detail: error });
}

/** A page of results, with links to the pages around it. */
const formatPage = ({ linkTo }: Linkding, { offset, limit }: Range, count: number, results: object[]) => ({
  count,
  next: offset + limit < count ? linkTo({ offset: offset + limit, limit }) : null,
  previous: offset > 0 ? linkTo({ offset: Math.max(0, offset - limit), limit }) : null,
  results,
});

async function listBookmarks(request: Linkding, filter: BookmarkSearch): Promise<object> {
  const range = readRange(request.query);
  const search = readSearch(request.query);
  const tags = [...(search.tags ?? []), ...(filter.tags ?? [])];
  const whole: BookmarkSearch = { ...search, ...filter, ...(tags.length > 0 && { tags }), sort: 'created' };
  // The wanted range spans at most two of our pages.
  const found: Bookmark[] = [];
  const first = Math.floor(range.offset / range.limit) + 1;
  let total = 0;
  for (const page of [first, first + 1]) {
    const {
      bookmarks,
      total: count,
      has_more,
    } = await request.run('/bookmarks/search', {
      ...whole,
      page,
      per_page: range.limit,
    });
    found.push(...bookmarks);
    total = count;
    if (range.offset % range.limit === 0 || !has_more) break;
  }
  const skipped = range.offset % range.limit;
  const results = found.slice(skipped, skipped + range.limit).map(toLinkding);
  return formatPage(request, range, total, results);
}

async function getBookmark(run: RunEndpoint, id: number): Promise<Bookmark> {
  const [bookmark] = (await run('/bookmarks/get', { id })).bookmarks;
  if (bookmark === undefined) throw notFound('the bookmark');
  return bookmark;
}

/** Whether a URL is saved. The page itself is not fetched, so there is no metadata. */
async function checkUrl({ run, query }: Linkding): Promise<object> {
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

/** Creates a bookmark. As in linkding, a bookmark that has the same URL is updated instead. */
async function createBookmark({ run, body, reply }: Linkding): Promise<object> {
  const fields = readFields(body);
  requireUrl(fields);
  const wanted = { ...NEW, ...fields };
  const { url } = wanted;
  reply.code(201);
  const editExisting = async () => {
    const [existing] = (await run('/bookmarks/get', { url })).bookmarks;
    return existing && editBookmark(run, existing.id, () => wanted);
  };
  const add = async () =>
    toLinkding(await run('/bookmarks/add', { ...fromLinkding(wanted), on_duplicate: 'error' }));
  // Another request may save the same url in the meantime.
  return (await editExisting()) ?? (await orElse(add(), editExisting));
}

/**
 * Resolves with the result of `work`. If `work` fails, resolves with what `find` finds. If it finds nothing, rejects
 * with the error of `work`.
 */
const orElse = <T>(work: Promise<T>, find: () => Promise<T | undefined>): Promise<T> =>
  work.catch(async (error: unknown) => {
    const found = await find();
    if (found === undefined) throw error;
    return found;
  });

/** Edits the current state of a bookmark, so that concurrent changes are not lost. */
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
  // The comment may come from another program and contain the line of the notes anywhere. So if description and notes
  // are unchanged, the stored comment is kept and not built again.
  return { ...fromLinkding({ ...after, description: '', notes: '' }), comment: current.comment };
}

async function setArchived({ run, id }: Linkding, isArchived: boolean): Promise<undefined> {
  await editBookmark(run, id, (current) => ({ ...current, is_archived: isArchived }));
}

const formatTag = ({ id, name }: { id: number; name: string }) => ({ id, name, date_added: null });

async function listTags(request: Linkding): Promise<object> {
  const range = readRange(request.query);
  const { tags } = await request.run('/tags/list', {});
  const results = tags.slice(range.offset, range.offset + range.limit).map(formatTag);
  return formatPage(request, range, tags.length, results);
}

const namedTag = z.object({ name: z.string() });

/** Creates a tag. As in linkding, an existing tag is returned. */
async function createTag({ run, body, reply }: Linkding): Promise<object> {
  const { name } = parseBody(namedTag, body);
  reply.code(201);
  const key = foldText(name.trim());
  const findExisting = async () => {
    const { tags } = await run('/tags/list', {});
    const existing = tags.find((tag) => foldText(tag.name) === key);
    return existing && formatTag(existing);
  };
  return orElse(run('/tags/create', { name }).then(formatTag), findExisting);
}

/** linkding's default settings. They have no counterpart here. */
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
