import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * When a live process started, as a token that a later process with the same id never has (a reboot included);
 * `undefined` for a process that has ended. A zombie has ended: in containers nobody may ever collect it.
 */
export function readProcessStart(pid: number): string | undefined {
  return process.platform === 'linux' ? readStartFromProc(pid) : readStartFromPs(pid);
}

/** The arguments a live process was started with, readable whoever owns it; empty when there is none. */
export function readProcessArguments(pid: number): string[] {
  try {
    return process.platform === 'linux'
      ? readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      : execFileSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], { encoding: 'utf8' }).split(' ');
  } catch {
    return [];
  }
}

function readStartFromProc(pid: number): string | undefined {
  try {
    // The command's name stands in parentheses and may hold anything, so the fields are counted from the last one.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${bootId}/${fields[19]}`;
  } catch {
    return undefined;
  }
}

function readStartFromPs(pid: number): string | undefined {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    return line === '' || line.startsWith('Z') ? undefined : line.replace(/^\S+\s+/, '');
  } catch {
    return undefined;
  }
}
