import { chmodSync, existsSync, mkdirSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BaseLogger } from 'pino';
import { provideBinaries } from './binaries.ts';
import { clusterDirOf, openCluster, readCluster, urlOf } from './cluster.ts';
import { type Owner, type OwnerLock, type Purpose, takeOwnerLock } from './owner-lock.ts';
import { findPostmaster, LOOK_INTERVAL_MS, stopPostmaster, watchProcessEnd } from './postmaster.ts';
import { EmbeddedPostgresError } from './refusal.ts';
import { type RunningServer, type ServerSettings, startServer } from './server.ts';
import { canReach, chooseServerAccount, type ServerAccount } from './server-account.ts';

/** A database on this machine, open for us. */
export interface EmbeddedPostgres {
  /** Of the database `bookmarks`; holds the password, so it stays out of logs. */
  readonly url: string;
  /** The server's process, where we started it. */
  readonly pid?: number;
  /** Stops the server if we started it, within 5 s, and gives the data free. Safe to call twice. */
  stop(): Promise<void>;
}

/** How the embedded Postgres is opened. */
export interface EmbeddedPostgresOptions {
  /** Made where it is missing; relative to the working directory. */
  dataDir: string;
  log: Pick<BaseLogger, 'info' | 'warn' | 'error'>;
  /** Server parameters over our own, for tests. */
  settings?: ServerSettings;
}

/** A command holds the data for moments: whoever comes meanwhile waits. So long does a service take to start, too. */
const OWNER_WAIT_MS = 30_000;

/**
 * Opens the database kept in `dataDir`, made at the first use: a PostgreSQL server of our own on a free port of
 * 127.0.0.1. Throws `EmbeddedPostgresError` where it cannot, e.g. while another service uses the same data.
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
 * Opens the same database for a command: through the running service's server where there is one, which is then
 * left running, else through a server of its own.
 */
export async function attachEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, account } = prepareDataDir(options.dataDir);
  const taken = await takeData(dataDir, 'command', (owner) => findServedUrl(dataDir, owner));
  return typeof taken === 'string'
    ? { url: taken, stop: async () => {} }
    : serve(dataDir, account, taken, options);
}

function prepareDataDir(folder: string): { dataDir: string; account: ServerAccount | undefined } {
  const wanted = resolve(folder);
  const account = chooseServerAccount(clusterDirOf(wanted));
  try {
    const made = mkdirSync(wanted, { recursive: true, mode: 0o700 });
    // The server's account finds a folder of its own in it, and must get through whatever the umask.
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

/** Takes the data, or ends with what `onService` makes of the service that has it; waits while that is nothing yet. */
async function takeData(
  dataDir: string,
  purpose: Purpose,
  onService: (owner: Owner) => string | undefined,
): Promise<OwnerLock | string> {
  const giveUpAt = Date.now() + OWNER_WAIT_MS;
  for (;;) {
    const taken = tryTake(dataDir, purpose);
    if ('release' in taken) return taken;
    const url = taken.purpose === 'service' ? onService(taken) : undefined;
    if (url) return url;
    if (Date.now() > giveUpAt) {
      throw new EmbeddedPostgresError(
        `the data in ${dataDir} is held by process ${taken.pid}, which does not end`,
      );
    }
    await sleep(LOOK_INTERVAL_MS);
  }
}

function tryTake(dataDir: string, purpose: Purpose): OwnerLock | Owner {
  try {
    return takeOwnerLock(dataDir, purpose);
  } catch (error) {
    throw new EmbeddedPostgresError(
      `cannot write to the data folder (${(error as Error).message}): set DATA_DIR to a folder of your own`,
    );
  }
}

/** The url of the service's server once that takes connections; one left over from before it is about to be stopped. */
function findServedUrl(dataDir: string, owner: Owner): string | undefined {
  if (!existsSync(clusterDirOf(dataDir))) return undefined;
  const cluster = readCluster(dataDir);
  const postmaster = findPostmaster(cluster.pgdata);
  const isOwners = postmaster && (postmaster.startedAtSeconds + 1) * 1000 > Date.parse(owner.since);
  return isOwners && postmaster.ready ? urlOf(cluster, postmaster.port) : undefined;
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
    return { url: urlOf(cluster, server.port), pid: server.pid, stop: stopOnce(server, lock, log, logFile) };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** A service that was killed leaves its server running; nobody else may be using it, since the data is ours now. */
async function stopOrphan(pgdata: string, log: EmbeddedPostgresOptions['log']): Promise<void> {
  const orphan = findPostmaster(pgdata);
  if (!orphan) return;
  log.warn({ pid: orphan.pid }, 'stopping the embedded PostgreSQL that a killed service left behind');
  await stopPostmaster(orphan.pid, watchProcessEnd(orphan.pid));
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
