import { z } from 'zod';
import { notifyChangesPolls, notifyPolls } from '../coordination/channels.ts';
import { namesGivenTo } from '../domain/bookmark-fields.ts';
import { addedBookmark, bookmarkChange, bookmarkUrl } from '../domain/bookmark-schemas.ts';
import { bookmarkVersions, id, ids, integer, type TagNames, tagNames, timestamp } from '../domain/fields.ts';
import { exactlyOne, notCombined } from '../domain/validation.ts';
import { BOOKMARK_BODY_BYTES, principalRoute } from '../http/route.ts';
import {
  addBookmark,
  deleteBookmark,
  deleteBookmarks,
  editBookmark,
  editBookmarks,
  findBookmarks,
  readPage,
} from '../store/bookmarks.ts';
import { trashLimitOf } from '../store/trash.ts';
import { cursorSchemas, formatCursor, formatNext, parseCursor } from './cursor.ts';
import { notifyAfter } from './notify-after.ts';
import * as schemas from './response-schemas.ts';

/** Bookmarks: docs/contract.md, section 4.2, except search and sync. */

export const addBody = z.object({
  ...addedBookmark.shape,
  on_duplicate: z.enum(['add', 'return', 'error']).default('add'),
});

const add = principalRoute({
  path: '/bookmarks/add',
  scope: 'write',
  summary: 'Add a bookmark',
  description:
    'Creates tags that do not exist. By default, duplicates are allowed. If a bookmark with the same url exists, ' +
    '`on_duplicate: "return"` returns the newest one unchanged, and `"error"` gives a VALIDATION_ERROR. ' +
    '`created_at` defaults to now. `updated_at` equals `created_at`.',
  body: addBody,
  bodyLimit: BOOKMARK_BODY_BYTES,
  response: schemas.bookmark,
  errors: ['LIMIT_EXCEEDED'],
  async handle({ context, principal, body: { on_duplicate, ...fields }, idempotency }) {
    const { freeBookmarkLimit } = context.config;
    const { bookmark } = await notifyAfter(
      context,
      principal,
      notifyPolls,
      () => addBookmark(context.database, principal, fields, freeBookmarkLimit, idempotency, on_duplicate),
      ({ existed }) => !existed,
    );
    return bookmark;
  },
});

const NO_TAGS: TagNames = { names: [], keys: [] };

const edit = principalRoute({
  path: '/bookmarks/edit',
  scope: 'write',
  summary: 'Edit a bookmark, or the tags of several bookmarks',
  description:
    'With `id`: changes only the given fields. A list of tags replaces the tags. With `ids` or `items`: adds ' +
    '`add_tags` and removes `remove_tags`, in one transaction. `missing` lists ids that do not exist. If one ' +
    'bookmark would exceed a limit, none is changed. `if_updated_at` is the `updated_at` that the client saw last. ' +
    'If the bookmark has changed since, it is not edited, and the response is a CONFLICT or, with `items`, lists the ' +
    'id in `conflicts`.',
  body: z
    .object({
      id: id.optional(),
      if_updated_at: timestamp.optional(),
      ...bookmarkChange.shape,
      ids: ids.optional(),
      items: bookmarkVersions.optional(),
      add_tags: tagNames.optional(),
      remove_tags: tagNames.optional(),
    })
    .check(
      exactlyOne('id', 'ids', 'items'),
      notCombined('id', ['add_tags', 'remove_tags']),
      notCombined('ids', ['if_updated_at', ...namesGivenTo('edit')]),
      notCombined('items', ['if_updated_at', ...namesGivenTo('edit')]),
      checkOpposites,
    ),
  exampleLeavesOut: ['if_updated_at', 'ids', 'items', 'add_tags', 'remove_tags'],
  bodyLimit: BOOKMARK_BODY_BYTES,
  response: z.union([
    schemas.editedBookmark,
    z.object({ edited: z.literal(true), ...schemas.severalDone }).meta({ id: 'EditedBookmarks' }),
  ]),
  errors: ['NOT_FOUND', 'CONFLICT', 'LIMIT_EXCEEDED'],
  handle({ context, principal, idempotency, body }) {
    const { id: oneId, if_updated_at: ifUpdatedAt, ids: severalIds = [], items, ...fields } = body;
    const versions = items ?? { ids: severalIds };
    const { add_tags: added = NO_TAGS, remove_tags: removed = NO_TAGS, ...change } = fields;
    return notifyAfter(context, principal, notifyChangesPolls, () => {
      if (oneId !== undefined)
        return editBookmark(context.database, principal, oneId, change, { ifUpdatedAt, idempotency });
      return editBookmarks(context.database, principal, versions, { added, removed }, idempotency);
    });
  },
});

