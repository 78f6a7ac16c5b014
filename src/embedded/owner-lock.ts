import { randomUUID } from 'node:crypto';
import { readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { readProcessStart } from './process-identity.ts';

/** What the owner does with the data: serves it until stopped, or runs one command on it and ends. */
export type Purpose = 'service' | 'command';

/** The process that owns a data folder. */
export interface Owner {
  pid: number;
  /** Tells this process from a later one with the same id. */
  started: string;
  purpose: Purpose;
  since: string;
  /** Of this lock alone; names its successor. */
  id: string;
}

/** The data folder is this process's until `release`; a process that dies without it leaves a lock that counts for nothing. */
export interface OwnerLock {
  release(): void;
}

// A lock is a symbolic link whose target is the owner as JSON: made whole or not at all, and never twice. The lock of
// a dead owner cannot just be removed, since whoever looked a moment earlier would remove the next owner's. So nothing
// is removed: it is succeeded by the lock that is named after its id, which again only one process can make. The new
// owner then moves its lock to the front, in one step with the removal of the dead one.

/** Takes the data folder for this process, or says which live process has it. Of those that try at once exactly one gets it. */
export function takeOwnerLock(dataDir: string, purpose: Purpose): OwnerLock | Owner {
  const front = join(dataDir, 'owner.lock');
  const mine = describeThisProcess(purpose);
  for (;;) {
    const end = findEnd(front);
    if (end.owner) return end.owner;
    if (!create(end.path, mine)) continue;
    if (findEnd(front).owner?.id === mine.id) {
      if (end.path !== front) renameSync(end.path, front);
      return { release: () => rmSync(front, { force: true }) };
    }
    // The dead lock that it succeeds was at the front no more: another process is ahead of us.
    rmSync(end.path, { force: true });
  }
}

/** Follows the dead owners from the front on, up to a live one or to the place where the next lock belongs. */
function findEnd(front: string): { path: string; owner?: Owner } {
  let path = front;
  for (;;) {
    const owner = readOwner(path);
    if (!owner) return { path };
    if (readProcessStart(owner.pid) === owner.started) return { path, owner };
    path = `${front}.${owner.id}`;
  }
}

function describeThisProcess(purpose: Purpose): Owner {
  const started = readProcessStart(process.pid);
  if (started === undefined) throw new Error('this process cannot read its own start time');
  return { pid: process.pid, started, purpose, since: new Date().toISOString(), id: randomUUID() };
}

function create(path: string, owner: Owner): boolean {
  try {
    symlinkSync(JSON.stringify(owner), path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function readOwner(path: string): Owner | undefined {
  try {
    return JSON.parse(readlinkSync(path)) as Owner;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
