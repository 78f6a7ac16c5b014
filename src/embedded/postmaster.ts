import { closeSync, constants, openSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readProcessArguments, readProcessStart } from './process-identity.ts';

/** Another process's server cannot be awaited, only looked at; pg_ctl looks ten times a second. */
export const LOOK_INTERVAL_MS = 20;

/** A fast shutdown that takes longer is cut short; what it had not written, the next start recovers from the log. */
const FAST_STOP_MS = 3_500;
const IMMEDIATE_STOP_MS = 700;

/** A running server, as it describes itself in `postmaster.pid`. */
export interface Postmaster {
  pid: number;
  startedAtSeconds: number;
  port: number;
  /** It takes connections, rather than starting up or shutting down. */
  ready: boolean;
}

/** The server that runs on a cluster now, whoever started it; a file left behind by a dead one counts for nothing. */
export function findPostmaster(pgdata: string): Postmaster | undefined {
  const lines = readPidFile(pgdata);
  const pid = Number(lines?.[0]);
  if (!lines || !(pid > 1) || !isServerOf(pid, pgdata, lines[1] ?? '')) return undefined;
  return {
    pid,
    startedAtSeconds: Number(lines[2]),
    port: Number(lines[3]),
    ready: lines[7]?.trim() === 'ready',
  };
}

/**
 * Makes a `postmaster.pid` whose server has gone harmless: its process id may be another process's by now, or a
 * zombie's. The file is not removed, since its memory segment's id keeps the server from starting beside
 * backends that outlived their postmaster.
 */
export function disownPidFile(pgdata: string): void {
  const lines = readPidFile(pgdata);
  if (!lines) return;
  // Postgres takes a file with its parent's id for one of an earlier boot, and that parent will be this process.
  // As root, in a folder of another user, a symbolic link is not followed.
  const file = openSync(
    join(pgdata, 'postmaster.pid'),
    constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW,
  );
  writeFileSync(file, [process.pid, ...lines.slice(1)].join('\n'));
  closeSync(file);
}

/**
 * Stops a server within 5 s: fast shutdown (clients are disconnected, everything is written), then an immediate
 * one, then by force. `ended` resolves when its process has gone.
 */
export async function stopPostmaster(pid: number, ended: Promise<unknown>): Promise<void> {
  if (signal(pid, 'SIGINT') && (await endsWithin(FAST_STOP_MS, ended))) return;
  if (signal(pid, 'SIGQUIT') && (await endsWithin(IMMEDIATE_STOP_MS, ended))) return;
  signal(pid, 'SIGKILL');
  await ended;
}

/** Resolves when a process that is not our child has gone. */
export async function watchProcessEnd(pid: number): Promise<void> {
  const started = readProcessStart(pid);
  while (started !== undefined && readProcessStart(pid) === started) await sleep(LOOK_INTERVAL_MS);
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
 * Whether a process is the server of this very folder. Its arguments are readable whoever owns it; a folder that
 * was copied while its server ran still names the original, which is not ours to stop.
 */
function isServerOf(pid: number, pgdata: string, servedDir: string): boolean {
  if (readProcessStart(pid) === undefined) return false;
  const args = readProcessArguments(pid);
  if (!basename(args[0] ?? '').startsWith('postgres') || !args.join(' ').includes(servedDir)) return false;
  try {
    return realpathSync(servedDir) === realpathSync(pgdata);
  } catch {
    return false;
  }
}

function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

async function endsWithin(limitMs: number, ended: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController();
  const late = sleep(limitMs, false, { signal: timer.signal }).catch(() => false);
  try {
    return await Promise.race([ended.then(() => true), late]);
  } finally {
    timer.abort();
  }
}
