import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, renameSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Binaries, PROGRAM_ENVIRONMENT } from './binaries.ts';
import { disownPidFile, findPostmaster, LOOK_INTERVAL_MS, stopPostmaster } from './postmaster.ts';
import { EmbeddedPostgresError } from './refusal.ts';
import { asAccount, type ServerAccount } from './server-account.ts';

/** Server parameters by name, as `postgres -c name=value` takes them. */
export type ServerSettings = Record<string, string | number>;

/** How a server is started. */
export interface ServerOptions {
  pgdata: string;
  logFile: string;
  binaries: Binaries;
  account: ServerAccount | undefined;
  /** Over our own. */
  settings: ServerSettings;
}

/** A server that is our child and takes connections. */
export interface RunningServer {
  pid: number;
  port: number;
  /** Resolves when the server's process has ended, whatever the reason. */
  ended: Promise<void>;
  /** Ends it within 5 s; safe to call when it has ended already. */
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
  // Compiling takes longer than any of our statements, and workers cost more than they bring on a small machine.
  jit: 'off',
  max_parallel_workers_per_gather: 0,
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Errors are told to the client; details and statements, which hold users' rows, stay out of the file.
  log_error_verbosity: 'terse',
  log_min_error_statement: 'panic',
};

/** Backends of a killed postmaster end by themselves within moments; a frozen one never does. */
const OLD_BACKENDS_MS = 10_000;
const PORT_TRIES = 5;
/** Recovery after a crash replays at most a gigabyte of log; what takes longer than this does not come up. */
const READY_MS = 120_000;

/** Starts the server on a free port, unless the settings name one. Waits for its recovery after a crash, and for backends that are still ending. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  disownPidFile(options.pgdata);
  if (existsSync(options.logFile)) renameSync(options.logFile, `${options.logFile}.previous`);
  const giveUpAt = Date.now() + OLD_BACKENDS_MS;
  for (let tries = 1; ; tries += 1) {
    const port = Number(options.settings.port) || (await findFreePort());
    const child = spawnServer(options, port);
    const ended = watchEnd(child);
    const outcome = await Promise.race([ended, waitUntilReady(child, options.pgdata)]);
    if (outcome === 'ready') return describeServer(child, port, ended);
    const complaint = outcome === undefined ? readFileSync(options.logFile, 'utf8').trim() : outcome;
    const portTaken = /could not create any TCP\/IP sockets|Address already in use/.test(complaint);
    const oldBackends = complaint.includes('pre-existing shared memory block') && Date.now() < giveUpAt;
    if (oldBackends) await sleep(100);
    else if (!portTaken || tries >= PORT_TRIES)
      throw new EmbeddedPostgresError(`PostgreSQL does not start: ${complaint}`);
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
      // A session of its own: Ctrl-C at the terminal reaches us alone, and we stop the server last.
      detached: true,
      // A file, not a pipe: the server outlives a killed service and must not find a broken pipe then.
      stdio: ['ignore', log, log],
    });
  } finally {
    closeSync(log);
  }
}

/** Resolves with the reason where the program could not be run at all, else with nothing. */
function watchEnd(child: ChildProcess): Promise<string | undefined> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', () => resolve(undefined));
  });
}

async function waitUntilReady(child: ChildProcess, pgdata: string): Promise<'ready' | undefined | string> {
  const giveUpAt = Date.now() + READY_MS;
  while (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
    const postmaster = findPostmaster(pgdata);
    if (postmaster?.pid === child.pid && postmaster.ready) return 'ready';
    if (Date.now() > giveUpAt) {
      child.kill('SIGQUIT');
      return `not ready within ${READY_MS / 1000} s`;
    }
    await sleep(LOOK_INTERVAL_MS);
  }
  return new Promise(() => {});
}

function describeServer(child: ChildProcess, port: number, exit: Promise<unknown>): RunningServer {
  const pid = child.pid!;
  const ended = exit.then(() => {});
  const isOver = () => child.exitCode !== null || child.signalCode !== null;
  return { pid, port, ended, stop: async () => (isOver() ? undefined : stopPostmaster(pid, ended)) };
}

/** Postgres cannot choose a port by itself; one that is taken in the moment between is noticed and replaced. */
async function findFreePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => probe.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
