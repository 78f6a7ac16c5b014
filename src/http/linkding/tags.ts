import { z } from 'zod';
import { notFound } from '../../domain/errors.ts';
import { foldText } from '../../domain/text.ts';
import { parseBody } from '../../domain/validation.ts';
import { recoverWith } from './bookmarks.ts';
import { type DatedTag, formatPage, type LinkdingRequest, readRange } from './request.ts';
import { makeTagNames } from './tag-names.ts';
import { writeTime } from './times.ts';

/** linkding's endpoints for tags. */

/** Returns the account's tags with the names that linkding's clients see, and the conversion of names. */
async function readTags({ listTags }: LinkdingRequest) {
  const tags = await listTags();
  const names = makeTagNames(tags.map(({ name }) => name));
  const format = ({ id, name, created_at }: DatedTag) => ({
    id,
    name: names.write(name),
    date_added: writeTime(created_at),
  });
  return { tags, names, format };
}

/** Returns a page of tags. With `q`, only those whose names contain it, ignoring case. */
export async function getTags(request: LinkdingRequest): Promise<object> {
  const range = readRange(request.query);
  const { tags, format } = await readTags(request);
  const text = foldText(request.query.q ?? '');
  const found = tags.map(format).filter(({ name }) => foldText(name).includes(text));
  const results = found.slice(range.offset, range.offset + range.limit);
  return { ...formatPage(request, range, found.length), results };
}

export async function getTag(request: LinkdingRequest): Promise<object> {
  const { tags, format } = await readTags(request);
  const tag = tags.find(({ id }) => id === request.id);
  if (tag === undefined) throw notFound('the tag');
  return format(tag);
}

const namedTag = z.object({ name: z.string() });

/** Creates a tag. If the name means a tag that exists, returns that tag, as linkding does. */
export async function createTag(request: LinkdingRequest): Promise<object> {
  const { name } = parseBody(namedTag, request.body);
  request.reply.code(201);
  const findExisting = async () => {
    const { tags, names, format } = await readTags(request);
    const key = foldText(names.resolve(name).trim());
    const existing = tags.find((tag) => foldText(tag.name) === key);
    return existing && format(existing);
  };
  const create = async () => {
    const { id } = await request.run('/tags/create', { name });
    return getTag({ ...request, id });
  };
  // Another request may create the tag after `findExisting` has found nothing. In that case, `create` fails.
  return (await findExisting()) ?? (await recoverWith(create(), findExisting));
}

export async function deleteTag({ run, id }: LinkdingRequest): Promise<undefined> {
  await run('/tags/delete', { id });
}
