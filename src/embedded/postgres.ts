import { existsSync, globSync, mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BaseLogger } from 'pino';
import { messageOf } from '../domain/thrown.ts';
import { provideBinaries } from './binaries.ts';
import { clusterDirOf, makeCluster, pgdataOf, urlOf } from './cluster.ts';
import { EmbeddedPostgresError } from './errors.ts';
import { LOCK_FILE, readOwner, takeFolderLock } from './folder-lock.ts';
import { POLL_INTERVAL_MS, readPort, type ServerSettings, startServer } from './server.ts';
import { canReach, chooseServerAccount, type ServerAccount } from './server-account.ts';

// The PostgreSQL that `npm start` runs. These files of this folder handle the following faults:
// folder-lock.ts: a second service opens the same data, or a service crashes while it holds the lock.
// cluster.ts: a crash while the data is created.
// server.ts: the service is killed, or Ctrl-C would end the server before the service.
// server-account.ts: the service runs as root, which Postgres refuses.
// binaries.ts: the package is not installed, or the server's account cannot reach it.

/** The database of a data folder, ready for connections. */
export interface EmbeddedPostgres {
  /** The url of the database `bookmarks`. It contains the password, so never log it. */
  readonly url: string;
  /** The id of the server's process, if this process started the server. */
  readonly pid?: number;
  /** If this process started the server, stops it within 5 s and unlocks the data folder. May be called twice. */
  stop(): Promise<void>;
}

/** How to open the embedded Postgres. */
interface EmbeddedPostgresOptions {
  /** The data folder, relative to the working directory. It is created if it is missing. */
  dataDir: string;
  log: Pick<BaseLogger, 'info'>;
  /** Server parameters that override the service's own, for tests. */
  settings?: ServerSettings;
}

/** How long a command waits for a service that has locked the folder but is still starting. */
const OWNER_WAIT_MS = 30_000;

/**
 * Opens the database in `dataDir` and creates it on first use. Starts a PostgreSQL server on a free port of
 * 127.0.0.1. Throws `EmbeddedPostgresError` if that fails, for example because another process uses the same data.
 */
export async function openEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const folder = prepareDataDir(options.dataDir);
  const unlock = lockFolder(folder.dataDir);
  if (unlock === undefined) throw inUse(folder.dataDir);
  return openLocked(folder, unlock, options);
}

/**
 * Opens the database in `dataDir` for a command. Uses the server of a running service. If no service runs, starts a
 * server, which `stop` ends. Throws `EmbeddedPostgresError` if no service has created a database there, because the
 * result of a command in a new database would be of no use.
 */
export async function attachEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const isUsed = existsSync(join(resolve(options.dataDir), LOCK_FILE));
  if (!isUsed) throw noDatabase(resolve(options.dataDir));
  const folder = prepareDataDir(options.dataDir);
  const { dataDir } = folder;
  const giveUpAt = Date.now() + OWNER_WAIT_MS;
  while (Date.now() < giveUpAt) {
    const unlock = lockFolder(dataDir);
    if (unlock && !existsSync(clusterDirOf(dataDir))) {
      unlock();
      throw noDatabase(dataDir);
    }
    if (unlock) return openLocked(folder, unlock, options);
    const portOfService = readPort(pgdataOf(dataDir));
    if (portOfService !== undefined) return { url: urlOf(dataDir, portOfService), stop: async () => {} };
    await sleep(POLL_INTERVAL_MS);
  }
  throw inUse(dataDir);
}

const inUse = (dataDir: string) =>
  new EmbeddedPostgresError(
    `the data in ${dataDir} is in use by process ${readOwner(dataDir)}: stop that process first, ` +
      'or set DATA_DIR to another folder',
  );

const noDatabase = (dataDir: string) =>
  new EmbeddedPostgresError(
    `there is no database in ${dataDir}: set DATA_DIR or DATABASE_URL as the service does, or start the service first`,
  );

interface DataFolder {
  dataDir: string;
  account: ServerAccount;
}

function prepareDataDir(folder: string): DataFolder {
  const dataDir = resolve(folder);
  const account = chooseServerAccount(clusterDirOf(dataDir));
  try {
    // If another account runs the server, that account must be able to enter the data folder, which contains the
    // cluster.
    mkdirSync(dataDir, { recursive: true, mode: account.uid === undefined ? 0o700 : 0o755 });
  } catch (error) {
    throw unusable(error);
  }
  if (canReach(account, dataDir)) return { dataDir, account };
  throw new EmbeddedPostgresError(
    `PostgreSQL does not run as root but as user ${account.uid}, which cannot reach the data folder ${dataDir}: ` +
      'set DATA_DIR to a folder that this user can reach, e.g. DATA_DIR=/var/lib/bookmark-service',
  );
}

function lockFolder(dataDir: string): (() => void) | undefined {
  try {
    return takeFolderLock(dataDir);
  } catch (error) {
    throw unusable(error);
  }
}

const unusable = (error: unknown) =>
  new EmbeddedPostgresError(
    `cannot create or use the data folder (${messageOf(error)}): set DATA_DIR to another folder`,
  );

/** Creates the database in a locked data folder if there is none, and then starts the server. */
async function openLocked(
  { dataDir, account }: DataFolder,
  unlock: () => void,
  { log, settings = {} }: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  try {
    // Interrupted starts may have left drafts.
    for (const draft of globSync('draft-*', { cwd: dataDir }))
      rmSync(join(dataDir, draft), { recursive: true, force: true, maxRetries: 3 });
    const binaries = await provideBinaries(dataDir, account);
    await makeCluster(dataDir, binaries, account);
    const logFile = join(dataDir, 'postgres.log');
    const { postgres } = binaries;
    const server = await startServer({ postgres, pgdata: pgdataOf(dataDir), logFile, account, settings });
    log.info({ dataDir, port: server.port, pid: server.pid }, 'embedded PostgreSQL started');
    let stopping: Promise<void> | undefined;
    const stop = () => (stopping ??= server.stop().finally(unlock));
    return { url: urlOf(dataDir, server.port), pid: server.pid, stop };
  } catch (error) {
    unlock();
    throw error;
  }
}
