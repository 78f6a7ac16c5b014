import { chmodSync, existsSync, globSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BaseLogger } from 'pino';
import { provideBinaries } from './binaries.ts';
import { clusterDirOf, makeCluster, readCluster, urlOf } from './cluster.ts';
import { EmbeddedPostgresError } from './errors.ts';
import { type FolderLock, type FolderOwner, type Purpose, takeFolderLock } from './folder-lock.ts';
import { POLL_INTERVAL_MS, readPort, type ServerSettings, startServer } from './server.ts';
import { canReach, chooseServerAccount, type ServerAccount } from './server-account.ts';

// The PostgreSQL of `npm start`. What each file protects against:
// folder-lock.ts: two services that use the same data, even after a crash of one.
// cluster.ts: a crash while the data is created, and data of another version.
// server.ts: a killed service, a server that Ctrl-C ends before the service, a port in use, a reused process id, a
// hang.
// server-account.ts: a start as root, which Postgres refuses.
// binaries.ts: a package that is not installed, or that the server's account cannot reach.

/** The database of a data folder, ready for connections. */
export interface EmbeddedPostgres {
  /** The url of the database `bookmarks`. It contains the password, so never log it. */
  readonly url: string;
  /** The server's process, if this process started it. */
  readonly pid?: number;
  /** If this process started the server, stops it within 5 s and frees the data. May be called twice. */
  stop(): Promise<void>;
}

/** How to open the embedded Postgres. */
interface EmbeddedPostgresOptions {
  /** Created if missing. Relative to the working directory. */
  dataDir: string;
  log: Pick<BaseLogger, 'info' | 'error'>;
  /** Server parameters that override the service's own, for tests. */
  settings?: ServerSettings;
}

/** How long to wait while a command uses the data, or while a service with the same data is starting. */
const OWNER_WAIT_MS = 30_000;

/**
 * Opens the database in `dataDir` and creates it on first use. Starts a PostgreSQL server on a free port of
 * 127.0.0.1. Throws `EmbeddedPostgresError` if that fails, for example because another service uses the same data.
 */
export async function openEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  return open(options, 'service');
}

/**
 * Opens the same database for a command. Uses the server of a running service, or starts one and stops it afterwards.
 */
export async function attachEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  return open(options, 'command');
}

async function open(options: EmbeddedPostgresOptions, purpose: Purpose): Promise<EmbeddedPostgres> {
  const { dataDir, account } = prepareDataDir(options.dataDir);
  const giveUpAt = Date.now() + OWNER_WAIT_MS;
  for (;;) {
    const taken = takeFolder(dataDir, purpose);
    if (taken && 'release' in taken) return serve(dataDir, account, taken, options);
    if (taken?.purpose === 'service') {
      const url = purpose === 'command' ? findUrl(dataDir) : undefined;
      if (url !== undefined) return { url, stop: async () => {} };
      if (purpose === 'service') throw inUse(dataDir, taken);
    }
    if (Date.now() > giveUpAt) throw inUse(dataDir, taken);
    await sleep(POLL_INTERVAL_MS);
  }
}

const inUse = (dataDir: string, owner: FolderOwner | undefined) =>
  new EmbeddedPostgresError(
    `the data in ${dataDir} is in use by process ${owner?.pid ?? 'unknown'}: stop that process first, ` +
      'or set DATA_DIR to another folder',
  );

/** The url of a server that another process started. Undefined while it does not accept connections. */
function findUrl(dataDir: string): string | undefined {
  if (!existsSync(clusterDirOf(dataDir))) return undefined;
  const cluster = readCluster(dataDir);
  const port = readPort(cluster.pgdata);
  return port === undefined ? undefined : urlOf(cluster, port);
}

function prepareDataDir(folder: string): { dataDir: string; account: ServerAccount } {
  const wanted = resolve(folder);
  const account = chooseServerAccount(clusterDirOf(wanted));
  try {
    const made = makeFolder(wanted);
    // The server's account must reach its own folder inside this one, whatever the umask is.
    if (made && account.uid !== undefined) chmodSync(wanted, 0o755);
  } catch (error) {
    throw new EmbeddedPostgresError(
      `cannot create the data folder (${(error as Error).message}): set DATA_DIR to another folder`,
    );
  }
  if (canReach(account, wanted)) return { dataDir: realpathSync(wanted), account };
  throw new EmbeddedPostgresError(
    `PostgreSQL does not run as root but as user ${account.uid}, which cannot reach the data folder ${wanted}: ` +
      'set DATA_DIR to a folder that this user can reach, e.g. DATA_DIR=/var/lib/bookmark-service',
  );
}

/**
 * Creates a folder and its parents. Returns false if it exists. Node's own `recursive` option loops forever in
 * folders like /proc, which report a missing parent.
 */
function makeFolder(path: string): boolean {
  if (existsSync(path)) return false;
  makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
    return true;
  } catch (error) {
    // Another process created it first.
    if (existsSync(path)) return false;
    throw error;
  }
}

function takeFolder(dataDir: string, purpose: Purpose): FolderLock | FolderOwner | undefined {
  try {
    return takeFolderLock(dataDir, purpose);
  } catch (error) {
    throw new EmbeddedPostgresError(
      `cannot write to the data folder (${(error as Error).message}): set DATA_DIR to a folder of your own`,
    );
  }
}

async function serve(
  dataDir: string,
  account: ServerAccount,
  lock: FolderLock,
  { log, settings = {} }: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  try {
    for (const draft of globSync('draft-*', { cwd: dataDir }))
      rmSync(join(dataDir, draft), { recursive: true, force: true, maxRetries: 3 });
    const binaries = await provideBinaries(dataDir, account);
    await makeCluster(dataDir, binaries, account, settings.fsync !== 'off');
    const cluster = readCluster(dataDir);
    const logFile = join(dataDir, 'postgres.log');
    const { postgres } = binaries;
    const server = await startServer({ postgres, pgdata: cluster.pgdata, logFile, account, settings });
    log.info({ dataDir, port: server.port, pid: server.pid }, 'embedded PostgreSQL started');
    let stopping: Promise<void> | undefined;
    void server.ended.then(() => {
      if (!stopping)
        log.error({ pid: server.pid, logFile }, 'the embedded PostgreSQL has stopped; restart the service');
    });
    const stop = () => (stopping ??= server.stop().finally(() => lock.release()));
    return { url: urlOf(cluster, server.port), pid: server.pid, stop };
  } catch (error) {
    lock.release();
    throw error;
  }
}
