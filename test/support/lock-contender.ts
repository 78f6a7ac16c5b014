import { mkdirSync, rmdirSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { takeOwnerLock } from '../../src/embedded/owner-lock.ts';

// Takes the lock of the folder given again and again, beside others that do the same, and releases it each time but the
// last, when it is killed while it has the lock. Writes how often another process had it too, which must be never.

const ROUNDS = 30;
const [folder = ''] = process.argv.slice(2);
const inside = join(folder, 'inside');

/** Only one process may be inside: a folder can be made once. */
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
  const taken = takeOwnerLock(folder, 'command');
  if (taken === undefined || !('release' in taken)) {
    await sleep(1);
    continue;
  }
  if (!(await isAlone())) violations += 1;
  if (round === ROUNDS) {
    writeSync(1, `${violations}\n`);
    process.kill(process.pid, 'SIGKILL');
  }
  taken.release();
  round += 1;
}
