import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** How often a file, or a process that is not our child, is looked at: neither can be awaited. */
export const POLL_INTERVAL_MS = 20;

/** A fast shutdown that takes longer is ended by force; the next start recovers what was not written from the log. */
const FAST_STOP_MS = 4_000;

/** A running server, as it describes itself in `postmaster.pid`. */
export interface Postmaster {
  pid: number;
  /** It takes connections; false while it starts up or shuts down. */
  isReady: boolean;
}

/** The server that runs on a cluster now, whoever started it; undefined where the file is of one that has ended. */
export function findPostmaster(pgdata: string): Postmaster | undefined {
  const lines = readPidFile(pgdata);
  const pid = Number(lines?.[0]);
  if (!lines || !(pid > 1) || !isServerOf(pid, pgdata, lines[1] ?? '')) return undefined;
  return { pid, isReady: lines[7]?.trim() === 'ready' };
}

/**
 * Changes a `postmaster.pid` that a server left behind when it was killed, so that Postgres starts although another
 * process has the server's id by now. The file is not removed: Postgres reads in it which memory segment to check, and
 * does not start beside backends that outlived their server.
 */
export function disownPidFile(pgdata: string): void {
  const lines = readPidFile(pgdata);
  if (!lines) return;
  // Postgres ignores a file that names its own parent process, which this process will be.
  // As root, in a folder of another user, a symbolic link is not followed.
  const file = openSync(
    join(pgdata, 'postmaster.pid'),
    constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW,
  );
  writeFileSync(file, [process.pid, ...lines.slice(1)].join('\n'));
  closeSync(file);
}

/**
 * Stops a server within 5 s: by a fast shutdown, which disconnects clients and writes everything, else by force.
 * `ended` resolves when its process has ended.
 */
export async function stopPostmaster(pid: number, ended: Promise<unknown>): Promise<void> {
  sendSignal(pid, 'SIGINT');
  const isLate = sleep(FAST_STOP_MS, true, { ref: false });
  if (await Promise.race([ended.then(() => false), isLate])) sendSignal(pid, 'SIGKILL');
  await ended;
}

/** Resolves when a server that is not our child has ended. */
export async function watchPostmasterEnd(pid: number, pgdata: string): Promise<void> {
  while (findPostmaster(pgdata)?.pid === pid) await sleep(POLL_INTERVAL_MS);
}

function readPidFile(pgdata: string): string[] | undefined {
  try {
    return readFileSync(join(pgdata, 'postmaster.pid'), 'utf8').split('\n');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Whether a process is the server of this very folder, and not one that has got its id since. A folder that was copied
 * while its server ran still names the original folder, whose server must not be stopped.
 */
function isServerOf(pid: number, pgdata: string, servedDir: string): boolean {
  const args = readArguments(pid);
  if (!basename(args[0] ?? '').startsWith('postgres') || !args.join(' ').includes(servedDir)) return false;
  try {
    return realpathSync(servedDir) === realpathSync(pgdata);
  } catch {
    return false;
  }
}

/** The arguments of a process, whoever owns it; empty where it has ended, also where nobody has collected it yet. */
function readArguments(pid: number): string[] {
  try {
    if (process.platform === 'linux')
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').filter(Boolean);
    const [state = 'Z', ...args] =
      execFileSync('ps', ['-ww', '-o', 'stat=,args=', '-p', String(pid)], {
        encoding: 'utf8',
      }).match(/\S+/g) ?? [];
    return state.startsWith('Z') ? [] : args;
  } catch {
    return [];
  }
}

function sendSignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}
