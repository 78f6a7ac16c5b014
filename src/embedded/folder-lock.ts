import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const SQLITE_BUSY = 5;

/** The name of the file that is locked. Every data folder that a service has used contains it. */
export const LOCK_FILE = 'owner.lock';

/**
 * Locks the data folder for this process, until the returned function is called or the process ends. Returns undefined
 * if another process has locked it.
 *
 * The open transaction of SQLite holds a file lock of the operating system. The system frees the lock when the process
 * ends, so a crash leaves no lock.
 */
export function takeFolderLock(dataDir: string): (() => void) | undefined {
  const file = new DatabaseSync(join(dataDir, LOCK_FILE), { timeout: 0 });
  try {
    file.exec('begin exclusive');
    writeFileSync(join(dataDir, 'owner.pid'), String(process.pid));
  } catch (error) {
    file.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
  return () => file.close();
}

/** Returns the id of the process that has locked the folder, as text for an error message. */
export function readOwner(dataDir: string): string {
  try {
    return readFileSync(join(dataDir, 'owner.pid'), 'utf8');
  } catch {
    return 'unknown'; // The process has just locked the folder, and has not written its id yet.
  }
}
