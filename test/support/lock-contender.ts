import { mkdirSync, readlinkSync, renameSync, rmdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type OwnerLock, takeOwnerLock } from '../../src/embedded/owner-lock.ts';

// Takes the lock of the folder given again and again, beside others that do the same, and gives it up by turns in
// order and as a crash leaves it. Writes how often it met another owner inside, which must be never.

const ROUNDS = 60;
const [folder = ''] = process.argv.slice(2);
const front = join(folder, 'owner.lock');

function crash(): void {
  const dead = JSON.stringify({ ...JSON.parse(readlinkSync(front)), started: 'before' });
  symlinkSync(dead, `${front}.dead-${process.pid}`);
  renameSync(`${front}.dead-${process.pid}`, front);
}

/** Being inside is what only one process may be: a folder can be made once. */
function isAlone(): boolean {
  try {
    mkdirSync(join(folder, 'inside'));
  } catch {
    return false;
  }
  readlinkSync(front);
  rmdirSync(join(folder, 'inside'));
  return true;
}

let violations = 0;
for (let round = 0; round < ROUNDS; ) {
  const taken = takeOwnerLock(folder, 'command');
  if ('pid' in taken) {
    await sleep(1);
    continue;
  }
  if (!isAlone()) violations += 1;
  if (round % 3 === 0) (taken as OwnerLock).release();
  else crash();
  round += 1;
}
console.log(violations);
