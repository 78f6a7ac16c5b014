import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Binaries, PROGRAM_ENVIRONMENT } from './binaries.ts';
import { EmbeddedPostgresError } from './refusal.ts';
import { asAccount, giveFolder, type ServerAccount } from './server-account.ts';

/** The major version that the installed programs serve. */
const MAJOR_VERSION = '18';
const USER = 'bookmarks';
const DATABASE = 'bookmarks';

/** The files of a Postgres instance ("cluster" in its words) with the password of its only user. */
export interface Cluster {
  pgdata: string;
  password: string;
}

/** Where the cluster of a data folder lies. */
export function clusterDirOf(dataDir: string): string {
  return join(dataDir, 'postgres');
}

/**
 * Opens the cluster of a data folder, making it first where there is none. It is made under another name and
 * renamed when whole, so one that was interrupted is never met again but removed. `durable`: written through to
 * the disk before it gets its name.
 */
export async function openCluster(
  dataDir: string,
  binaries: Binaries,
  account: ServerAccount | undefined,
  durable: boolean,
): Promise<Cluster> {
  removeDrafts(dataDir);
  const clusterDir = clusterDirOf(dataDir);
  if (!existsSync(clusterDir)) await createCluster(dataDir, binaries, account, durable);
  else if (account && statSync(clusterDir).uid !== account.uid) giveFolder(account, clusterDir);
  return readCluster(dataDir);
}

/** Reads what is needed to reach the cluster of a data folder. Throws where it belongs to another user or version. */
export function readCluster(dataDir: string): Cluster {
  const clusterDir = clusterDirOf(dataDir);
  const pgdata = join(clusterDir, 'data');
  const cluster = { pgdata, password: readOwn(clusterDir, 'password') };
  const version = readOwn(clusterDir, 'data/PG_VERSION').trim();
  if (version === MAJOR_VERSION) return cluster;
  throw new EmbeddedPostgresError(
    `the data in ${clusterDir} was made by PostgreSQL ${version}, this is ${MAJOR_VERSION}: ` +
      'set DATA_DIR to another folder, or move the data over with pg_dump',
  );
}

/** The address of the cluster's database while it is served at a port of this machine. */
export function urlOf(cluster: Cluster, port: number): string {
  return `postgres://${USER}:${cluster.password}@127.0.0.1:${port}/${DATABASE}`;
}

function readOwn(clusterDir: string, file: string): string {
  try {
    return readFileSync(join(clusterDir, file), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
    throw new EmbeddedPostgresError(
      `the data in ${clusterDir} belongs to another user: start the service as that user or as root, ` +
        'or set DATA_DIR to a folder of your own',
    );
  }
}

function removeDrafts(dataDir: string): void {
  for (const name of readdirSync(dataDir).filter((each) => each.startsWith('draft-'))) {
    try {
      rmSync(join(dataDir, name), { recursive: true, force: true, maxRetries: 3 });
    } catch {
      // An initdb whose starter was killed may still be writing into it; the next start tries again.
    }
  }
}

async function createCluster(
  dataDir: string,
  binaries: Binaries,
  account: ServerAccount | undefined,
  durable: boolean,
): Promise<void> {
  const draft = await mkdtemp(join(dataDir, 'draft-postgres-'));
  const pgdata = join(draft, 'data');
  const passwordFile = join(draft, 'password');
  writeFileSync(passwordFile, randomBytes(24).toString('hex'), { mode: 0o600, flush: durable });
  giveFolder(account, draft);
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const access = [`--username=${USER}`, '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  const sync = durable ? [] : ['--no-sync'];
  await runProgram(binaries.initdb, ['-D', pgdata, ...locale, ...access, ...sync], account);
  // Done by the server's single-user mode, so that the folder is whole before it gets its name.
  const settings = ['-c', 'exit_on_error=true', '-c', `fsync=${durable ? 'on' : 'off'}`];
  const create = `create database ${DATABASE}\n`;
  await runProgram(binaries.postgres, ['--single', '-D', pgdata, ...settings, 'postgres'], account, create);
  if (durable) syncFolder(draft);
  await rename(draft, clusterDirOf(dataDir));
  // Without it a power loss could bring the draft's name back, and the next start would remove it with what it holds.
  if (durable) for (const folder of [dataDir, dirname(dataDir)]) syncFolder(folder);
}

/** Writes a folder's entries through to the disk, where the file system and the folder's rights let us. */
function syncFolder(folder: string): void {
  try {
    const handle = openSync(folder, 'r');
    fsyncSync(handle);
    closeSync(handle);
  } catch {
    // It is written some seconds later then.
  }
}

async function runProgram(
  program: string,
  args: string[],
  account: ServerAccount | undefined,
  input = '',
): Promise<void> {
  // A group of its own: Ctrl-C at the terminal ends us, and the half-made folder is removed at the next start.
  const child = spawn(program, args, {
    ...asAccount(account),
    env: PROGRAM_ENVIRONMENT,
    detached: true,
    cwd: '/',
  });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  child.stdout.resume();
  const [complaint, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]).catch(
    (cause: Error) => {
      throw new EmbeddedPostgresError(`cannot run ${program}: ${cause.message}`);
    },
  );
  if (code !== 0) throw new EmbeddedPostgresError(`${program} failed: ${complaint.trim()}`);
}
