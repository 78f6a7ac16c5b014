import { hasCode, invalid, notFound } from '../../domain/errors.ts';
import type { Bookmark, EditedBookmark } from '../../domain/resources.ts';
import type { RunEndpoint } from '../run-endpoint.ts';
import type { Pages } from '../streamed-pages.ts';
import {
  ARCHIVED,
  DEFAULTS,
  readChangedFields,
  readNewFields,
  readReplacedFields,
  type SentFields,
  toChange,
  toLinkding,
  toNewBookmark,
} from './fields.ts';
import { type ListConditions, readSearch } from './query.ts';
import { formatPage, type LinkdingRequest, readRange } from './request.ts';
import { makeNameReader, resolveNames } from './tag-names.ts';

/** linkding's endpoints for bookmarks. */

/** How often an edit is tried at most, if other requests change the bookmark at the same time. */
const EDIT_TRIES = 10;

/** A search returns at most this many bookmarks at a time. */
const PAGE_SIZE = 100;

/** Yields the response of a list as JSON. Each page is a search. No unchanged bookmark is missing or comes twice. */
export async function* listBookmarks(request: LinkdingRequest, list: ListConditions): Pages {
  const { run, query } = request;
  const range = readRange(query);
  const search = await readSearch(run, query, list);
  const readNames = makeNameReader(run);
  const per_page = Math.min(range.limit, PAGE_SIZE);
  let place: { page?: number; cursor: string } = {
    page: Math.floor(range.offset / per_page) + 1,
    cursor: '',
  };
  // The range may begin in the middle of the first page.
  let skippedCount = range.offset % per_page;
  let remainingCount = range.limit;
  let beginning: string | undefined;
  for (;;) {
    const found = await run('/bookmarks/search', { ...search, per_page, ...place });
    const bookmarks = found.bookmarks.slice(skippedCount, skippedCount + remainingCount);
    const names = await readNames(bookmarks);
    const texts = bookmarks.map((each) => JSON.stringify(toLinkding(each, names))).join(',');
    beginning ??= `${JSON.stringify(formatPage(request, range, found.total)).slice(0, -1)},"results":[`;
    yield [beginning, texts];
    if (texts !== '') beginning = ',';
    skippedCount = 0;
    remainingCount -= bookmarks.length;
    if (remainingCount === 0 || found.next_cursor === undefined) break;
    place = { cursor: found.next_cursor };
  }
  yield [']}'];
}

/** Returns a bookmark. Throws `NOT_FOUND` if it does not exist. */
async function findBookmark(run: RunEndpoint, id: number): Promise<Bookmark> {
  const [bookmark] = (await run('/bookmarks/get', { id })).bookmarks;
  if (bookmark === undefined) throw notFound('the bookmark');
  return bookmark;
}

const format = async (run: RunEndpoint, bookmark: Bookmark) =>
  toLinkding(bookmark, await makeNameReader(run)([bookmark]));

export const getBookmark = async ({ run, id }: LinkdingRequest) => format(run, await findBookmark(run, id));

/**
 * Returns the bookmark with `query.url`, if there is one. The service fetches no pages, so the metadata is that of the
 * bookmark, or else empty. It is never null, because some clients cannot read null there.
 */
export async function checkUrl({ run, query }: LinkdingRequest): Promise<object> {
  const url = query.url ?? '';
  const [found] = (await run('/bookmarks/get', { url })).bookmarks;
  const bookmark = found === undefined ? null : await format(run, found);
  const { title = '', description = '' } = bookmark ?? {};
  return { bookmark, metadata: { url, title, description, preview_image: null }, auto_tags: [] };
}

/** Creates a bookmark. If a bookmark with the same url exists, edits that bookmark instead, as linkding does. */
export async function createBookmark({ run, body, reply }: LinkdingRequest): Promise<object> {
  const { date_added: created_at, ...sent } = readNewFields(body);
  const { is_archived: _archived, ...defaults } = DEFAULTS;
  const { url } = sent;
  const tags = await resolveNames(run, sent.tag_names ?? []);
  reply.code(201);
  const editExisting = async () => {
    const [existing] = (await run('/bookmarks/get', { url })).bookmarks;
    // The bookmark stays archived, as in linkding.
    return existing && editBookmark(run, existing.id, { ...defaults, ...sent });
  };
  const add = async () =>
    format(
      run,
      await run('/bookmarks/add', {
        ...toNewBookmark({ ...DEFAULTS, ...sent }, tags),
        created_at,
        on_duplicate: 'error',
      }),
    );
  // Another request may add the same url after `editExisting` has found nothing. In that case, `add` fails, and the
  // bookmark of the other request is edited.
  return (await editExisting()) ?? (await recoverWith(add(), editExisting));
}

/**
 * Resolves with the result of `work`. If `work` fails, resolves with the result of `find`. If `find` finds nothing,
 * rejects with the error of `work`.
 */
export const recoverWith = <T>(work: Promise<T>, find: () => Promise<T | undefined>): Promise<T> =>
  work.catch(async (error: unknown) => {
    const existing = await find();
    if (existing === undefined) throw error;
    return existing;
  });

export const putBookmark = ({ run, id, body }: LinkdingRequest) =>
  editBookmark(run, id, readReplacedFields(body));
export const patchBookmark = ({ run, id, body }: LinkdingRequest) =>
  editBookmark(run, id, readChangedFields(body));

/**
 * Changes the given fields of a bookmark. If another request has changed the bookmark meanwhile, tries again, so that no
 * change is lost. Throws `VALIDATION_ERROR` if another bookmark has the new url.
 */
async function editBookmark(run: RunEndpoint, id: number, fields: SentFields): Promise<object> {
  const names = fields.tag_names && (await resolveNames(run, fields.tag_names));
  for (let tries = 1; ; tries += 1) {
    const current = await findBookmark(run, id);
    await refuseUrlOfOther(run, current, fields.url);
    try {
      const edit = { id, if_updated_at: current.updated_at, ...toChange(current, fields, names) };
      const edited = (await run('/bookmarks/edit', edit)) as EditedBookmark;
      return await format(run, { ...edited, created_at: current.created_at });
    } catch (error) {
      const isConflict = hasCode(error, 'CONFLICT');
      if (!isConflict || tries === EDIT_TRIES) throw error;
    }
  }
}

async function refuseUrlOfOther(
  run: RunEndpoint,
  { id, url: currentUrl }: Bookmark,
  url: string | undefined,
): Promise<void> {
  if (url === undefined || url === currentUrl) return;
  const { bookmarks } = await run('/bookmarks/get', { url });
  if (bookmarks.length > 0 && !bookmarks.some((each) => each.id === id))
    throw invalid('url: another bookmark has this url');
}

/** Adds or removes the tag that stands for `is_archived`. Changes nothing else, so it needs no second try. */
export async function setArchived({ run, id }: LinkdingRequest, isArchived: boolean): Promise<undefined> {
  const change = isArchived ? { add_tags: [ARCHIVED] } : { remove_tags: [ARCHIVED] };
  const edited = await run('/bookmarks/edit', { ids: [id], ...change });
  if ('missing' in edited && edited.missing.length > 0) throw notFound('the bookmark');
}

export async function deleteBookmark({ run, id }: LinkdingRequest): Promise<undefined> {
  await run('/bookmarks/delete', { id, trash: true });
}
