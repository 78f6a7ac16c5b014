import { mkdirSync, rmdirSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { takeFolderLock } from '../../src/embedded/folder-lock.ts';

// Takes and releases the lock of a data folder repeatedly, while other processes do the same. At the end, this process
// prints how often another process had the lock at the same time, which must be 0. Then it kills itself while it has
// the lock.

const ROUNDS = 30;
const [folder = ''] = process.argv.slice(2);
const inside = join(folder, 'inside');

/**
 * Returns false if another process has the lock, too. Each process with the lock makes the folder `inside` for a
 * moment. If two processes try this at the same time, one of them cannot make the folder.
 */
async function isAlone(): Promise<boolean> {
  try {
    mkdirSync(inside);
  } catch {
    return false;
  }
  await sleep(1);
  rmdirSync(inside);
  return true;
}

let violations = 0;
for (let round = 1; round <= ROUNDS; ) {
  const release = takeFolderLock(folder);
  if (release === undefined) {
    await sleep(1);
    continue;
  }
  if (!(await isAlone())) violations += 1;
  if (round === ROUNDS) {
    writeSync(1, `${violations}\n`);
    process.kill(process.pid, 'SIGKILL');
  }
  release();
  round += 1;
}
