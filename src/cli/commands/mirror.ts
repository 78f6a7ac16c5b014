import type { Command } from 'commander';
import { type BookmarkClient, type MirrorBatch, MirrorConflict } from '../../client/index.ts';
import type { SqliteStore } from '../../client/sqlite-store.ts';
import { CliError } from '../faults.ts';
import { openStore } from '../local-copy.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

interface MirrorCommandOptions {
  follow: boolean;
}

/** Adds `mirror`. */
export function addMirrorCommand(program: Command, run: Run): void {
  program
    .command('mirror <file>')
    .description('make a SQLite file hold what the service holds, or bring it up to date')
    .option('-f, --follow', 'keep it true until Ctrl-C', false)
    .addHelpText(
      'after',
      '\nOther programs may read its tables at any time: bookmarks, tags and bookmark_tags.',
    )
    .action(run(mirror));
}

async function mirror(session: Session, file: string, { follow }: MirrorCommandOptions): Promise<void> {
  const client = await openOwnClient(session);
  using store = await openStore(file);
  try {
    await keepTrue(session, client, store, follow);
  } catch (error) {
    if (!(error instanceof MirrorConflict)) throw error;
    throw new CliError(
      `${file}: another process writes to it`,
      `End one of the two, or run bookmarks sync ${file}; nothing is lost`,
      'FAILED',
    );
  }
}

async function keepTrue(
  session: Session,
  client: BookmarkClient,
  store: SqliteStore,
  follow: boolean,
): Promise<void> {
  const { terminal, signal } = session;
  using progress = terminal.progress();
  progress.set(`${store.size} bookmarks`);
  let sum = { changed: 0, removed: 0 };
  for await (const batch of client.mirror({ store, signal, follow })) {
    sum = { changed: sum.changed + batch.bookmarks.length, removed: sum.removed + batch.deleted.length };
    if (!batch.isCaughtUp) progress.set(`${store.size} bookmarks`);
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
    () => `${bookmarks} bookmarks: ${changed} new or changed, ${removed} removed`,
  );
}
