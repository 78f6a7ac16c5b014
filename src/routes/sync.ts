import { z } from 'zod';
import { additionsChannel } from '../coordination/channels.ts';
import { integer } from '../domain/fields.ts';
import { longestPoll } from '../http/client-timeouts.ts';
import { principalRoute } from '../http/route.ts';
import type { Page } from '../store/bookmarks.ts';
import { checkWait, readOrWait, readWaitSeconds, waitFields } from './long-poll.ts';
import * as schemas from './response-schemas.ts';

/** Incremental sync with long polling: docs/contract.md, section 4.2, decisions 15 and 16. */

function formatPage(page: Page, cursor: number, waited: boolean): string {
  const next = page.lastId ?? cursor;
  return `{"bookmarks":${page.bookmarks},"cursor":${next},"has_more":${page.hasMore},"waited":${waited}}`;
}

const sync = principalRoute({
  path: '/bookmarks/sync',
  scope: 'read',
  isHeld: true,
  longestSeconds: longestPoll,
  summary: 'Read new bookmarks since a cursor, optionally waiting for them',
  description:
    'In ascending order of ids, at most about 1 MiB. Store the returned cursor and send it with the next request, ' +
    'and you never miss a bookmark. With `wait`, the service holds the request for up to 29 seconds if nothing is ' +
    'new. `wait_seconds` asks for a shorter wait. An empty response returns the cursor that was sent.',
  body: z
    .object({
      cursor: integer(0, Number.MAX_SAFE_INTEGER, 0),
      limit: integer(1, 100, 50),
      ...waitFields,
    })
    .check(checkWait),
  response: z.object({
    bookmarks: z.array(schemas.bookmark),
    cursor: schemas.count.meta({ examples: [42] }),
    has_more: z.boolean(),
    waited: z.boolean(),
  }),
  async handle({ context, principal, body, request, reply }) {
    const { cursor, limit } = body;
    const { page, waited } = await readOrWait(context, request, reply, {
      principal,
      waitSeconds: readWaitSeconds(context, body),
      channel: additionsChannel(principal.userId),
      read: () => context.pageReader.read(principal, cursor, limit),
      check: () => context.pageReader.hasNews(principal, cursor),
      hasNews: ({ count }) => count > 0,
    });
    return formatPage(page, cursor, waited);
  },
});

export const syncRoutes = [sync];
