import { z } from 'zod';
import { notifyChangesPolls } from '../coordination/channels.ts';
import { id, tagName } from '../domain/fields.ts';
import { foldText } from '../domain/text.ts';
import { callerRoute } from '../http/route.ts';
import { createTag, deleteTag, listTags, mergeTags, renameTag } from '../store/tags.ts';
import { notifyAfter } from './notify-after.ts';
import * as schemas from './response-schemas.ts';

/** Tags: spec 4.3. */

const named = (name: string) => ({ name, key: foldText(name) });

const countedTag = z.object({ id, name: schemas.tagName, bookmark_count: schemas.count }).meta({ id: 'Tag' });

const list = callerRoute({
  path: '/tags/list',
  scope: 'read',
  summary: 'List all tags',
  description:
    'In the order of their names, whatever their case, each with the number of bookmarks that carry it.',
  body: z.object({}),
  response: z.object({
    tags: z.array(countedTag),
  }),
  handle: async ({ context, caller }) => `{"tags":${await listTags(context.database, caller)}}`,
});

const create = callerRoute({
  path: '/tags/create',
  scope: 'write',
  summary: 'Create a tag',
  description: 'Names are unique whatever their case; a taken one is a VALIDATION_ERROR.',
  body: z.object({ name: tagName }),
  response: z.object({ id, name: schemas.tagName, created_at: schemas.timestampText }),
  errors: ['LIMIT_EXCEEDED'],
  isIdempotent: true,
  handle: ({ context, caller, body, idempotency }) =>
    notifyAfter(context, caller, notifyChangesPolls, () =>
      createTag(context.database, caller, named(body.name), idempotency),
    ),
});

const update = callerRoute({
  path: '/tags/update',
  scope: 'write',
  summary: 'Rename a tag',
  description: 'On all bookmarks that carry it. Onto the name of another tag it is a VALIDATION_ERROR.',
  body: z.object({ id, name: tagName }),
  response: schemas.bookmarkTag,
  errors: ['NOT_FOUND'],
  isIdempotent: true,
  handle: ({ context, caller, body, idempotency }) =>
    notifyAfter(context, caller, notifyChangesPolls, () =>
      renameTag(context.database, caller, body.id, named(body.name), idempotency),
    ),
});

const remove = callerRoute({
  path: '/tags/delete',
  scope: 'write',
  summary: 'Delete a tag',
  description: 'It is taken off all bookmarks; the bookmarks stay.',
  body: z.object({ id }),
  response: schemas.deleted,
  errors: ['NOT_FOUND'],
  isIdempotent: true,
  handle: ({ context, caller, body, idempotency }) =>
    notifyAfter(context, caller, notifyChangesPolls, () =>
      deleteTag(context.database, caller, body.id, idempotency),
    ),
});

const merge = callerRoute({
  path: '/tags/merge',
  scope: 'write',
  summary: 'Merge a tag into another one',
  description:
    'On all bookmarks that carry `id`, `into_id` takes its place; `id` is then deleted. Responds with the tag that stays.',
  body: z.object({ id, into_id: id.meta({ examples: [43] }) }).check(({ value, issues }) => {
    if (value.id !== value.into_id) return;
    issues.push({ code: 'custom', message: 'expected another tag than id', path: ['into_id'], input: value });
  }),
  response: countedTag,
  errors: ['NOT_FOUND'],
  isIdempotent: true,
  handle: ({ context, caller, body, idempotency }) =>
    notifyAfter(context, caller, notifyChangesPolls, () =>
      mergeTags(context.database, caller, body.id, body.into_id, idempotency),
    ),
});

export const tagRoutes = [list, create, update, remove, merge];
