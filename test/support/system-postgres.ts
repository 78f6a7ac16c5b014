import { execFile } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { PROGRAM_ENVIRONMENT } from '../../src/embedded/binaries.ts';
import { startServer } from '../../src/embedded/server.ts';
import { asAccount, chooseServerAccount, giveFolder } from '../../src/embedded/server-account.ts';
import { runOn } from './database.ts';
import { makeFolder, removeFolder } from './folders.ts';
import { FAST_SETTINGS } from './postgres.ts';
import { noteProcess } from './processes.ts';
import { provide } from './programs.ts';
import { runDir } from './run.ts';

/** A private Postgres of the system's version, and its client programs. */
export interface SystemPostgres extends AsyncDisposable {
  /** Creates an empty database; returns its url with a role: the one that owns it and has no other right, or the superuser. */
  createDatabase(name: string, role?: typeof OWNER | typeof SUPERUSER): Promise<string>;
  /** Runs a script with a database as its `DATABASE_URL` and the server version's programs on its path. */
  runScript(script: string, databaseUrl: string, args: readonly string[]): Promise<void>;
}

const SUPERUSER = 'postgres';
const OWNER = 'bookmarks';

/** Starts the system's PostgreSQL, as `provide` finds it, with data of its own on a free port. */
export async function startSystemPostgres(): Promise<SystemPostgres> {
  const postgres = await provide('postgresql');
  const programs = dirname(postgres);
  const run = async (program: string, args: readonly string[], options = {}) => {
    const given = { ...options, env: PROGRAM_ENVIRONMENT, cwd: '/' };
    return (await promisify(execFile)(join(programs, program), [...args], given)).stdout;
  };

  const folder = makeFolder('postgres', runDir());
  const account = chooseServerAccount(join(folder, 'none'));
  giveFolder(account, folder);
  chmodSync(folder, 0o700);
  const pgdata = join(folder, 'data');
  const forServer = ['-D', pgdata, `--username=${SUPERUSER}`, '--auth=trust', '--no-sync'];
  await run('initdb', [...forServer, '--encoding=UTF8', '--locale=C'], asAccount(account));
  const binaries = { initdb: join(programs, 'initdb'), postgres };
  const logFile = join(folder, 'server.log');
  const server = await startServer({ pgdata, logFile, binaries, account, settings: FAST_SETTINGS });
  noteProcess(runDir(), server.pid);

  const urlOf = (user: string, database: string) => `postgres://${user}@127.0.0.1:${server.port}/${database}`;
  await runOn(
    urlOf(SUPERUSER, 'postgres'),
    `create role ${OWNER} login; create role bookmarks_serving nologin`,
  );
  return {
    createDatabase: async (name, role = OWNER) => {
      await runOn(urlOf(SUPERUSER, 'postgres'), `create database ${name} owner ${OWNER}`);
      return urlOf(role, name);
    },
    runScript: async (script, databaseUrl, args) => {
      const path = `${programs}:${process.env.PATH}`;
      const env = { ...PROGRAM_ENVIRONMENT, PATH: path, DATABASE_URL: databaseUrl };
      await promisify(execFile)('bash', [script, ...args], { env, cwd: '/' });
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
      removeFolder(folder);
    },
  };
}
