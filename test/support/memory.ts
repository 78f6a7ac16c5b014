import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Returns the resident memory of a process in bytes. Works on Linux only. */
export function residentBytes(pid: number): number {
  const [, kib] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!;
  return Number(kib) * 1_024;
}

/** Samples a process's resident memory while the work runs, and returns the greatest increase in bytes. */
export async function measureGrowth(pid: number, work: () => Promise<unknown>): Promise<number> {
  const before = residentBytes(pid);
  let peak = before;
  let isDone = false;
  const working = work().finally(() => {
    isDone = true;
  });
  const watching = (async () => {
    for (; !isDone; await sleep(10)) peak = Math.max(peak, residentBytes(pid));
  })();
  await Promise.all([working, watching]);
  return peak - before;
}
