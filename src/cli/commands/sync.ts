import { randomBytes } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import type { BookmarkClient, SyncBatch } from '../../client/index.ts';
import { bookmarkTable } from '../bookmark-table.ts';
import { CliError } from '../faults.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

interface SyncOptions {
  follow: boolean;
  new: boolean;
  cursor?: string;
  cursorFile?: string;
}

/** Adds `sync`. */
export function addSyncCommand(program: Command, run: Run): void {
  program
    .command('sync')
    .description('print every bookmark once, the oldest first; with --follow, each new one as it comes')
    .option('-f, --follow', 'go on until Ctrl-C', false)
    .addOption(
      new Option('--cursor <cursor>', 'begin after this bookmark id').conflicts(['cursorFile', 'new']),
    )
    .addOption(
      new Option('--cursor-file <file>', 'begin where the last run with this file ended').conflicts('new'),
    )
    .option('--new', 'begin with what comes from now on', false)
    .addHelpText('after', '\nWith --json each bookmark is a line of its own.')
    .action(run(sync));
}

async function sync(session: Session, options: SyncOptions): Promise<void> {
  const { terminal, signal } = session;
  const client = await openOwnClient(session);
  const cursor = await findStart(session, client, options);
  let isFirst = true;
  for await (const batch of client.sync({ cursor, signal, follow: options.follow })) {
    await print(session, batch, isFirst);
    isFirst = false;
    // After the printing: what a crash comes between is printed again rather than missed.
    if (options.cursorFile !== undefined) await storeCursor(options.cursorFile, batch.cursor);
  }
  if (isFirst && !terminal.isJson) terminal.note('nothing new');
}

async function print({ terminal }: Session, { bookmarks }: SyncBatch, isFirst: boolean): Promise<void> {
  if (!terminal.isJson) return terminal.table(bookmarkTable(bookmarks), { header: isFirst });
  await terminal.write(bookmarks.map((bookmark) => `${JSON.stringify(bookmark)}\n`).join(''));
}

async function findStart({ signal }: Session, client: BookmarkClient, options: SyncOptions): Promise<string> {
  if (options.new) {
    const newest = await client.searchBookmarks({ per_page: 1 }, { signal });
    return String(newest.bookmarks[0]?.id ?? 0);
  }
  const given = options.cursor ?? (options.cursorFile && (await readCursor(options.cursorFile))) ?? '0';
  if (/^\d{1,16}(\.\S+)?$/.test(given)) return given;
  throw new CliError(
    `${given.slice(0, 40)} is no cursor`,
    'Expected the id of a bookmark, or a file that sync wrote',
  );
}

async function readCursor(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function storeCursor(file: string, cursor: string): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  await writeFile(draft, `${cursor}\n`);
  await rename(draft, file);
}
