import { z } from 'zod';
import { notifyChangesPolls } from '../coordination/channels.ts';
import { id, tagName } from '../domain/fields.ts';
import { foldText } from '../domain/text.ts';
import { exactlyOne } from '../domain/validation.ts';
import { principalRoute } from '../http/route.ts';
import { createTag, deleteTag, listTags, mergeTags, renameTag, type TagChoice } from '../store/tags.ts';
import { notifyAfter } from './notify-after.ts';
import * as schemas from './response-schemas.ts';

/** Tags: docs/contract.md, section 4.3. */

const toTagName = (name: string) => ({ name, key: foldText(name) });

const countedTag = z.object({ id, name: schemas.tagName, bookmark_count: schemas.count }).meta({ id: 'Tag' });

const list = principalRoute({
  path: '/tags/list',
  scope: 'read',
  summary: 'List all tags',
  description: 'Sorted by name, ignoring case, each with its number of bookmarks.',
  body: z.object({}),
  response: z.object({
    tags: z.array(countedTag),
  }),
  handle: async ({ context, principal }) => `{"tags":${await listTags(context.database, principal)}}`,
});

const create = principalRoute({
  path: '/tags/create',
  scope: 'write',
  summary: 'Create a tag',
  description: 'Names are unique, ignoring case. A name in use is a VALIDATION_ERROR.',
  body: z.object({ name: tagName }),
  response: z.object({ id, name: schemas.tagName, created_at: schemas.timestampText }),
  errors: ['LIMIT_EXCEEDED'],
  handle: ({ context, principal, body, idempotency }) =>
    notifyAfter(context, principal, notifyChangesPolls, () =>
      createTag(context.database, principal, toTagName(body.name), idempotency),
    ),
});

/** The fields that choose a tag: by its `id`, or by its name as `path`. */
const choice = {
  id: id.optional(),
  path: tagName.optional().meta({ examples: ['Work'] }),
  with_children: z.boolean().default(false),
};

type Choice = z.output<z.ZodObject<typeof choice>>;

const checkChoice = [
  exactlyOne('id', 'path'),
  ({ value: { path, with_children }, issues }: z.core.ParsePayload<Choice>): void => {
    if (path === undefined || with_children) return;
    issues.push({
      code: 'custom',
      message: 'expected true, because path is given',
      path: ['with_children'],
      input: with_children,
    });
  },
] as const;

const toTagChoice = ({ id, path = '', with_children: withChildren }: Choice): TagChoice =>
  id === undefined ? { pathKey: foldText(path) } : { id, withChildren };

const update = principalRoute({
  path: '/tags/update',
  scope: 'write',
  summary: 'Rename a tag',
  description:
    'Takes either `id` or `path`, and renames the tag on all its bookmarks. A name in use by another tag is a ' +
    'VALIDATION_ERROR. `with_children` also renames all tags below the tag (`Work/a` is below `Work`). If one of ' +
    'these tags cannot be renamed, none is. `path` is the name of the tag. It requires `with_children: true`, and the ' +
    'tag itself need not exist if there are tags below it. The response then has `renamed`, the number of renamed tags.',
  body: z.object({ ...choice, name: tagName }).check(...checkChoice),
  exampleLeavesOut: ['path'],
  response: z.union([
    schemas.bookmarkTag,
    z.object({ name: schemas.tagName, renamed: schemas.count }).meta({ id: 'RenamedTags' }),
  ]),
  errors: ['NOT_FOUND'],
  handle: ({ context, principal, body, idempotency }) =>
    notifyAfter(context, principal, notifyChangesPolls, () =>
      renameTag(context.database, principal, toTagChoice(body), toTagName(body.name), idempotency),
    ),
});

const remove = principalRoute({
  path: '/tags/delete',
  scope: 'write',
  summary: 'Delete a tag',
  description:
    'Takes either `id` or `path`, and removes the tag from all bookmarks. The bookmarks are kept. `with_children` also ' +
    'deletes all tags below the tag. `path` is the name of the tag. It requires `with_children: true`, and the tag ' +
    'itself need not exist if there are tags below it.',
  body: z.object(choice).check(...checkChoice),
  exampleLeavesOut: ['path'],
  response: schemas.deleted,
  errors: ['NOT_FOUND'],
  handle: ({ context, principal, body, idempotency }) =>
    notifyAfter(context, principal, notifyChangesPolls, () =>
      deleteTag(context.database, principal, toTagChoice(body), idempotency),
    ),
});

const merge = principalRoute({
  path: '/tags/merge',
  scope: 'write',
  summary: 'Merge a tag into another',
  description:
    'Replaces the tag `id` with `into_id` on all its bookmarks, then deletes `id`. Returns the remaining tag.',
  body: z.object({ id, into_id: id.meta({ examples: [43] }) }).check(({ value, issues }) => {
    if (value.id !== value.into_id) return;
    issues.push({ code: 'custom', message: 'expected another tag than id', path: ['into_id'], input: value });
  }),
  response: countedTag,
  errors: ['NOT_FOUND'],
  handle: ({ context, principal, body, idempotency }) =>
    notifyAfter(context, principal, notifyChangesPolls, () =>
      mergeTags(context.database, principal, body.id, body.into_id, idempotency),
    ),
});

export const tagRoutes = [list, create, update, remove, merge];
