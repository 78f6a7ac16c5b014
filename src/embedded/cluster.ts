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

/** The files of a PostgreSQL server (a cluster, in its manual) and the password of its only user. */
export interface Cluster {
  pgdata: string;
  password: string;
}

/** The folder of the cluster in a data folder. */
export const clusterDirOf = (dataDir: string): string => join(dataDir, 'postgres');

/** Reads the cluster of a data folder. Throws if another major version of PostgreSQL created it. */
export function readCluster(dataDir: string): Cluster {
  const clusterDir = clusterDirOf(dataDir);
  const pgdata = join(clusterDir, 'data');
  const version = readFileSync(join(pgdata, 'PG_VERSION'), 'utf8').trim();
  if (version === MAJOR_VERSION)
    return { pgdata, password: readFileSync(join(clusterDir, 'password'), 'utf8') };
  throw new EmbeddedPostgresError(
    `the data in ${clusterDir} was created by PostgreSQL ${version}, but this is ${MAJOR_VERSION}: ` +
      'set DATA_DIR to another folder, or move the data with pg_dump',
  );
}

/** The url of the cluster's database while its server listens on the port. */
export function urlOf(cluster: Cluster, port: number): string {
  return `postgres://${USER}:${cluster.password}@127.0.0.1:${port}/${DATABASE}`;
}

/**
 * Creates the cluster of a data folder if there is none. It is created in a draft folder that is renamed at the end,
 * so a crash leaves at most a draft.
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
  // Without this, a power loss could undo the renaming. The next start would then delete the draft with the data.
  if (fsync) syncFolder(dataDir);
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  fsyncSync(handle);
  closeSync(handle);
}

async function run(program: string, args: string[], account: ServerAccount, input = ''): Promise<void> {
  // A separate process group, so that Ctrl-C ends only the service. The next start removes the draft.
  const child = spawn(program, args, { ...account, env: PROGRAM_ENVIRONMENT, detached: true, cwd: '/' });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  child.stdout.resume();
  const [message, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  if (code !== 0) throw new EmbeddedPostgresError(`${program} failed: ${message.trim()}`);
}
