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
  /** The path of the program. */
  postgres: string;
  pgdata: string;
  logFile: string;
  account: ServerAccount;
  /** Override the service's own parameters. */
  settings: ServerSettings;
}

/** A server that runs as a child of this process and accepts connections. */
export interface RunningServer {
  pid: number;
  port: number;
  /** Stops the server within 5 s. Does nothing if it has ended. */
  stop(): Promise<void>;
}

/** For one machine and one service: durable, reachable over loopback only, and without row values in the log. */
const SETTINGS: ServerSettings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: 100,
  shared_buffers: '128MB',
  fsync: 'on',
  // There is no archiving or replication, and bulk loads write less without them.
  wal_level: 'minimal',
  max_wal_senders: 0,
  // Compilation takes longer than any statement of the service, and workers do not pay off on a small machine.
  jit: 'off',
  max_parallel_workers_per_gather: 0,
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Clients get every error. Details and statements contain users' data, so they stay out of the log file.
  log_error_verbosity: 'terse',
  log_min_error_statement: 'panic',
};

/** How often to read a file of the server, to find out whether it has changed. */
export const POLL_INTERVAL_MS = 20;

/**
 * If a fast shutdown takes longer than this, the server is killed. The next start then recovers from the write-ahead
 * log.
 */
const FAST_STOP_MS = 4_000;

/** How long a start waits for the server of a killed service to end. */
const EARLIER_SERVER_MS = 10_000;

/**
 * Runs the server and, next to it, a shell that reads from a pipe of this process. However this process ends, the pipe
 * closes. The shell then shuts the server down.
 */
const RUN_SERVER = '(read -r _ <&3; kill -INT $$) 2>/dev/null & exec "$@" 3<&-';

/**
 * Starts the server on a free port, unless the settings name one. Waits for crash recovery. If the server does not
 * start, throws `EmbeddedPostgresError` with its log.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { pgdata, logFile, settings } = options;
  await waitForEarlierServer(pgdata);
  if (existsSync(logFile)) renameSync(logFile, `${logFile}.previous`);
  const port = Number(settings.port) || (await findFreePort());
  const child = spawnServer(options, port);
  const ended = once(child, 'exit');
  void ended.then(() => child.stdio[3]?.destroy());
  if (!(await waitUntilReady(child, pgdata)))
    throw new EmbeddedPostgresError(`PostgreSQL did not start: ${readFileSync(logFile, 'utf8').trim()}`);
  const stop = async () => {
    child.kill('SIGINT');
    const tooLate = setTimeout(() => child.kill('SIGKILL'), FAST_STOP_MS);
    await ended;
    clearTimeout(tooLate);
  };
  return { pid: child.pid!, port, stop };
}

/** Reads the port of the server that runs on a cluster. Undefined while it does not accept connections. */
export function readPort(pgdata: string): number | undefined {
  const lines = readPidFile(pgdata);
  return lines[7]?.trim() === 'ready' ? Number(lines[3]) : undefined;
}

/** The lines of `postmaster.pid`, which describe a server. None if there is no server. */
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
  while (isAlive(Number(readPidFile(pgdata)[0])) && Date.now() < giveUpAt) await sleep(POLL_INTERVAL_MS);
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
      // Postgres ignores a `postmaster.pid` that names its grandparent. So it starts even if an unrelated process has
      // the id of a killed server. It still refuses while the memory of an earlier server is in use.
      env: { ...PROGRAM_ENVIRONMENT, PG_GRANDPARENT_PID: readPidFile(pgdata)[0] },
      cwd: '/',
      // A separate session, so that Ctrl-C reaches only the service, which stops the server last.
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
    if (readPidFile(pgdata)[0] === String(child.pid) && readPort(pgdata) !== undefined) return true;
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
