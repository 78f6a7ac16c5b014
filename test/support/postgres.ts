import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { openEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import type { ServerSettings } from '../../src/embedded/server.ts';
import { makeFolder, removeFolder } from './folders.ts';
import { freezeFamily, isRunning, listFamily, noteProcess, sendSignal, thawFamily } from './processes.ts';
import { runDir } from './run.ts';
import { runOn, withDatabase } from './run-on.ts';
import { silentLog } from './silent-log.ts';
import { until } from './until.ts';

/**
 * Settings that make a server faster. With them, the server may lose data in a power failure, but not when it is
 * killed.
 */
export const FAST_SETTINGS: ServerSettings = {
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: 300,
  autovacuum_naptime: '10s',
  // If `TZ` is set, the server uses that time zone too.
  ...(process.env.TZ && { TimeZone: process.env.TZ }),
};

const templateDir = (): string => join(runDir(), 'postgres-template');

/**
 * Creates the data folder that is copied for each server of the run. Copying it takes a third of the time that a first
 * start takes.
 */
export async function makePostgresTemplate(): Promise<void> {
  const server = await openEmbeddedPostgres({
    dataDir: templateDir(),
    log: silentLog,
    settings: FAST_SETTINGS,
  });
  const locale = process.env.TEST_DATABASE_LOCALE;
  if (locale) await setLocale(server.url, locale);
  await server.stop();
}

/**
 * Gives the server's database, and all databases that are created later, an ICU locale such as `en-US` instead of `C`.
 */
async function setLocale(url: string, locale: string): Promise<void> {
  if (!/^[\w-]+$/.test(locale)) throw new Error(`TEST_DATABASE_LOCALE: not an ICU locale: ${locale}`);
  const run = (statement: string) => runOn(withDatabase(url, 'postgres'), statement);
  await run('alter database template1 is_template false');
  for (const name of ['template1', basename(new URL(url).pathname)]) {
    await run(`drop database ${name}`);
    await run(`create database ${name} template template0 locale_provider icu icu_locale '${locale}'`);
  }
  await run('alter database template1 is_template true');
}

/** Makes a data folder for a server: a copy of the template if the run has one, otherwise an empty folder. */
function makeDataDir(): string {
  const dataDir = makeFolder('postgres', runDir());
  if (!existsSync(templateDir())) return dataDir;
  const { status, stderr } = spawnSync('cp', ['-a', `${templateDir()}/.`, dataDir]);
  if (status !== 0) throw new Error(`the data of a Postgres cannot be copied: ${stderr}`);
  return dataDir;
}

/** A Postgres for one test, which may kill or freeze it. Its url stays the same over restarts. */
export interface PostgresServer extends AsyncDisposable {
  /** The url of its empty database `bookmarks`. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Sends SIGKILL to the postmaster, and resolves when its backends have ended by themselves. */
  kill(): Promise<void>;
  /** Sends SIGINT, so that the server closes its connections and writes all data to disk. */
  shutDown(): Promise<void>;
  /**
   * Starts the server again on the same port and data after `kill` or `shutDown`. If it still runs, shuts it down
   * first.
   */
  restart(): Promise<void>;
  /** Sends SIGSTOP to the postmaster and all its backends. */
  freeze(): Promise<void>;
  /** Sends SIGCONT to the postmaster and all its backends. */
  thaw(): void;
  /** Ends the server, even if it is frozen, and removes its data. */
  stop(): Promise<void>;
}

/** Starts a private Postgres 18 on a free port, with `FAST_SETTINGS` and `settings`. */
export async function startPostgres(settings: ServerSettings = {}): Promise<PostgresServer> {
  const dataDir = makeDataDir();
  const open = async (port?: number) => {
    const server = await openEmbeddedPostgres({
      dataDir,
      log: silentLog,
      settings: { ...FAST_SETTINGS, ...settings, ...(port ? { port } : {}) },
    });
    noteProcess(runDir(), server.pid!);
    return server;
  };
  let server = await open();
  const { url } = server;
  const port = Number(new URL(url).port);
  const kill = async () => {
    const family = listFamily(server.pid!);
    sendSignal(server.pid!, 'SIGKILL');
    await server.stop();
    await until(() => !family.some(isRunning));
  };
  const stop = async () => {
    thawFamily(server.pid!);
    await server.stop();
    removeFolder(dataDir);
  };
  return {
    url,
    port,
    get pid() {
      return server.pid!;
    },
    kill,
    shutDown: () => server.stop(),
    restart: async () => {
      await server.stop();
      server = await open(port);
    },
    freeze: () => freezeFamily(server.pid!),
    thaw: () => thawFamily(server.pid!),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
