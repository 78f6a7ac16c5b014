import { execFile } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { PROGRAM_ENVIRONMENT } from '../../src/embedded/binaries.ts';
import { type RunningServer, type ServerSettings, startServer } from '../../src/embedded/server.ts';
import { chooseServerAccount, giveFolder } from '../../src/embedded/server-account.ts';
import { runOn } from './database.ts';
import { makeFolder, removeFolder } from './folders.ts';
import { FAST_SETTINGS } from './postgres.ts';
import { noteProcess, sendSignal } from './processes.ts';
import { provide } from './programs.ts';
import { runDir } from './run.ts';
import { until } from './until.ts';

/** A private Postgres of the version that the system has, with the client programs of that version. */
export interface SystemPostgres extends AsyncDisposable {
  /**
   * Creates a database and returns its url. The database is empty, or a copy of `template`. The url connects as
   * `role`: either the superuser, or a role that owns the database and has no other right.
   */
  createDatabase(name: string, role?: typeof OWNER | typeof SUPERUSER, template?: string): Promise<string>;
  dropDatabase(name: string): Promise<void>;
  /**
   * Runs a script. The script gets the url as its `DATABASE_URL`. The programs of the server's version come first in
   * the script's `PATH`.
   */
  runScript(
    script: string,
    databaseUrl: string,
    args: readonly string[],
    variables?: Record<string, string>,
  ): Promise<string>;
  /** Copies the server and starts the copy as a streaming standby. Requires the settings `REPLICATING`. */
  createStandby(): Promise<Standby>;
  /** Sends SIGKILL to the postmaster. Its backends then end by themselves. */
  kill(): Promise<void>;
}

/** A server that follows a primary server until it is promoted and takes the primary's place. */
interface Standby extends AsyncDisposable {
  /** Returns the url of the same database on the standby. */
  urlOf(databaseUrl: string): string;
  /** Resolves when the standby has replayed everything that the primary has written so far. */
  untilCaughtUp(): Promise<void>;
  /** Makes the standby stop receiving, as if the network between the servers had failed. */
  disconnect(): Promise<void>;
  /** Promotes the standby with everything that it has received. Resolves when it accepts writes. */
  promote(): Promise<void>;
}

/** Settings for a server that can have a standby, and for the standby. */
export const REPLICATING: ServerSettings = { wal_level: 'replica', max_wal_senders: 4 };

const SUPERUSER = 'postgres';
const OWNER = 'bookmarks';

/** Starts the system's PostgreSQL with its own data on a free port. */
export async function startSystemPostgres(more: ServerSettings = {}): Promise<SystemPostgres> {
  const postgres = await provide('postgresql');
  const programs = dirname(postgres);
  const run = async (program: string, args: readonly string[], options = {}) => {
    const allOptions = { ...options, env: PROGRAM_ENVIRONMENT, cwd: '/' };
    return (await promisify(execFile)(join(programs, program), [...args], allOptions)).stdout;
  };

  const folder = makeFolder('postgres', runDir());
  const account = chooseServerAccount(join(folder, 'none'));
  giveFolder(account, folder);
  chmodSync(folder, 0o700);
  const pgdata = join(folder, 'data');
  const access = [`--username=${SUPERUSER}`, '--auth=trust'];
  await run('initdb', ['-D', pgdata, ...access, '--no-sync', '--encoding=UTF8', '--locale=C'], account);
  const logFile = join(folder, 'server.log');
  const settings = { ...FAST_SETTINGS, ...more };
  const start = async (data: string, log: string) => {
    const started = await startServer({ pgdata: data, logFile: log, postgres, account, settings });
    noteProcess(runDir(), started.pid);
    return started;
  };
  const server = await start(pgdata, logFile);

  const urlOf = (user: string, database: string) => `postgres://${user}@127.0.0.1:${server.port}/${database}`;
  await runOn(
    urlOf(SUPERUSER, 'postgres'),
    `create role ${OWNER} login; create role bookmarks_serving nologin; create role bookmarks_backup nologin`,
  );
  return {
    createDatabase: async (name, role = OWNER, template = 'template1') => {
      await runOn(
        urlOf(SUPERUSER, 'postgres'),
        `create database ${name} owner ${OWNER} template ${template}`,
      );
      return urlOf(role, name);
    },
    dropDatabase: async (name) => {
      await runOn(urlOf(SUPERUSER, 'postgres'), `drop database ${name} with (force)`);
    },
    runScript: async (script, databaseUrl, args, variables = {}) => {
      const path = `${programs}:${process.env.PATH}`;
      const env = { ...PROGRAM_ENVIRONMENT, PATH: path, DATABASE_URL: databaseUrl, ...variables };
      const { stdout } = await promisify(execFile)('bash', [script, ...args], { env, cwd: '/' });
      return stdout;
    },
    createStandby: async () => {
      const copy = join(folder, 'standby');
      const source = ['--host=127.0.0.1', `--port=${server.port}`, `--username=${SUPERUSER}`];
      const how = ['--checkpoint=fast', '--wal-method=stream', '--write-recovery-conf', '--no-sync'];
      await run('pg_basebackup', [...source, ...how, `--pgdata=${copy}`], account);
      const standby = await start(copy, join(folder, 'standby.log'));
      return describeStandby(standby, urlOf(SUPERUSER, 'postgres'));
    },
    kill: async () => {
      sendSignal(server.pid, 'SIGKILL');
      await server.stop();
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
      removeFolder(folder);
    },
  };
}

/** Describes a running standby. `primaryUrl` is a superuser's url for a database of its primary. */
function describeStandby(server: RunningServer, primaryUrl: string): Standby {
  const urlOf = (url: string) => Object.assign(new URL(url), { port: String(server.port) }).href;
  const ask = async (url: string, expression: string) =>
    (await runOn<{ answer: string }>(url, `select (${expression})::text as answer`))[0]!.answer;
  const own = urlOf(primaryUrl);
  return {
    urlOf,
    async untilCaughtUp() {
      const written = await ask(primaryUrl, 'pg_current_wal_lsn()');
      await until(async () => (await ask(own, `pg_last_wal_replay_lsn() >= '${written}'`)) === 'true');
    },
    async disconnect() {
      await runOn(own, `alter system set primary_conninfo = ''`);
      await runOn(own, 'select pg_reload_conf()');
      await until(async () => (await ask(own, 'select count(*) from pg_stat_wal_receiver')) === '0');
    },
    async promote() {
      await ask(own, 'pg_promote(wait => true)');
      await until(async () => (await ask(own, 'pg_is_in_recovery()')) === 'false');
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}
