import { z } from 'zod';
import { notifyPolls } from '../coordination/channels.ts';
import { id, ids, integer } from '../domain/fields.ts';
import { exactlyOne } from '../domain/validation.ts';
import { principalRoute } from '../http/route.ts';
import { deleteFromTrash, readTrash, restoreBookmarks } from '../store/trash.ts';
import { cursorSchemas, formatNext, formatTrashCursor, parseTrashCursor } from './cursor.ts';
import { notifyAfter } from './notify-after.ts';
import * as schemas from './response-schemas.ts';

/** The trash: docs/contract.md, section 4.6. */

const cursor = cursorSchemas('NDoxOjE3NjQwMDAwMDAwMDA6NDI');

const list = principalRoute({
  path: '/trash/list',
  scope: 'read',
  summary: 'List deleted bookmarks, page by page',
  description:
    'The most recently deleted bookmark comes first. A page holds at most about 1 MiB. `next_cursor` is opaque, and absent ' +
    'on the last page.',
  body: z.object({
    cursor: cursor.given,
    limit: integer(1, 500, 100),
  }),
  // A cursor in the example would belong to another user, so the request would fail.
  exampleLeavesOut: ['cursor'],
  response: z.object({
    bookmarks: z.array(
      z
        .object({ ...schemas.bookmark.shape, deleted_at: schemas.timestampText })
        .meta({ id: 'TrashedBookmark' }),
    ),
    has_more: z.boolean().meta({ examples: [true] }),
    next_cursor: cursor.next,
  }),
  async handle({ context, principal, body: { cursor, limit } }) {
    const before = cursor ? parseTrashCursor(cursor, principal.userId) : undefined;
    const { bookmarks, next } = await readTrash(context.database, principal, before, limit);
    return `{"bookmarks":${bookmarks},${formatNext(next && formatTrashCursor(principal.userId, next))}}`;
  },
});

const restore = principalRoute({
  path: '/trash/restore',
  scope: 'write',
  summary: 'Restore deleted bookmarks',
  description:
    'Runs in one transaction. A restored bookmark has a new id, so that clients that follow a cursor see it. Its tags are ' +
    'restored by name. `missing` lists ids that are not in the trash.',
  body: z.object({ ids }),
  response: z.object({
    restored: z.array(z.object({ id, new_id: id })),
    missing: z.array(id),
  }),
  errors: ['LIMIT_EXCEEDED'],
  handle({ context, principal, body, idempotency }) {
    const { freeBookmarkLimit } = context.config;
    return notifyAfter(context, principal, notifyPolls, () =>
      restoreBookmarks(context.database, principal, body.ids, freeBookmarkLimit, idempotency),
    );
  },
});

const remove = principalRoute({
  path: '/trash/delete',
  scope: 'write',
  summary: 'Permanently delete bookmarks in the trash',
  description:
    'Deletes `ids`, or with `all` everything in the trash. Ids that are not in the trash are ignored.',
  body: z
    .object({ ids: ids.optional(), all: z.literal(true, 'expected true').optional() })
    .check(exactlyOne('ids', 'all')),
  exampleLeavesOut: ['all'],
  response: z.object({ deleted: z.literal(true), count: schemas.count }),
  // Without `ids`, the request has `all`.
  handle: ({ context, principal, body, idempotency }) =>
    deleteFromTrash(context.database, principal, body.ids, idempotency),
});

export const trashRoutes = [list, restore, remove];
