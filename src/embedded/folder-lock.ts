import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** The purpose of an owner: a service that runs until it is stopped, or one command. */
export type Purpose = 'service' | 'command';

/** The process that owns a data folder. */
export interface FolderOwner {
  pid: number;
  purpose: Purpose;
}

/** The data folder belongs to this process until `release`, or until the process ends. */
export interface FolderLock {
  release(): void;
}

const SQLITE_BUSY = 5;

/**
 * Takes the data folder for this process. If another process has it, returns that owner, or undefined if it is not
 * known yet.
 *
 * SQLite takes a file lock of the operating system. The system frees it when the process ends, so a crash leaves no
 * lock.
 */
export function takeFolderLock(dataDir: string, purpose: Purpose): FolderLock | FolderOwner | undefined {
  const ownerFile = join(dataDir, 'owner.json');
  const file = new DatabaseSync(join(dataDir, 'owner.lock'), { timeout: 0 });
  try {
    file.exec('begin exclusive');
  } catch (error) {
    file.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return readOwner(ownerFile);
    throw error;
  }
  const owner: FolderOwner = { pid: process.pid, purpose };
  writeFileSync(`${ownerFile}.draft`, JSON.stringify(owner));
  renameSync(`${ownerFile}.draft`, ownerFile);
  return {
    release: () => {
      rmSync(ownerFile, { force: true });
      file.close();
    },
  };
}

/** Reads the owner. Undefined if the file is missing or names a process that has ended. */
function readOwner(file: string): FolderOwner | undefined {
  try {
    const owner = JSON.parse(readFileSync(file, 'utf8')) as FolderOwner;
    return isAlive(owner.pid) ? owner : undefined;
  } catch {
    // The owner has just removed the file.
    return undefined;
  }
}

/** Whether a process of any user exists. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
