import type { Command } from 'commander';
import { type BookmarkClient, type MirrorBatch, MirrorConflict } from '../../client/index.ts';
import type { SqliteStore } from '../../client/sqlite-store.ts';
import { formatCount } from '../display-text.ts';
import { CliError } from '../faults.ts';
import { openStore } from '../local-copy.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

interface MirrorCommandOptions {
  follow?: boolean;
}

/** Adds `mirror`. */
export function addMirrorCommand(program: Command, run: Run): void {
  program
    .command('mirror <file>')
    .description('copy all bookmarks to a SQLite file, or bring the copy up to date')
    .option('-f, --follow', 'keep it up to date until Ctrl-C')
    .addHelpText(
      'after',
      '\nOther programs can read its tables at any time: bookmarks, tags and bookmark_tags.',
    )
    .action(run(mirror));
}

async function mirror(
  session: Session,
  file: string,
  { follow = false }: MirrorCommandOptions,
): Promise<void> {
  const client = await openOwnClient(session);
  using store = await openStore(file);
  try {
    await keepUpToDate(session, client, store, follow);
  } catch (error) {
    if (!(error instanceof MirrorConflict)) throw error;
    throw new CliError(
      `${file}: another process is writing to it`,
      `Stop one of them, or run bookmarks sync ${file}. Nothing is lost.`,
      'FAILED',
    );
  }
}

async function keepUpToDate(
  session: Session,
  client: BookmarkClient,
  store: SqliteStore,
  follow: boolean,
): Promise<void> {
  const { terminal, signal } = session;
  using progress = terminal.progress();
  progress.set(formatCount(store.size, 'bookmark'));
  let sum = { changed: 0, removed: 0 };
  for await (const batch of client.mirror({ store, signal, follow })) {
    sum = { changed: sum.changed + batch.bookmarks.length, removed: sum.removed + batch.deleted.length };
    if (!batch.isCaughtUp) progress.set(formatCount(store.size, 'bookmark'));
    else {
      progress.set('');
      await report(session, batch, sum, store.size);
      sum = { changed: 0, removed: 0 };
    }
  }
}

function report(
  { terminal }: Session,
  { reset }: MirrorBatch,
  { changed, removed }: { changed: number; removed: number },
  bookmarks: number,
): Promise<void> {
  return terminal.print(
    { bookmarks, changed, removed, reset },
    () => `${formatCount(bookmarks, 'bookmark')}: ${changed} new or changed, ${removed} removed`,
  );
}
