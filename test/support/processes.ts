import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readProcessStart } from './process-identity.ts';

interface ProcessState {
  parent: number;
  /** The state as in ps and /proc: `T` means stopped, `Z` means ended but not yet reaped by its parent. */
  state: string;
}

/** Returns the process and its descendants. The process comes first. */
export function listFamily(pid: number): number[] {
  const table = readProcessTable();
  const family = [pid];
  for (const member of family) {
    for (const [child, { parent }] of table) if (parent === member) family.push(child);
  }
  return family;
}

/** Freezes a process and its descendants, as if their machine hung. Resolves when none of them runs any more. */
export async function freezeFamily(pid: number): Promise<void> {
  for (;;) {
    const table = readProcessTable();
    const moving = listFamily(pid).filter((member) => !/^[TZ]/.test(table.get(member)?.state ?? 'Z'));
    if (moving.length === 0) return;
    for (const member of moving) sendSignal(member, 'SIGSTOP');
    await sleep(5);
  }
}

/** Resumes a frozen process and its descendants. */
export function thawFamily(pid: number): void {
  for (const member of listFamily(pid).reverse()) sendSignal(member, 'SIGCONT');
}

/**
 * Kills a process and its descendants. A frozen child would not end together with its parent, and nobody could find it
 * once the parent is gone.
 */
export function killFamily(pid: number): void {
  for (const member of listFamily(pid)) sendSignal(member, 'SIGKILL');
}

/** Returns whether a process runs. A zombie does not run. */
export function isRunning(pid: number): boolean {
  return readProcessStart(pid) !== undefined;
}

/** Sends a signal. Returns false if the process has ended. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/**
 * Records a process that a test file started. If the test file's own process is killed, the recorded process is killed
 * at the end of the run.
 */
export function noteProcess(runDir: string, pid: number): void {
  mkdirSync(join(runDir, 'processes'), { recursive: true });
  writeFileSync(join(runDir, 'processes', String(pid)), readProcessStart(pid) ?? '');
}

/**
 * Kills the recorded processes that still run, and their descendants. Returns the ids of these recorded processes, each
 * of which was left by a test that did not clean up.
 */
export function killNotedProcesses(runDir: string): number[] {
  const noted = join(runDir, 'processes');
  mkdirSync(noted, { recursive: true });
  const left = readdirSync(noted)
    .map(Number)
    .filter((pid) => readProcessStart(pid) === readFileSync(join(noted, String(pid)), 'utf8'));
  for (const pid of left) killFamily(pid);
  rmSync(noted, { recursive: true });
  return left;
}

function readProcessTable(): Map<number, ProcessState> {
  const lines = process.platform === 'linux' ? listProc() : listPs();
  return new Map(lines.map(([pid, state = '', parent]) => [Number(pid), { state, parent: Number(parent) }]));
}

/** Reads `/proc`, because minimal systems have no `ps`. */
function listProc(): string[][] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      return [[pid, ...stat.slice(stat.lastIndexOf(')') + 2).split(' ', 2)]];
    } catch {
      return [];
    }
  });
}

function listPs(): string[][] {
  const lines = execFileSync('ps', ['-axo', 'pid=,stat=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  return lines.map((line) => line.trim().split(/\s+/));
}
