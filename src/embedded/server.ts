import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, renameSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Binaries, PROGRAM_ENVIRONMENT } from './binaries.ts';
import { EmbeddedPostgresError } from './errors.ts';
import { disownPidFile, findPostmaster, POLL_INTERVAL_MS, stopPostmaster } from './postmaster.ts';
import { asAccount, type ServerAccount } from './server-account.ts';

/** Server parameters by name, as `postgres -c name=value` takes them. */
export type ServerSettings = Record<string, string | number>;

/** How a server is started. */
export interface ServerOptions {
  pgdata: string;
  logFile: string;
  binaries: Binaries;
  account: ServerAccount | undefined;
  /** Replace the service's own. */
  settings: ServerSettings;
}

/** A server that is a child of this process and takes connections. */
export interface RunningServer {
  pid: number;
  port: number;
  /** Resolves when the server's process has ended, for whatever reason. */
  ended: Promise<void>;
  /** Stops it within 5 s; does nothing where it has ended already. */
  stop(): Promise<void>;
}

/** For one machine and one service: safe on disk, reached over loopback only, quiet about row values. */
const SETTINGS: ServerSettings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: 100,
  shared_buffers: '128MB',
  fsync: 'on',
  // Nothing here archives or replicates, and without it bulk loads write less.
  wal_level: 'minimal',
  max_wal_senders: 0,
  // Compiling takes longer than any statement of the service, and workers cost more than they gain on a small machine.
  jit: 'off',
  max_parallel_workers_per_gather: 0,
  timezone: 'UTC',
  log_timezone: 'UTC',
  // The client gets every error. Details and statements hold users' rows, so they stay out of the log file.
  log_error_verbosity: 'terse',
  log_min_error_statement: 'panic',
};

/** How long to wait for backends of a killed server. They end by themselves within moments, unless they are frozen. */
const OLD_BACKENDS_MS = 10_000;

/** How many ports to try: another process may take a free one before the server does. */
const PORT_TRIES = 5;

/**
 * Starts the server, on a free port unless the settings name one. Waits for its recovery after a crash, and for backends
 * of an earlier server that are still ending. Throws `EmbeddedPostgresError` with the server's log where it does not start.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  disownPidFile(options.pgdata);
  if (existsSync(options.logFile)) renameSync(options.logFile, `${options.logFile}.previous`);
  const giveUpAt = Date.now() + OLD_BACKENDS_MS;
  for (let tries = 1; ; tries += 1) {
    const port = Number(options.settings.port) || (await findFreePort());
    const child = spawnServer(options, port);
    const ended = watchEnd(child);
    const fault = await Promise.race([ended, waitUntilReady(child, options.pgdata)]);
    if (fault === undefined) return describeServer(child, port, ended);
    const log = fault === '' ? readFileSync(options.logFile, 'utf8').trim() : fault;
    const isPortTaken = /could not create any TCP\/IP sockets|Address already in use/.test(log);
    const hasOldBackends = log.includes('pre-existing shared memory block') && Date.now() < giveUpAt;
    if (hasOldBackends) await sleep(100);
    else if (!isPortTaken || tries >= PORT_TRIES)
      throw new EmbeddedPostgresError(`PostgreSQL does not start: ${log}`);
  }
}

function spawnServer(
  { binaries, account, pgdata, logFile, settings }: ServerOptions,
  port: number,
): ChildProcess {
  const log = openSync(logFile, 'w', 0o600);
  const flags = Object.entries({ ...SETTINGS, ...settings, port }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);
  try {
    return spawn(binaries.postgres, ['-D', pgdata, ...flags], {
      ...asAccount(account),
      env: PROGRAM_ENVIRONMENT,
      cwd: '/',
      // A session of its own: Ctrl-C at the terminal reaches the service alone, which stops the server last.
      detached: true,
      // A file and no pipe: a server that outlives a killed service goes on writing its log.
      stdio: ['ignore', log, log],
    });
  } finally {
    closeSync(log);
  }
}

/** Resolves when the process has ended: with the fault where it could not be run at all, else with an empty text. */
function watchEnd(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', () => resolve(''));
  });
}

/** Resolves when the server takes connections; never where its process has ended before. */
async function waitUntilReady(child: ChildProcess, pgdata: string): Promise<undefined> {
  while (isRunning(child)) {
    const postmaster = findPostmaster(pgdata);
    if (postmaster?.pid === child.pid && postmaster?.isReady) return undefined;
    await sleep(POLL_INTERVAL_MS);
  }
  return new Promise(() => {});
}

const isRunning = (child: ChildProcess): boolean =>
  child.pid !== undefined && child.exitCode === null && child.signalCode === null;

function describeServer(child: ChildProcess, port: number, end: Promise<unknown>): RunningServer {
  const pid = child.pid!;
  const ended = end.then(() => {});
  return { pid, port, ended, stop: async () => (isRunning(child) ? stopPostmaster(pid, ended) : undefined) };
}

/** A port that is free now: Postgres cannot choose one by itself. */
async function findFreePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => probe.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
