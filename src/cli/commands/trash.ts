import type { Command } from 'commander';
import type { BookmarkClient } from '../../client/index.ts';
import type { TrashedBookmark } from '../../domain/resources.ts';
import { gatherIds, integerFrom, toBatches } from '../arguments.ts';
import { printPages } from '../bookmark-table.ts';
import { toLine } from '../display-text.ts';
import { CliError } from '../faults.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';
import type { Table } from '../table.ts';

/** Adds the command `trash` and its subcommands. */
export function addTrashCommands(program: Command, run: Run): void {
  const trash = program
    .command('trash')
    .description('list, restore or permanently delete bookmarks in the trash');
  trash
    .command('list', { isDefault: true })
    .description('list deleted bookmarks, most recently deleted first')
    .option('-n, --limit <n>', 'print at most this many', integerFrom(1))
    .action(run(list));
  trash
    .command('restore')
    .description('restore deleted bookmarks; they get new ids')
    .argument('<id...>', 'ids from `trash list`', gatherIds)
    .action(run(restore));
  trash
    .command('rm')
    .description('permanently delete bookmarks in the trash')
    .argument('[id...]', 'ids from `trash list`', gatherIds)
    .option('--all', 'delete everything in the trash')
    .action(run(remove));
}

async function list(
  session: Session,
  { limit = Number.POSITIVE_INFINITY }: { limit?: number },
): Promise<void> {
  const { terminal, signal } = session;
  const pages = readTrash(await openOwnClient(session), limit, signal);
  await printPages(terminal, pages, trashTable, { limit, none: 'the trash is empty' });
}

/** Yields the pages of the trash, the most recently deleted bookmarks first. */
async function* readTrash(
  client: BookmarkClient,
  limit: number,
  signal: AbortSignal,
): AsyncGenerator<TrashedBookmark[], void, undefined> {
  let cursor: string | undefined;
  do {
    const page = await client.listTrash({ cursor, limit: Math.min(limit, 500) }, { signal });
    if (page.bookmarks.length > 0) yield page.bookmarks;
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}

const trashTable = (bookmarks: readonly TrashedBookmark[]): Table => ({
  columns: [
    { name: 'ID' },
    { name: 'DELETED' },
    { name: 'TITLE', isFlexible: true, isMain: true },
    { name: 'URL', isFlexible: true },
  ],
  rows: bookmarks.map(({ id, deleted_at, title, url }) => [
    String(id),
    deleted_at.slice(0, 10),
    toLine(title),
    toLine(url),
  ]),
});

async function restore(session: Session, ids: number[]): Promise<void> {
  const client = await openOwnClient(session);
  const restored: { id: number; new_id: number }[] = [];
  const missing: number[] = [];
  for (const batch of toBatches(ids)) {
    const result = await client.restoreBookmarks(batch, { signal: session.signal });
    restored.push(...result.restored);
    missing.push(...result.missing);
  }
  if (restored.length === 0)
    throw new CliError('none of these is in the trash', 'List the trash: bookmarks trash', 'NOT_FOUND');
  await session.terminal.print({ restored, missing }, () =>
    [
      ...restored.map(({ id, new_id }) => `Restored ${id} as ${new_id}`),
      ...missing.map((id) => `${id} is not in the trash`),
    ].join('\n'),
  );
}

async function remove(session: Session, ids: number[], { all = false }: { all?: boolean }): Promise<void> {
  const hasIds = ids.length > 0;
  // The command needs either ids or `--all`, and not both.
  if (all === hasIds) throw new CliError('name the bookmarks by their ids, or use --all', undefined, 'USAGE');
  const client = await openOwnClient(session);
  const options = { signal: session.signal };
  let count = 0;
  if (all) count = (await client.emptyTrash(options)).count;
  for (const batch of toBatches(ids)) count += (await client.deleteFromTrash(batch, options)).count;
  await session.terminal.print({ deleted: count }, () => `Permanently deleted ${count}`);
}
