import { readdirSync, readFileSync } from 'node:fs';
import { listFamily } from '../../support/processes.ts';

/** CPU time and memory of processes, from Linux's /proc. */

/** Named groups of processes. A group consists of the processes with these ids and all their descendants. */
export type ProcessGroups = Record<string, number[]>;

/** The CPU time of each group in milliseconds. */
export type ProcessTimes = Record<string, number>;

/** The ticks of /proc/<pid>/stat are hundredths of a second on every Linux that Node supports. */
const TICK_MS = 10;

/**
 * Returns the CPU time that each group has used so far. The time of an ended process counts only after the parent
 * process has collected the exit status.
 */
export function readProcessTimes(groups: ProcessGroups): ProcessTimes {
  return Object.fromEntries(
    Object.entries(groups).map(([name, pids]) => [
      name,
      pids.flatMap(listFamily).reduce((sum, pid) => sum + runTimeMs(pid), 0),
    ]),
  );
}

/** Returns the CPU time that each group used between two readings. */
export function timesBetween(before: ProcessTimes, after: ProcessTimes): ProcessTimes {
  return Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, ms - (before[name] ?? 0)]));
}

function runTimeMs(pid: number): number {
  try {
    return threadsMs(pid) + collectedChildrenMs(pid);
  } catch {
    return 0;
  }
}

function threadsMs(pid: number): number {
  let ns = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ', 1)[0]);
  }
  return ns / 1e6;
}

function collectedChildrenMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[13]) + Number(fields[14])) * TICK_MS;
}

/** Returns the resident memory of a process in bytes. */
export function readResidentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1_024;
}

/** Returns the peak of resident memory, in bytes, since `5` was written to `clear_refs`. */
export function readPeakBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1_024;
}
