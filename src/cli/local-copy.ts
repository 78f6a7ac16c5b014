import { Option } from 'commander';
import { type Collection, NotInCollection } from '../client/index.ts';
import type { SqliteStore } from '../client/sqlite-store.ts';
import { messageOf, systemCodeOf } from '../domain/thrown.ts';
import { CliError } from './faults.ts';
import { openClient, type Session } from './session.ts';

/**
 * Returns the option `--offline FILE`, with which a command reads or writes a local copy instead of calling the
 * service.
 */
export const offlineOption = (): Option =>
  new Option(
    '--offline <file>',
    'use the local copy in this SQLite file, without a connection; `sync FILE` sends the changes',
  );

/** Opens or creates a SQLite file. Node has `node:sqlite` since version 22.13. */
export async function openStore(file: string): Promise<SqliteStore> {
  const sqlite = await import('../client/sqlite-store.ts').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_UNKNOWN_BUILTIN_MODULE') throw error;
    throw new CliError(
      `${file}: this needs SQLite, which Node ${process.versions.node} does not have`,
      'Use Node 22.13 or newer',
      'FAILED',
    );
  });
  try {
    return new sqlite.SqliteStore(file);
  } catch (error) {
    // The message of SQLite does not name the file, and it is the same for a missing folder and for denied access.
    if (systemCodeOf(error) === 'ERR_SQLITE_ERROR')
      throw new CliError(
        `${file}: ${messageOf(error)}`,
        'Check that its folder exists and that no other program uses the file',
        'FAILED',
      );
    if (!(error instanceof sqlite.UnusableMirror)) throw error;
    throw new CliError(error.message, 'Name a new file');
  }
}

/** Calls `work` with the local copy in a file. Sends no request and needs no login. */
export async function useOffline<T>(
  session: Session,
  file: string,
  work: (collection: Collection) => Promise<T>,
): Promise<T> {
  using store = await openStore(file);
  try {
    // The client sends no request, so its address does not matter.
    return await work(openClient(session, 'http://localhost').collection(store));
  } catch (error) {
    if (!(error instanceof NotInCollection)) throw error;
    throw new CliError(
      `${file}: ${error.message}`,
      `List its bookmarks: bookmarks list --offline ${file}`,
      'NOT_FOUND',
    );
  }
}
