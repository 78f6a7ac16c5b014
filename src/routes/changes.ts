import { z } from 'zod';
import { changesChannel } from '../coordination/channels.ts';
import { invalid } from '../domain/errors.ts';
import { id, integer } from '../domain/fields.ts';
import { longestPoll } from '../http/client-timeouts.ts';
import { principalRoute } from '../http/route.ts';
import type { ChangesPage, ChangesStart } from '../store/changes.ts';
import { cursorSchemas, formatChangesCursor, parseChangesCursor } from './cursor.ts';
import { checkWait, readOrWait, readWaitSeconds, waitFields } from './long-poll.ts';
import * as schemas from './response-schemas.ts';

/** Sync of everything that changes: new, edited and deleted bookmarks, and tags (docs/contract.md, decision 37). */

/**
 * Returns where the requested page starts. Throws `VALIDATION_ERROR` if the cursor is invalid, or if both `cursor` and
 * `from` are given.
 */
function findStart(
  { cursor, from }: { cursor?: string | undefined; from?: 'now' | undefined },
  userId: number,
): ChangesStart {
  if (cursor && from !== undefined) throw invalid('from: expected either cursor or from');
  if (from !== undefined) return 'now';
  return cursor ? parseChangesCursor(cursor, userId) : 'beginning';
}

const formatPage = (page: ChangesPage, userId: number, waited: boolean): string =>
  `{"reset":${page.reset},"bookmarks":[${page.bookmarks}],"deleted":[${page.deleted}],` +
  `"tags":[${page.tags}],"deleted_tags":[${page.deletedTags}],` +
  `"cursor":"${formatChangesCursor(userId, page)}","has_more":${page.hasMore},"waited":${waited}}`;

const EXAMPLE_CURSOR = 'Mjo0Mjo2MTAwMDAwMDAwMDAwOjA6MDo0Mjo3';

const changes = principalRoute({
  path: '/bookmarks/changes',
  scope: 'read',
  isHeld: true,
  longestSeconds: longestPoll,
  summary: 'Read changes since a cursor, optionally waiting for them',
  description:
    'A page holds at most about 1 MiB of bookmarks. Apply each page in this order. If `reset` is true, remove all ' +
    'bookmarks and tags that you have. Insert or replace `bookmarks` by id. Remove `deleted`. In all bookmarks that ' +
    'you have, apply the names in `tags`, and remove `deleted_tags`. Store the cursor. When `has_more` is false, you ' +
    'have exactly what the service has. No change is ever missed, and applying a page twice is harmless. With ' +
    '`wait`, the service holds the request for up to 29 seconds if nothing has changed. `wait_seconds` asks for a ' +
    'shorter wait.',
  body: z
    .object({
      cursor: cursorSchemas(EXAMPLE_CURSOR).given,
      from: z.literal('now').optional(),
      limit: integer(1, 500, 100),
      ...waitFields,
    })
    .check(checkWait),
  // The cursor of an example would belong to another user, so the request would fail.
  exampleLeavesOut: ['cursor'],
  response: z.object({
    reset: z.boolean(),
    bookmarks: z.array(schemas.bookmark),
    deleted: z.array(id),
    tags: z.array(schemas.bookmarkTag),
    deleted_tags: z.array(id),
    cursor: z.string().meta({ examples: [EXAMPLE_CURSOR] }),
    has_more: z.boolean(),
    waited: z.boolean(),
  }),
  async handle({ context, principal, body, request, reply }) {
    const start = findStart(body, principal.userId);
    const { page, waited } = await readOrWait(context, request, reply, {
      principal,
      waitSeconds: start === 'now' ? 0 : readWaitSeconds(context, body),
      channel: changesChannel(principal.userId),
      read: () => context.changesReader.read(principal, start, body.limit),
      check: () => context.changesReader.hasNews(principal, start),
      hasNews: ({ isEmpty, hasMore }) => !isEmpty || hasMore,
    });
    return formatPage(page, principal.userId, waited);
  },
});

export const changesRoutes = [changes];
