import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { openEmbeddedPostgres } from '../../../src/embedded/postgres.ts';
import { migrate } from '../../../src/store/schema/migrations.ts';
import { makeFolder, removeFolder } from '../../support/folders.ts';
import { findMemoryFolder } from '../../support/memory-folder.ts';
import { findFreePort, waitUntilListening } from '../../support/ports.ts';
import { provide } from '../../support/programs.ts';
import { silentLog } from '../../support/silent-log.ts';
import { loadSamples } from './collections.ts';
import { runPsql } from './programs.ts';

/** One Postgres, one Redis and one folder, which all benchmarks share. Disposing removes them. */
export interface Environment extends AsyncDisposable {
  folder: string;
  postgresPid: number;
  redis: { url: string; pid: number };
  /** Variables for every replica. They override the usual settings, but not the settings of a single benchmark. */
  settings: Record<string, string>;
  /**
   * Returns the url of the database with this name. The first call creates and migrates the database, loads the sample
   * texts into it, and fills it with `make`. Later calls return the same database.
   */
  database(name: string, make: (url: string) => Promise<void>): Promise<string>;
  /** Copies a database under another name. Nobody may be connected to the original. */
  copy(url: string, name: string): Promise<string>;
  /**
   * Starts a server on the first call with this name. Later calls return the same server, which ends with the
   * environment.
   */
  share<T extends AsyncDisposable>(name: string, start: () => Promise<T>): Promise<T>;
  drop(url: string): Promise<void>;
}

/**
 * Writes are durable, as in production. The memory is that of a small dedicated server. Checkpoints are rare, so that
 * few run during a measurement.
 */
const POSTGRES_SETTINGS = {
  shared_buffers: '2GB',
  work_mem: '16MB',
  maintenance_work_mem: '512MB',
  max_connections: 400,
  max_wal_size: '16GB',
  checkpoint_timeout: '30min',
  file_copy_method: 'copy',
};

/** A smoke run measures nothing, so its database does not have to survive a power loss. */
const SMOKE_SETTINGS = {
  ...POSTGRES_SETTINGS,
  shared_buffers: '128MB',
  fsync: 'off',
  full_page_writes: 'off',
};

/** How to start the servers. */
interface EnvironmentOptions {
  isSmokeRun: boolean;
  /** Variables for every replica. */
  settings: Record<string, string>;
}

/** Starts Postgres and Redis. */
export async function openEnvironment({ isSmokeRun, settings }: EnvironmentOptions): Promise<Environment> {
  const stack = new AsyncDisposableStack();
  try {
    const folder = makeFolder('bench', isSmokeRun ? findMemoryFolder() : undefined);
    stack.defer(() => removeFolder(folder));
    const postgres = await openEmbeddedPostgres({
      dataDir: join(folder, 'postgres'),
      log: silentLog,
      settings: isSmokeRun ? SMOKE_SETTINGS : POSTGRES_SETTINGS,
    });
    stack.defer(() => postgres.stop());
    const redis = await startRedis(folder, stack);
    const databases = openDatabases(postgres.url, isSmokeRun ? 'wal_log' : 'file_copy');
    const base = await databases.create('base');
    await loadSamples(base);
    const made = new Map<string, Promise<string>>();
    const shared = new Map<string, Promise<AsyncDisposable>>();
    return {
      folder,
      postgresPid: postgres.pid!,
      redis,
      settings,
      database: (name, make) => {
        const url = made.get(name) ?? databases.copy(base, name).then((url) => make(url).then(() => url));
        made.set(name, url);
        url.catch(() => made.delete(name));
        return url;
      },
      copy: databases.copy,
      share: <T extends AsyncDisposable>(name: string, start: () => Promise<T>) => {
        const server = shared.get(name) ?? start().then((started) => stack.use(started));
        shared.set(name, server);
        // If the start fails, the next call tries again.
        server.catch(() => shared.delete(name));
        return server as Promise<T>;
      },
      drop: databases.drop,
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function startRedis(folder: string, stack: AsyncDisposableStack) {
  const port = await findFreePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const child = spawn(await provide('redis'), args, { stdio: 'ignore', cwd: folder });
  const ended = once(child, 'exit');
  stack.defer(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  await waitUntilListening(port);
  return { url: `redis://127.0.0.1:${port}`, pid: child.pid! };
}

/**
 * Returns functions that create, copy and drop databases of a server. The strategy `file_copy` copies large databases
 * faster, but needs a checkpoint.
 */
function openDatabases(serverUrl: string, strategy: 'file_copy' | 'wal_log') {
  const urlOf = (name: string) => Object.assign(new URL(serverUrl), { pathname: `/${name}` }).href;
  const nameOf = (url: string) => new URL(url).pathname.slice(1);
  const drop = async (url: string) => {
    await runPsql(serverUrl, `drop database if exists ${nameOf(url)} with (force)`);
  };
  return {
    create: async (name: string) => {
      await runPsql(serverUrl, `create database ${name}`);
      await migrate({ url: urlOf(name), log: silentLog });
      return urlOf(name);
    },
    copy: async (url: string, name: string) => {
      await drop(urlOf(name));
      await runPsql(serverUrl, `create database ${name} template ${nameOf(url)} strategy ${strategy}`);
      return urlOf(name);
    },
    drop,
  };
}
