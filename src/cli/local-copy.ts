import { existsSync } from 'node:fs';
import { Option } from 'commander';
import { type Collection, NotInCollection } from '../client/index.ts';
import { MissingSqlite, SqliteStore, UnusableMirror } from '../client/sqlite-store.ts';
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

/** Opens a SQLite file. If there is none, creates it or, with `mustExist`, throws. */
export function openStore(file: string, { mustExist = false } = {}): SqliteStore {
  if (mustExist && !existsSync(file))
    throw new CliError(`${file}: no such file`, `Make a local copy: bookmarks sync ${file}`, 'NOT_FOUND');
  try {
    return new SqliteStore(file);
  } catch (error) {
    if (error instanceof MissingSqlite) throw new CliError(`${file}: ${error.message}`, undefined, 'FAILED');
    // The message of SQLite does not name the file, and it is the same for a missing folder and for denied access.
    if (systemCodeOf(error) === 'ERR_SQLITE_ERROR')
      throw new CliError(
        `${file}: ${messageOf(error)}`,
        'Check that its folder exists and that no other program uses the file',
        'FAILED',
      );
    if (!(error instanceof UnusableMirror)) throw error;
    throw new CliError(error.message, 'Name a new file');
  }
}

/**
 * Calls `work` with the local copy in a file. Sends no request and needs no login. Only `add` may create the file:
 * for any other command, a missing file is a typing error.
 */
export async function useOffline<T>(
  session: Session,
  file: string,
  work: (collection: Collection) => Promise<T>,
  { mustExist = true } = {},
): Promise<T> {
  using store = openStore(file, { mustExist });
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