/** Refuses a tag that is both added and removed. */
function checkOpposites({
  value: { add_tags, remove_tags },
  issues,
}: z.core.ParsePayload<{ add_tags?: TagNames | undefined; remove_tags?: TagNames | undefined }>): void {
  if (!remove_tags?.keys.some((key) => add_tags?.keys.includes(key))) return;
  const message = 'contains a tag of add_tags';
  issues.push({ code: 'custom', message, path: ['remove_tags'], input: remove_tags });
}

const remove = principalRoute({
  path: '/bookmarks/delete',
  scope: 'write',
  summary: 'Delete bookmarks permanently, or move them to the trash',
  description:
    'The deletion is permanent. With `trash: true`, the bookmarks move to the trash, from which they can be restored. ' +
    '`ids` and `items` are deleted in one transaction. `missing` lists ids that do not exist. `if_updated_at` is the ' +
    '`updated_at` that the client saw last. If the bookmark has changed since, it is kept, and the response is a ' +
    'CONFLICT or, with `items`, lists the id in `conflicts`.',
  body: z
    .object({
      id: id.optional(),
      if_updated_at: timestamp.optional(),
      ids: ids.optional(),
      items: bookmarkVersions.optional(),
      trash: z.boolean().default(false),
    })
    .check(
      exactlyOne('id', 'ids', 'items'),
      notCombined('ids', ['if_updated_at']),
      notCombined('items', ['if_updated_at']),
    ),
  exampleLeavesOut: ['if_updated_at', 'ids', 'items'],
  response: z.union([
    schemas.deletedBookmark,
    z.object({ deleted: z.literal(true), ...schemas.severalDone }).meta({ id: 'DeletedBookmarks' }),
  ]),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handle({ context, principal, idempotency, body }) {
    const { id: oneId, if_updated_at: ifUpdatedAt, ids: severalIds = [], items } = body;
    const versions = items ?? { ids: severalIds };
    const trashLimit = body.trash ? trashLimitOf(context.config) : null;
    return notifyAfter(context, principal, notifyChangesPolls, () =>
      oneId !== undefined
        ? deleteBookmark(context.database, principal, oneId, { trashLimit, ifUpdatedAt, idempotency })
        : deleteBookmarks(context.database, principal, versions, { trashLimit, idempotency }),
    );
  },
});

const get = principalRoute({
  path: '/bookmarks/get',
  scope: 'read',
  summary: 'Find a bookmark by its id, or all bookmarks with a url',
  description:
    'Takes either `id` or `url`. A url finds all bookmarks with the same url, newest first, at most 100 and about 1 ' +
    'MiB. The comparison ignores the case of scheme and host, a default port and an empty path. The list is empty if ' +
    'there is no match.',
  body: z.object({ id: id.optional(), url: bookmarkUrl.optional() }).check(exactlyOne('id', 'url')),
  exampleLeavesOut: ['id'],
  bodyLimit: BOOKMARK_BODY_BYTES,
  response: z.object({ bookmarks: z.array(schemas.bookmark) }),
  handle: async ({ context, principal, body: { id, url = '' } }) =>
    `{"bookmarks":${await findBookmarks(context.database, principal, id === undefined ? { url } : { id })}}`,
});

const cursor = cursorSchemas('MTo0Mjo0Mg');

const list = principalRoute({
  path: '/bookmarks/list',
  scope: 'read',
  summary: 'List all bookmarks, page by page',
  description:
    'In ascending order of ids. A page holds at most about 1 MiB. `next_cursor` is opaque, and absent on the last page.',
  body: z.object({
    cursor: cursor.given,
    limit: integer(1, 500, 100),
  }),
  // The cursor of an example would belong to another user, so the request would fail.
  exampleLeavesOut: ['cursor'],
  response: z.object({
    bookmarks: z.array(schemas.bookmark),
    has_more: z.boolean().meta({ examples: [true] }),
    next_cursor: cursor.next,
  }),
  async handle({ context, principal, body }) {
    const afterId = body.cursor ? parseCursor(body.cursor, principal.userId) : 0;
    const { bookmarks, lastId, hasMore } = await readPage(context.database, principal, afterId, body.limit);
    const next = hasMore && lastId !== null ? formatCursor(principal.userId, lastId) : undefined;
    return `{"bookmarks":${bookmarks},${formatNext(next)}}`;
  },
});

export const bookmarkRoutes = [add, edit, remove, get, list];
