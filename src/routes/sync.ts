import { z } from 'zod';
import type { Context } from '../context.ts';
import type { Waiter } from '../coordination/port.ts';
import { userTopic } from '../coordination/topics.ts';
import { unavailable } from '../domain/errors.ts';
import { integer } from '../domain/fields.ts';
import type { Caller } from '../domain/tokens.ts';
import { callerRoute } from '../http/route.ts';
import type { Page } from '../store/bookmarks.ts';
import * as schemas from './response-schemas.ts';

/** Incremental sync with long polling: spec 4.2, decisions 15 and 16. */

interface Position {
  cursor: number;
  limit: number;
}

function formatAnswer(page: Page, { cursor }: Position, waited: boolean): string {
  const next = page.lastId ?? cursor;
  return `{"bookmarks":${page.bookmarks},"cursor":${next},"has_more":${page.hasMore},"waited":${waited}}`;
}

/**
 * Waits for bookmarks after the position. The order is what makes it exact: the waiter was registered before the
 * first look found nothing, so whatever commits later either was seen or wakes it; and the last act is always a look.
 */
async function waitForPage(
  context: Context,
  caller: Caller,
  position: Position,
  waiter: Waiter,
): Promise<Page | undefined> {
  const { clock } = context.coordination;
  const deadline = clock.now() + context.config.syncWaitSeconds * 1_000;
  for (;;) {
    const end = await waiter.next(deadline);
    if (end === 'gone') return undefined;
    const wokenAt = clock.now();
    const page = await context.pageReader.read(caller, position.cursor, position.limit);
    if (end === 'woken' && page.count > 0) context.metrics.woken((clock.now() - wokenAt) / 1_000);
    if (page.count > 0 || end !== 'woken') return page;
  }
}

function holdWait(waiter: Waiter): boolean {
  const refusal = waiter.hold();
  if (refusal === 'replica-full') {
    throw unavailable('this replica holds as many waits as it can', 1 + Math.floor(Math.random() * 5));
  }
  return refusal === undefined;
}

const sync = callerRoute({
  path: '/bookmarks/sync',
  scope: 'read',
  isHeld: true,
  summary: 'Read what is new since a cursor, waiting for it if asked to',
  description:
    'By id, rising. Store the returned cursor and send it next time: no bookmark is ever missed. With `wait` and ' +
    'nothing new the request is held for up to 29 seconds; an empty answer then returns the cursor as it was sent.',
  body: z.object({
    cursor: integer(0, Number.MAX_SAFE_INTEGER, 0),
    limit: integer(1, 100, 50),
    wait: z
      .boolean()
      .default(false)
      .meta({ examples: [true] }),
  }),
  response: z.object({
    bookmarks: z.array(schemas.bookmark),
    cursor: schemas.count.meta({ examples: [42] }),
    has_more: z.boolean(),
    waited: z.boolean(),
  }),
  async handle({ context, caller, body, request, reply }) {
    const look = () => context.pageReader.read(caller, body.cursor, body.limit);
    if (!body.wait) return formatAnswer(await look(), body, false);

    const waiter = context.coordination.wakes.register(userTopic(caller.userId), caller.key);
    const cancel = () => waiter.cancel();
    reply.raw.once('close', cancel);
    try {
      const page = await look();
      if (page.count > 0 || !holdWait(waiter)) return formatAnswer(page, body, false);
      request.wasHeld = true;
      const later = await waitForPage(context, caller, body, waiter);
      return formatAnswer(later ?? page, body, true);
    } finally {
      reply.raw.off('close', cancel);
      waiter.release();
    }
  },
});

export const syncRoutes = [sync];
