import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Returns the most CPU time, in milliseconds, that this thread used in one turn of the event loop while the work ran.
 * Elapsed time would be unreliable, because a turn may take arbitrarily long on a busy machine. Garbage is collected
 * before the work, so that earlier garbage does not count.
 */
export async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  collectGarbage();
  let longest = 0;
  let isDone = false;
  let last = process.threadCpuUsage();
  const note = () => {
    const now = process.threadCpuUsage();
    longest = Math.max(longest, now.user + now.system - last.user - last.system);
    last = now;
    if (!isDone) setImmediate(note);
  };
  setImmediate(note);
  await work().finally(() => {
    isDone = true;
  });
  return longest / 1_000;
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}
