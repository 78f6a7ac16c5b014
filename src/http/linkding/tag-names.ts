import type { Bookmark } from '../../domain/resources.ts';
import { foldText } from '../../domain/text.ts';
import type { RunEndpoint } from '../run-endpoint.ts';

/**
 * Converts names of tags. linkding's tags contain neither blanks nor commas, and its clients join and split names with
 * them. So the blanks of a name are written as `-`, unless another tag has that name or would be written like it. A
 * name that a client sends is converted back.
 */
export interface TagNames {
  write(name: string): string;
  /** Returns the name of the tag that a client means. */
  resolve(name: string): string;
  /** Returns the names in a list that a client sends. A name with commas stands for several, unless a tag has it. */
  split(names: readonly string[]): string[];
}

const isNotBlank = (name: string): boolean => name.trim() !== '';
const writeBlanks = (name: string): string => name.trim().replace(/\s/gu, '-');

/** Makes the conversion for an account with tags of these names. */
export function makeTagNames(names: readonly string[]): TagNames {
  const keys = new Set(names.map(foldText));
  const namesByWritten = Map.groupBy(names, (name) => foldText(writeBlanks(name)));
  /** Returns the only tag that is written like this name; undefined if there is none, or more than one. */
  const findOnly = (name: string): string | undefined => {
    const [only, ...others] = namesByWritten.get(foldText(writeBlanks(name))) ?? [];
    return others.length === 0 ? only : undefined;
  };
  const isList = (name: string) => name.includes(',') && !keys.has(foldText(name.trim()));
  return {
    write: (name) => (findOnly(name) === undefined ? name : writeBlanks(name)),
    resolve: (name) => findOnly(name) ?? name,
    split: (sent) => sent.flatMap((name) => (isList(name) ? name.split(',').filter(isNotBlank) : [name])),
  };
}

export async function readTagNames(run: RunEndpoint): Promise<TagNames> {
  const { tags } = await run('/tags/list', {});
  return makeTagNames(tags.map(({ name }) => name));
}

const UNCHANGED: Pick<TagNames, 'write'> = { write: (name) => name };

/**
 * Returns a function that returns the conversion for writing bookmarks. It reads the account's tags once, and only if a
 * name contains a blank. So a long response writes a tag in the same way everywhere.
 */
export function makeNameReader(run: RunEndpoint) {
  let names: TagNames | undefined;
  return async (bookmarks: readonly Pick<Bookmark, 'tags'>[]): Promise<Pick<TagNames, 'write'>> => {
    const hasBlank = bookmarks.some(({ tags }) => tags.some(({ name }) => /\s/u.test(name)));
    if (!hasBlank) return UNCHANGED;
    names ??= await readTagNames(run);
    return names;
  };
}

/** Returns the names of the tags that a client means by `tag_names`. Reads the account's tags only if it has to. */
export async function resolveNames(run: RunEndpoint, sent: readonly string[]): Promise<string[]> {
  if (!sent.some((name) => /[-,\s]/u.test(name))) return [...sent];
  const { split, resolve } = await readTagNames(run);
  return split(sent).map(resolve);
}
