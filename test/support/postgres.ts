import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { openEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import type { ServerSettings } from '../../src/embedded/server.ts';
import { usesContainers } from './containers.ts';
import { makeFolder, removeFolder } from './folders.ts';
import { startPostgresContainer } from './postgres-container.ts';
import type { PostgresServer } from './postgres-server.ts';
import { freezeFamily, isRunning, listFamily, noteProcess, sendSignal, thawFamily } from './processes.ts';
import { runDir } from './run.ts';
import { runOn, withDatabase } from './run-on.ts';
import { silentLog } from './silent-log.ts';
import { until } from './until.ts';

export type { PostgresServer } from './postgres-server.ts';

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

/**
 * Starts a private Postgres on a free port, with `FAST_SETTINGS` and `settings`. It is the embedded Postgres 18. With
 * `TEST_CONTAINERS=1` it is a container, unless the settings name files.
 */
export async function startPostgres(settings: ServerSettings = {}): Promise<PostgresServer> {
  // A container does not see the files that settings name.
  const namesFiles = Object.keys(settings).some((name) => /_(file|directories)$/.test(name));
  if (usesContainers() && !namesFiles)
    return startPostgresContainer({ ...FAST_SETTINGS, ...settings }, process.env.TEST_DATABASE_LOCALE);
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
    crash: async (signal) => {
      if (signal === 'SIGKILL') return kill();
      sendSignal(server.pid!, signal);
    },
    kill,
    shutDown: () => server.stop(),
    restart: async () => {
      await server.stop();
      server = await open(port);
    },
    freeze: () => freezeFamily(server.pid!),
    thaw: async () => thawFamily(server.pid!),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
