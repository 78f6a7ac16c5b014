import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Returns when a process started, as a text. A later process with the same id has another text, even after a reboot.
 * Returns undefined for a process that has ended, including a zombie.
 */
export function readProcessStart(pid: number): string | undefined {
  return process.platform === 'linux' ? readStartFromProc(pid) : readStartFromPs(pid);
}

function readStartFromProc(pid: number): string | undefined {
  try {
    // The command's name is in parentheses and may contain anything, so the fields are counted from the end.
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
