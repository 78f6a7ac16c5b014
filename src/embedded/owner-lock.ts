import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** What the owner does with the data: serves it until it is stopped, or runs one command on it and ends. */
export type Purpose = 'service' | 'command';

/** The process that owns a data folder, as it describes itself in `owner.json`. */
export interface FolderOwner {
  pid: number;
  purpose: Purpose;
  since: string;
  /** Where its server listens, once that takes connections. */
  port?: number;
}

/** The data folder belongs to this process until `release`, or until the process ends. */
export interface OwnerLock {
  /** Lets commands find the owner's server. */
  publishPort(port: number): void;
  release(): void;
}

const SQLITE_BUSY = 5;

/**
 * Takes the data folder for this process, or returns the process that has it; undefined where that one has not described
 * itself yet. Of processes that try at the same time exactly one gets it. SQLite takes a file lock of the operating
 * system, which frees it when the process ends, however it ends: no crash leaves a lock behind.
 */
export function takeOwnerLock(dataDir: string, purpose: Purpose): OwnerLock | FolderOwner | undefined {
  const file = new DatabaseSync(join(dataDir, 'owner.lock'), { timeout: 0 });
  try {
    file.exec('begin exclusive');
  } catch (error) {
    file.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return readOwner(dataDir);
    throw error;
  }
  const owner: FolderOwner = { pid: process.pid, purpose, since: new Date().toISOString() };
  writeOwner(dataDir, owner);
  return {
    publishPort: (port) => writeOwner(dataDir, { ...owner, port }),
    release: () => {
      rmSync(join(dataDir, 'owner.json'), { force: true });
      file.close();
    },
  };
}

function writeOwner(dataDir: string, owner: FolderOwner): void {
  const draft = join(dataDir, 'owner.json.draft');
  writeFileSync(draft, JSON.stringify(owner));
  renameSync(draft, join(dataDir, 'owner.json'));
}

/** The owner; undefined where the description is of one that has ended, and the next has not written its own yet. */
function readOwner(dataDir: string): FolderOwner | undefined {
  try {
    const owner = JSON.parse(readFileSync(join(dataDir, 'owner.json'), 'utf8')) as FolderOwner;
    return isAlive(owner.pid) ? owner : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
