import type { Command } from 'commander';
import { type MirrorBatch, MirrorConflict } from '../../client/index.ts';
import type { SqliteStore } from '../../client/sqlite-store.ts';
import { formatCount } from '../display-text.ts';
import { CliError } from '../faults.ts';
import { openStore } from '../local-copy.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

/** Adds the command `mirror`. */
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
  { follow = false }: { follow?: boolean },
): Promise<void> {
  const client = await openOwnClient(session);
  using store = openStore(file);
  try {
    await keepUpToDate(session, client.mirror({ store, signal: session.signal, follow }), store);
  } catch (error) {
    if (!(error instanceof MirrorConflict)) throw error;
    throw new CliError(
      `${file}: another process is writing to it`,
      `Stop one of the two processes, or run bookmarks sync ${file}. Nothing is lost.`,
      'FAILED',
    );
  }
}

/** Shows the progress of a mirror. Whenever the copy is up to date, prints how many bookmarks have changed. */
async function keepUpToDate(
  { terminal }: Session,
  batches: AsyncIterable<MirrorBatch>,
  store: SqliteStore,
): Promise<void> {
  using progress = terminal.progress();
  progress.set(formatCount(store.size, 'bookmark'));
  let [changed, removed] = [0, 0];
  for await (const { bookmarks, deleted, isCaughtUp, reset } of batches) {
    changed += bookmarks.length;
    removed += deleted.length;
    const count = formatCount(store.size, 'bookmark');
    progress.set(isCaughtUp ? '' : count);
    if (!isCaughtUp) continue;
    await terminal.print(
      { bookmarks: store.size, changed, removed, reset },
      () => `${count}: ${changed} new or changed, ${removed} removed`,
    );
    [changed, removed] = [0, 0];
  }
}
