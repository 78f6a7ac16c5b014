import { readFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import type { Bookmark, BookmarkClient, MirrorPage } from '../../client/index.ts';
import { systemCodeOf } from '../../domain/thrown.ts';
import { bookmarkTable } from '../bookmark-table.ts';
import { toLine } from '../display-text.ts';
import { CliError } from '../faults.ts';
import { replaceFile } from '../replace-file.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';
import { syncFile } from './sync-file.ts';

interface SyncOptions {
  follow?: boolean;
  new?: boolean;
  cursor?: string;
  cursorFile?: string;
  onConflict?: 'theirs' | 'mine';
  verify?: boolean;
}

/** Adds the command `sync`. */
export function addSyncCommand(program: Command, run: Run): void {
  program
    .command('sync')
    .description(
      'print all bookmarks, oldest first; with --follow, also each later change, including deletions; ' +
        'with a file, send its offline changes and bring it up to date',
    )
    .argument('[file]', 'a SQLite file from mirror or from a command with --offline, or a new file')
    .option('-f, --follow', 'keep running until Ctrl-C')
    .addOption(
      new Option('--cursor <cursor>', 'start after this bookmark id').conflicts(['cursorFile', 'new']),
    )
    .addOption(
      new Option('--cursor-file <file>', 'start where the last run with this file ended').conflicts('new'),
    )
    .option('--new', 'start from now and skip existing bookmarks')
    .addOption(
      new Option(
        '--on-conflict <whose>',
        'with a file: which value to keep if both sides changed a field (default: theirs)',
      ).choices(['theirs', 'mine']),
    )
    .option('--verify', 'with a file: first compare it with the service, and repair what is wrong')
    .addHelpText(
      'after',
      '\nWith --json, each line is one bookmark. With --follow, lines can also be {"deleted": ID},' +
        '\n{"tag": {"id": ID, "name": NAME}}, {"deleted_tag": ID}, or {"reset": true}: start again with an empty copy.' +
        '\nWith a file, it prints conflicts and refused changes, and exits with 1 if a local change was not applied.' +
        '\nWith --verify, it also prints what was wrong in the file. Without a fault, that costs one more short request.',
    )
    .action(run(sync));
}

async function sync(session: Session, file: string | undefined, options: SyncOptions): Promise<void> {
  if (file !== undefined) {
    const { onConflict = 'theirs', verify = false, ...others } = options;
    if (Object.values(others).some(Boolean))
      throw new CliError(
        'with a file, the only possible options are --on-conflict and --verify',
        'To keep a file up to date, use bookmarks mirror --follow',
      );
    return syncFile(session, file, { onConflict, verify });
  }
  if (options.onConflict !== undefined)
    throw new CliError('--on-conflict needs a file', 'bookmarks sync FILE --on-conflict mine');
  if (options.verify) throw new CliError('--verify needs a file', 'bookmarks sync FILE --verify');
  const client = await openOwnClient(session);
  const start = await findStart(session, client, options);
  if (options.follow) await follow(session, client, start, options.cursorFile);
  else await printNew(session, client, start, options.cursorFile);
}

/** Prints the bookmarks after a cursor of `sync`. Returns the JSON text of each printed bookmark, by id. */
async function printNew(
  session: Session,
  client: BookmarkClient,
  cursor: string,
  cursorFile: string | undefined,
): Promise<Map<number, string>> {
  if (!isSyncCursor(cursor)) {
    throw new CliError(
      'this cursor was written by sync --follow',
      'Continue with --follow, or start with a new file',
    );
  }
  const { terminal, signal } = session;
  const printed = new Map<number, string>();
  for await (const batch of client.sync({ cursor, signal, follow: false })) {
    await printBookmarks(session, batch.bookmarks, printed.size === 0);
    for (const bookmark of batch.bookmarks) printed.set(bookmark.id, JSON.stringify(bookmark));
    // The cursor is stored after the bookmarks are printed. So after a crash in between, the next run prints these
    // bookmarks again, and none is lost.
    if (cursorFile !== undefined) await storeCursor(cursorFile, batch.cursor);
  }
  if (printed.size === 0 && !terminal.isJson) terminal.note('nothing new');
  return printed;
}

/**
 * Prints each change after a cursor. If the cursor comes from plain `sync`, first asks the service for the current
 * position in the changes. Then prints the bookmarks after the cursor, and finally the changes after that position. So
 * no change that happens meanwhile is lost. A change that only repeats a printed bookmark is not printed again.
 */
async function follow(
  session: Session,
  client: BookmarkClient,
  start: string,
  cursorFile: string | undefined,
): Promise<void> {
  let cursor: string | undefined = start;
  let printed = new Map<number, string>();
  // Without a cursor, the mirror begins with all bookmarks.
  if (start === FROM_START) cursor = undefined;
  else if (isSyncCursor(start)) {
    cursor = (await client.readChanges({ from: 'now' }, { signal: session.signal })).cursor;
    printed = await printNew(session, client, start, cursorFile);
  }
  const isNew = (bookmark: Bookmark) => printed.get(bookmark.id) !== JSON.stringify(bookmark);
  // True until the first bookmarks are printed.
  let isFirst = printed.size === 0;
  // False during a copy from the start, whose pages contain every tag.
  let hasNews = true;
  const store = {
    readCursor: async () => cursor,
    async apply(page: MirrorPage): Promise<number[]> {
      if (page.reset) hasNews = false;
      const tags = hasNews || session.terminal.isJson ? page.tags : [];
      await printPage(session, { ...page, tags, bookmarks: page.bookmarks.filter(isNew) }, isFirst);
      if (page.bookmarks.length > 0) isFirst = false;
      if (cursorFile !== undefined) await storeCursor(cursorFile, page.cursor);
      return [];
    },
  };
  for await (const { isCaughtUp } of client.mirror({ store, signal: session.signal })) {
    if (!isCaughtUp) continue;
    printed.clear();
    hasNews = true;
  }
}

async function printPage(session: Session, page: MirrorPage, isFirst: boolean): Promise<void> {
  const { terminal } = session;
  if (page.reset && !isFirst)
    await terminal.print({ reset: true }, () => 'starting again from the beginning');
  if (page.bookmarks.length > 0) await printBookmarks(session, page.bookmarks, isFirst);
  for (const id of page.deleted) await terminal.print({ deleted: id }, () => `${id} was deleted`);
  for (const tag of page.tags)
    await terminal.print({ tag }, () => `tag ${tag.id} is now named ${toLine(tag.name)}`);
  for (const id of page.deleted_tags) {
    await terminal.print({ deleted_tag: id }, () => `tag ${id} was deleted`);
  }
}

async function printBookmarks({ terminal }: Session, bookmarks: Bookmark[], isFirst: boolean): Promise<void> {
  if (!terminal.isJson) return terminal.table(bookmarkTable(bookmarks), { header: isFirst });
  await terminal.write(bookmarks.map((bookmark) => `${JSON.stringify(bookmark)}\n`).join(''));
}

/** The cursor before all bookmarks. */
const FROM_START = '0';

/** Matches every cursor of `sync --follow`. Also matches a cursor of plain `sync` if it contains no dot. */
const FOLLOW_CURSOR = /^[\w-]{1,200}$/;

/** Whether `sync` without `--follow` wrote this cursor: a bookmark id, which a dot and more text may follow. */
const isSyncCursor = (cursor: string): boolean => /^\d{1,16}(\.\S+)?$/.test(cursor);

/**
 * Returns the cursor to start after. Throws if the cursor is malformed. A cursor file may contain a cursor that `sync`
 * or `sync --follow` wrote. `--cursor` accepts only a cursor of plain `sync`.
 */
async function findStart({ signal }: Session, client: BookmarkClient, options: SyncOptions): Promise<string> {
  if (options.new && options.follow) return (await client.readChanges({ from: 'now' }, { signal })).cursor;
  if (options.new) {
    const newest = await client.searchBookmarks({ per_page: 1 }, { signal });
    return String(newest.bookmarks[0]?.id ?? 0);
  }
  const { cursor: typedCursor, cursorFile } = options;
  if (typedCursor !== undefined) {
    if (isSyncCursor(typedCursor)) return typedCursor;
    throw new CliError(`${typedCursor} is not a cursor`, 'Expected a bookmark id');
  }
  const storedCursor = cursorFile && (await readCursor(cursorFile));
  if (storedCursor === undefined) return FROM_START;
  if (isSyncCursor(storedCursor) || FOLLOW_CURSOR.test(storedCursor)) return storedCursor;
  throw new CliError(`${cursorFile} contains no cursor`, 'To start from the beginning, name a new file');
}

/** Returns the text of a cursor file. Undefined if there is no such file yet. */
async function readCursor(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function storeCursor(file: string, cursor: string): Promise<void> {
  await replaceFile(file, (draft) => draft.writeFile(`${cursor}\n`));
}
