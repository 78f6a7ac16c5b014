import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync, renameSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemCodeOf } from '../domain/thrown.ts';
import { PROGRAM_ENVIRONMENT } from './binaries.ts';
import { EmbeddedPostgresError } from './errors.ts';
import type { ServerAccount } from './server-account.ts';

/** Server parameters by name, as `postgres -c name=value` takes them. */
export type ServerSettings = Record<string, string | number>;

/** How to start a server. */
interface ServerOptions {
  /** The path of the program `postgres`. */
  postgres: string;
  pgdata: string;
  logFile: string;
  account: ServerAccount;
  /** Parameters that override those of `SETTINGS`. */
  settings: ServerSettings;
}

/** A server that runs as a child of this process and accepts connections. */
export interface RunningServer {
  pid: number;
  port: number;
  /** Stops the server within 5 s. Does nothing if the server has already ended. */
  stop(): Promise<void>;
}

/** These parameters make the server durable, let it listen on loopback only, and keep row values out of its log. */
const SETTINGS: ServerSettings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: 100,
  shared_buffers: '128MB',
  fsync: 'on',
  // Nothing archives or replicates the write-ahead log, so the server can write less to it during bulk loads.
  wal_level: 'minimal',
  max_wal_senders: 0,
  // Compiling a statement takes longer than it saves, and parallel workers do not pay off on a small machine.
  jit: 'off',
  max_parallel_workers_per_gather: 0,
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Clients get the whole error. The log omits its details and the failed statement: both may contain users' data.
  log_error_verbosity: 'terse',
  log_min_error_statement: 'panic',
};

/** The pause between two reads of `postmaster.pid`, while something waits for the server to start or end. */
export const POLL_INTERVAL_MS = 20;

/**
 * If a fast shutdown takes longer than this, the server is killed. The next start then recovers from the write-ahead
 * log.
 */
const FAST_STOP_MS = 4_000;

/** How long a start waits for the server of a killed service to end. */
const EARLIER_SERVER_MS = 10_000;

/**
 * A shell script that runs the server and, next to it, a subshell that reads from a pipe of this process (file
 * descriptor 3). However this process ends, the pipe closes. The subshell then shuts the server down. `$$` is the
 * process id of the server, because `exec` replaces the shell with the server.
 */
const RUN_SERVER = '(read -r _ <&3; kill -INT $$) 2>/dev/null & exec "$@" 3<&-';

/**
 * Starts the server on a free port, unless the settings name a port. Waits until the server accepts connections. After
 * a crash, the server recovers first. If the server does not start, throws `EmbeddedPostgresError` with its log.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { pgdata, logFile, settings } = options;
  await waitForEarlierServer(pgdata);
  if (existsSync(logFile)) renameSync(logFile, `${logFile}.previous`);
  const port = Number(settings.port) || (await findFreePort());
  const child = spawnServer(options, port);
  const ended = once(child, 'exit');
  // If the server ends by itself, the subshell of `RUN_SERVER` must end too.
  void ended.then(() => child.stdio[3]?.destroy());
  if (!(await waitUntilReady(child, pgdata)))
    throw new EmbeddedPostgresError(`PostgreSQL did not start: ${readFileSync(logFile, 'utf8').trim()}`);
  const stop = async () => {
    child.kill('SIGINT');
    const killTimer = setTimeout(() => child.kill('SIGKILL'), FAST_STOP_MS);
    await ended;
    clearTimeout(killTimer);
  };
  return { pid: child.pid!, port, stop };
}

/** The indexes of lines in `postmaster.pid`. */
const PID_LINE = 0;
const PORT_LINE = 3;
const STATUS_LINE = 7;

/** Returns the port in `postmaster.pid`, or undefined unless that file says that the server accepts connections. */
export function readPort(pgdata: string): number | undefined {
  const lines = readPidFile(pgdata);
  return lines[STATUS_LINE]?.trim() === 'ready' ? Number(lines[PORT_LINE]) : undefined;
}

/** Returns the lines of `postmaster.pid`, in which a server describes itself. Empty if there is no such file. */
function readPidFile(pgdata: string): string[] {
  try {
    return readFileSync(join(pgdata, 'postmaster.pid'), 'utf8').split('\n');
  } catch {
    return [];
  }
}

/**
 * Waits until the server of a killed service has ended. It waits no longer than `EARLIER_SERVER_MS`: if the process in
 * `postmaster.pid` still runs then, it is probably an unrelated process with the same id.
 */
async function waitForEarlierServer(pgdata: string): Promise<void> {
  const giveUpAt = Date.now() + EARLIER_SERVER_MS;
  while (isAlive(Number(readPidFile(pgdata)[PID_LINE])) && Date.now() < giveUpAt)
    await sleep(POLL_INTERVAL_MS);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return systemCodeOf(error) === 'EPERM';
  }
}

function spawnServer({ postgres, account, pgdata, logFile, settings }: ServerOptions, port: number) {
  const log = openSync(logFile, 'w', 0o600);
  const flags = Object.entries({ ...SETTINGS, ...settings, port }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);
  try {
    return spawn('/bin/sh', ['-c', RUN_SERVER, 'sh', postgres, '-D', pgdata, ...flags], {
      ...account,
      // Postgres does not start while the process in `postmaster.pid` runs, unless this variable names that process.
      // So Postgres starts even if an unrelated process has the id of a killed server. It still does not start while
      // the shared memory of an earlier server is in use.
      env: { ...PROGRAM_ENVIRONMENT, PG_GRANDPARENT_PID: readPidFile(pgdata)[PID_LINE] },
      cwd: '/',
      // `detached` gives the server its own session, so that Ctrl-C reaches only the service. The service stops the
      // server only after it has stopped everything else.
      detached: true,
      stdio: ['ignore', log, log, 'pipe'],
    });
  } finally {
    closeSync(log);
  }
}

/** Resolves to true when the server accepts connections, or to false if the server ends first. */
async function waitUntilReady(child: ChildProcess, pgdata: string): Promise<boolean> {
  while (child.exitCode === null && child.signalCode === null) {
    if (readPidFile(pgdata)[PID_LINE] === String(child.pid) && readPort(pgdata) !== undefined) return true;
    await sleep(POLL_INTERVAL_MS);
  }
  return false;
}

/** Finds a free port, because Postgres cannot choose one by itself. */
async function findFreePort(): Promise<number> {
  const probe = createServer();
  probe.listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  return port;
}
