import { chmodSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BaseLogger } from 'pino';
import { provideBinaries } from './binaries.ts';
import { clusterDirOf, openCluster, readCluster, urlOf } from './cluster.ts';
import { EmbeddedPostgresError } from './errors.ts';
import { type FolderOwner, type OwnerLock, type Purpose, takeOwnerLock } from './owner-lock.ts';
import { findPostmaster, POLL_INTERVAL_MS, stopPostmaster, watchPostmasterEnd } from './postmaster.ts';
import { type RunningServer, type ServerSettings, startServer } from './server.ts';
import { canReach, chooseServerAccount, type ServerAccount } from './server-account.ts';

// The PostgreSQL of `npm start`. What each file protects from:
// owner-lock.ts      two services on the same data, however either of them ended
// cluster.ts         a crash while the data is created; data of another user or of another version
// postmaster.ts      a server that a killed service left running; a process id that another process has by now; a hang
// server.ts          Ctrl-C that ends the server before the service; a port that is taken; backends of a killed server
// server-account.ts  a start as root, which Postgres refuses
// binaries.ts        a package that is not installed, or not within reach of the server's account

/** The database of a data folder, ready for connections. */
export interface EmbeddedPostgres {
  /** Of the database `bookmarks`; holds the password, so it stays out of logs. */
  readonly url: string;
  /** The server's process, where this process started it. */
  readonly pid?: number;
  /** Stops the server within 5 s and frees the data, where this process started it. May be called twice. */
  stop(): Promise<void>;
}

/** How the embedded Postgres is opened. */
export interface EmbeddedPostgresOptions {
  /** Created where it is missing; relative to the working directory. */
  dataDir: string;
  log: Pick<BaseLogger, 'info' | 'warn' | 'error'>;
  /** Server parameters that replace the service's own, for tests. */
  settings?: ServerSettings;
}

/** How long to wait for the data while a command has it, or while a service that has it is still starting. */
const OWNER_WAIT_MS = 30_000;

/**
 * Opens the database in `dataDir`, which is created at the first use: starts a PostgreSQL server on a free port of
 * 127.0.0.1. Throws `EmbeddedPostgresError` where it cannot, for instance while another service uses the same data.
 */
export async function openEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, account } = prepareDataDir(options.dataDir);
  const lock = await takeData(dataDir, 'service', (owner) => {
    throw new EmbeddedPostgresError(
      `the data in ${dataDir} is in use by process ${owner.pid}, which runs since ${owner.since}: ` +
        'stop that one first, or set DATA_DIR to another folder',
    );
  });
  return serve(dataDir, account, lock as OwnerLock, options);
}

/**
 * Opens the same database for a command: on the server of a running service, which goes on running, or else on a server
 * that it starts and stops itself.
 */
export async function attachEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, account } = prepareDataDir(options.dataDir);
  const taken = await takeData(dataDir, 'command', ({ port }) =>
    port === undefined ? undefined : urlOf(readCluster(dataDir), port),
  );
  return typeof taken === 'string'
    ? { url: taken, stop: async () => {} }
    : serve(dataDir, account, taken, options);
}

function prepareDataDir(folder: string): { dataDir: string; account: ServerAccount | undefined } {
  const wanted = resolve(folder);
  const account = chooseServerAccount(clusterDirOf(wanted));
  try {
    const made = makeFolder(wanted);
    // The server's account has a folder of its own in it, which it must reach whatever the umask is.
    if (made && account) chmodSync(wanted, 0o755);
  } catch (error) {
    throw new EmbeddedPostgresError(
      `cannot make the data folder (${(error as Error).message}): set DATA_DIR to one`,
    );
  }
  if (canReach(account, wanted)) return { dataDir: realpathSync(wanted), account };
  throw new EmbeddedPostgresError(
    `PostgreSQL does not run as root but as user ${account?.name}, who cannot reach the data folder ${wanted}: ` +
      'set DATA_DIR to a folder outside of private ones, e.g. DATA_DIR=/var/lib/bookmark-service',
  );
}

/**
 * Makes a folder and those above it; false where it is there. One by one: Node's own `recursive` never returns for a folder
 * that the system refuses as if its parent were missing, as in /proc.
 */
function makeFolder(path: string): boolean {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return false;
  makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process was faster.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
  return true;
}

/**
 * Takes the data, or returns what `onService` returns for the service that has it. Waits while that is undefined, and
 * while a command has the data.
 */
async function takeData(
  dataDir: string,
  purpose: Purpose,
  onService: (owner: FolderOwner) => string | undefined,
): Promise<OwnerLock | string> {
  const giveUpAt = Date.now() + OWNER_WAIT_MS;
  for (;;) {
    const taken = tryTake(dataDir, purpose);
    if (taken !== undefined && 'release' in taken) return taken;
    const url = taken?.purpose === 'service' ? onService(taken) : undefined;
    if (url !== undefined) return url;
    if (Date.now() > giveUpAt) {
      throw new EmbeddedPostgresError(
        `the data in ${dataDir} is in use by process ${taken?.pid ?? 'unknown'}, which does not end`,
      );
    }
    await sleep(POLL_INTERVAL_MS);
  }
}

function tryTake(dataDir: string, purpose: Purpose): OwnerLock | FolderOwner | undefined {
  try {
    return takeOwnerLock(dataDir, purpose);
  } catch (error) {
    throw new EmbeddedPostgresError(
      `cannot write to the data folder (${(error as Error).message}): set DATA_DIR to a folder of your own`,
    );
  }
}

async function serve(
  dataDir: string,
  account: ServerAccount | undefined,
  lock: OwnerLock,
  { log, settings = {} }: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  try {
    const binaries = await provideBinaries(dataDir, account);
    const cluster = await openCluster(dataDir, binaries, account, settings.fsync !== 'off');
    await stopOrphan(cluster.pgdata, log);
    const logFile = join(dataDir, 'postgres.log');
    const server = await startServer({ pgdata: cluster.pgdata, logFile, binaries, account, settings });
    log.info({ dataDir, port: server.port, pid: server.pid }, 'embedded PostgreSQL started');
    lock.publishPort(server.port);
    return { url: urlOf(cluster, server.port), pid: server.pid, stop: stopOnce(server, lock, log, logFile) };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Stops the server that a killed service left running. Nobody uses it: this process has the data. */
async function stopOrphan(pgdata: string, log: EmbeddedPostgresOptions['log']): Promise<void> {
  const orphan = findPostmaster(pgdata);
  if (!orphan) return;
  log.warn({ pid: orphan.pid }, 'stopping the embedded PostgreSQL that a killed service left behind');
  await stopPostmaster(orphan.pid, watchPostmasterEnd(orphan.pid, pgdata));
}

function stopOnce(
  server: RunningServer,
  lock: OwnerLock,
  log: EmbeddedPostgresOptions['log'],
  logFile: string,
): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  void server.ended.then(() => {
    if (!stopping)
      log.error({ pid: server.pid, logFile }, 'the embedded PostgreSQL ended; start the service again');
  });
  return () => {
    stopping ??= server.stop().finally(() => lock.release());
    return stopping;
  };
}
