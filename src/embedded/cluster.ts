import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Binaries, PROGRAM_ENVIRONMENT } from './binaries.ts';
import { EmbeddedPostgresError } from './errors.ts';
import { giveFolder, type ServerAccount } from './server-account.ts';

/** The major version of the installed programs. */
const MAJOR_VERSION = '18';
const USER = 'bookmarks';
const DATABASE = 'bookmarks';

/** The files of a PostgreSQL server, which its manual calls a cluster, and the password of its only user. */
export interface Cluster {
  pgdata: string;
  password: string;
}

/** The folder of the cluster in a data folder. */
export const clusterDirOf = (dataDir: string): string => join(dataDir, 'postgres');

/** Reads the cluster of a data folder; throws if another version of PostgreSQL made it. */
export function readCluster(dataDir: string): Cluster {
  const clusterDir = clusterDirOf(dataDir);
  const pgdata = join(clusterDir, 'data');
  const version = readFileSync(join(pgdata, 'PG_VERSION'), 'utf8').trim();
  if (version === MAJOR_VERSION)
    return { pgdata, password: readFileSync(join(clusterDir, 'password'), 'utf8') };
  throw new EmbeddedPostgresError(
    `the data in ${clusterDir} was made by PostgreSQL ${version}, this is ${MAJOR_VERSION}: ` +
      'set DATA_DIR to another folder, or move the data over with pg_dump',
  );
}

/** The url of the cluster's database while its server listens at the port. */
export function urlOf(cluster: Cluster, port: number): string {
  return `postgres://${USER}:${cluster.password}@127.0.0.1:${port}/${DATABASE}`;
}

/**
 * Makes the cluster of a data folder if there is none. The files are made in a draft folder, which is renamed when it is
 * complete. So a crash leaves at most a draft.
 */
export async function makeCluster(
  dataDir: string,
  binaries: Binaries,
  account: ServerAccount,
  fsync: boolean,
): Promise<void> {
  if (existsSync(clusterDirOf(dataDir))) return;
  const draft = await mkdtemp(join(dataDir, 'draft-postgres-'));
  const pgdata = join(draft, 'data');
  const passwordFile = join(draft, 'password');
  writeFileSync(passwordFile, randomBytes(24).toString('hex'), { mode: 0o600, flush: fsync });
  giveFolder(account, draft);
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const access = [`--username=${USER}`, '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  const sync = fsync ? [] : ['--no-sync'];
  await run(binaries.initdb, ['-D', pgdata, ...locale, ...access, ...sync], account);
  const settings = ['-c', 'exit_on_error=true', '-c', `fsync=${fsync ? 'on' : 'off'}`];
  const create = `create database ${DATABASE}\n`;
  await run(binaries.postgres, ['--single', '-D', pgdata, ...settings, 'postgres'], account, create);
  await rename(draft, clusterDirOf(dataDir));
  // Otherwise a power loss could undo the renaming, and the next start would remove the draft with the data in it.
  if (fsync) syncFolder(dataDir);
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  fsyncSync(handle);
  closeSync(handle);
}

async function run(program: string, args: string[], account: ServerAccount, input = ''): Promise<void> {
  // A process group of its own: Ctrl-C at the terminal ends the service alone, and the next start removes the draft.
  const child = spawn(program, args, { ...account, env: PROGRAM_ENVIRONMENT, detached: true, cwd: '/' });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  child.stdout.resume();
  const [message, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  if (code !== 0) throw new EmbeddedPostgresError(`${program} failed: ${message.trim()}`);
}
