import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeFolder, removeFolder } from './folders.ts';
import { readProcessStart } from './process-identity.ts';
import { killNotedProcesses } from './processes.ts';

/**
 * Makes the folder for everything that this process and its test files write. The folder also records this process and
 * the processes that it starts.
 */
export function makeRunFolder(): string {
  const folder = makeFolder('tests');
  writeFileSync(join(folder, 'run'), `${process.pid} ${readProcessStart(process.pid)}`);
  return folder;
}

/**
 * Ends the processes of runs that were killed, and removes the folders of these runs. Does not touch runs that are
 * still in progress.
 */
export function sweepKilledRuns(): void {
  for (const name of readdirSync(tmpdir()).filter((each) => each.startsWith('bookmark-tests-'))) {
    const folder = join(tmpdir(), name);
    try {
      if (!isOver(folder)) continue;
      killNotedProcesses(folder);
      removeFolder(folder);
    } catch {
      // The folder belongs to another user, or its own run is removing it at this moment.
    }
  }
}

function isOver(folder: string): boolean {
  const note = join(folder, 'run');
  if (!existsSync(note)) return false;
  const [pid, ...started] = readFileSync(note, 'utf8').split(' ');
  return readProcessStart(Number(pid)) !== started.join(' ');
}
