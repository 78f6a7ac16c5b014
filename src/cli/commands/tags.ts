import type { Command } from 'commander';
import { ApiError, type BookmarkClient } from '../../client/index.ts';
import type { Tag } from '../../domain/resources.ts';
import { foldText, isUnder } from '../../domain/text.ts';
import { growTree, type TagNode } from '../../formats/tag-tree.ts';
import { readTagName } from '../arguments.ts';
import { formatCount, toLine } from '../display-text.ts';
import { CliError } from '../faults.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

/** Adds the command `tags` and its subcommands. */
export function addTagCommands(program: Command, run: Run): void {
  const tags = program.command('tags').description('list, create, rename, merge and delete tags');
  tags
    .command('list', { isDefault: true })
    .description('list all tags')
    .option('--tree', 'show the tag a/b below the tag a')
    .action(run(list));
  tags
    .command('create')
    .description('create a tag')
    .argument('<name>', 'name of the tag')
    .action(run(create));
  tags
    .command('rename')
    .description('rename a tag on all its bookmarks')
    .argument('<name>', 'current name of the tag', readTagName)
    .argument('<new-name>', 'new name of the tag')
    .option('--with-children', 'also rename all tags below it, for example work/a below work')
    .action(run(rename));
  tags
    .command('merge')
    .description('replace a tag with another one on all its bookmarks')
    .argument('<name>', 'the tag to replace', readTagName)
    .argument('<into>', 'the tag to keep')
    .action(run(merge));
  tags
    .command('rm')
    .description('delete a tag; its bookmarks are kept')
    .argument('<name>', 'name of the tag', readTagName)
    .option('--with-children', 'also delete all tags below it, for example work/a below work')
    .action(run(remove));
}

async function list(session: Session, { tree = false }: { tree?: boolean }): Promise<void> {
  const { terminal, signal } = session;
  const response = await (await openOwnClient(session)).listTags({ signal });
  const roots = growTree(response.tags);
  const table = {
    columns: [{ name: 'BOOKMARKS' }, { name: 'TAG', isFlexible: true }],
    rows: tree
      ? drawTree(roots)
      : response.tags.map(({ name, bookmark_count }) => [String(bookmark_count), toLine(name)]),
  };
  await terminal.printTable(tree ? { tags: roots } : response, table, 'no tags yet');
}

/** Returns the rows of the table for a tree of tags. */
const drawTree = (nodes: readonly TagNode[], depth = 0): string[][] =>
  nodes.flatMap(({ name, bookmark_count, tags }) => [
    [String(bookmark_count), '  '.repeat(depth) + toLine(name)],
    ...drawTree(tags, depth + 1),
  ]);

async function create(session: Session, name: string): Promise<void> {
  const client = await openOwnClient(session);
  const tag = await client.createTag({ name }, { signal: session.signal }).catch(async (error) => {
    // The service has one code for a wrong name and a taken name. A taken name is not a wrong use of the command.
    const mayBeTaken = error instanceof ApiError && error.code === 'VALIDATION_ERROR';
    const taken = mayBeTaken && findByName((await client.listTags({ signal: session.signal })).tags, name);
    throw taken ? new CliError(`the tag ${toLine(taken.name)} exists already`, undefined, 'FAILED') : error;
  });
  await session.terminal.print(tag, () => `Created ${toLine(tag.name)}`);
}

async function rename(
  session: Session,
  name: string,
  newName: string,
  { withChildren }: { withChildren?: boolean },
): Promise<void> {
  const client = await openOwnClient(session);
  const { terminal, signal } = session;
  if (withChildren) {
    const done = await client.renameTagPath(name, newName, { signal });
    return terminal.print(done, () => `Renamed ${formatCount(done.renamed, 'tag')} to ${toLine(done.name)}`);
  }
  const { id } = await findTag(session, client, name);
  const tag = await client.renameTag({ id, name: newName }, { signal });
  await terminal.print(tag, () => `Renamed to ${toLine(tag.name)}`);
}

async function merge(session: Session, name: string, into: string): Promise<void> {
  const client = await openOwnClient(session);
  const source = await findTag(session, client, name);
  const target = await findTag(session, client, into);
  if (source.id === target.id) throw new CliError('a tag cannot be merged into itself');
  const tag = await client.mergeTags({ id: source.id, into_id: target.id }, { signal: session.signal });
  await session.terminal.print(tag, () => {
    const count = tag.bookmark_count === 1 ? '1 bookmark has' : `${tag.bookmark_count} bookmarks have`;
    return `Merged ${toLine(source.name)} into ${toLine(tag.name)}; ${count} it now`;
  });
}

async function remove(
  session: Session,
  name: string,
  { withChildren }: { withChildren?: boolean },
): Promise<void> {
  const client = await openOwnClient(session);
  const { terminal, signal } = session;
  if (withChildren) {
    await client.deleteTagPath(name, { signal });
    return terminal.print({ deleted: name }, () => `Deleted ${toLine(name)} and all tags below it`);
  }
  const tag = await findTag(session, client, name);
  await client.deleteTag(tag.id, { signal });
  await terminal.print({ deleted: tag.name }, () => {
    const count = formatCount(tag.bookmark_count, 'bookmark');
    return `Deleted ${toLine(tag.name)} from ${count}`;
  });
}

/** Returns the tag with this name, ignoring case. Throws a `CliError` if there is none. */
async function findTag(session: Session, client: BookmarkClient, name: string): Promise<Tag> {
  const { tags } = await client.listTags({ signal: session.signal });
  const found = findByName(tags, name);
  if (found !== undefined) return found;
  const key = foldText(name.trim());
  const isFolder = tags.some((tag) => isUnder(foldText(tag.name), key));
  throw new CliError(
    `there is no tag ${JSON.stringify(name)}${isFolder ? ', only tags below it' : ''}`,
    isFolder ? 'tags rename and tags rm take --with-children' : 'List all tags: bookmarks tags',
    'NOT_FOUND',
  );
}

/** Returns the tag with this name, ignoring case. Undefined if there is none. */
function findByName(tags: readonly Tag[], name: string): Tag | undefined {
  const key = foldText(name.trim());
  return tags.find((tag) => foldText(tag.name) === key);
}
